//! Steps of a GRU over many connections, each with sessions of its own, whose rows are compared with those of one call, bit by bit.

use super::Outcome;
use scan_core::prelude::{Array, EvalCx, Module, module::params_to_bytes, params_from_bytes};
use serde_json::Value;
use service::client::{Client, TENSORS};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Steps of a session, before another one begins.
const STEPS: usize = 256;
/// Elements of a row.
const WIDE: usize = 16;

/// How much of it.
#[derive(Clone, Copy)]
pub struct Load {
    /// Where the service listens.
    pub at: SocketAddr,
    /// How many at a time.
    pub connections: usize,
    /// For how long.
    pub time: Duration,
    /// Steps per second and connection; 0 for one after the other.
    pub rate: f64,
}

/// Bodies of steps, and the answers to them.
pub struct Expected {
    bodies: Vec<Vec<u8>>,
    rows: Vec<Vec<u64>>,
}

/// What came of it.
#[derive(Default)]
pub struct Found {
    /// Microseconds of each step.
    pub times: Vec<u64>,
    /// What went wrong.
    pub errors: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

/// The head of a table of [`Found::row`].
pub const HEAD: &str = "| load | connections | requests | errors | per second | p50 ms | p99 ms | p99.9 ms | longest ms |\n|---|---|---|---|---|---|---|---|---|";

impl Found {
    /// The time within which so many of all steps were answered, in milliseconds.
    pub fn percentile(&self, share: f64) -> f64 {
        let at = ((self.times.len() as f64 * share).ceil() as usize).clamp(1, self.times.len().max(1));
        self.times.get(at - 1).map_or(f64::NAN, |&micros| micros as f64 / 1e3)
    }
    /// As a row of a table.
    pub fn row(&self, name: &str, connections: usize) -> String {
        let [p50, p99, p999, last] = [0.5, 0.99, 0.999, 1.0].map(|share| self.percentile(share));
        let (n, errors) = (self.times.len(), self.errors.len());
        let rate = n as f64 / self.took.as_secs_f64();
        format!("| {name} | {connections} | {n} | {errors} | {rate:.0} | {p50:.2} | {p99:.2} | {p999:.2} | {last:.2} |")
    }
}

/// What the `gru` of a file makes of the rows that are sent.
pub fn expected(model: &str) -> Outcome<Expected> {
    let xs: Vec<f64> = (0..STEPS * WIDE).map(|i| ((i * i % 1009) as f64 * 0.37).sin()).collect();
    let computed = || {
        let module = Module::load(model)?;
        let x = Array::new(&[STEPS, WIDE], xs.clone());
        let rows = module.function("gru")?.call(&mut EvalCx::new(), std::slice::from_ref(&x))?.remove(0);
        let bodies = (0..STEPS).map(|t| params_to_bytes(&[("x".to_string(), x.row(t))].into()));
        Ok(Expected { bodies: bodies.collect::<scan_core::prelude::Result<_>>()?, rows: (0..STEPS).map(|t| rows.row(t).bits()).collect() })
    };
    computed().map_err(|e: Box<scan_core::prelude::Diagnostic>| e.to_string())
}

/// Runs; version v of the service's file is the model v − 1, and so on in a circle.
pub async fn run(load: Load, models: Arc<[Expected]>) -> Found {
    let begun = Instant::now();
    let all: Vec<_> = (0..load.connections).map(|k| tokio::spawn(connection(load, k, models.clone(), begun))).collect();
    let mut found = Found::default();
    for one in all {
        match one.await {
            Ok(one) => {
                found.times.extend(one.times);
                found.errors.extend(one.errors);
            }
            Err(e) => found.errors.push(e.to_string()),
        }
    }
    found.took = begun.elapsed();
    found.times.sort_unstable();
    found
}

async fn connection(load: Load, k: usize, models: Arc<[Expected]>, begun: Instant) -> Found {
    let mut found = Found::default();
    // Spread over the first period, so that not all steps come at once.
    let mut next = begun + Duration::from_secs_f64(if load.rate > 0.0 { k as f64 / load.connections as f64 / load.rate } else { 0.0 });
    while begun.elapsed() < load.time && found.errors.len() < 100 {
        if let Err(why) = sessions(load, &models, begun, &mut next, &mut found).await {
            found.errors.push(why);
        }
    }
    found
}

/// One session after the other, until there is an error or no more time.
async fn sessions(load: Load, models: &[Expected], begun: Instant, next: &mut Instant, found: &mut Found) -> Outcome<()> {
    let broken = |e: std::io::Error| e.to_string();
    let mut client = Client::connect(load.at).await.map_err(broken)?;
    while begun.elapsed() < load.time {
        let (name, version) = begin(&mut client).await?;
        let model = &models[(version - 1) % models.len()];
        let path = format!("/v1/session/{name}/step");
        for (body, want) in model.bodies.iter().zip(&model.rows) {
            if begun.elapsed() >= load.time {
                break;
            }
            if load.rate > 0.0 {
                tokio::time::sleep_until((*next).into()).await;
                *next = (*next + Duration::from_secs_f64(1.0 / load.rate)).max(Instant::now());
            }
            let sent = Instant::now();
            let (status, answer) = client.send("POST", &path, TENSORS, body).await.map_err(broken)?;
            found.times.push(u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX));
            check(status, &answer, want)?;
        }
        client.send("DELETE", &format!("/v1/session/{name}"), TENSORS, b"").await.map_err(broken)?;
    }
    Ok(())
}

/// A session of the GRU: its name, and the version of the file.
pub async fn begin(client: &mut Client) -> Outcome<(String, usize)> {
    let (status, body) = client.send("POST", "/v1/sessions/gru", "application/json", b"{}").await.map_err(|e| e.to_string())?;
    let answer: Value = serde_json::from_slice(&body).map_err(|e| e.to_string())?;
    let version = answer["version"].as_u64().and_then(|v| usize::try_from(v).ok());
    match (status, answer["session"].as_str(), version) {
        (201, Some(name), Some(version)) => Ok((name.to_string(), version)),
        _ => Err(format!("no session: {status} {answer}")),
    }
}

fn check(status: u16, answer: &[u8], want: &[u64]) -> Outcome<()> {
    if status != 200 {
        return Err(format!("{status}: {}", String::from_utf8_lossy(answer)));
    }
    let rows = params_from_bytes(answer).map_err(|e| e.to_string())?;
    if rows.get("h").is_some_and(|h| h.bits() == want) { Ok(()) } else { Err("a row with other bits".into()) }
}

impl Expected {
    /// Makes step t in a session, and looks at the answer.
    ///
    /// # Errors
    /// Whatever is not as it should be.
    pub async fn step(&self, client: &mut Client, session: &str, t: usize) -> Outcome<()> {
        let sent = client.send("POST", &format!("/v1/session/{session}/step"), TENSORS, &self.bodies[t % STEPS]).await;
        let (status, answer) = sent.map_err(|e| e.to_string())?;
        check(status, &answer, &self.rows[t % STEPS])
    }
}
