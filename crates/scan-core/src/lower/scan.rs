//! A loop as one kernel: states in registers, sequences by moving pointers, everything that does not change computed before.

use super::by_number::keeps_rows;
use super::dynamic_slice;
use super::extents::{known_row, known_shape};
use super::kinds::{Kind, Kinds};
use super::nestable::with_loops;
use super::nodes::Lowering;
use super::prepared::prepared;
use super::rows::{is_small, row_counts};
use super::scalars::{SCALARS, scalars};
use super::tables::{OpenTable, Tables};
use super::value::{Elements, Layout, Table, Val};
use super::votes::voted;
use super::window::{Mems, Open, known_stride};
use super::{Lowered, Refusal, refuse};
use crate::ir::{Graph, Op, Scan, Value};
use crate::kernel::{Bin, Builder, Kernel, Lane, Reg, Un};
use crate::plan::Window;
use crate::plan::kernel::{LoopKernel, Place};
use crate::plan::votes::Quorum;
use crate::scan::retype::specialised;
use crate::types::shape::{Extents, count};
use crate::types::{Array, DType, Type};

/// A loop for body parameters of these types, all extents known, of which some have a value. Whether it stops may be told by what its lanes
/// say, where whoever runs it counts that.
///
/// # Errors
/// Why it is no kernel.
pub fn lower(scan: &Scan, types: &[Type], values: &[Option<Array>], counts: bool) -> Lowered<LoopKernel> {
    let plan = lowered(scan, types, values, counts)?;
    #[cfg(debug_assertions)]
    crate::plan::sound::assert_kernel(&plan, scan);
    Ok(plan)
}

fn lowered(scan: &Scan, types: &[Type], values: &[Option<Array>], counts: bool) -> Lowered<LoopKernel> {
    let body = with_loops(scan, prepared(scan, types, values)?)?;
    let kinds = Kinds::new(scan, &body);
    kinds.check(&body)?;
    let tables = Tables::of(scan, &body, &kinds);
    if !tables.is_empty()
        && scalars(&body, &kinds, &tables)? <= SCALARS
        && let Ok(kernel) = build(scan, &body, &kinds, Layout::Elements, &tables, None)
    {
        return Ok(kernel);
    }
    let sizes = sizes(&body, &kinds)?;
    let largest = sizes.iter().copied().max().unwrap_or(1);
    if sizes.contains(&0) {
        return refuse("rows without elements");
    }
    let none = Tables::default();
    let mut why = None;
    if largest > 1 && (!scan.until || counts && largest >= VOTERS) {
        let tried = match scan.until_result() {
            None => by_lanes(scan, &body, &kinds, largest, None),
            Some(at) => voted(&body, at).and_then(|(body, quorum)| by_lanes(scan, &body, &Kinds::new(scan, &body), largest, Some(quorum))),
        };
        match tried {
            Err(refusal) => why = Some(refusal),
            done => return done,
        }
    }
    if scalars(&body, &kinds, &none)? > SCALARS {
        return Err(why.unwrap_or_else(|| Refusal(format!("rows of up to {largest} elements in a loop that stops"))));
    }
    build(scan, &body, &kinds, Layout::Elements, &none, None)
}

/// Of fewer lanes none is asked: scalars stop by themselves.
const VOTERS: usize = 16;

/// A loop whose elements, or rows, are the lanes.
fn by_lanes(scan: &Scan, body: &Graph, kinds: &Kinds, largest: usize, quorum: Option<Quorum>) -> Lowered<LoopKernel> {
    let rows = row_counts(scan, body)?.into_iter().map(Layout::Rows).filter(|layout| is_small(body, kinds, *layout));
    let mut why = None;
    for layout in [Layout::Lanes(largest)].into_iter().chain(rows) {
        match build(scan, body, kinds, layout, &Tables::default(), quorum) {
            Err(refusal) => why = why.or(Some(refusal)),
            done => return done,
        }
    }
    why.map_or_else(|| refuse("no lanes"), Err)
}

