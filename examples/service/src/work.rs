//! Computations: with a time limit, stopped when nobody waits for them any more, and never with a panic that goes further.

use crate::refused::Refused;
use axum::http::StatusCode;
use scan_core::prelude::{Diagnostic, EvalCx, Kind, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Where long computations run.
pub struct Workers {
    free: Arc<Semaphore>,
    time: Duration,
    /// All are to stop.
    stopping: Arc<AtomicBool>,
}

/// Stops a computation when it is dropped: its request has gone.
struct Waited(Arc<AtomicBool>);

impl Drop for Waited {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Tells a loop, which asks every few milliseconds, whether to go on.
struct Token {
    end: Instant,
    gone: Arc<AtomicBool>,
    stopping: Arc<AtomicBool>,
}

impl Token {
    fn poll(&self) -> Result<()> {
        let why = match () {
            () if self.gone.load(Ordering::Relaxed) => "nobody waits for it any more",
            () if self.stopping.load(Ordering::Relaxed) => "the service stops",
            () if Instant::now() >= self.end => "it takes longer than a request may",
            () => return Ok(()),
        };
        Err(Diagnostic::new(Kind::Interrupted, "E0390", format!("the computation was stopped: {why}")))
    }
}

impl Workers {
    /// So many at a time, each for so long.
    pub fn new(workers: usize, time: Duration) -> Workers {
        Workers { free: Arc::new(Semaphore::new(workers.max(1))), time, stopping: Arc::default() }
    }
    /// Stops all that run.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
    fn token(&self, gone: Arc<AtomicBool>) -> Token {
        Token { end: Instant::now() + self.time, gone, stopping: self.stopping.clone() }
    }

    /// Runs what takes microseconds, here.
    ///
    /// # Errors
    /// What it reports; 500 for a panic.
    pub fn brief<T>(&self, run: impl FnOnce(&mut EvalCx) -> Result<T>) -> std::result::Result<T, Refused> {
        guarded(&self.token(Arc::default()), run)
    }
    /// Runs what may take long, on a thread for it; waits until one is free.
    ///
    /// # Errors
    /// What it reports; 503 where it was stopped; 500 for a panic.
    pub async fn long<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut EvalCx) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, Refused> {
        let gone = Arc::new(AtomicBool::new(false));
        let _waited = Waited(gone.clone());
        let permit = self.free.clone().acquire_owned().await.map_err(|_| fault())?;
        let token = self.token(gone);
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            guarded(&token, run)
        });
        done.await.map_err(|_| fault())?
    }
}

fn guarded<T>(token: &Token, run: impl FnOnce(&mut EvalCx) -> Result<T>) -> std::result::Result<T, Refused> {
    let poll = || token.poll();
    match catch_unwind(AssertUnwindSafe(|| run(&mut EvalCx::with_poll(&poll)))) {
        Ok(result) => result.map_err(Refused::from),
        Err(_) => Err(fault()),
    }
}

fn fault() -> Refused {
    tracing::error!("a computation panicked");
    Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "fault", "a fault of the service")
}
