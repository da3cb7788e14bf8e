//! Loops in the step of a loop that is one kernel: loops of that kernel.
//!
//! ```text
//! step       x = scan n { until f(x) <= tol; next x = x − f(x) / f'(x) }          r9 = loop r4 steps
//!                                                                                       m0 is r2
//!                                                                                       c0: m0 next r5 …
//!            y = x[-1] · 2                                                        r10 = last c0 of r9;  r11 = mul r10 …
//! ```
//!
//! Arrays of which the loop reads elements by numbers stay where they are; whatever else it takes from the step are values. It hands on the row that
//! each state ends with, and all rows of those that keep them (`kept.rs`).

use super::by_number::loop_of;
use super::extents::{BY_VALUES, CHANGES, known_row, known_shape};
use super::kinds::Kinds;
use super::nestable::{ROWS, with_loops};
use super::nodes::Lowering;
use super::picks::LOOKED_AT;
use super::prepared::prepared;
use super::rooms::Roomy;
use super::scalars::{SCALARS, scalars};
use super::tables::Tables;
use super::value::{Elements, Layout, Table, Val};
use super::{Lowered, dynamic_slice, refuse};
use crate::base::Id;
use crate::ir::{Graph, Keep, Node, Scan, SeqId, StateId, Value};
use crate::kernel::{Argument, Bin, CarryId, Cmp, Lane, Loop, Mem, MemId, Reg, Un};
use crate::plan::Window;
use crate::scan::retype::param_types;
use crate::types::shape::{Extents, count};
use crate::types::{Array, DType, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Per element of a state's row, and per offset, what steps hand on.
pub(super) type Carries = Vec<Vec<Option<CarryId>>>;

/// A state of a loop: what its steps hand on, and where its rows are kept, if they are.
pub(super) struct Held {
    pub window: Window,
    pub carries: Carries,
    pub kept: Option<MemId>,
}

/// The kernel of a loop under construction.
pub(super) struct Inner<'a> {
    scan: &'a Scan,
    body: &'a Graph,
    pub(super) lowering: Lowering<'a>,
    pub(super) operands: SmallVec<[Argument; 8]>,
    pub(super) begin: SmallVec<[(MemId, usize, Reg); 2]>,
    /// Values of the step around that it has.
    taken: FxHashMap<Reg, Reg>,
}

