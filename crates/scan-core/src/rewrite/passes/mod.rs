//! Passes over whole graphs, one per file.

pub mod dot_merge;
pub mod fma;
pub mod join_writes;
pub mod linalg_share;
pub mod scan_dce;
pub mod scan_dot_out;
pub mod scan_hoist_non_seq;
pub mod scan_hoist_seq;
pub mod scan_keep_last;
pub mod scan_log_matmul;
pub mod scan_merge;
pub mod scan_merge_slots;
pub mod scan_narrow;
pub mod scan_residuals;
pub mod scan_sink_output;
pub mod scan_sum_in_loop;
pub mod scan_unguard;
pub mod scan_unroll;
pub mod scan_vectorize;
pub mod stacks;
