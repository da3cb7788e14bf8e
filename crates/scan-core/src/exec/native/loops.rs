//! A loop as one kernel, with its states' memory.

use super::common::Common;
use super::foot::{Drain, Flow, Foot};
use super::head::{Feed, Head};
use super::held::{Held, Rows, from_row, room};
use super::home::Home;
use super::info::VariantInfo;
use super::kernels::Kernels;
use super::lists::Lists;
use super::mixed::Mixed;
use super::nested::WITHIN;
use super::planner::Planner;
use super::ready::{Ready, is_any};
use super::switched::Switched;
use super::there::There;
use super::tier::Engine;
use super::variant::Variant;
use super::variants::{Made, Variants};
use crate::base::{Result, Span};
use crate::ir::op::{NativeOp, Outs};
use crate::ir::{EvalCx, Scan, StateId};
use crate::lower::scan::lower;
use crate::lower::{CHANGES, Lowered, Refusal, mixed, spelled};
#[cfg(any(test, feature = "testing"))]
use crate::plan::testing;
use crate::plan::{LoopKernel, StepList, Window};
use crate::scan::{kept, retype, step};
use crate::types::device::Crossed;
use crate::types::{Array, DType, Type};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// A loop, compiled for the row types of its calls.
pub struct NativeLoop {
    scan: Arc<Scan>,
    /// The loop for the evaluator, its body planned where it is first needed: most loops never run there, and whoever plans a loop that
    /// stands in others would plan it once for each of them.
    plain: OnceLock<Arc<Scan>>,
    types: Outs<Type>,
    /// Per state: as many of the first rows are not returned.
    skip: Vec<usize>,
    planner: Planner,
    pub(super) sides: Sides,
    variants: Variants<Variant>,
    /// Slices of its steps have reached beyond their arrays: it is not made for slices of one length any more.
    clips: AtomicBool,
    /// What the loops that are paused now have in common.
    pub(super) common: Mutex<Weak<Common>>,
}

/// What is computed for a loop alone, a block of rows at a time.
#[derive(Default)]
pub struct Sides {
    /// Before its steps: of other arrays' rows, its sequences.
    pub head: Option<Head>,
    /// After its steps: of its rows.
    pub foot: Option<Foot>,
}

/// What a loop with a list for each of some integers is thought to take, in instructions.
const SWITCHED: usize = 1 << 14;

impl NativeLoop {
    /// The loop with output types `types`, which leave away the first `skip` rows of each state. Where it has a head, that one's
    /// arguments follow the loop's, and what stands for the sequences that it makes is not read; those of its foot are the last ones,
    /// and its results follow the loop's, of which those that it alone reads may be missing.
    pub fn new(scan: Arc<Scan>, types: Outs<Type>, skip: Vec<usize>, sides: Sides, planner: Planner) -> NativeLoop {
        let variants = Variants::new(&scan);
        let (plain, clips, common) = (OnceLock::new(), AtomicBool::new(false), Mutex::default());
        NativeLoop { scan, plain, types, skip, planner, sides, variants, clips, common }
    }

    /// The loop with these output types, all of whose rows are returned.
    pub fn alone(scan: Arc<Scan>, types: Outs<Type>, planner: Planner) -> NativeLoop {
        let none = vec![0; types.len()];
        NativeLoop::new(scan, types, none, Sides::default(), planner)
    }

    /// The same, whose body the evaluator runs as it is.
    pub(super) fn planned(self) -> NativeLoop {
        NativeLoop { plain: OnceLock::from(self.scan.clone()), ..self }
    }

