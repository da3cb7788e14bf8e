//! Cumulative sums and products.

use super::stub;
use crate::ir::op::*;

stub!(CumSum, CumProd);
