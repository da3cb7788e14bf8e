//! A service that a test has started.

use super::Outcome;
use std::net::SocketAddr;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A running service; it ends with this value.
pub struct Started {
    /// Where it listens.
    pub at: SocketAddr,
    child: Child,
}

impl Started {
    /// Starts it on a port of its own.
    pub async fn new(program: &str, settings: &[&str]) -> Outcome<Started> {
        let command = Command::new(program)
            .args(["--listen", "127.0.0.1:0"])
            .args(settings)
            .env("RUST_LOG", "warn")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child = command.map_err(|e| format!("{program}: {e}"))?;
        let out = child.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).await.map_err(|e| e.to_string())?;
        let at = line.trim().parse().map_err(|_| "the service did not start".to_string())?;
        Ok(Started { at, child })
    }
    /// The memory that it has, in KiB.
    pub fn memory(&self) -> u64 {
        let id = self.child.id().unwrap_or(0);
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
    }
    /// Kills it, as when the machine fails.
    pub async fn kill(mut self) -> Outcome<()> {
        self.child.kill().await.map_err(|e| e.to_string())
    }
    /// Asks it to stop, and waits until it has; true where it says that all is well.
    pub async fn stop(mut self) -> Outcome<bool> {
        let id = self.child.id().ok_or("it has stopped by itself")?.to_string();
        Command::new("kill").args(["-TERM", &id]).status().await.map_err(|e| e.to_string())?;
        self.child.wait().await.map(|status| status.success()).map_err(|e| e.to_string())
    }
}