    /// The loop.
    pub fn scan(&self) -> &Arc<Scan> {
        &self.scan
    }
    /// The loop as the evaluator runs it where it is not compiled: its body is a plan.
    ///
    /// # Errors
    /// An internal error where the body is not consistent.
    pub fn plain(&self) -> Result<&Arc<Scan>> {
        if let Some(plain) = self.plain.get() {
            return Ok(plain);
        }
        let planned = Scan { body: self.planner.graph(&self.scan.body)?, ..(*self.scan).clone() };
        Ok(self.plain.get_or_init(|| Arc::new(planned)))
    }
    /// What it is for these inputs.
    pub(super) fn variant(&self, ins: &[Array]) -> Arc<Variant> {
        self.variants.get(ins, || self.make(ins))
    }
    /// True where it runs on a device for these inputs, and no part of it with the host.
    pub(super) fn is_there(&self, ins: &[Array]) -> bool {
        match &*self.variant(ins) {
            Variant::Kernel(ready) => ready.home().0.is_some(),
            Variant::Mixed(mixed, _) => mixed.there().is_ok_and(|there| there.is_some_and(There::is_whole)),
            _ => false,
        }
    }
    /// The names of what is computed of the sequences' rows, a block at a time, ahead of the steps that read them.
    pub fn ahead(&self) -> Vec<&str> {
        self.sides.head.as_ref().map_or(vec![], Head::ops)
    }
    /// The names of what is computed of the loop's rows, a block at a time, behind the steps that make them.
    pub fn behind(&self) -> Vec<&str> {
        self.sides.foot.as_ref().map_or(vec![], Foot::ops)
    }
    /// What became of it for the row types of its last calls, and for how many it was compiled in all.
    pub fn variants(&self) -> (Vec<VariantInfo>, usize) {
        let (variants, made) = self.variants.all();
        (variants.iter().map(|v| v.info(&self.scan)).collect(), made)
    }

    /// The loops in its step that run as parts of that: where the user wrote them, and what they are.
    pub fn inner(&self) -> Vec<(Span, &'static str)> {
        let of = |v: &Arc<Variant>| match &**v {
            Variant::Kernel(ready) => ready.plan.loops.iter().map(|&span| (span, WITHIN)).collect(),
            Variant::Mixed(mixed, _) => mixed.inner(),
            Variant::Switched(switched) => switched.all().iter().flat_map(|list| list.inner()).collect(),
            _ => vec![],
        };
        self.variants.all().0.iter().flat_map(of).collect()
    }

