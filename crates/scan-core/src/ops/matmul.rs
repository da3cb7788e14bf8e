//! Matrix products.

use super::stub;
use crate::ir::op::*;

stub!(MatMul);
