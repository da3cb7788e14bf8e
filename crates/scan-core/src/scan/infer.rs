//! Types of a loop: what its slots must have, and what it returns.

use crate::bail;
use crate::base::{Diagnostic, Result};
use crate::ir::op::{Arg, Outs};
use crate::ir::{Keep, Scan, State};
use crate::types::{DType, Dim, Type};

/// Types of the outputs.
///
/// # Errors
/// `E0120` where the inputs do not fit the slots, `E0127` where loops nest too deeply.
pub fn infer(scan: &Scan, ins: &[Arg]) -> Result<Outs<Type>> {
    let depth = scan.body.whole().depth + 1;
    if depth > Scan::MAX_DEPTH {
        bail!(Scan, "E0127", "loops stand in each other {depth} deep, of which {} are allowed", Scan::MAX_DEPTH);
    }
    if ins.len() != scan.n_inputs() {
        bail!(Scan, "E0120", "a loop with {} slots got {} inputs", scan.n_inputs(), ins.len());
    }
    let steps = &ins[Scan::N_STEPS];
    if steps.ty != Type::scalar(DType::I64) {
        bail!(Scan, "E0120", "n_steps is {}, not an int64 scalar", steps.ty);
    }
    for id in scan.seqs.ids() {
        fits("sequence", &row_of(&ins[scan.seq_input(id)].ty)?, scan.body.ty(scan.body.params()[scan.seq_param(id)]))?;
    }
    for id in scan.captured.ids() {
        fits("captured value", &ins[scan.captured_input(id)].ty, scan.body.ty(scan.body.params()[scan.captured_param(id)]))?;
    }
    let mut outs = Outs::new();
    for (id, state) in scan.states.enumerate() {
        let init = scan.init_input(id).map(|i| &ins[i].ty);
        if let Some(ty) = init {
            fits("initial rows", &row_of(ty)?, &state.row)?;
        }
        let row = init.map_or_else(|| state.row.clone(), |ty| begun(&state.row, ty));
        outs.push(row.rows(rows(scan, state, steps, init)));
    }
    outs.push(Type::scalar(DType::I64));
    Ok(outs)
}

/// Rows with the extents that the initial ones are known to have: all rows have those.
fn begun(row: &Type, init: &Type) -> Type {
    let dims =
        row.dims.iter().zip(&init.dims[1..]).map(|(own, given)| if own.value().is_none() && given.value().is_some() { given } else { own });
    Type::new(row.dtype, dims.cloned())
}

fn row_of(ty: &Type) -> Result<Type> {
    if ty.rank() == 0 {
        return Err(Diagnostic::internal(format!("{ty} has no rows")));
    }
    Ok(ty.row())
}

fn fits(what: &str, got: &Type, want: &Type) -> Result<()> {
    let same = got.dtype == want.dtype && got.rank() == want.rank() && !got.dims.iter().zip(&want.dims).any(|(a, b)| a.conflicts(b));
    if !same {
        bail!(Scan, "E0120", "{what}: rows are {got}, the step takes {want}");
    }
    Ok(())
}

/// Number of rows that a state returns.
fn rows(scan: &Scan, state: &State, steps: &Arg, init: Option<&Type>) -> Dim {
    if scan.until {
        return Dim::fresh();
    }
    let n = steps.as_dim();
    match state.keep {
        Keep::All => {
            let all = n.add(&Dim::known(state.span()));
            let given = init.map(|ty| &ty.dims[0]);
            let grows = given.is_none_or(|m| m.value().is_some_and(|m| m <= state.span()) || *m == all);
            if grows { all } else { Dim::fresh() }
        }
        Keep::Last(k) => n.value().map_or_else(Dim::fresh, |n| Dim::known(n.min(k))),
    }
}
