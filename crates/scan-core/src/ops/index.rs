//! Basic indexing, read and written.

use super::stub;
use crate::ir::op::*;

stub!(Index, IndexWrite);
