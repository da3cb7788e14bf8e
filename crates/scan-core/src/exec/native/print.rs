//! The text of what loops and groups of nodes run: kernels, and lists of parts with the memory that each reads and writes.

use super::before::Before;
use super::distributed::Distributed;
use super::mixed::Mixed;
use super::piece::{Compiled, Part, Piece};
use super::ready::Ready;
use super::tier::{Tiered, indented};
use super::variant::Variant;
use crate::backend::cpu::NestPlan;
use crate::base::Id;
use crate::ir::op::Write;
use crate::ir::print::print_plan;
use crate::ir::{Op, Scan, SeqId, StateId};
use crate::kernel::Nest;
use crate::plan::list::{At, Count, InnerKernel, InnerList, Place, Run};
use crate::plan::{LoopKernel, StepList, Window, kernel};
use crate::types::DType;

/// Moves of more runs are summed up.
const RUNS: usize = 4;

impl Variant {
    /// What runs, as text.
    pub fn text(&self, scan: &Scan) -> String {
        match self {
            Variant::Kernel(ready) => one_kernel(ready, scan),
            Variant::Mixed(mixed, why) => {
                let device =
                    mixed.placed().map_or(String::new(), |placed| format!("on {}, as here but for what stays on the host\n", placed.0));
                format!("a list of parts: {why}\n{device}{}", list(mixed, scan))
            }
            Variant::Switched(switched) => {
                let lists = switched.all();
                let each = lists.iter().map(|mixed| format!("a list of parts, for some integers\n{}", list(mixed, scan)));
                each.collect()
            }
            Variant::Refused(why) => format!("node by node: {why}\n"),
        }
    }
}

fn one_kernel(ready: &Ready, scan: &Scan) -> String {
    let LoopKernel { lanes, places, windows, .. } = &ready.plan;
    let lies = |(k, place): (usize, &kernel::Place)| format!("m{k} {}\n", operand(scan, place));
    let lies: String = places.iter().enumerate().map(lies).collect();
    let stages = ready.distributed.as_ref().map_or(String::new(), Distributed::text);
    let wide = if ready.vectorized.is_some() { "steps that do not wait for each other are lanes where there are many\n" } else { "" };
    let head = ready.tier.text(&format!("one kernel, {}", counted(*lanes, "lane")));
    format!("{}{}{lies}{head}{stages}{wide}", before_text(&ready.before), windows_text(scan, windows))
}

impl Distributed {
    fn text(&self) -> String {
        let stage =
            |(k, (tier, lanes)): (usize, (&Tiered, bool))| tier.text(&format!("stage {k}{}", if lanes { ", steps as lanes" } else { "" }));
        self.kernels().enumerate().map(stage).collect()
    }
}

/// What is computed before the first step.
fn before_text(before: &Before) -> String {
    before.computed().map_or(String::new(), |graph| print_plan(&graph.clone().pruned(), "before"))
}

fn windows_text(scan: &Scan, windows: &[Window]) -> String {
    let one = |(id, w): (StateId, &Window)| {
        let kept = match (w.stored, w.carried.iter().filter(|c| **c).count()) {
            (true, 0) => "rows are stored".to_string(),
            (true, n) => format!("rows are stored, {n} handed on from step to step"),
            (false, n) => format!("{} handed on from step to step", counted(n, "row")),
        };
        format!("state {}: {}, {kept}\n", state(scan, id), typed(w.dtype, &w.shape))
    };
    scan.states.ids().zip(windows).map(one).collect()
}

fn typed(dtype: DType, shape: &[usize]) -> String {
    let extents = shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    if shape.is_empty() { dtype.short().to_string() } else { format!("{}[{extents}]", dtype.short()) }
}

fn state(scan: &Scan, id: StateId) -> String {
    called(scan.states[id].name.as_deref(), id)
}

fn sequence(scan: &Scan, id: SeqId) -> String {
    called(scan.seqs[id].name.as_deref(), id)
}

