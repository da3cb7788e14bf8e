//! Linear algebra.

use super::stub;
use crate::ir::op::*;

stub!(Solve, Cholesky, Inverse, SLogDet);