fn build(scan: &Scan, body: &Graph, kinds: &Kinds, layout: Layout, tables: &Tables, quorum: Option<Quorum>) -> Lowered<LoopKernel> {
    let mut lowering = Lowering::new(body, layout);
    let mut mems = Mems::default();
    let step = lowering.builder.step();
    lowering.bind(body.params()[Scan::STEP], Val::Regs(Extents::new(), vec![step]));
    for id in scan.seqs.ids() {
        let row = body.params()[scan.seq_param(id)];
        let bytes = count(&known_shape(body, row)?) * body.ty(row).dtype.size();
        let stride = known_stride(layout, bytes, scan.seqs[id].reverse);
        if kinds.tabled(body, layout, row) {
            table(&mut lowering, &mut mems, row, stride, Place::Seq { id, at: 0 })?;
        } else {
            load(&mut lowering, &mut mems, row, stride, &|at| Place::Seq { id, at })?;
        }
    }
    let roots = kinds.roots(body, layout);
    for (value, &root) in roots.iter().enumerate() {
        let stride = known_stride(layout, 0, false);
        if kinds.tabled(body, layout, root) {
            table(&mut lowering, &mut mems, root, stride, Place::Before { value, at: 0 })?;
        } else {
            load(&mut lowering, &mut mems, root, stride, &|at| Place::Before { value, at })?;
        }
    }
    let mut open = vec![];
    for (id, state) in scan.states.enumerate() {
        let row = known_row(scan, body, id)?;
        layout.admits(count(&row))?;
        let window = Window::new(state, row)?;
        if layout.lanes() > 1 && layout.spots(&window.shape).1 == Lane::Uniform && window.entering {
            return refuse("a state that all lanes share which reads rows before they are written");
        }
        if quorum.is_some() && window.entering {
            return refuse("steps that cannot be made again, in a loop that stops");
        }
        open.push(match tables.is_table(id) {
            true => Ok(OpenTable::new(&mut lowering, scan, id, window, &mut mems)),
            false => Err(Open::new(&mut lowering, scan, id, window, &mut mems)?),
        });
    }
    lowering.run(body.results())?;
    let mut windows = vec![];
    for open in open {
        windows.push(match open {
            Ok(table) => table.close(&mut lowering)?,
            Err(state) => state.close(&mut lowering, scan, &mut mems)?,
        });
    }
    let failed = failed(&mut lowering, &mut mems);
    let cond = scan.until_result().map(|at| body.results()[at]);
    let votes = match (cond, quorum) {
        (Some(vote), Some(quorum)) => Some(lowering.votes(vote, quorum, &mut mems)?),
        (Some(cond), None) => {
            stops(&mut lowering, &mut mems, cond)?;
            None
        }
        (None, _) => None,
    };
    // The loops of a step that is given what a failed one has made might never end.
    if let Some(failed) = failed.filter(|_| !lowering.loops.is_empty()) {
        let stop = lowering.builder.kernel().stop;
        let either = stop.map_or(failed, |stop| lowering.builder.bin(Bin::Or, stop, failed));
        lowering.builder.stop(either);
    }
    let mut before = body.clone();
    before.set_results(roots);
    if dynamic_slice::slices(&before) {
        return refuse("a slice before the loop that may reach beyond its array");
    }
    let lanes = layout.lanes();
    let (kernel, within, loops) = (lowering.builder.finish(), lowering.slices, lowering.loops);
    let guarded = mems.places.contains(&Place::Failed);
    let slices = within || kinds.nodes(body).any(|n| dynamic_slice::dynamic_slice(&n.op).is_some());
    Ok(LoopKernel { kernel, lanes, places: mems.places, windows, guarded, slices, votes, before, loops })
}

/// Makes the kernel tell whether a step could not do what the law does; that this, or one before, could not.
fn failed(lowering: &mut Lowering, mems: &mut Mems) -> Option<Reg> {
    let holds = lowering.guarded()?;
    let lane = if lowering.layout().lanes() == 1 { Lane::Uniform } else { Lane::Unit };
    let mem = mems.add(&mut lowering.builder, DType::Bool, lane, Place::Failed);
    let (carry, failed) = lowering.builder.carry(mem);
    let fails = lowering.builder.un(Un::Not, holds);
    let ever = lowering.builder.bin(Bin::Or, failed, fails);
    lowering.builder.set_next(carry, ever);
    Some(ever)
}

