//! Broadcasting and its transpose.

use super::stub;
use crate::ir::op::*;

stub!(BroadcastTo, BroadcastLike, SumTo);