impl Lowering<'_> {
    /// The scalars of what a loop in the step returns.
    pub(super) fn looped(&mut self, node: &Node) -> Lowered<Vec<Vec<Reg>>> {
        let Some((scan, room)) = loop_of(&node.op).filter(|_| self.layout() == Layout::Elements) else { return refuse("it holds a loop") };
        let types: Vec<Type> = node.ins.iter().map(|&v| self.graph().ty(v).clone()).collect();
        let params = param_types(scan, &types);
        let mut values: Vec<Option<Array>> = vec![None; params.len()];
        for id in scan.captured.ids() {
            let known = self.value(node.ins[scan.captured_input(id)])?.known().cloned();
            values[scan.captured_param(id)] = known.filter(|a| a.rank() == 0 && a.dtype() == DType::I64);
        }
        let body = with_loops(scan, prepared(scan, &params, &values)?)?;
        let kinds = Kinds::new(scan, &body);
        kinds.check(&body)?;
        if scalars(&body, &kinds, &Tables::default())? > SCALARS {
            return refuse("it holds a loop of many elements");
        }
        let steps = self.steps_of(node, scan, room)?;
        let lowering = Lowering::new(&body, Layout::Elements);
        let mut inner =
            Inner { scan, body: &body, lowering, operands: SmallVec::new(), begin: SmallVec::new(), taken: FxHashMap::default() };
        self.begin(&mut inner, node, &kinds)?;
        let carried = self.carried(&mut inner, node)?;
        inner.lowering.run(body.results())?;
        let states = inner.handed_on(&carried)?;
        let failed = inner.ends(self)?;
        self.slices |= inner.lowering.slices || kinds.nodes(&body).any(|n| dynamic_slice::dynamic_slice(&n.op).is_some());
        // Of values that are none it might never end.
        let steps = self.where_given(steps, node);
        self.loops.push(node.span);
        self.loops.append(&mut inner.lowering.loops);
        let Inner { operands, begin, lowering, .. } = inner;
        let made = self.builder.looped(Loop { kernel: Arc::new(lowering.builder.finish()), operands, steps, begin });
        self.ended(made, room)?;
        self.kept(node, made, &carried)?;
        if let Some(carry) = failed {
            let failed = self.builder.last(made, carry);
            let holds = self.builder.un(Un::Not, failed);
            self.require(holds)?;
        }
        let row =
            |carries: Vec<CarryId>, builder: &mut crate::kernel::Builder| carries.into_iter().map(|c| builder.last(made, c)).collect();
        let rows = states.into_iter().map(|carries| row(carries, &mut self.builder));
        Ok(rows.chain([vec![made]]).collect())
    }

    /// The number of steps, which must lie between those that are there.
    fn steps_of(&mut self, node: &Node, scan: &Scan, room: Option<&Roomy>) -> Lowered<Reg> {
        let given = self.value(node.ins[Scan::N_STEPS])?;
        let known = given.known().and_then(Array::item_i64);
        let rows = scan.seqs.ids().map(|id| known_shape(self.graph(), node.ins[scan.seq_input(id)]).map(|shape| shape[0]));
        let rows = rows.collect::<Lowered<Vec<usize>>>()?.into_iter().min().unwrap_or(usize::MAX);
        match (known, room) {
            (Some(_), Some(room)) if room.cut => Ok(self.builder.integer(DType::I64, room.most as i64)),
            (Some(n), _) if n > 0 && rows as u128 >= n as u128 => Ok(self.builder.integer(DType::I64, n)),
            (Some(_), _) => refuse("no steps, or a sequence that is too short"),
            (None, None) => refuse(BY_VALUES),
            (None, Some(room)) if room.most > rows => refuse("a sequence that is too short"),
            (None, Some(room)) => {
                let n = self.regs_of(node.ins[Scan::N_STEPS], DType::I64)?[0];
                if !room.sure {
                    let bounds = [i64::from(!room.rests), room.most as i64].map(|n| self.builder.integer(DType::I64, n));
                    let (low, high) = (self.builder.cmp(Cmp::Le, bounds[0], n), self.builder.cmp(Cmp::Le, n, bounds[1]));
                    let holds = self.builder.bin(Bin::And, low, high);
                    self.require(holds)?;
                }
                Ok(n)
            }
        }
    }

    /// A number of steps where all that the loop is given is what the law says, else 0.
    fn where_given(&mut self, steps: Reg, node: &Node) -> Reg {
        let none = self.builder.integer(DType::I64, 0);
        self.lawful(&node.ins).map_or(steps, |lawful| self.builder.select(lawful, steps, none))
    }

    /// Gives a loop what its steps read.
    fn begin(&mut self, inner: &mut Inner, node: &Node, kinds: &Kinds) -> Lowered<()> {
        let (scan, body) = (inner.scan, inner.body);
        let step = inner.lowering.builder.step();
        inner.lowering.bind(body.params()[Scan::STEP], Val::Regs(Extents::new(), vec![step]));
        let roots = kinds.roots(body, Layout::Elements);
        for (&root, val) in roots.iter().zip(self.before(scan, body, &roots, node)?) {
            let val = inner.given(self, val)?;
            inner.lowering.bind(root, val);
        }
        for id in scan.seqs.ids() {
            let rows = self.value(node.ins[scan.seq_input(id)])?;
            let rows = inner.given(self, rows)?;
            let row = inner.row(id, rows, step)?;
            inner.lowering.bind(body.params()[scan.seq_param(id)], row);
        }
        Ok(())
    }

    /// What is computed before the first step of a loop.
    fn before(&mut self, scan: &Scan, body: &Graph, roots: &[Value], node: &Node) -> Lowered<Vec<Val>> {
        let mut graph = body.clone();
        graph.set_results(roots.to_vec());
        let mut before = Lowering::new(&graph, Layout::Elements);
        for id in scan.captured.ids() {
            before.bind(graph.params()[scan.captured_param(id)], self.value(node.ins[scan.captured_input(id)])?);
        }
        std::mem::swap(&mut before.builder, &mut self.builder);
        let vals = before.run(roots).and_then(|()| roots.iter().map(|&v| before.value(v)).collect::<Lowered<Vec<Val>>>());
        let holds = before.guarded();
        std::mem::swap(&mut before.builder, &mut self.builder);
        holds.map_or(Ok(()), |holds| self.require(holds))?;
        vals
    }

    /// The carries of an output of which the last row is read, in the place of those of the row before: it runs a step, which makes one.
    fn made_row(&mut self, inner: &mut Inner, window: &Window) -> Carries {
        let zero = self.number(window.dtype, 0.0);
        (0..count(&window.shape)).map(|_| vec![Some(inner.carry(zero, window.dtype).0)]).collect()
    }
    /// The carries of a loop, per state, begun with its initial rows.
    fn carried(&mut self, inner: &mut Inner, node: &Node) -> Lowered<Vec<Held>> {
        let (scan, body) = (inner.scan, inner.body);
        let mut all = vec![];
        for (id, state) in scan.states.enumerate() {
            let window = Window::new(state, known_row(scan, body, id)?)?;
            if state.writes[..] == [0] && state.keep == Keep::Last(1) {
                let carries = self.made_row(inner, &window);
                all.push(Held { window, carries, kept: None });
                continue;
            }
            if window.entering || !window.far.is_empty() || state.writes[..] != [window.span] {
                return refuse(ROWS);
            }
            let elements = count(&window.shape);
            let init = scan.init_input(id).map(|at| node.ins[at]);
            if let Some(v) = init {
                let shape = known_shape(self.graph(), v)?;
                let rows = if window.stored { shape[0] == window.span } else { shape[0] >= window.span };
                if !rows || shape[1..] != window.shape[..] {
                    return refuse(CHANGES);
                }
            }
            let begin = init.map_or(Ok(vec![]), |v| self.regs_of(v, window.dtype))?;
            let kept =
                window.stored.then(|| inner.own_rows(&window, known_shape(self.graph(), node.outs[id.idx()])?[0], &begin)).transpose()?;
            let mut carries = vec![];
            for k in 0..elements {
                let offsets = (0..window.span).map(|j| match begin.get(j * elements + k) {
                    Some(&r) if window.carried[j] => Some(inner.carry(r, window.dtype)),
                    _ => None,
                });
                carries.push(offsets.collect::<Vec<Option<(CarryId, Reg)>>>());
            }
            for (p, &offset) in scan.read_params(id).zip(&state.reads) {
                let regs: Vec<Reg> = carries.iter().filter_map(|offsets| offsets[offset].map(|c| c.1)).collect();
                if regs.len() < elements {
                    return refuse("a state that begins with no rows");
                }
                inner.lowering.bind(body.params()[p], Val::Regs(window.shape.clone(), regs));
            }
            let carries = carries.into_iter().map(|c| c.into_iter().map(|c| c.map(|c| c.0)).collect()).collect();
            all.push(Held { window, carries, kept });
        }
        Ok(all)
    }
}

