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

use super::inner::reads_on;
use super::kept::{Held, by_rows, with_guesses};
use super::looped::UNBOUNDED;
use super::nodes::Lowering;
use super::picks::LOOKED_AT;
use super::prepared::{prepared, ready};
use super::rooms::{Roomy, roomy, with_rooms};
use super::scan::{BY_VALUES, CHANGES, Kind, Kinds, SCALARS, known_row, known_shape, scalars};
use super::sided::with_sides;
use super::tables::{Elements, Table, Tables};
use super::value::{Layout, Val};
use super::{Lowered, dynamic_slice, refuse};
use crate::base::Id;
use crate::ir::{Graph, Keep, Node, Op, Scan, SeqId, State, StateId, Value};
use crate::kernel::{Argument, Bin, CarryId, Cmp, Lane, Loop, Mem, MemId, Reg, Un};
use crate::plan::Window;
use crate::scan::retype::param_types;
use crate::types::shape::{Extents, count};
use crate::types::{Array, DType, Dim, Type};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Why a loop in a step is no loop of a kernel.
const ROWS: &str = "it holds a loop of which more is read than its last row";

/// A loop in a step, and what is known of its number of steps where an integer of the step tells that.
pub(super) fn loop_of(op: &Op) -> Option<(&Arc<Scan>, Option<&Roomy>)> {
    match (op, roomy(op)) {
        (Op::Scan(scan), _) => Some((scan, None)),
        (_, Some(roomy)) => Some((&roomy.scan, Some(roomy))),
        _ => None,
    }
}

/// A step of which the loops can be loops of a kernel, as far as that is to be seen at once.
///
/// # Errors
/// Why they cannot.
pub(super) fn with_loops(scan: &Scan, body: Graph) -> Lowered<Graph> {
    if !body.nodes().iter().any(|n| matches!(n.op, Op::Scan(_))) {
        return Ok(body);
    }
    let body = match with_sides(scan, &body)? {
        Some(body) => ready(&body)?,
        None => body,
    };
    let body = match with_guesses(&body)? {
        Some(body) => body,
        None => certain(body)?,
    };
    let kinds = Kinds::new(scan, &body);
    for node in kinds.nodes(&body) {
        let Some((inner, room)) = loop_of(&node.op) else { continue };
        match kinds.of(node.outs[0]) == Kind::Step {
            false if room.is_some() => return refuse(BY_VALUES),
            true if inner.states.iter().any(|s| !matches!(s.keep, Keep::Last(0 | 1) | Keep::All)) => return refuse(ROWS),
            true if !by_rows(&body, node, inner) => return refuse(ROWS),
            _ => {}
        }
    }
    Ok(body)
}

/// The body with all that is certain of what loops in it return.
fn certain(body: Graph) -> Lowered<Graph> {
    let body = match closed(&body)? {
        Some(body) => ready(&body)?,
        None => body,
    };
    match with_rooms(&body, &[], None)? {
        Some(body) => ready(&body),
        None => Ok(body),
    }
}

/// The body with extents known of what loops return that keep a row each, however many steps they run; `None` where there are none.
fn closed(body: &Graph) -> Lowered<Option<Graph>> {
    if !body.nodes().iter().any(|node| open(body, node).is_some()) {
        return Ok(None);
    }
    let (mut out, mut image) = (Graph::new(), FxHashMap::default());
    for &p in body.params() {
        image.insert(p, out.param(body.ty(p).clone(), body.name(p).map(|n| &**n)));
    }
    let live = body.needed(body.results());
    for (_, node) in body.nodes().enumerate().filter(|n| live[n.0.idx()]) {
        out.set_span(node.span);
        let ins: Vec<Value> = node.ins.iter().map(|v| image[v]).collect();
        let mut outs = out.apply(node.op.clone(), &ins)?;
        if let Some((scan, n)) = open(body, node) {
            let row = |(state, &v): (&State, &Value)| {
                let rows = Dim::known(usize::from(state.keep == Keep::Last(1)));
                Type::new(out.ty(v).dtype, std::iter::once(rows).chain(out.ty(v).dims.iter().skip(1).cloned()))
            };
            let types = scan.states.iter().zip(&outs).map(row).chain([Type::scalar(DType::I64)]).collect();
            let lengths = scan.seqs.ids().map(|id| known_shape(body, node.ins[scan.seq_input(id)]).map(|shape| shape[0]));
            let most = lengths.collect::<Lowered<Vec<usize>>>()?.into_iter().min().unwrap_or(UNBOUNDED);
            let op = match n {
                Some(n) => Roomy::op(scan.clone(), (n, true), types),
                None if reads_on(body, node) => Roomy::open(scan.clone(), most, types),
                None => Roomy::op(scan.clone(), (most, false), types),
            };
            outs = out.apply(op, &ins)?;
        }
        image.extend(node.outs.iter().copied().zip(outs));
    }
    let results: Vec<Value> = body.results().iter().map(|v| image[v]).collect();
    out.set_results(results);
    Ok(Some(out))
}

