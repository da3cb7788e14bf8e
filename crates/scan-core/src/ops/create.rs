//! Arrays from nothing: constants, arange, eye, diag.

use super::stub;
use crate::ir::op::*;
use crate::types::Array;

stub!(Array, Arange, Eye, Diag, Tri);
