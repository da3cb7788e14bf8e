//! The plan of a function: its graph with loops and groups of elementwise nodes replaced by compiled kernels. What has no kernel
//! stays as it is, and the evaluator walks over both.

mod apart;
mod before;
mod bound;
mod device;
mod distributed;
mod foot;
mod gathered;
pub mod head;
mod held;
mod home;
mod indexed;
mod kernels;
mod last_row;
mod lists;
mod loops;
mod maps;
mod memories;
mod mixed;
mod nested;
mod padded;
mod paused;
mod plan;
mod portion;
mod print;
mod ready;
mod region;
mod segment;
mod shortcut;
mod sides;
mod spread;
mod switched;
mod tail;
mod tasks;
mod there;
mod tier;
mod variant;
mod variants;
mod vectorized;
mod whole;

pub use loops::NativeLoop;
pub use maps::NativeMap;
pub use paused::Paused;
pub use plan::plan;
pub use region::Region;
pub use tier::{Engine, Tiered};