impl Inner<'_> {
    /// A value of the step around.
    fn take(&mut self, around: &Lowering, r: Reg) -> Reg {
        let dtype = around.builder.dtype(r);
        if let Some(bits) = around.builder.known(r) {
            return self.lowering.builder.raw(dtype, bits);
        }
        if let Some(&taken) = self.taken.get(&r) {
            return taken;
        }
        let mem = self.lowering.builder.mem(dtype, Lane::Uniform);
        self.operands.push(Argument::Value(r));
        let taken = self.lowering.builder.load(mem);
        self.taken.insert(r, taken);
        taken
    }
    /// A carry that begins with a value of the step around.
    fn carry(&mut self, begin: Reg, dtype: DType) -> (CarryId, Reg) {
        let mem = self.lowering.builder.mem(dtype, Lane::Uniform);
        self.operands.push(Argument::Value(begin));
        self.lowering.builder.carry(mem)
    }
    /// What the loop has of a value of the step around.
    fn given(&mut self, around: &Lowering, val: Val) -> Lowered<Val> {
        Ok(match val {
            Val::Known(_) => val,
            Val::Regs(shape, regs) => Val::Regs(shape, regs.into_iter().map(|r| self.take(around, r)).collect()),
            Val::Table(shape, table) => {
                let kernel = around.builder.kernel();
                let (Mem { dtype, table: elements, .. }, argument) = match table.elements {
                    Elements::Operand(mem) => (kernel.mems[mem].clone(), Argument::Table(mem, 0)),
                    Elements::Left(of, mem) => (kernel.own_table(of, mem), Argument::Left(of, mem)),
                };
                let mem = self.lowering.builder.table(dtype, elements, None);
                self.operands.push(argument);
                let writes = table.writes.iter().map(|&(at, value)| (self.take(around, at), self.take(around, value))).collect();
                Val::Table(shape, Table { elements: Elements::Operand(mem), writes, within: table.within })
            }
        })
    }

    /// The row of a sequence that a step reads.
    fn row(&mut self, id: SeqId, rows: Val, step: Reg) -> Lowered<Val> {
        let shape = Extents::from_slice(rows.shape());
        let (n, row) = (shape[0], count(&shape[1..]));
        if n == 0 {
            return refuse("a sequence without rows");
        }
        let builder = &mut self.lowering.builder;
        let last = builder.integer(DType::I64, n as i64 - 1);
        let number = if self.scan.seqs[id].reverse { builder.bin(Bin::Sub, last, step) } else { step };
        if let Some(r) = rows.known().and_then(|a| self.progression(a, number)) {
            return Ok(Val::Regs(Extents::new(), vec![r]));
        }
        let mut regs = vec![];
        match rows {
            Val::Table(_, table) => {
                let elements = self.lowering.builder.integer(DType::I64, row as i64);
                let first = self.lowering.builder.bin(Bin::Mul, number, elements);
                for k in 0..row {
                    let k = self.lowering.builder.integer(DType::I64, k as i64);
                    let at = self.lowering.builder.bin(Bin::Add, first, k);
                    regs.push(self.lowering.element(&table, at));
                }
            }
            _ if n * row > LOOKED_AT => return refuse(format!("a sequence of {n} rows that lie in no memory")),
            Val::Known(_) | Val::Regs(..) => {
                let all = self.lowering.all_of(rows)?;
                regs.extend((0..row).map(|k| self.lowering.chosen(number, 0, &every(&all, k, row))));
            }
        }
        Ok(Val::Regs(Extents::from_slice(&shape[1..]), regs))
    }
    /// An element of integers that lie equally far apart.
    fn progression(&mut self, a: &Array, number: Reg) -> Option<Reg> {
        if a.dtype() != DType::I64 || a.rank() != 1 || a.len() < 2 {
            return None;
        }
        let all = a.as_slice::<i64>();
        let by = all[1].checked_sub(all[0])?;
        if !all.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(by)) {
            return None;
        }
        let builder = &mut self.lowering.builder;
        let [first, by] = [all[0], by].map(|n| builder.integer(DType::I64, n));
        let far = builder.bin(Bin::Mul, number, by);
        Some(builder.bin(Bin::Add, first, far))
    }

    /// Hands on what a step writes; per state, the carries of the row that it ends with.
    fn handed_on(&mut self, carried: &[Held]) -> Lowered<Vec<Vec<CarryId>>> {
        let mut last = vec![];
        for (id, held) in self.scan.states.ids().zip(carried) {
            last.push(self.state(id, held)?);
        }
        Ok(last)
    }
    fn state(&mut self, id: StateId, Held { window, carries, kept }: &Held) -> Lowered<Vec<CarryId>> {
        let state = &self.scan.states[id];
        let results: Vec<Value> = self.scan.write_results(id).map(|at| self.body.results()[at]).collect();
        let written = results.into_iter().map(|v| self.lowering.regs_of(v, window.dtype)).collect::<Lowered<Vec<Vec<Reg>>>>()?;
        if let (Some(mem), [row]) = (*kept, &written[..]) {
            self.keep_row(mem, window, row);
        }
        let mut last = vec![];
        for (k, offsets) in carries.iter().enumerate() {
            for (j, carry) in offsets.iter().enumerate() {
                let Some(carry) = *carry else { continue };
                // An output is written at offset 0.
                let to = if window.span == 0 { 0 } else { j + 1 };
                let next = match (state.writes.iter().rposition(|&w| w == to), offsets.get(j + 1)) {
                    (Some(which), _) => written[which][k],
                    (None, Some(&Some(after))) => self.lowering.builder.carried(after),
                    _ => return refuse("a row that nothing hands on"),
                };
                self.lowering.builder.set_next(carry, next);
            }
            if let Keep::Last(1) = state.keep {
                let Some(&Some(carry)) = offsets.last() else { return refuse(ROWS) };
                last.push(carry);
            }
        }
        Ok(last)
    }

    /// Where the loop ends: as the user says, and where it cannot do what the law does, which is a carry then.
    fn ends(&mut self, around: &mut Lowering) -> Lowered<Option<CarryId>> {
        let mut stop = None;
        if let Some(at) = self.scan.until_result() {
            stop = Some(self.lowering.truth_of(self.body.results()[at])?);
        }
        let failed = self.lowering.guarded().map(|holds| {
            let begin = around.builder.truth(false);
            let (carry, _) = self.carry(begin, DType::Bool);
            let fails = self.lowering.builder.un(Un::Not, holds);
            self.lowering.builder.set_next(carry, fails);
            stop = Some(stop.map_or(fails, |stop| self.lowering.builder.bin(Bin::Or, stop, fails)));
            carry
        });
        stop.into_iter().for_each(|stop| self.lowering.builder.stop(stop));
        Ok(failed)
    }
}

/// Element k of each row of so many.
fn every(all: &[Reg], k: usize, row: usize) -> Vec<Reg> {
    all.iter().skip(k).step_by(row).copied().collect()
}
