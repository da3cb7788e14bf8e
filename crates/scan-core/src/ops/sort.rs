//! Sorting.

use super::stub;
use crate::ir::op::*;

stub!(Sort, ArgSort);