    /// The loop for these inputs. Where extents depend on integers that it is given, it is one for these integers.
    fn make(&self, ins: &[Array]) -> Made<Variant> {
        let types: Vec<Type> = ins.iter().map(Array::ty).collect();
        let types = retype::param_types(&self.scan, &types);
        let by_types = self.made(ins, &types, &[]);
        let plain = |(value, cost)| Made { value, cost, given: vec![] };
        let switched =
            |values: &[Option<Array>], by_sign: bool| Switched::new(&self.scan, ins, &types, values, by_sign, Kernels::new(self.planner));
        let found = |found: Switched, given| Made { value: Variant::Switched(Box::new(found)), cost: SWITCHED, given };
        let clips = |made: &Variant| made.slices() && self.clips.load(Ordering::Relaxed);
        match &by_types.0 {
            Variant::Mixed(list, _) if list.counts() && self.sides.head.is_none() => {
                return switched(&[], true).map_or_else(|| plain(by_types), |by_sign| found(by_sign, vec![]));
            }
            // Whatever the reason is, it may be that an extent is not known.
            Variant::Refused(_) => {}
            made if clips(made) => {}
            _ => return plain(by_types),
        }
        let integer = |a: &Array| a.rank() == 0 && a.dtype() == DType::I64;
        let of_step = || switched(&[], true).or_else(|| switched(&[], false));
        let (mut given, mut values) = (vec![], vec![None; types.len()]);
        for id in self.scan.captured.ids().filter(|&id| integer(&ins[self.scan.captured_input(id)])) {
            given.push(self.scan.captured_input(id));
            values[self.scan.captured_param(id)] = Some(ins[self.scan.captured_input(id)].clone());
        }
        match self.made(ins, &types, &values) {
            (made, _) if (made.by_values() || clips(&made)) && self.sides.head.is_none() => match (of_step(), &given[..]) {
                (Some(made), _) => found(made, vec![]),
                (None, []) => plain(by_types),
                (None, _) => match switched(&values, false) {
                    Some(made) => found(made, given),
                    None => plain(by_types),
                },
            },
            (Variant::Refused(_), _) => plain(by_types),
            (value, cost) => Made { value, cost, given },
        }
    }
    /// The loop for parameters of the step of these types and values, and how many instructions its steps have.
    fn made(&self, ins: &[Array], types: &[Type], values: &[Option<Array>]) -> (Variant, usize) {
        let counts = !matches!(self.planner.engine, Engine::Device(_));
        let lowered = lower(&self.scan, types, values, counts).and_then(|plan| match self.planner.engine.too_long(&plan.kernel) {
            Some(why) => Err(Refusal(why)),
            None => Ok(plan),
        });
        let why = match lowered {
            Ok(plan) if !self.begins_as(ins, &plan.windows) => return (Variant::Refused(CHANGES.into()), 1),
            Ok(plan) => match self.quicker(&plan, types, values) {
                Some(list) => return self.listed(list, format!("a kernel of {} instructions takes longer", plan.kernel.size())),
                None => {
                    let cost = plan.kernel.size();
                    return (Variant::Kernel(Box::new(Ready::new(&self.scan, plan, self.planner.engine))), cost);
                }
            },
            Err(e) => e.0,
        };
        match self.list(types, values) {
            Err(e) => (Variant::Refused(e.0), 1),
            Ok(plan) if !self.begins_as(ins, &plan.windows) => (Variant::Refused(CHANGES.into()), 1),
            Ok(plan) => self.listed(plan, why),
        }
    }
    /// The loop as a list, of ops that devices have kernels for where it runs on one.
    fn list(&self, types: &[Type], values: &[Option<Array>]) -> Lowered<StepList> {
        let spelled = match self.planner.engine {
            Engine::Device(device) => spelled(&self.scan, types, values, device.0.traits().is_quick_in_f64())?,
            _ => None,
        };
        mixed::lower(spelled.as_ref().unwrap_or(&self.scan), types, values, &[])
    }
    fn listed(&self, plan: StepList, why: String) -> (Variant, usize) {
        let mixed = Mixed::new(&self.scan, plan, &Kernels::new(self.planner));
        let cost = mixed.instructions();
        (Variant::Mixed(Arc::new(mixed), why), cost)
    }
    /// The loop as a list, where that is quicker than a long scalar kernel.
    fn quicker(&self, kernel: &LoopKernel, types: &[Type], values: &[Option<Array>]) -> Option<StepList> {
        if !kernel.is_long() || matches!(self.planner.engine, Engine::Device(_)) || !kernel.gains_by_arrays(&self.scan, types, values) {
            return None;
        }
        let list = mixed::lower(&self.scan, types, values, &[]).ok()?;
        list.is_quicker(kernel).then_some(list)
    }

    /// True where all initial rows, those too that no step reads, have the extents of the rows that steps write.
    fn begins_as(&self, ins: &[Array], windows: &[Window]) -> bool {
        let mut inits = self.scan.states.ids().zip(windows).filter_map(|(id, window)| Some((self.scan.init_input(id)?, window)));
        inits.all(|(at, window)| ins[at].shape()[1..] == window.shape[..])
    }

    /// What the kernel makes; `None` where it found that it cannot do what the law does. The inputs are then as they were.
    fn run(&self, ready: &Ready, cx: &mut EvalCx, ins: &mut [Array], flow: &mut Flow, n: usize) -> Result<Option<Outs<Array>>> {
        if !ready.plan.guarded {
            return self.run_kernel(ready, cx, ins, flow, n, &[]).map(Some);
        }
        // Who holds what the inputs hold keeps it from being overwritten.
        let mut own: SmallVec<[Array; 8]> = ins.iter().cloned().collect();
        let failed: SmallVec<[Cell<u8>; 16]> = (0..ready.plan.flags()).map(|_| Cell::new(0)).collect();
        let outs = self.run_kernel(ready, cx, &mut own, flow, n, &failed)?;
        Ok((!is_any(&failed)).then_some(outs))
    }

