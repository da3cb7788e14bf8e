//! The stable surface for native users.

pub use crate::backend::gpu::storage::live as device_bytes;
pub use crate::base::codes::page as error_page;
pub use crate::base::{Diagnostic, Id, Kind, Result, Span};
pub use crate::exec::explain::StateInfo;
pub use crate::exec::fit::expected_extents;
pub use crate::exec::native::VariantInfo;
pub use crate::exec::{
    DeviceInfo, Engine, EntryPoint, Function, FunctionSpec, LoopInfo, Peak, Placed, Session, Stepped, Steps, device_site, devices,
    engine_on, function, peak,
};
pub use crate::expr::arrays::{concat, stack};
pub use crate::expr::closures::{Loop, NextStates, Scanned, Step, scan};
pub use crate::expr::dag::LeafKind;
pub use crate::expr::extract::substitute;
pub use crate::expr::gradient::{grad, grad_with, jvp, jvp_with, vjp};
pub use crate::expr::loops::updates_of;
pub use crate::expr::operators::Operand;
pub use crate::expr::power::power;
pub use crate::expr::splice::open_body;
pub use crate::expr::sugar::{constant, integer, matrix, scalar, vector};
pub use crate::expr::text::{from_text, to_text};
pub use crate::expr::vmap::{row, vmap, vmap_units};
pub use crate::expr::{GradOptions, LoopBuilder, LoopOptions, LoopResult, Var};
pub use crate::ir::op::ExternRef;
pub use crate::ir::profile::{LoopTimes, Profile};
pub use crate::ir::{Arg, AsWritten, Attr, EvalCx, ExternOp, Graph, Keep, Op, Outs, Scan, Site, Value, Walked};
pub use crate::kernel::Work;
pub use crate::module::{
    self, Module, Passed, Port, Returns, Signature, Typed, load_params, params_from_bytes, params_to_bytes, save_params,
};
pub use crate::rewrite::pipeline::PASSES;
pub use crate::rewrite::{Exact, Level, Options as PassOptions, Report};
pub use crate::scalar::mt19937::seed_state as legacy_state;
pub use crate::scalar::{ROWS as ELEMENTWISE, Row};
pub use crate::scan::inspect;
pub use crate::types::buffer::{LARGE as LARGE_MEMORY, advise_with, release as release_memory, release_idle as release_idle_memory};
pub use crate::types::device::{Resident, Site as DeviceSite};
pub use crate::types::memory::{self, OutOfMemory};
pub use crate::types::shared::Note;
pub use crate::types::{Array, DType, Dim, Element, Row as StepRow, RowMut as StepRowMut, Shared, Type, View, ViewMut};
