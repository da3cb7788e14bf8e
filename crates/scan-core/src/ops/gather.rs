//! Advanced indexing, read and written.

use super::stub;
use crate::ir::op::*;

stub!(Gather, GatherWrite, Nonzero);
