//! Files, read and written as a whole.

use super::container::{self, Contents};
use crate::base::clock;
use crate::base::{Diagnostic, Kind, Result};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The contents of a file. `checked`: it has a checksum of its own.
///
/// # Errors
/// `E0921` where it cannot be read; those of [`container::from_bytes`].
pub(super) fn read(path: &Path, checked: bool) -> Result<(Contents, usize)> {
    let failed = |e: &io::Error| failed(path, "read", e);
    let mut file = File::open(path).map_err(|e| failed(&e))?;
    let about = file.metadata().map_err(|e| failed(&e))?;
    if !about.is_file() {
        // How long a pipe is shows at its end.
        let mut bytes = vec![];
        file.read_to_end(&mut bytes).map_err(|e| failed(&e))?;
        return Ok((container::from_bytes(&bytes, checked)?, bytes.len()));
    }
    let len = usize::try_from(about.len()).unwrap_or(usize::MAX);
    Ok((container::from_reader(&mut file, len, checked, &failed)?, len))
}

/// Writes beside the file and renames: whoever reads it meanwhile, or after a fault, finds the old file or the new one.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = beside(path);
    let written = whole(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // Nothing can be done where this fails, too.
        let _ = fs::remove_file(&beside);
    }
    written.map_err(|e| failed(path, "written", &e))?;
    // The name is on disk only when its folder is. Not every system can say so of folders, and the file is whole in any case.
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(folder).and_then(|f| f.sync_all());
    Ok(())
}

fn whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A name in the same folder that no other writer uses.
fn beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}-{}.tmp", clock::process(), NEXT.fetch_add(1, Ordering::Relaxed)));
    path.with_file_name(name)
}

fn failed(path: &Path, what: &str, error: &io::Error) -> Box<Diagnostic> {
    Diagnostic::new(Kind::File, "E0921", format!("`{}` cannot be {what}: {error}", path.display()))
}
