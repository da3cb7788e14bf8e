//! Joining.

use super::stub;
use crate::ir::op::*;

stub!(Join);