/// The user's name, or the number.
fn called(name: Option<&str>, id: impl Id) -> String {
    name.map_or_else(|| id.idx().to_string(), |name| format!("`{name}`"))
}

/// Where an operand of a loop's kernel lies.
fn operand(scan: &Scan, place: &kernel::Place) -> String {
    let element = |at: usize| if at == 0 { String::new() } else { format!(", from element {at} on") };
    match *place {
        kernel::Place::Seq { id, at } => format!("is the row of sequence {}{}", sequence(scan, id), element(at)),
        kernel::Place::Before { value, at } => format!("is value {value} of what all steps read{}", element(at)),
        kernel::Place::Row { id, offset, at } => format!("is row {offset} of state {}{}", state(scan, id), element(at)),
        kernel::Place::Window { id, row, at } => format!("is row {row} of state {}, handed on{}", state(scan, id), element(at)),
        kernel::Place::Stopped => "tells whether the loop has stopped".to_string(),
        kernel::Place::Failed => "tells what could not be computed as it is written".to_string(),
        kernel::Place::Votes => "tells what each lane says of stopping".to_string(),
    }
}

fn list(mixed: &Mixed, scan: &Scan) -> String {
    let (plan, text) = (&mixed.plan, List { scan, plan: &mixed.plan });
    let mut out = format!("{}{}", before_text(&mixed.before), windows_text(scan, &plan.windows));
    out += &format!("memory: {} bytes\n", plan.memory());
    mixed.pieces.iter().for_each(|piece| out += &text.piece(piece));
    for (id, offset, from) in &plan.writes {
        out += &format!("row {offset} of state {} <- {}\n", state(scan, *id), text.place(from));
    }
    plan.stop.iter().for_each(|stop| out += &format!("stops where {}\n", text.place(stop)));
    out
}

/// Prints the parts of a list.
struct List<'a> {
    scan: &'a Scan,
    plan: &'a StepList,
}