    fn run_kernel(
        &self,
        ready: &Ready,
        cx: &mut EvalCx,
        ins: &mut [Array],
        flow: &mut Flow,
        n: usize,
        failed: &[Cell<u8>],
    ) -> Result<Outs<Array>> {
        let scan = &*self.scan;
        let windows = &ready.plan.windows;
        let mut held: SmallVec<[Held; 2]> = SmallVec::new();
        let steps = step::timed(scan, n, cx, |cx| {
            let mut computed = ready.before.run(scan, cx, ins).map_err(|e| step::in_step(e, scan.name.as_deref(), 0))?;
            let home = ready.home();
            ready.before.send(home, ins, &mut computed)?;
            let room = room(scan, windows, n);
            foresee(scan, windows, flow, n)?;
            let states = scan.states.ids().zip(windows).zip(&self.skip);
            let new = states.map(|((id, w), &skip)| Held::new(scan, id, w, ins, [n, room], (skip, home), flow.holds(id)));
            kept::laid_out(scan, &Cell::new(0), || held.extend(new))?;
            ready.steps(scan, cx, ins, &computed, flow, &mut held, [n, room], failed)
        })?;
        let states = scan.states.iter().zip(windows).zip(held).zip(&self.skip);
        let rows = states.map(|(((state, window), held), skip)| {
            let left = if held.kind == Rows::All { skip - held.base } else { 0 };
            from_row(held.finish(state.keep, window, steps), left)
        });
        Ok(rows.chain([ran(ins, steps)]).collect())
    }

    /// What the list makes; `None` where it found that it cannot do what the law does. The inputs are then as they were.
    fn run_lists(&self, lists: &Lists, cx: &mut EvalCx, ins: &mut [Array], flow: &mut Flow, n: usize) -> Result<Option<Outs<Array>>> {
        let there = lists.there()?;
        if there.is_none_or(|there| !there.may_need_host()) && !lists.lists.iter().any(|list| list.guarded) {
            return self.run_list(lists, cx, ins, flow, n);
        }
        let mut own: SmallVec<[Array; 8]> = ins.iter().cloned().collect();
        self.run_list(lists, cx, &mut own, flow, n)
    }

    fn run_list(&self, lists: &Lists, cx: &mut EvalCx, ins: &mut [Array], flow: &mut Flow, n: usize) -> Result<Option<Outs<Array>>> {
        let scan = &*self.scan;
        let windows = lists.windows();
        let room = room(scan, windows, n);
        let states = scan.states.ids().zip(windows).zip(lists.lists[0].in_place());
        foresee(scan, windows, flow, n)?;
        let there = lists.there()?;
        let home = Home(there.filter(|there| there.is_whole()).map(There::device));
        if let Some(there) = there {
            scan.seqs.ids().try_for_each(|id| Home(Some(there.device())).send(&mut ins[scan.seq_input(id)]))?;
        }
        let in_memory = |((id, w), &one): ((StateId, &Window), &bool)| {
            Held::in_memory(scan, id, w, ins, [n, room], (one, there.is_none(), home), flow.holds(id))
        };
        let new = states.map(in_memory);
        let mut held: SmallVec<[Held; 2]> = SmallVec::new();
        kept::laid_out(scan, &Cell::new(0), || held.extend(new))?;
        let mut refused = false;
        let steps = step::timed(scan, n, cx, |cx| -> Result<usize> {
            let ran = lists.run(scan, cx, ins, flow, &mut held, [n, room])?;
            refused = ran.is_none();
            Ok(ran.unwrap_or(0))
        })?;
        let states = scan.states.iter().zip(windows).zip(held);
        let rows = states.map(|((state, window), held)| held.finish_in_memory(state.keep, window, steps));
        Ok((!refused).then(|| self.skipped(rows.chain([ran(ins, steps)]).collect())))
    }

