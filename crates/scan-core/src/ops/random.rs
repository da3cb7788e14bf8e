//! Draws keyed by Philox.

use super::stub;
use crate::ir::op::*;

stub!(FoldIn, RandomUniform, RandomNormal, RandomIntegers, RandomPermutation);
