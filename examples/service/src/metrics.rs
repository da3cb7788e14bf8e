//! Counters, in the text format of Prometheus.

use axum::http::StatusCode;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper ends of the buckets of times, in microseconds.
const BUCKETS: [u64; 12] = [50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 100_000, 500_000, 2_000_000];

/// What has happened since the service started.
#[derive(Default)]
pub struct Metrics {
    /// By route and status.
    requests: Mutex<BTreeMap<(String, u16), u64>>,
    /// By route: requests per bucket, the last for those beyond all, and the sum of their times in microseconds.
    times: Mutex<BTreeMap<String, ([u64; BUCKETS.len() + 1], u64)>>,
    /// Steps of sessions.
    pub steps: AtomicU64,
    /// Sessions that began.
    pub begun: AtomicU64,
    /// Sessions that ended because nobody used them.
    pub expired: AtomicU64,
    /// Calls that updated shared variables and are on disk.
    pub commits: AtomicU64,
    /// Versions of the file.
    pub reloads: AtomicU64,
}

impl Metrics {
    /// Counts a request.
    pub fn request(&self, route: &str, status: StatusCode, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        *lock(&self.requests).entry((route.to_string(), status.as_u16())).or_default() += 1;
        let mut times = lock(&self.times);
        if !times.contains_key(route) {
            times.insert(route.to_string(), Default::default());
        }
        if let Some((counts, sum)) = times.get_mut(route) {
            counts[BUCKETS.iter().position(|&end| micros <= end).unwrap_or(BUCKETS.len())] += 1;
            *sum = sum.saturating_add(micros);
        }
    }

    /// All of it, with the number of sessions and of the version now.
    pub fn text(&self, sessions: usize, version: u64) -> String {
        let mut out = String::new();
        let counters = [
            ("steps_total", "Steps of sessions.", &self.steps),
            ("sessions_begun_total", "Sessions that began.", &self.begun),
            ("sessions_expired_total", "Sessions that ended because nobody used them.", &self.expired),
            ("commits_total", "Updates that are on disk.", &self.commits),
            ("reloads_total", "Times that the file was read again.", &self.reloads),
        ];
        for (name, help, counter) in counters {
            put(&mut out, name, help, "counter", &[(String::new(), counter.load(Ordering::Relaxed))]);
        }
        put(&mut out, "sessions", "Sessions now.", "gauge", &[(String::new(), sessions as u64)]);
        put(&mut out, "model_version", "The version of the file, from 1 on.", "gauge", &[(String::new(), version)]);
        let requests = lock(&self.requests);
        let rows: Vec<_> = requests.iter().map(|((route, status), n)| (format!("{{route=\"{route}\",status=\"{status}\"}}"), *n)).collect();
        put(&mut out, "requests_total", "Requests by route and status.", "counter", &rows);
        self.histogram(&mut out);
        out
    }
    fn histogram(&self, out: &mut String) {
        let name = "rscan_request_seconds";
        // Writing to a text does not fail.
        let _ = writeln!(out, "# HELP {name} Times of requests by route.\n# TYPE {name} histogram");
        for (route, (counts, sum)) in &*lock(&self.times) {
            let mut below = 0;
            for (end, n) in BUCKETS.iter().map(|&end| (end as f64 / 1e6).to_string()).chain(["+Inf".into()]).zip(counts) {
                below += n;
                let _ = writeln!(out, "{name}_bucket{{route=\"{route}\",le=\"{end}\"}} {below}");
            }
            let _ = writeln!(out, "{name}_sum{{route=\"{route}\"}} {}\n{name}_count{{route=\"{route}\"}} {below}", *sum as f64 / 1e6);
        }
    }
}

fn put(out: &mut String, name: &str, help: &str, kind: &str, rows: &[(String, u64)]) {
    let _ = writeln!(out, "# HELP rscan_{name} {help}\n# TYPE rscan_{name} {kind}");
    for (labels, n) in rows {
        let _ = writeln!(out, "rscan_{name}{labels} {n}");
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
