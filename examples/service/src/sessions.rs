//! Sessions of clients: a loop each, one step at a time.

use crate::model::Version;
use crate::refused::Refused;
use axum::http::StatusCode;
use scan_core::prelude::Session;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// A session of a client.
pub struct Open {
    /// The version that it began with, and stays with.
    pub version: Arc<Version>,
    /// The function.
    pub function: String,
    state: Mutex<Session>,
    /// How many of the last steps took long, one after the other.
    late: AtomicU32,
    /// Milliseconds since the table was made.
    used: AtomicU64,
}

/// All sessions.
pub struct Sessions {
    table: RwLock<HashMap<String, Arc<Open>>>,
    most: usize,
    begun: Instant,
}

/// Steps that take longer are long.
const BRIEF: Duration = Duration::from_micros(500);
/// After so many long ones the next is taken to be long, too. One alone may have waited for the processor.
const LATE: u32 = 2;

impl Open {
    /// True where a step takes so long that others should not wait behind it. The first one does: it compiles.
    pub fn slow(&self) -> bool {
        self.late.load(Ordering::Relaxed) >= LATE
    }
    /// Notes how long a step took.
    pub fn took(&self, time: Duration) {
        let late = if time > BRIEF { self.late.load(Ordering::Relaxed).saturating_add(1) } else { 0 };
        self.late.store(late, Ordering::Relaxed);
    }
    /// The session; its requests follow each other.
    pub fn lock(&self) -> MutexGuard<'_, Session> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    /// At most so many.
    pub fn new(most: usize) -> Sessions {
        Sessions { table: RwLock::default(), most, begun: Instant::now() }
    }
    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.table.read().unwrap_or_else(PoisonError::into_inner).len()
    }
    /// True where there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// True where there is room for one more.
    ///
    /// # Errors
    /// 429 where there is none.
    pub fn room(&self) -> Result<(), Refused> {
        if self.len() < self.most {
            return Ok(());
        }
        Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, "sessions", format!("there are {} sessions, and no room for more", self.most)))
    }
    /// A name for a new session, which nobody can guess.
    ///
    /// # Errors
    /// 429 where there are too many; 500 where the system has no random numbers.
    pub fn add(&self, version: Arc<Version>, function: String, session: Session) -> Result<String, Refused> {
        let mut random = [0u8; 16];
        getrandom::fill(&mut random).map_err(|e| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "random", e.to_string()))?;
        let name = format!("{:032x}", u128::from_le_bytes(random));
        let open = Open { version, function, state: Mutex::new(session), late: AtomicU32::new(LATE), used: AtomicU64::new(self.now()) };
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if table.len() >= self.most {
            drop(table);
            self.room()?;
            return Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, "sessions", "there is no room for more sessions"));
        }
        table.insert(name.clone(), Arc::new(open));
        Ok(name)
    }
    /// The session of this name, which has been used now.
    ///
    /// # Errors
    /// 404 where there is none, or none any more.
    pub fn find(&self, name: &str) -> Result<Arc<Open>, Refused> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let open = table.get(name).ok_or_else(missing)?;
        open.used.store(self.now(), Ordering::Relaxed);
        Ok(open.clone())
    }
    /// Ends a session.
    ///
    /// # Errors
    /// 404 where there is none.
    pub fn remove(&self, name: &str) -> Result<(), Refused> {
        self.table.write().unwrap_or_else(PoisonError::into_inner).remove(name).map(drop).ok_or_else(missing)
    }
    /// Ends those that nobody has used for so long; how many.
    pub fn expire(&self, idle: Duration) -> usize {
        let since = self.now().saturating_sub(u64::try_from(idle.as_millis()).unwrap_or(u64::MAX));
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let before = table.len();
        table.retain(|_, open| open.used.load(Ordering::Relaxed) >= since);
        before - table.len()
    }
}

fn missing() -> Refused {
    Refused::new(StatusCode::NOT_FOUND, "session", "there is no such session, or none any more")
}
