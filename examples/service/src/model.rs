//! The file that is served: which version of it, and what was learned since.

use crate::config::Config;
use crate::refused::Refused;
use axum::http::StatusCode;
use scan_core::prelude::{Array, EvalCx, Module, Result, Signature};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::{fs, io};

/// A file as it was when it was read. Requests and sessions keep the version that they began with.
pub struct Version {
    /// Which one since the service started, from 1 on.
    pub number: u64,
    /// The checksum of the file's bytes.
    pub print: String,
    /// Its functions, with the shared variables as they are now.
    pub module: Module,
    /// Where they are kept.
    state: PathBuf,
    /// Held while something is learned.
    learning: Mutex<()>,
}

/// The file and its version of now.
pub struct Model {
    path: PathBuf,
    state: PathBuf,
    now: RwLock<Arc<Version>>,
    number: AtomicU64,
    /// What the file looked like when it was read last.
    seen: Mutex<Seen>,
}

impl Model {
    /// Reads the file, and what was learned since.
    ///
    /// # Errors
    /// What is wrong with either.
    pub fn open(config: &Config) -> std::result::Result<Model, String> {
        fs::create_dir_all(&config.state).map_err(|e| format!("{}: {e}", config.state.display()))?;
        sweep(&config.state);
        let (version, seen) = read(&config.model, &config.state, 1)?;
        let now = RwLock::new(Arc::new(version));
        let (path, state) = (config.model.clone(), config.state.clone());
        Ok(Model { path, state, now, number: AtomicU64::new(1), seen: Mutex::new(seen) })
    }
    /// The version of now.
    pub fn now(&self) -> Arc<Version> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// Reads the file again. Requests go on meanwhile; whoever asks after it has the new version.
    ///
    /// # Errors
    /// What is wrong with the file. The version is then the one of before.
    pub fn reload(&self) -> std::result::Result<Arc<Version>, String> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        // A broken file is looked at once.
        *seen = look(&self.path).ok();
        let (version, now) = read(&self.path, &self.state, self.number.load(Ordering::Relaxed) + 1)?;
        *seen = now;
        let version = Arc::new(version);
        self.number.store(version.number, Ordering::Relaxed);
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = version.clone();
        tracing::info!(version = version.number, print = version.print, "reloaded");
        Ok(version)
    }
    /// True where the file is another one than that which was read.
    pub fn changed(&self) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        look(&self.path).is_ok_and(|now| Some(now) != *seen)
    }
}

/// Removes what a process that was killed while it wrote has left.
fn sweep(states: &Path) {
    let all = fs::read_dir(states).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in all.filter(|path| path.extension().is_some_and(|end| end == "tmp")) {
        if let Err(e) = fs::remove_file(&path) {
            tracing::warn!("{}: {e}", path.display());
        }
    }
}

/// When a file was written, and its length.
type Seen = Option<(std::time::SystemTime, u64)>;

fn look(path: &Path) -> io::Result<(std::time::SystemTime, u64)> {
    let found = fs::metadata(path)?;
    Ok((found.modified()?, found.len()))
}

/// A version; its functions are compiled, so that nobody waits for that later.
fn read(path: &Path, states: &Path, number: u64) -> std::result::Result<(Version, Seen), String> {
    let seen = look(path).ok();
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let print = format!("{:08x}-{}", crc32fast::hash(&bytes), bytes.len());
    // What was learned belongs to the file that it began with: another file begins with its own values, and going back finds these again.
    let state = states.join(format!("{print}.rscan"));
    let module = if state.exists() { Module::load(&state) } else { Module::from_bytes(&bytes) };
    let module = module.map_err(|e| e.to_string())?;
    for name in module.names() {
        module.function(name).map_err(|e| e.to_string())?;
    }
    Ok((Version { number, print, module, state, learning: Mutex::new(()) }, seen))
}

impl Version {
    /// The signature of a function.
    ///
    /// # Errors
    /// 404 where there is none of this name.
    pub fn signature(&self, function: &str) -> std::result::Result<&Signature, Refused> {
        Ok(self.module.signature(function)?)
    }
    /// The arguments of a function in their order, of those by name and of defaults.
    ///
    /// # Errors
    /// 422 where one is missing, or too much.
    pub fn arguments(&self, function: &str, mut given: Vec<(String, Array)>) -> std::result::Result<Vec<Array>, Refused> {
        let mut all = vec![];
        for port in &self.signature(function)?.inputs {
            let name = port.name.as_deref().unwrap_or("");
            let found = given.iter().position(|(n, _)| n == name).map(|at| given.swap_remove(at).1);
            let value = found.or_else(|| port.default.clone());
            all.push(value.ok_or_else(|| Refused::body(format!("`{function}` needs `{name}`")))?);
        }
        given.first().map_or(Ok(all), |(name, _)| Err(Refused::body(format!("`{function}` has no input `{name}`"))))
    }
    /// Results by name; those without one are called by their number.
    pub fn named(&self, function: &str, results: Vec<Array>) -> Vec<(String, Array)> {
        let ports = self.module.signature(function).map(|s| &s.outputs[..]).unwrap_or_default();
        let name = |k: usize| ports.get(k).and_then(|port| port.name.clone()).unwrap_or_else(|| k.to_string());
        results.into_iter().enumerate().map(|(k, array)| (name(k), array)).collect()
    }

    /// Calls a function that updates shared variables, and keeps them: when this returns they are on disk, and where it fails they are what they
    /// were, in memory and on disk. A process that is killed meanwhile leaves the file of before or of after.
    ///
    /// # Errors
    /// What the function reports; what is wrong with the disk.
    pub fn learn(&self, cx: &mut EvalCx, function: &str, args: &[Array]) -> Result<Vec<Array>> {
        let _learning = self.learning.lock().unwrap_or_else(PoisonError::into_inner);
        let updates = &self.module.signature(function)?.updates;
        let before = updates.iter().map(|name| Ok((name, self.module.get(name)?))).collect::<Result<Vec<_>>>()?;
        let results = self.module.function(function)?.call(cx, args)?;
        // Writes beside the file, and renames.
        if let Err(error) = self.module.save(&self.state) {
            before.into_iter().try_for_each(|(name, value)| self.module.set(name, value))?;
            return Err(error);
        }
        Ok(results)
    }
    /// Refuses functions that update shared variables, or, where it `learns`, those that do not: 405.
    ///
    /// # Errors
    /// That one, and 404 where there is none of this name.
    pub fn check(&self, function: &str, learns: bool) -> std::result::Result<(), Refused> {
        if self.signature(function)?.updates.is_empty() != learns {
            return Ok(());
        }
        let (what, route) = if learns { ("updates nothing", "call") } else { ("updates shared variables", "train") };
        let text = format!("`{function}` {what}: POST /v1/{route}/{function}");
        Err(Refused::new(StatusCode::METHOD_NOT_ALLOWED, "updates", text))
    }
}
