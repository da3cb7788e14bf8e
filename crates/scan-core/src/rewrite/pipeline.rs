//! THE list of passes.

use super::driver::Cx;
use super::passes::{
    dot_merge, fma, join_writes, linalg_share, scan_dce, scan_dot_out, scan_hoist_non_seq, scan_hoist_seq, scan_keep_last, scan_log_matmul,
    scan_merge, scan_merge_slots, scan_narrow, scan_residuals, scan_sink_output, scan_sum_in_loop, scan_unguard, scan_unroll,
    scan_vectorize, stacks,
};
use super::rules::{
    Rule, algebra, choice, const_fold, contract, cse, index, log_space, log_terms, masks, parts, release, row_masks, scatter, shape,
    spread, stabilise, structure, transposed,
};
use crate::base::Result;
use crate::ir::Graph;

/// When a pass runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// First, and again after loops were changed.
    Always,
    /// After these: passes over loops, repeated while they find something.
    Loops,
    /// At the end.
    Last,
}

/// Whether a pass keeps every bit of every result.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert!(PASSES.iter().any(|pass| pass.exact == Exact::Yes));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exact {
    /// It does.
    Yes,
    /// Floats may be rounded otherwise, or a zero have another sign.
    No,
}

/// How a pass works.
#[derive(Clone, Copy)]
pub enum Run {
    /// By rules for single nodes; neighbours in the list share one walk.
    Rules(&'static [&'static [Rule]]),
    /// On a whole graph with loops, after their bodies; `None` where there is nothing to do.
    Loops(Whole),
    /// The same before their bodies, in which it may leave something to do.
    Inward(Whole),
    /// As [`Run::Loops`] on graphs that contain one of these ops.
    Ops(&'static [&'static str], Whole),
}

/// A pass on a whole graph.
type Whole = fn(&mut Cx, &Graph) -> Result<Option<Graph>>;

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
    /// True for each of its names; passes over loops have that of Theano's group, too.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.theano.contains(&name) || (name == "scan" && self.stage == Stage::Loops)
    }
}

