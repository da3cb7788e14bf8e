//! THE list of passes.

use super::driver::Cx;
use super::passes::{scan_dce, scan_hoist_non_seq, scan_keep_last};
use super::rules::{Rule, algebra, const_fold, cse};
use crate::base::Result;
use crate::ir::Graph;

/// When a pass runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// First, and again after loops were changed; before gradients are taken, too.
    Always,
    /// As `Always`, but not before gradients are taken: it removes what tells gradients apart.
    Execution,
    /// After these: passes over loops, repeated while they find something.
    Loops,
    /// At the end.
    Last,
}

/// Whether a pass keeps every bit of every result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exact {
    /// It does.
    Yes,
    /// Floats may be rounded otherwise.
    No,
}

/// How a pass works.
#[derive(Clone, Copy)]
pub enum Run {
    /// By rules for single nodes; neighbours in the list share one walk.
    Rules(&'static [&'static [Rule]]),
    /// On a whole graph, after the bodies of its loops; `None` where there is nothing to do.
    Graph(fn(&mut Cx, &Graph) -> Result<Option<Graph>>),
}

/// One pass.
pub struct Pass {
    /// Our name.
    pub name: &'static str,
    /// Theano's names for it.
    pub theano: &'static [&'static str],
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// When it runs.
    pub stage: Stage,
    /// Whether it keeps every bit.
    pub exact: Exact,
    /// How it works.
    pub run: Run,
}

impl Pass {
    /// True for each of its names.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.theano.contains(&name)
    }
}

/// All passes, in the order in which they run.
pub static PASSES: &[Pass] = &[
    Pass {
        name: "cse",
        theano: &["merge", "merge1", "merge2", "merge3"],
        doc: "Computes equal things once.",
        stage: Stage::Always,
        exact: Exact::Yes,
        run: Run::Rules(&[cse::RULES]),
    },
    Pass {
        name: "const_fold",
        theano: &["constant_folding"],
        doc: "Evaluates what depends on constants alone.",
        stage: Stage::Always,
        exact: Exact::Yes,
        run: Run::Rules(&[const_fold::RULES]),
    },
    Pass {
        name: "algebra",
        theano: &["canonicalize", "specialize", "local_add_canonizer", "local_mul_canonizer"],
        doc: "Drops arithmetic without effect.",
        stage: Stage::Always,
        exact: Exact::Yes,
        run: Run::Rules(&[algebra::RULES]),
    },
    Pass {
        name: "scan_dce",
        theano: &["remove_constants_and_unused_inputs_scan", "scan_eqopt1"],
        doc: "Drops states, outputs and inputs of loops that nobody needs.",
        stage: Stage::Loops,
        exact: Exact::Yes,
        run: Run::Graph(scan_dce::run),
    },
    Pass {
        name: "scan_hoist_non_seq",
        theano: &["PushOutNonSeqScan", "scan_pushout_nonseq", "scanOp_pushout_nonseqs_ops"],
        doc: "Computes what is the same at every step once, before the loop.",
        stage: Stage::Loops,
        exact: Exact::Yes,
        run: Run::Graph(scan_hoist_non_seq::run),
    },
    Pass {
        name: "scan_keep_last",
        theano: &["ScanSaveMem", "scan_save_mem", "scanOp_save_mem"],
        doc: "Keeps only those rows of a loop's output that something reads.",
        stage: Stage::Loops,
        exact: Exact::Yes,
        run: Run::Graph(scan_keep_last::run),
    },
];

/// Names of Theano's optimisations and of their groups that have no pass of their own here: accepted where passes are excluded.
static THEANO: &[&str] = &["fast_run", "fast_compile", "fusion", "elemwise_fusion", "inplace", "inplace_opt", "inplace_elemwise_optimizer"];

/// True for a name of Theano's without a pass of its own.
pub fn known_theano(name: &str) -> bool {
    THEANO.contains(&name)
}
