//! Elementwise functions and casts.

use super::stub;
use crate::ir::op::*;

stub!(crate::scalar::ElemOp, Cast);
