//! The vendor's assembler, where it is installed: a second judge of the text.

use std::path::PathBuf;
use std::process::Command;

/// What the text is assembled for.
const TARGETS: [&str; 3] = ["sm_75", "sm_80", "sm_90"];

/// The one that the environment names, which is to see every module.
pub fn wanted() -> Option<std::ffi::OsString> {
    std::env::var_os("RSCAN_PTXAS").filter(|name| !name.is_empty())
}

/// Where it is: as `RSCAN_PTXAS` says, or among the programs of the machine.
pub fn found() -> Option<PathBuf> {
    let named = wanted().map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    named.or_else(|| std::env::split_paths(&path).map(|folder| folder.join("ptxas")).find(|p| p.is_file()))
}

/// Assembles a text for several targets.
///
/// # Errors
/// What it says where it refuses.
pub fn assemble(program: &PathBuf, text: &str) -> Result<(), String> {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("rscan-{}-{next}.ptx", std::process::id()));
    std::fs::write(&file, text).map_err(|e| e.to_string())?;
    let one = |target: &&str| {
        let done = Command::new(program).args(["-arch", target, "-o"]).arg(file.with_extension("cubin")).arg(&file).output();
        let done = done.map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout);
        if done.status.success() { Ok(()) } else { Err(format!("{target}: {said}")) }
    };
    // What is for newer cards is not assembled for older ones.
    let least = text.lines().find_map(|line| line.strip_prefix(".target ")).unwrap_or_default();
    let found = TARGETS.iter().filter(|target| **target >= least).try_for_each(one);
    let _ = std::fs::remove_file(file.with_extension("cubin"));
    let _ = std::fs::remove_file(file);
    found
}
