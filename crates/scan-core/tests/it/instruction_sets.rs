//! The tests that run functions, under each instruction set of the machine: a process chooses one, so each has a process of its own.

use scan_core::backend::cpu::Isa;
use std::process::Command;

/// Modules whose tests call functions on engines.
const MODULES: [&str; 4] = ["engines::", "ir_files::", "nested::", "products::"];

#[test]
fn functions_run_under_every_instruction_set() {
    let program = std::env::current_exe().unwrap_or_else(|e| panic!("{e}"));
    for isa in Isa::available().filter(|isa| *isa != Isa::machine()) {
        let done = Command::new(&program).args(MODULES).env("RSCAN_ISA", isa.name()).output().unwrap_or_else(|e| panic!("{e}"));
        let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let ran = MODULES.iter().all(|module| text.contains(&format!("test {module}")));
        assert!(done.status.success() && ran, "RSCAN_ISA={}: {}\n{text}", isa.name(), done.status);
    }
}
