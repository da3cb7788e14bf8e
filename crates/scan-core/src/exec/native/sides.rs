//! What is computed beside a loop a block of steps at a time: its size, its names.

use crate::ir::{Graph, Op};

/// Rows of as many bytes in all are computed at once.
pub const WHOLE: usize = 1 << 20;
/// Bytes of a block.
pub const BLOCK: usize = 1 << 18;

/// The names of what a graph computes, and of what is made of it, each once.
pub fn names<'a>(graph: &'a Graph, more: Option<&'a str>) -> Vec<&'a str> {
    let mut names: Vec<&str> = vec![];
    let ops = graph.nodes().iter().map(|n| &n.op).filter(|op| !matches!(op, Op::Const(_)));
    for name in ops.map(Op::name).chain(more) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