/// Makes the kernel stop where a condition holds.
fn stops(lowering: &mut Lowering, mems: &mut Mems, cond: Value) -> Lowered<()> {
    let cond = lowering.regs(cond)?[0];
    let cond = lowering.builder.convert(cond, DType::Bool);
    let mem = mems.add(&mut lowering.builder, DType::Bool, Lane::Uniform, Place::Stopped);
    let (stopped, _) = lowering.builder.carry(mem);
    lowering.builder.set_next(stopped, cond);
    lowering.builder.stop(cond);
    Ok(())
}

/// Binds a value to an operand in memory of which elements are read by their numbers.
fn table(lowering: &mut Lowering, mems: &mut Mems, v: Value, stride: Option<i32>, place: Place) -> Lowered<()> {
    let graph = lowering.graph();
    let shape = known_shape(graph, v)?;
    let mem = lowering.builder.table(graph.ty(v).dtype, count(&shape), stride);
    mems.places.push(place);
    lowering.bind(v, Val::Table(shape, Table { elements: Elements::Operand(mem), writes: vec![], within: false }));
    Ok(())
}

/// Binds a value to operands in memory.
fn load(lowering: &mut Lowering, mems: &mut Mems, v: Value, stride: Option<i32>, place: &dyn Fn(usize) -> Place) -> Lowered<()> {
    let graph = lowering.graph();
    let (shape, dtype) = (known_shape(graph, v)?, graph.ty(v).dtype);
    let layout = lowering.layout();
    layout.admits(count(&shape))?;
    let (spots, lane) = layout.spots(&shape);
    let mut regs = vec![];
    for at in spots {
        let mem = mems.add_by(&mut lowering.builder, dtype, lane, place(at), stride);
        regs.push(lowering.builder.load(mem));
    }
    lowering.given(v, regs)
}

/// Numbers of elements of the values that depend on the step.
fn sizes(body: &Graph, kinds: &Kinds) -> Lowered<Vec<usize>> {
    let params = body.params().iter().copied();
    let values = params.chain(kinds.nodes(body).filter(|n| !keeps_rows(n)).flat_map(|n| n.outs.iter().copied()));
    values.filter(|&v| kinds.of(v) == Kind::Step).map(|v| known_shape(body, v).map(|s| count(&s))).collect()
}

/// A group of elementwise nodes as a kernel of one step: parameters are the operands, in order, then the results.
/// `uniform` says per parameter whether it has one element. The others have two here, in place of any number: nothing may depend on it.
///
/// # Errors
/// Why it is no kernel.
pub fn lower_map(graph: &Graph, uniform: &[bool]) -> Lowered<Kernel> {
    const LANES: usize = 2;
    let types: Vec<Type> =
        graph.params().iter().zip(uniform).map(|(&p, &one)| map_type(graph.ty(p), if one { 1 } else { LANES })).collect();
    let known = specialised(graph, &types, &[])?;
    if known.nodes().iter().any(|n| matches!(n.op, Op::SumTo(_)) && known.ty(n.ins[0]).dims != known.ty(n.outs[0]).dims) {
        return refuse("a sum over the elements");
    }
    let mut lowering = Lowering::new(&known, Layout::Lanes(LANES));
    let mut mems = Mems::default();
    for (at, &p) in known.params().iter().enumerate() {
        load(&mut lowering, &mut mems, p, None, &|_| Place::Before { value: at, at: 0 })?;
    }
    lowering.run(known.results())?;
    for &v in known.results() {
        let (value, dtype) = (lowering.regs(v)?[0], known.ty(v).dtype);
        let lane = lowering.layout().spots(lowering.value(v)?.shape()).1;
        let mem = mems.add(&mut lowering.builder, dtype, lane, Place::Before { value: 0, at: 0 });
        lowering.builder.store(mem, value);
    }
    let builder: Builder = lowering.builder;
    Ok(builder.finish())
}

/// A type of the same rank with this many elements in all, along the last axis.
fn map_type(ty: &Type, n: usize) -> Type {
    let rank = ty.rank();
    Type::new(ty.dtype, (0..rank).map(|i| crate::types::Dim::known(if i + 1 == rank { n } else { 1 })))
}