/// All passes, in the order in which they run.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert!(PASSES.iter().any(|pass| pass.name == "cse"));
/// ```
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
        doc: "Drops arithmetic, choices and changes of shape without effect.",
        stage: Stage::Always,
        exact: Exact::Yes,
        run: Run::Rules(&[algebra::RULES, choice::RULES, structure::RULES]),
    },
    Pass {
        name: "shape",
        theano: &["ShapeOpt", "local_shape_to_shape_i", "local_useless_alloc", "local_useless_reshape"],
        doc: "Replaces extents by what is known of them, and drops broadcasts without effect.",
        stage: Stage::Always,
        exact: Exact::Yes,
        run: Run::Rules(&[shape::RULES, spread::RULES]),
    },
    Pass {
        name: "index",
        theano: &[
            "local_subtensor_merge",
            "local_useless_slice",
            "local_useless_subtensor",
            "local_subtensor_make_vector",
            "local_subtensor_inc_subtensor",
        ],
        doc: "Reads what was just written, joined or cut where it came from.",
        stage: Stage::Always,
        exact: Exact::Yes,
        run: Run::Rules(&[index::RULES, parts::RULES]),
    },
    Pass {
        name: "stabilise",
        theano: &["stabilize", "local_log1p", "local_expm1", "local_1msigmoid", "log1msigm_to_softplus", "local_log_softmax"],
        doc: "Puts functions that neither overflow nor cancel in the place of formulas that do.",
        stage: Stage::Always,
        exact: Exact::No,
        run: Run::Rules(&[stabilise::RULES, log_space::RULES, log_terms::RULES, stabilise::POWERS]),
    },
    Pass {
        name: "contract",
        theano: &[],
        doc: "Makes products of matrices of products that are summed along an axis.",
        stage: Stage::Always,
        exact: Exact::No,
        run: Run::Rules(&[contract::RULES]),
    },
    Pass {
        name: "scatter",
        theano: &["local_IncSubtensor_serialize"],
        doc: "Adds parts of an array where they belong, without zeros around them.",
        stage: Stage::Always,
        exact: Exact::No,
        run: Run::Rules(&[scatter::RULES, row_masks::WRITES]),
    },
    Pass {
        name: "release",
        theano: &["local_remove_useless_assert"],
        doc: "Removes what only gradients look at.",
        stage: Stage::Always,
        exact: Exact::Yes,
        run: Run::Rules(&[release::RULES]),
    },
    Pass {
        name: "scan_unguard",
        theano: &[],
        doc: "Drops what guards rows of a batch that have stopped, where they cannot fail.",
        stage: Stage::Loops,
        exact: Exact::Yes,
        run: Run::Loops(scan_unguard::run),
    },
    Pass {
        name: "scan_unroll",
        theano: &["one_step_scan"],
        doc: "Writes out loops of one to four steps.",
        stage: Stage::Loops,
        exact: Exact::Yes,
        run: Run::Loops(scan_unroll::run),
    },
    Pass {
        name: "scan_merge",
        theano: &["ScanMerge"],
        doc: "Makes loops beside each other one loop.",
        stage: Stage::Loops,
        exact: Exact::Yes,
        run: Run::Inward(scan_merge::run),
    },
    Pass {
        name: "scan_log_matmul",
        theano: &[],
        doc: "Makes products of a logsumexp whose matrix is the same at every step.",
        stage: Stage::Loops,
        exact: Exact::No,
        run: Run::Loops(scan_log_matmul::run),
    },
    Pass {
        name: "scan_residuals",
        theano: &[],
        doc: "Keeps what a loop's gradient would compute again, where that costs less.",
        stage: Stage::Loops,
        exact: Exact::Yes,
        run: Run::Loops(scan_residuals::run),
    },
    Pass {
        name: "scan_merge_slots",
        theano: &["scan_merge_inouts"],
        doc: "Makes states of a loop that are always equal one.",
        stage: Stage::Loops,
        exact: Exact::Yes,
        run: Run::Loops(scan_merge_slots::run),
    },
    Pass {
        name: "scan_dce",
        theano: &["remove_constants_and_unused_inputs_scan", "scan_eqopt1"],
        doc: "Drops states, outputs and inputs of loops that nobody needs.",
        stage: Stage::Loops,
        exact: Exact::Yes,
        run: Run::Loops(scan_dce::run),
    },
    Pass {
        name: "scan_hoist_non_seq",
        theano: &["PushOutNonSeqScan", "scan_pushout_nonseq", "scanOp_pushout_nonseqs_ops"],
        doc: "Computes what is the same at every step once, before the loop.",
        stage: Stage::Loops,
        exact: Exact::Yes,
        run: Run::Loops(scan_hoist_non_seq::run),
    },
    Pass {
        name: "scan_vectorize",
        theano: &[],
        doc: "Makes array operations of loops that hand nothing from step to step.",
        stage: Stage::Loops,
        exact: Exact::No,
        run: Run::Loops(scan_vectorize::run),
    },
    Pass {
        name: "scan_hoist_seq",
        theano: &["PushOutSeqScan", "scan_pushout_seq", "scanOp_pushout_seqs_ops"],
        doc: "Multiplies all rows of a sequence with a matrix at once, before the loop.",
        stage: Stage::Loops,
        exact: Exact::No,
        run: Run::Loops(scan_hoist_seq::run),
    },
    Pass {
        name: "dot_merge",
        theano: &[],
        doc: "Multiplies once where a step multiplies a value with several matrices.",
        stage: Stage::Loops,
        exact: Exact::No,
        run: Run::Loops(dot_merge::run),
    },
    Pass {
        name: "scan_sum_in_loop",
        theano: &[],
        doc: "Sums the rows of an output inside the loop, so that they need not be kept.",
        stage: Stage::Loops,
        exact: Exact::No,
        run: Run::Loops(scan_sum_in_loop::run),
    },
    Pass {
        name: "scan_keep_last",
        theano: &["ScanSaveMem", "scan_save_mem", "scanOp_save_mem"],
        doc: "Keeps only those rows of a loop's output that something reads.",
        stage: Stage::Loops,
        exact: Exact::Yes,
        run: Run::Loops(scan_keep_last::run),
    },
    Pass {
        name: "scan_narrow",
        theano: &[],
        doc: "Narrows the window of a state to what its steps hand to each other.",
        stage: Stage::Loops,
        exact: Exact::No,
        run: Run::Loops(scan_narrow::run),
    },
    Pass {
        name: "scan_sink_output",
        theano: &["PushOutScanOutput", "scan_pushout_output", "scanOp_pushout_output"],
        doc: "Computes after the loop, for all steps at once, what only feeds its outputs.",
        stage: Stage::Loops,
        exact: Exact::No,
        run: Run::Loops(scan_sink_output::run),
    },
    Pass {
        name: "scan_dot_out",
        theano: &["PushOutDot1", "scan_pushout_dot1"],
        doc: "Multiplies once, after the loop, what a loop multiplies and adds up step by step.",
        stage: Stage::Loops,
        exact: Exact::No,
        run: Run::Loops(scan_dot_out::run),
    },
    Pass {
        name: "linalg_share",
        theano: &[],
        doc: "Factorises a matrix once for several right sides and its determinant.",
        stage: Stage::Last,
        exact: Exact::Yes,
        run: Run::Ops(&["solve", "inverse"], linalg_share::run),
    },
    Pass {
        name: "transposed",
        theano: &[],
        doc: "Multiplies vectors with a matrix as it is, where it would be transposed for them alone.",
        stage: Stage::Last,
        exact: Exact::No,
        run: Run::Rules(&[transposed::RULES]),
    },
    Pass {
        name: "masks",
        theano: &[],
        doc: "Writes masks of extremes as comparisons, and chooses among what is read of masked rows, not among the rows.",
        stage: Stage::Last,
        exact: Exact::Yes,
        run: Run::Rules(&[masks::RULES, row_masks::READS]),
    },
    Pass {
        name: "stacks",
        theano: &["local_reduce_join"],
        doc: "Reduces stacks of a few arrays as functions of these.",
        stage: Stage::Last,
        exact: Exact::Yes,
        run: Run::Ops(&["join"], stacks::run),
    },
    Pass {
        name: "join_writes",
        theano: &[],
        doc: "Joins what is written beside each other into zeros and added up.",
        stage: Stage::Last,
        exact: Exact::Yes,
        run: Run::Ops(&["index_write"], join_writes::run),
    },
    Pass {
        name: "fma",
        theano: &["local_add_mul_fusion"],
        doc: "Rounds `a · b + c` once, where the processor can.",
        stage: Stage::Last,
        exact: Exact::No,
        run: Run::Ops(&["add", "sub"], fma::run),
    },
];

