//! The loop as an op.

use super::stub;


stub!(crate::ir::Scan);