/// Such a loop, and how many steps it runs at most where that is known. Else it may run none where its rows are read as those that it began with
/// then, and must run one elsewhere.
fn open<'a>(body: &Graph, node: &'a Node) -> Option<(&'a Arc<Scan>, Option<usize>)> {
    let Op::Scan(scan) = &node.op else { return None };
    let open = node.outs.iter().any(|&v| known_shape(body, v).is_err());
    let kept = scan.states.iter().all(|s| matches!(s.keep, Keep::Last(0 | 1)));
    let known = body.const_value(node.ins[Scan::N_STEPS]).map(|n| n.item_i64().and_then(|n| usize::try_from(n).ok()));
    let any = known.map_or_else(|| reads_on(body, node) || fails_without(body, node), |n| n.is_some_and(|n| n > 0));
    (open && kept && any).then_some((scan, known.flatten()))
}

/// True for a loop whose step fails where it runs no step: of what it returns nothing is read but its last rows, by their number.
fn fails_without(body: &Graph, node: &Node) -> bool {
    let number = |n: &Node| n.ins.get(1).and_then(|&v| body.const_value(v)).and_then(Array::item_i64);
    let takes = |n: &Node| matches!(&n.op, Op::Index(index) if index.pattern.split(',').next() == Some("i")) && number(n) == Some(-1);
    let reads = |v: Value| body.nodes().iter().filter(move |n| n.ins.contains(&v)).all(takes) && !body.results().contains(&v);
    node.op.as_scan().is_some_and(|scan| scan.states.ids().all(|id| reads(node.outs[scan.state_output(id)])))
}

/// True for a node that reads of a value nothing but elements by numbers.
pub(super) fn picks(node: &Node, v: Value) -> bool {
    dynamic_slice::reads_by_index(&node.op) && !node.ins[1..].contains(&v) || reads_by_number(node, v)
}

/// True for a node that needs nothing of a value but its extents.
pub(super) fn needs_extents_alone(node: &Node, v: Value) -> bool {
    node.ins.iter().enumerate().all(|(k, &x)| x != v || node.op.properties().shape_only.contains(&k))
}

/// True for a loop that reads of an array nothing but elements, or rows, by numbers.
fn reads_by_number(node: &Node, v: Value) -> bool {
    let Some((scan, _)) = loop_of(&node.op) else { return false };
    let captured = |k: usize| scan.captured.ids().find(|&id| scan.captured_input(id) == k);
    let reads = |k: usize| match captured(k) {
        Some(id) => by_number(&scan.body, scan.body.params()[scan.captured_param(id)]),
        None => scan.seqs.ids().any(|id| scan.seq_input(id) == k),
    };
    node.ins.iter().enumerate().all(|(k, &x)| x != v || reads(k))
}

/// True for a value of which a graph reads nothing but elements by numbers, and its extents.
pub(super) fn by_number(graph: &Graph, v: Value) -> bool {
    let mut users = graph.nodes().iter().filter(|n| n.ins.contains(&v));
    !graph.results().contains(&v) && users.all(|node| picks(node, v) || needs_extents_alone(node, v))
}

/// Per element of a state's row, and per offset, what steps hand on.
pub(super) type Carries = Vec<Vec<Option<CarryId>>>;

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
        let steps = self.where_all_holds(steps);
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

    /// A number of steps where all that is required so far holds, else 0.
    fn where_all_holds(&mut self, steps: Reg) -> Reg {
        let guards: Vec<Reg> = self.guards().collect();
        let all = guards.into_iter().reduce(|x, y| self.builder.bin(Bin::And, x, y));
        let none = self.builder.integer(DType::I64, 0);
        all.map_or(steps, |all| self.builder.select(all, steps, none))
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