    /// Outputs without the rows that are not returned.
    fn skipped(&self, mut outs: Outs<Array>) -> Outs<Array> {
        for (out, &skip) in outs.iter_mut().zip(&self.skip).filter(|s| *s.1 > 0) {
            *out = from_row(std::mem::replace(out, Array::scalar(false)), skip);
        }
        outs
    }

    /// Runs on inputs that are all there, or of which a feed makes the sequences; the results of the loop and of its foot, given that one's
    /// arguments.
    fn eval_on(&self, cx: &mut EvalCx, ins: &mut [Array], mut feed: Feed, after: &[Array]) -> Result<Outs<Array>> {
        let n = step::count_steps(&self.scan, ins)?;
        let crossed = Crossed::start();
        let short = |id: StateId| self.scan.init_input(id).is_some_and(|at| ins[at].shape()[0] < self.scan.states[id].span());
        if n > 0 && !self.scan.states.ids().any(short) {
            feed.advance(&self.scan, cx, ins, 0, n)?;
            match &*self.variant(ins) {
                Variant::Kernel(ready) => {
                    let mut flow = Flow { feed, drain: self.drain(cx, &ready.plan.windows, after, n)? };
                    #[cfg(any(test, feature = "testing"))]
                    let asked = self.watched(ins);
                    let made = self.run(ready, cx, ins, &mut flow, n);
                    #[cfg(any(test, feature = "testing"))]
                    asked.into_iter().for_each(|ins| testing::kernel_ran(&ready.plan, &self.scan, &ins, &made, &self.skip));
                    let made = made?;
                    ready.tier.device().into_iter().for_each(|device| device.note(crossed.since()));
                    return match made {
                        Some(outs) => self.with_foot(cx, outs, flow.drain, after),
                        None => self.left_to_law(ready.plan.slices, cx, ins, flow.feed, after),
                    };
                }
                Variant::Mixed(mixed, _) => return self.eval_lists(&Lists::one(mixed.clone()), cx, ins, feed, (n, after)),
                Variant::Switched(switched) => {
                    if let Some(lists) = switched.lists(&self.scan, ins, n).filter(|lists| self.begins_as(ins, lists.windows())) {
                        return self.eval_lists(&lists, cx, ins, feed, (n, after));
                    }
                }
                Variant::Refused(_) => {}
            }
        }
        self.by_law(cx, ins, feed, after)
    }

    /// The inputs of a loop that is to be interpreted: nothing is computed for it alone.
    #[cfg(any(test, feature = "testing"))]
    fn watched(&self, ins: &[Array]) -> Option<Vec<Array>> {
        testing::watched(ins).filter(|_| self.sides.head.is_none() && self.sides.foot.is_none())
    }

    /// Runs n steps that are lists, or, where these cannot do what the law does, as the evaluator does.
    fn eval_lists(
        &self,
        lists: &Lists,
        cx: &mut EvalCx,
        ins: &mut [Array],
        feed: Feed,
        (n, after): (usize, &[Array]),
    ) -> Result<Outs<Array>> {
        let mut flow = Flow { feed, drain: self.drain(cx, lists.windows(), after, n)? };
        let crossed = Crossed::start();
        #[cfg(any(test, feature = "testing"))]
        let asked = self.watched(ins).filter(|_| lists.lists.len() == 1);
        let made = self.run_lists(lists, cx, ins, &mut flow, n);
        #[cfg(any(test, feature = "testing"))]
        asked.into_iter().for_each(|ins| testing::list_ran(&lists.lists[0].plan, &self.scan, &ins, &made, &self.skip));
        let made = made?;
        lists.there()?.into_iter().for_each(|there| there.note(crossed.since()));
        match made {
            Some(outs) => self.with_foot(cx, outs, flow.drain, after),
            None => self.left_to_law(lists.lists.iter().any(|list| list.slices()), cx, ins, flow.feed, after),
        }
    }