/// Names of Theano's optimisations and of their groups that have no pass of their own here: accepted where passes are excluded.
#[rustfmt::skip]
static THEANO: &[&str] = &[
    "fast_run", "fast_compile", "gpu", "inplace", "inplace_opt",
    "inplace_elemwise_optimizer", "inplace_elemwise_opt", "inplace_setsubtensor", "fusion", "elemwise_fusion",
    "local_elemwise_fusion", "local_careduce_fusion", "composite_elemwise_fusion", "more_mem", "uncanonicalize",
    "local_dimshuffle_lift", "local_fill_to_alloc", "local_fill_sink", "local_sum_prod_mul_by_scalar", "local_elemwise_alloc",
    "local_subtensor_lift", "local_incsubtensor_of_zeros_to_setsubtensor", "local_setsubtensor_of_constants", "local_useless_inc_subtensor", "local_useless_split",
    "local_useless_rebroadcast", "local_rebroadcast_lift", "local_join_1", "local_join_empty", "local_join_make_vector",
    "local_remove_switch_const_cond", "local_useless_switch", "local_mul_switch_sink", "local_div_switch_sink",
    "local_merge_switch_same_cond", "local_upcast_elemwise_constant_inputs", "local_grad_log_erfc_neg", "local_greedy_distributor", "local_dot_to_dot22",
    "local_dot22_to_dot22scalar", "local_gemm_to_gemv", "local_gemm_to_ger", "local_inplace_gemm", "BlasOpt",
    "blas_opt_inplace", "c_blas", "specialize_device", "conv_gemm", "local_abstractconv_gemm",
    "conv_meta", "add_destroy_handler", "AddDestroyHandler", "random_make_inplace", "make_c_gemv_destructive",
    "useless", "ifelse", "cond_make_inplace", "local_remove_all_assert", "unsafe",
    "local_max_and_argmax", "local_crossentropy_to_crossentropy_with_softmax", "crossentropy_to_crossentropy_with_softmax", "local_advanced_indexing_crossentropy_onehot", "local_softmax_with_bias",
    "gpu_opt", "gpu_after_fusion", "gpu_local_optimizations", "dnn", "cudnn",
    "local_cut_gpu_transfers", "scan_make_inplace", "scanOp_make_inplace", "ScanInplaceOptimizer", "scan_eqopt2",
    "scan_to_gpu", "local_pow_specialize", "local_pow_canonicalize", "local_neg_neg", "local_neg_div_neg",
    "local_mul_zero", "local_zero_div", "local_intdiv_by_one", "local_mul_to_sqr", "local_add_specialize",
    "local_mul_specialize", "local_div_to_inv", "local_inv_canon", "local_cast_cast", "local_opt_alloc",
    "local_sum_make_vector", "topo_constant_folding",
];

/// True for a name of Theano's without a pass of its own.
pub fn known_theano(name: &str) -> bool {
    THEANO.contains(&name)
}
