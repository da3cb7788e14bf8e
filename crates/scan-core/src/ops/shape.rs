//! Shapes: reshape, transpose, expand, squeeze, flip.

use super::stub;
use crate::ir::op::*;

stub!(Reshape, ReshapeLike, Transpose, Expand, Squeeze, Flip);