    /// Runs as the evaluator does what was made in another way and found that it cannot; where slices may be the reason, it is not made like
    /// that again.
    fn left_to_law(&self, slices: bool, cx: &mut EvalCx, ins: &mut [Array], feed: Feed, after: &[Array]) -> Result<Outs<Array>> {
        let outs = self.by_law(cx, ins, feed, after)?;
        if slices && !self.clips.swap(true, Ordering::Relaxed) {
            self.variants.forget();
        }
        Ok(outs)
    }

    /// Runs as the evaluator does.
    fn by_law(&self, cx: &mut EvalCx, ins: &mut [Array], feed: Feed, after: &[Array]) -> Result<Outs<Array>> {
        if let Some((head, args)) = feed.head() {
            head.all(&self.scan, cx, ins, args)?;
        }
        let outs = self.skipped(step::run(self.plain()?, cx, ins)?);
        self.with_foot(cx, outs, None, after)
    }

    fn drain<'a>(&'a self, cx: &mut EvalCx, windows: &[Window], after: &'a [Array], n: usize) -> Result<Option<Drain<'a>>> {
        self.sides.foot.as_ref().map_or(Ok(None), |foot| Drain::new(foot, cx, windows, after, n))
    }

    /// The loop's outputs, and what is made of its rows.
    fn with_foot(&self, cx: &mut EvalCx, mut outs: Outs<Array>, drain: Option<Drain>, after: &[Array]) -> Result<Outs<Array>> {
        match (&self.sides.foot, drain) {
            (None, _) => {}
            (Some(_), Some(drain)) => outs.extend(drain.finish()),
            (Some(foot), None) => outs.extend(foot.all(cx, &outs, &self.skip, after)?),
        }
        Ok(outs)
    }
}

impl NativeOp for NativeLoop {
    fn name(&self) -> &str {
        "scan"
    }
    fn types(&self) -> Outs<Type> {
        self.types.clone()
    }
    fn eval(&self, cx: &mut EvalCx, ins: &mut [Array]) -> Result<Outs<Array>> {
        let (own, args) = ins.split_at_mut(self.scan.n_inputs());
        let Some(head) = &self.sides.head else { return self.eval_on(cx, own, Feed::whole(), args) };
        let (args, after) = args.split_at(head.n_args());
        let steps = own[Scan::N_STEPS].item_i64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let feed = match head.block(cx, args, steps)? {
            Some(rows) => Feed::blocks(head, args, rows),
            None => {
                head.all(&self.scan, cx, own, args)?;
                Feed::whole()
            }
        };
        self.eval_on(cx, own, feed, after)
    }
    fn is_loop(&self) -> bool {
        true
    }
    fn plan(&self) -> String {
        self.variants.all().0.iter().map(|variant| variant.text(&self.scan)).collect()
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// Refuses what all rows of n steps cannot have, but for those that are taken from a state as they are made.
///
/// # Errors
/// `E0392`.
fn foresee(scan: &Scan, windows: &[Window], flow: &Flow, n: usize) -> Result<()> {
    kept::foresee(scan, n, |id| if flow.holds(id).is_some() { 0 } else { windows[id.0 as usize].row_bytes() })
}

/// The number of steps that ran, as an array: most often all that were asked for.
fn ran(ins: &[Array], steps: usize) -> Array {
    let asked = &ins[Scan::N_STEPS];
    let all = asked.dtype() == DType::I64 && asked.rank() == 0 && asked.item_i64() == Some(steps as i64);
    if all { asked.clone() } else { Array::scalar(steps as i64) }
}
