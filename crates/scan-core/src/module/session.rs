//! Sessions of a module's functions, and the states of a session as bytes: a safetensors file of its own.
//!
//! ```text
//! texts    rscan.session  the checksum of the step's text      rscan.steps  how many were made      rscan.stopped  true or false
//! tensors  state.NAME     the rows that the next step reads    last.K       the last row of result K
//! ```

use super::Module;
use super::container::{self, CHECKSUM};
use crate::bail;
use crate::base::{Diagnostic, Kind, Result};
use crate::exec::{Session, Steps};
use crate::ir::EvalCx;
use crate::types::Array;

const PRINT: &str = "rscan.session";
const STEPS: &str = "rscan.steps";
const STOPPED: &str = "rscan.stopped";

impl Module {
    /// A session of a function: arguments by name, as of [`Function::session`](crate::exec::Function::session). Arguments that have a default value
    /// may be left out.
    ///
    /// # Errors
    /// `E0925` where there is no such function; `E0532` for an argument that it does not have; as of `Function::session`.
    pub fn session(&self, cx: &mut EvalCx, function: &str, given: &[(&str, Array)]) -> Result<Session> {
        let f = self.function(function)?;
        let ports = &self.signature(function)?.inputs;
        let named = |name: &str| ports.iter().position(|port| port.name.as_deref() == Some(name));
        let fixed: Vec<usize> = f.steps()?.fixed().collect();
        let default = |(k, port): (usize, &super::Port)| port.default.clone().filter(|_| fixed.contains(&k));
        let mut values: Vec<Option<Array>> = ports.iter().enumerate().map(default).collect();
        for (name, value) in given {
            let Some(k) = named(name) else { bail!(Value, "E0532", "`{function}` has no input `{name}`") };
            values[k] = Some(value.clone());
        }
        f.session(cx, &values)
    }
}

/// A number that tells a step from others, as text.
fn print(steps: &Steps) -> String {
    format!("{:08x}", crc32fast::hash(steps.text().as_bytes()))
}

impl Session {
    /// The states and how many steps were made, but for the arguments that the session began with: `restore` brings another session of the
    /// same function there. The bytes are a safetensors file with a checksum.
    ///
    /// # Errors
    /// `E0906` where the names of the states are too long for a file.
    pub fn snapshot(&self) -> Result<Vec<u8>> {
        let (steps, stopped) = (self.len().to_string(), self.met().to_string());
        let texts = [(CHECKSUM, "00000000".to_string()), (PRINT, print(self.steps())), (STEPS, steps), (STOPPED, stopped)];
        let states = self.steps().states().into_iter().zip(self.rows()).map(|(name, rows)| (format!("state.{name}"), rows));
        let last = self.last().into_iter().enumerate().filter_map(|(k, row)| Some((format!("last.{k}"), row?)));
        container::to_bytes(&texts, &states.chain(last).collect::<Vec<_>>())
    }

    /// Goes back, or forward, to where a session of the same function was.
    ///
    /// # Errors
    /// `E0534` where the bytes are not those of a session, not whole, or of another function. The session is then as it was.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<()> {
        let mut file = container::from_bytes(snapshot, true)
            .map_err(|e| bad("these bytes are not those of a session, or were changed").note(e.title))?;
        let text = |key: &str| file.texts.get(key).map(String::as_str);
        let Some(found) = text(PRINT) else { return Err(bad("these bytes are not those of a session")) };
        if found != print(self.steps()) {
            return Err(bad("these bytes are those of a session of another function"));
        }
        let (done, met) = (text(STEPS).and_then(|n| n.parse().ok()), text(STOPPED).and_then(|s| s.parse().ok()));
        let (Some(done), Some(met)) = (done, met) else { return Err(bad("the bytes of a session do not say how many steps it made")) };
        let mut rows = vec![];
        for (name, old) in self.steps().states().iter().zip(self.rows()) {
            let new = file.tensors.remove(&format!("state.{name}"));
            let fits = |new: &Array| new.dtype() == old.dtype() && new.shape() == old.shape();
            let Some(new) = new.filter(fits) else { return Err(bad("these bytes are those of a session whose states have other extents")) };
            rows.push(new);
        }
        let last: Vec<_> = (0..self.last().len()).map(|k| file.tensors.remove(&format!("last.{k}"))).collect();
        if last.iter().enumerate().any(|(k, row)| row.as_ref().is_some_and(|row| !self.admits(k, row))) {
            return Err(bad("these bytes are those of a session whose results have other extents"));
        }
        self.set(rows, last, done, met);
        Ok(())
    }
}

fn bad(text: &str) -> Box<Diagnostic> {
    Diagnostic::new(Kind::Value, "E0534", text).help("restore takes what `snapshot` of a session of the same function gave")
}
