//! What became of the loops of a function: engine, rows kept, copies; or why a loop stays with the evaluator.

use super::native::{NativeLoop, VariantInfo};
use crate::base::Span;
use crate::ir::{Graph, Keep, Op, Scan};
use crate::kernel::Work;
use std::fmt::{self, Display, Formatter};

/// What is known of a loop of a function.
///
/// ```
/// use scan_core::prelude::*;
///
/// let out = scan().named("halves").steps(3).init("h", 1.0).run(|s| s.get("h") * 0.5);
/// let f = function(&[], &[&out.rows("h")]).passes(PassOptions::none()).compile()?;
/// assert_eq!(f.loops()[0].name.as_deref(), Some("halves"));
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LoopInfo {
    /// The user's name for it.
    pub name: Option<String>,
    /// Where the user wrote it.
    pub span: Span,
    /// How many loops it stands in.
    pub depth: usize,
    /// What each state keeps.
    pub states: Vec<StateInfo>,
    /// What is computed of the sequences' rows before the steps that read them, a block at a time where the loop is long.
    pub ahead: Vec<String>,
    /// What is computed of the loop's rows behind the steps that make them, a block at a time where the loop is long.
    pub behind: Vec<String>,
    /// One entry per row types of its last calls; none before the first call.
    pub variants: Vec<VariantInfo>,
    /// For how many row types it was compiled; more than there are entries where those not called for longest were given up.
    pub compiled: usize,
}

/// What is known of a state.
///
/// ```
/// use scan_core::prelude::*;
///
/// let out = scan().named("halves").steps(3).init("h", 1.0).run(|s| s.get("h") * 0.5);
/// let f = function(&[], &[&out.rows("h")]).passes(PassOptions::none()).compile()?;
/// assert_eq!(f.loops()[0].states.len(), 1);
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, Debug)]
pub struct StateInfo {
    /// The user's name for it.
    pub name: Option<String>,
    /// Theano's name for such a state.
    pub kind: &'static str,
    /// The rows that the loop returns.
    pub keep: Keep,
}

/// The loops of a plan, outer ones first.
pub fn loops(plan: &Graph) -> Vec<LoopInfo> {
    let mut found = vec![];
    collect(plan, 0, &[], &mut found);
    found
}

/// `inner`: the loops that are parts of the step of the loop around, and what they are.
fn collect(plan: &Graph, depth: usize, inner: &[(Span, &'static str)], found: &mut Vec<LoopInfo>) {
    let live = plan.needed(plan.results());
    for (_, node) in plan.nodes().enumerate().filter(|(id, _)| live[id.0 as usize]) {
        match &node.op {
            Op::Native(op) => {
                if let Some(native) = op.0.as_any().downcast_ref::<NativeLoop>() {
                    let ahead = native.ahead().into_iter().map(str::to_string).collect();
                    let behind = native.behind().into_iter().map(str::to_string).collect();
                    let (mut variants, compiled) = native.variants();
                    if let (true, Some((_, what))) = (variants.is_empty(), inner.iter().find(|i| i.0 == node.span)) {
                        variants.push(VariantInfo { engine: what.to_string(), lanes: 1, block: 1, ..VariantInfo::default() });
                    }
                    found.push(LoopInfo { ahead, behind, compiled, ..info(native.scan(), node.span, depth, variants) });
                    let inside = native.plain().unwrap_or(native.scan());
                    collect(&inside.body, depth + 1, &[inner, &native.inner()].concat(), found);
                }
            }
            Op::Scan(scan) => {
                let eval = VariantInfo::other("eval", "no engine was asked for");
                found.push(info(scan, node.span, depth, vec![eval]));
                collect(&scan.body, depth + 1, &[], found);
            }
            _ => {}
        }
    }
}

fn info(scan: &Scan, span: Span, depth: usize, variants: Vec<VariantInfo>) -> LoopInfo {
    let state = |s: &crate::ir::State| StateInfo { name: s.name.as_deref().map(str::to_string), kind: s.kind(), keep: s.keep };
    let (name, states) = (scan.name.as_deref().map(str::to_string), scan.states.iter().map(state).collect());
    LoopInfo { name, span, depth, states, ahead: vec![], behind: vec![], variants, compiled: 0 }
}

impl Display for LoopInfo {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let pad = "  ".repeat(self.depth);
        let name = self.name.as_deref().map_or(String::new(), |n| format!(" `{n}`"));

        writeln!(f, "{pad}loop{name}  # {}", self.span)?;
        for state in &self.states {
            let keep = match state.keep {
                Keep::All => "all rows".to_string(),
                Keep::Last(1) => "the last row".to_string(),
                Keep::Last(n) => format!("the last {n} rows"),
            };
            writeln!(f, "{pad}  state {} ({}) keeps {keep}", state.name.as_deref().unwrap_or("?"), state.kind)?;
        }
        if !self.ahead.is_empty() {
            writeln!(f, "{pad}  computes ahead, in blocks of rows where there are many: {}", self.ahead.join(", "))?;
        }
        if !self.behind.is_empty() {
            writeln!(f, "{pad}  computes behind, in blocks of rows where there are many: {}", self.behind.join(", "))?;
        }
        if self.variants.is_empty() {
            writeln!(f, "{pad}  not called yet")?;
        }
        if self.compiled > self.variants.len() {
            writeln!(f, "{pad}  compiled for {} extents of rows, of which the last {} are kept", self.compiled, self.variants.len())?;
        }
        for v in &self.variants {
            let reason = v.reason.as_ref().map_or(String::new(), |r| format!(" because {r}"));
            write!(f, "{pad}  runs on {}{reason}", v.engine)?;
            if v.instructions > 0 {
                write!(f, ": {} lanes, {} instructions a step, blocks of {} steps", v.lanes, v.instructions, v.block)?;
            }
            writeln!(f)?;
            if let Some(Work { operations, calls, bytes, .. }) = v.work {
                writeln!(f, "{pad}    a step: {operations} operations, {calls} calls, {bytes} bytes read and written")?;
            }
            for (what, bytes) in &v.copies {
                writeln!(f, "{pad}    copies {what} each step: {bytes} bytes")?;
            }
            if let Some([there, back]) = v.crossed {
                writeln!(f, "{pad}    the last call moved {there} bytes to the device and {back} back")?;
            }
            if v.stored > 0 {
                writeln!(f, "{pad}    stores {} bytes a step", v.stored)?;
            }
        }
        Ok(())
    }
}
