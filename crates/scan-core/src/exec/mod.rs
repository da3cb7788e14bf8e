//! Functions: called with arrays.

mod build;
mod entry;
pub mod explain;
pub mod fit;
pub mod function;
mod into;
pub mod native;
pub mod place;
pub mod program;
pub mod session;
pub use build::function;
pub use entry::EntryPoint;
pub use explain::LoopInfo;
pub use function::{Function, FunctionSpec};
pub use native::{Engine, Peak, peak};
pub use place::{DeviceInfo, Placed, device_site, devices, engine_on};
pub use program::Program;
pub use session::{Session, Stepped, Steps};
