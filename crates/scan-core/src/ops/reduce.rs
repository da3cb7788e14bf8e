//! Reductions.

use super::stub;
use crate::ir::op::*;

stub!(Reduce, ArgReduce);
