//! Which passes run.

use super::pipeline::{Exact, PASSES, Stage, known_theano};
use crate::bail;
use crate::base::Result;
use std::collections::BTreeSet;

/// How much is optimised.
///
/// ```
/// use scan_core::prelude::*;
///
/// assert!(PassOptions::full().at(Level::FastCompile).runs("cse"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Level {
    /// Nothing.
    None,
    /// Only what takes one walk: rules, no passes over loops.
    FastCompile,
    /// Everything.
    #[default]
    FastRun,
}

/// Which passes run.
///
/// ```
/// use scan_core::prelude::*;
///
/// let options = PassOptions::full().excluding(&["cse"])?;
/// assert!(!options.runs("cse"));
/// function(&[], &[&Var::number(1.0)]).passes(options).compile()?;
/// # Ok::<(), Box<Diagnostic>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// How much.
    level: Level,
    /// Passes that do not run, by our names.
    excluding: BTreeSet<&'static str>,
    /// Nothing is moved to where it might fail though nobody needs it there.
    certain: bool,
}

impl Options {
    /// Every pass.
    pub fn full() -> Options {
        Options::default()
    }
    /// No pass.
    pub fn none() -> Options {
        Options { level: Level::None, ..Options::default() }
    }
    /// The passes of a level, `none`, `fast_compile` or `fast_run`, without some.
    ///
    /// # Errors
    /// `E0509` for a name that no level or no pass has.
    pub fn named<S: AsRef<str>>(level: &str, excluding: &[S]) -> Result<Options> {
        let level = match level {
            "none" => Level::None,
            "fast_compile" => Level::FastCompile,
            "fast_run" => Level::FastRun,
            _ => bail!(Value, "E0509", "passes are `none`, `fast_compile` or `fast_run`, not `{level}`"),
        };
        Options::full().at(level).excluding(excluding)
    }
    /// Every pass that keeps every bit.
    pub fn exact() -> Options {
        let others = PASSES.iter().filter(|p| p.exact == Exact::No).map(|p| p.name);
        Options { excluding: others.collect(), ..Options::default() }
    }
    /// Only the passes of these names, whatever the level.
    ///
    /// # Errors
    /// `E0509` for a name that no pass has.
    pub fn only<S: AsRef<str>>(names: &[S]) -> Result<Options> {
        let wanted = Options::full().excluding(names)?.excluding;
        let others = PASSES.iter().map(|p| p.name).filter(|n| !wanted.contains(n));
        Ok(Options { excluding: others.collect(), ..Options::default() })
    }
    /// The same at a level.
    pub fn at(self, level: Level) -> Options {
        Options { level, ..self }
    }
    /// The same, but that nothing is moved to where it might fail though nobody needs it there: no run has to be done again by the graph as it
    /// was written.
    #[cfg(feature = "testing")]
    pub(crate) fn certain(self) -> Options {
        Options { certain: true, ..self }
    }
    /// Whether computation may be moved to where it might fail though nobody needs it there.
    pub(crate) fn speculates(&self) -> bool {
        !self.certain
    }
    /// The same without the passes of these names, ours or Theano's. A name that Theano has for something that rscan does not do
    /// separately excludes nothing.
    ///
    /// # Errors
    /// `E0509` for a name that is neither.
    pub fn excluding<S: AsRef<str>>(mut self, names: &[S]) -> Result<Options> {
        for name in names.iter().map(S::as_ref) {
            let found: Vec<&str> = PASSES.iter().filter(|p| p.is_called(name)).map(|p| p.name).collect();
            if found.is_empty() && !known_theano(name) {
                let all: Vec<&str> = PASSES.iter().map(|p| p.name).collect();
                bail!(Value, "E0509", "no pass is called `{name}`; there are {}", all.join(", "));
            }
            self.excluding.extend(found);
        }
        Ok(self)
    }
    /// These options under the environment: `RSCAN_PASSES=0` switches all passes off, `RSCAN_EXCLUDE=a,b` some.
    ///
    /// # Errors
    /// `E0509` for a name that no pass has.
    pub fn with_environment(self) -> Result<Options> {
        let var = |name| std::env::var(name).unwrap_or_default();
        if var("RSCAN_PASSES") == "0" {
            return Ok(Options { level: Level::None, ..self });
        }
        let names = var("RSCAN_EXCLUDE");
        let names: Vec<&str> = names.split(',').map(str::trim).filter(|n| !n.is_empty()).collect();
        self.excluding(&names)
    }
    /// The name of the level, and the passes that do not run: [`Options::named`] makes the same of them.
    pub fn names(&self) -> (&'static str, Vec<&'static str>) {
        let level = match self.level {
            Level::None => "none",
            Level::FastCompile => "fast_compile",
            Level::FastRun => "fast_run",
        };
        (level, self.excluding.iter().copied().collect())
    }
    /// True where a pass runs.
    pub fn runs(&self, name: &str) -> bool {
        let allowed = |stage| match self.level {
            Level::None => false,
            Level::FastCompile => stage != Stage::Loops,
            Level::FastRun => true,
        };
        PASSES.iter().any(|p| p.name == name && allowed(p.stage)) && !self.excluding.contains(name)
    }
}
