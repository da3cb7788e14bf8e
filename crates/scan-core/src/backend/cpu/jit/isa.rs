//! What this machine is to the code generator: built once a process.

use crate::backend::cpu::Refusal;
use crate::backend::cpu::isa::Isa;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use std::sync::OnceLock;

/// Code runs often and is trusted: optimised, without guards and unwind tables; only frames larger than a page touch each of their
/// pages. A debug build checks what it is given.
const FLAGS: &[(&str, &str)] = &[
    ("opt_level", "speed"),
    ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
    ("enable_probestack", if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) { "true" } else { "false" }),
    ("probestack_strategy", "inline"),
    ("enable_heap_access_spectre_mitigation", "false"),
    ("enable_table_access_spectre_mitigation", "false"),
    ("unwind_info", "false"),
    ("is_pic", "false"),
    // Tells where loops lie.
    ("machine_code_cfg_info", "true"),
    // Calls may reach further than a short relocation does.
    ("use_colocated_libcalls", "false"),
];

/// How registers are allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocation {
    /// So that the code is quick: by backtracking, in a time that grows faster than the code.
    Thorough,
    /// In one pass over the code, which runs up to twice as long.
    SinglePass,
}

impl Allocation {
    /// What differs from [`FLAGS`]. A debug build checks what this allocator makes, which is the younger one.
    fn flags(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Allocation::Thorough => &[],
            Allocation::SinglePass if cfg!(debug_assertions) => &[("regalloc_algorithm", "single_pass"), ("regalloc_checker", "true")],
            Allocation::SinglePass => &[("regalloc_algorithm", "single_pass")],
        }
    }
}

/// This machine, or what `RSCAN_ISA` leaves of it.
pub fn host(allocation: Allocation) -> Result<OwnedTargetIsa, Refusal> {
    static HOSTS: [OnceLock<Result<OwnedTargetIsa, String>>; 2] = [const { OnceLock::new() }; 2];
    let detect = || build(!(Isa::detect()? == Isa::Portable && Isa::machine() > Isa::Portable), allocation);
    HOSTS[allocation as usize].get_or_init(detect).clone().map_err(Refusal)
}

/// This machine with all that it has, or with what every processor of its kind has.
pub fn build(all: bool, allocation: Allocation) -> Result<OwnedTargetIsa, String> {
    let mut flags = settings::builder();
    for (name, value) in FLAGS.iter().chain(allocation.flags()) {
        flags.set(name, value).map_err(|e| format!("code generator: flag {name}: {e}"))?;
    }
    let machine = cranelift_native::builder_with_options(all).map_err(|e| format!("code generator: {e}"))?;
    machine.finish(settings::Flags::new(flags)).map_err(|e| format!("code generator: {e}"))
}

macro_rules! helpers {
    ($($symbol:literal => |$($x:ident),+| -> $t:ty { $value:expr };)+) => {
        /// The function that the code generator calls where the machine has no such instruction.
        pub fn helper(symbol: &str) -> Option<*const u8> {
            match symbol {
                $($symbol => {
                    extern "C" fn call($($x: $t),+) -> $t { $value }
                    Some(call as *const u8)
                })+
                _ => None,
            }
        }
    };
}

helpers! {
    "ceilf" => |x| -> f32 { x.ceil() };
    "ceil" => |x| -> f64 { x.ceil() };
    "floorf" => |x| -> f32 { x.floor() };
    "floor" => |x| -> f64 { x.floor() };
    "truncf" => |x| -> f32 { x.trunc() };
    "trunc" => |x| -> f64 { x.trunc() };
    "nearbyintf" => |x| -> f32 { x.round_ties_even() };
    "nearbyint" => |x| -> f64 { x.round_ties_even() };
    "fmaf" => |x, y, z| -> f32 { x.mul_add(y, z) };
    "fma" => |x, y, z| -> f64 { x.mul_add(y, z) };
}
