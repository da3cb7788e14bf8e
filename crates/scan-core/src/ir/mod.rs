//! The typed graph that everything works on: values in SSA form, ops from one table, loops as ops
//! that hold an inner graph.

pub mod batch;
pub mod build;
mod congruence;
pub mod graph;
pub(crate) mod literal;
mod memo;
pub mod needs;
pub mod op;
pub mod parse;
pub mod print;
pub mod profile;
pub mod scan;
pub mod verify;
pub mod view;
mod whole;

pub use batch::{Batched, Batching, Diagonal, Held};
pub use graph::{AsWritten, Def, Graph, Node, NodeId, Value};
pub use op::{Arg, Attr, Attrs, EvalCx, ExternOp, Op, OpDef, Outs, Site, Walked};
pub use scan::{Keep, NonSeq, NonSeqId, Offsets, Scan, Seq, SeqId, State, StateId, Tag};
pub use view::{Coord, View, Viewed};
pub use whole::Whole;
