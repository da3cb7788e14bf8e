//! What a loop begins with and returns, as bytes; why it may not come to its end.

use crate::base::{Diagnostic, Result};
use crate::dispatch;
use crate::ir::op::Outs;
use crate::ir::{EvalCx, Graph, Keep, Scan, StateId};
use crate::plan::Window;
use crate::types::shape::count;
use crate::types::words::Words;
use crate::types::{Array, DType, Dim};

/// Why a run did not come to its end.
#[derive(Debug)]
pub(super) enum Halt {
    /// What an op reports.
    Failed(Box<Diagnostic>),
    /// The plan leaves the loop to the law.
    Refused,
}

impl From<Box<Diagnostic>> for Halt {
    fn from(e: Box<Diagnostic>) -> Halt {
        Halt::Failed(e)
    }
}

/// What is computed before the first step.
///
/// # Errors
/// What the ops report; a refusal where a value has other extents than the plan says.
pub(super) fn before(graph: &Graph, scan: &Scan, cx: &mut EvalCx, ins: &[Array]) -> std::result::Result<Vec<Array>, Halt> {
    let mut args = vec![Array::scalar(0i64); graph.params().len()];
    for id in scan.captured.ids() {
        args[scan.captured_param(id)] = ins[scan.captured_input(id)].clone();
    }
    let values = crate::eval::run(graph, cx, &args)?;
    let fits = |(x, &v): (&Array, &crate::ir::Value)| {
        let dims = graph.ty(v).dims.iter().map(Dim::value);
        x.shape().iter().zip(dims).all(|(&n, said)| said.is_none_or(|said| said == n))
    };
    if values.iter().zip(graph.results()).all(fits) { Ok(values) } else { Err(Halt::Refused) }
}

/// The bytes of an array.
pub(super) fn bytes_of(x: &Array) -> Vec<u8> {
    let size = x.dtype().size();
    x.bits().iter().flat_map(|bits| bits.to_ne_bytes()[..size].to_vec()).collect()
}

/// The array of some bytes.
pub(super) fn array_of(bytes: &[u8], dtype: DType, shape: &[usize]) -> Array {
    dispatch!(dtype, T => {
        let mut elements: Vec<T> = bytes.chunks_exact(size_of::<T>()).map(<T as Words>::of_bytes).collect();
        elements.truncate(count(shape));
        Array::new(shape, elements)
    })
}

/// The rows of a state before the first step, then so many more that nothing has written.
pub(super) fn rows(scan: &Scan, id: StateId, window: &Window, ins: &[Array], more: usize, poison: u8) -> Vec<u8> {
    let mut bytes = scan.init_input(id).map_or_else(Vec::new, |at| bytes_of(&ins[at]));
    let row = window.row_bytes();
    // Steps see zeros where there is no initial row.
    bytes.resize(bytes.len().max(window.span * row), 0);
    bytes.resize(bytes.len() + more * row, poison);
    bytes
}

/// The rows of a buffer that a loop returns after so many steps, of which `init` were there before.
pub(super) fn returned(bytes: &[u8], keep: Keep, window: &Window, [steps, init]: [usize; 2]) -> Array {
    let all = (steps + window.span).max(init);
    let (first, end) = match keep {
        Keep::All => (0, all),
        Keep::Last(k) => (steps + window.span - k.min(steps), steps + window.span),
    };
    let row = window.row_bytes();
    let shape: Vec<usize> = std::iter::once(end - first).chain(window.shape.iter().copied()).collect();
    array_of(&bytes[first * row..end * row], window.dtype, &shape)
}

/// How many initial rows a state has.
pub(super) fn initial(scan: &Scan, id: StateId, ins: &[Array]) -> usize {
    scan.init_input(id).map_or(0, |at| ins[at].shape()[0])
}

/// The outputs, or nothing where the plan leaves the loop to the law.
pub(super) fn finished(
    ran: std::result::Result<Outs<Array>, Halt>,
    left_to_law: impl Fn(&Diagnostic) -> bool,
) -> Result<Option<Outs<Array>>> {
    match ran {
        Ok(outs) => Ok(Some(outs)),
        Err(Halt::Refused) => Ok(None),
        Err(Halt::Failed(e)) if left_to_law(&e) => Ok(None),
        Err(Halt::Failed(e)) => Err(e),
    }
}