impl List<'_> {
    fn place(&self, place: &Place) -> String {
        let at = match place.at {
            At::Slot(slot) => format!("memory[{}]", self.plan.temporaries[slot].at),
            At::Seq(id) => format!("sequence {}", sequence(self.scan, id)),
            At::Before(value) => format!("value {value}"),
            At::Row(id, offset) => format!("state {}[{offset}]", state(self.scan, id)),
        };
        let first = if place.first == 0 { String::new() } else { format!(" + {}", place.first) };
        let along = match &place.along {
            along if along.iter().all(|n| *n == 0) => String::new(),
            along => format!(" by {along:?}"),
        };
        format!("{at}{first}: {}{along}", typed(place.dtype, &place.shape))
    }
    fn places(&self, places: &[Place]) -> String {
        places.iter().map(|p| self.place(p)).collect::<Vec<_>>().join("; ")
    }
    fn piece(&self, piece: &Piece) -> String {
        let (name, more) = self.part(piece);
        let line = piece.span.to_string();
        let line = if line.is_empty() { line } else { format!("  # {line}") };
        let ends = |places: &[Place]| if places.is_empty() { String::new() } else { format!(" {}", self.places(places)) };
        let to = if piece.outs.is_empty() { String::new() } else { format!(" ->{}", ends(&piece.outs)) };
        format!("{name}{}{to}{line}\n{}", ends(&piece.ins), indented(&more))
    }
    /// What a part is, and the lines below.
    fn part(&self, piece: &Piece) -> (String, String) {
        match &piece.part {
            Part::Nest(tier, nest) => (format!("kernel, {},", extents(nest)), self.kernel(tier, nest, &[])),
            Part::Either(versions) => {
                let texts = versions.both().iter().map(|(tier, nest)| self.kernel(tier, nest, &[])).collect::<Vec<_>>();
                ("kernel in two versions,".into(), texts.concat())
            }
            Part::Move(runs, _) => ("move".into(), moved(runs)),
            Part::Turn(turned) => ("move".into(), format!("{} matrices whose columns become rows\n", turned.len())),
            Part::Add(runs) => ("add".into(), moved(runs)),
            Part::MatMul([m, k, n]) => (format!("matmul {m}x{k} {k}x{n},"), String::new()),
            Part::Read(_) | Part::ByArrays(_, None) | Part::ByIntegers(_, None) | Part::Slice(_) => ("read by index".into(), String::new()),
            Part::Write(_, mode) | Part::ByArrays(_, Some(mode)) | Part::ByIntegers(_, Some(mode)) => {
                let how = if *mode == Write::Set { "write by index" } else { "add by index" };
                (how.into(), String::new())
            }
            Part::Direct(_, op) => (format!("call {}", op.name()), String::new()),
            Part::Call(Op::Native(op)) => (format!("call {}", op.0.name()), op.0.plan()),
            Part::Call(op) => (format!("call {}", op.name()), String::new()),
            Part::Guard([low, high]) => (format!("check {low} <= it <= {high}"), String::new()),
            Part::Within([axis, extent]) => (format!("check places of axis {axis} of {extent}"), String::new()),
            Part::Loop(inner) => (format!("loop of {} steps, one kernel,", self.count(&inner.count)), self.inner(inner)),
            Part::For(inner) => (format!("loop of {} steps,", self.count(&inner.count)), self.inner_list(inner)),
        }
    }
    fn count(&self, count: &Count) -> String {
        match count {
            Count::Known(n) => n.to_string(),
            Count::Read(place, most) => format!("{} (at most {most})", self.place(place)),
        }
    }
    fn kernel(&self, tier: &Tiered, nest: &Nest, operands: &[Place]) -> String {
        let mut out = tier.text("kernel");
        for (k, strides) in nest.strides.iter().enumerate() {
            let at = operands.get(k).map_or(String::new(), |place| format!(" is {}", self.place(place)));
            if strides.step != 0 && nest.steps > 1 || !strides.outer.is_empty() || !at.is_empty() {
                out += &format!("  m{k}{at} moves by {} bytes a step, {:?} a place\n", strides.step, strides.outer);
            }
        }
        nest.fills.iter().for_each(|fill| out += &format!("  m{} begins with {} times {:#x}\n", fill.operand, fill.count, fill.bits));
        out
    }
    fn inner(&self, inner: &InnerKernel<Compiled>) -> String {
        let mut out = self.kernel(&inner.nest.tier, &inner.nest.nest, &inner.operands);
        let told = [("stopped", &inner.stopped), ("could not be computed", &inner.failed), ("steps", &inner.ran)];
        told.iter().for_each(|(what, place)| place.iter().for_each(|p| out += &format!("{what}: {}\n", self.place(p))));
        inner.votes.iter().for_each(|(place, votes)| out += &format!("stops by {:?} of {}\n", votes.quorum, self.place(place)));
        out
    }
    fn inner_list(&self, inner: &InnerList<Piece>) -> String {
        let mut out: String = inner.items.iter().map(|piece| self.piece(piece)).collect();
        inner.writes.iter().for_each(|[from, to]| out += &format!("{} <- {}\n", self.place(to), self.place(from)));
        inner.stop.iter().for_each(|stop| out += &format!("stops where {}\n", self.place(stop)));
        inner.ran.iter().for_each(|ran| out += &format!("steps: {}\n", self.place(ran)));
        out
    }
}

fn extents(nest: &NestPlan) -> String {
    let outer: String = nest.outer.iter().map(|n| format!("{n} x ")).collect();
    format!("{outer}{} of {}", counted(nest.steps, "step"), counted(nest.lanes, "lane"))
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn moved(runs: &[Run]) -> String {
    let one = |run: &Run| match run.input {
        Some(input) if run.n == 1 => format!("element {} of input {input} to {}\n", run.from, run.to),
        Some(input) => format!("{} elements of input {input} from {} on, {} apart, to {}\n", run.n, run.from, run.step, run.to),
        None => format!("{} zeros to {}\n", run.n, run.to),
    };
    let shown: String = runs.iter().take(RUNS).map(one).collect();
    if runs.len() > RUNS { format!("{shown}and {} runs more\n", runs.len() - RUNS) } else { shown }
}
