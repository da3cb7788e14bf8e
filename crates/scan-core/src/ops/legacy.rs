//! Draws of the legacy MT19937 streams.

use super::stub;
use crate::ir::op::*;

stub!(LegacyDraw);
