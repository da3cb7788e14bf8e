//! The acceptance test: each part says what it found, the first fault ends it.

use super::drive::{Expected, HEAD, Load, expected, run};
use super::malformed::{self, Dice};
use super::started::Started;
use super::{Outcome, setting};
use scan_core::prelude::{Array, EvalCx, Module};
use serde_json::{Value, json};
use service::client::Client;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a test is given.
struct Place {
    service: String,
    /// A folder of its own.
    folder: PathBuf,
    model: String,
    other: String,
}

impl Place {
    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
    /// Puts a file where a service looks for it, as a whole.
    fn deploy(&self, from: &str, name: &str) -> Outcome<String> {
        let (beside, file) = (self.file("beside"), self.file(name));
        std::fs::copy(from, &beside).and_then(|_| std::fs::rename(&beside, &file)).map_err(|e| format!("{file}: {e}"))?;
        Ok(file)
    }
}

/// All parts.
pub async fn all(given: &HashMap<String, String>) -> Outcome<()> {
    let folder = std::env::temp_dir().join(format!("rscan-service-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let (service, model, other) = (setting(given, "service", None)?, setting(given, "model", None)?, setting(given, "other", None)?);
    let place = Place { service, folder: folder.clone(), model, other };
    let seconds: f64 = setting(given, "seconds", Some(60.0))?;
    let done = parts(&place, seconds, setting(given, "malformed", Some(10_000))?, setting(given, "kills", Some(20))?).await;
    let _ = std::fs::remove_dir_all(folder);
    done
}

async fn parts(place: &Place, seconds: f64, requests: usize, kills: usize) -> Outcome<()> {
    let models: Arc<[Expected]> = [expected(&place.model)?, expected(&place.other)?].into();
    let file = place.deploy(&place.model, "model.rscan")?;
    let service = Started::new(&place.service, &["--model", &file, "--watch", "0"]).await?;
    println!("{HEAD}");
    steady(&service, models.clone(), seconds).await?;
    reloads(place, &service, models.clone(), (seconds / 4.0).max(2.0)).await?;
    malformed::send(service.at, requests, &models[0]).await?;
    println!("{requests} malformed requests: all 4xx, the session beside them kept its bits");
    drop(service);
    limits(place).await?;
    files(place).await?;
    commits(place, kills).await?;
    stops(place).await
}

fn wrong(found: &super::drive::Found) -> Outcome<()> {
    found.errors.first().map_or(Ok(()), |first| Err(format!("{} errors; the first: {first}", found.errors.len())))
}

/// 64 connections as fast as can be, which fills what the allocator keeps; then at their pace: no error, quick, and memory does not grow.
async fn steady(service: &Started, models: Arc<[Expected]>, seconds: f64) -> Outcome<()> {
    let load = |rate, seconds| Load { at: service.at, connections: 64, time: Duration::from_secs_f64(seconds), rate };
    let fast = run(load(0.0, (seconds / 3.0).clamp(1.0, 10.0)), models.clone()).await;
    println!("{}", fast.row("one after the other", 64));
    wrong(&fast)?;
    let before = service.memory();
    let found = run(load(50.0, seconds), models).await;
    let after = service.memory();
    println!("{}", found.row("50 steps/s each", 64));
    wrong(&found)?;
    println!("memory: {before} KiB before, {after} KiB after");
    if found.percentile(0.99) >= 5.0 {
        return Err(format!("p99 is {:.2} ms", found.percentile(0.99)));
    }
    if after > before + before / 10 + 4096 { Err("memory grows".into()) } else { Ok(()) }
}

/// Another file every half a second, under load.
async fn reloads(place: &Place, service: &Started, models: Arc<[Expected]>, seconds: f64) -> Outcome<()> {
    let load = Load { at: service.at, connections: 16, time: Duration::from_secs_f64(seconds), rate: 200.0 };
    let running = tokio::spawn(run(load, models));
    let (begun, mut version) = (Instant::now(), 1);
    while begun.elapsed().as_secs_f64() < seconds - 0.5 {
        place.deploy(if version % 2 == 1 { &place.other } else { &place.model }, "model.rscan")?;
        let (status, answer) = ask(service, "POST", "/v1/reload", b"").await?;
        version =
            answer["version"].as_u64().filter(|v| status == 200 && *v == version + 1).ok_or(format!("not reloaded: {status} {answer}"))?;
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    // Later parts want the first file.
    if version % 2 == 0 {
        place.deploy(&place.model, "model.rscan")?;
        ask(service, "POST", "/v1/reload", b"").await?;
    }
    let found = running.await.map_err(|e| e.to_string())?;
    println!("{}", found.row(&format!("{} reloads meanwhile", version - 1), 16));
    wrong(&found)
}

async fn ask(service: &Started, method: &str, path: &str, body: &[u8]) -> Outcome<(u16, Value)> {
    let answer = async {
        let mut client = Client::connect(service.at).await?;
        client.send(method, path, "application/json", body).await
    };
    let (status, body) = answer.await.map_err(|e| format!("{method} {path}: {e}"))?;
    Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}

async fn expect(service: &Started, method: &str, path: &str, body: &[u8], want: u16) -> Outcome<Value> {
    let (status, answer) = ask(service, method, path, body).await?;
    if status == want { Ok(answer) } else { Err(format!("{method} {path}: {status} instead of {want}: {answer}")) }
}

/// Limits: of time, of bodies, of the number of sessions, of their idle time.
async fn limits(place: &Place) -> Outcome<()> {
    let file = place.deploy(&place.model, "limits.rscan")?;
    let settings = ["--model", &file, "--time", "0.5", "--body", "10000", "--sessions", "2", "--idle", "1"];
    let service = Started::new(&place.service, &settings).await?;
    let begun = Instant::now();
    expect(&service, "POST", "/v1/call/spin", br#"{"n": 1000000000000}"#, 503).await?;
    if begun.elapsed() > Duration::from_secs(3) {
        return Err("a loop without end was not stopped".into());
    }
    expect(&service, "POST", "/v1/call/spin", &[b' '; 10_001], 413).await?;
    let first = expect(&service, "POST", "/v1/sessions/gru", b"{}", 201).await?;
    expect(&service, "POST", "/v1/sessions/gru", b"{}", 201).await?;
    expect(&service, "POST", "/v1/sessions/gru", b"{}", 429).await?;
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let name = first["session"].as_str().unwrap_or_default();
    expect(&service, "GET", &format!("/v1/session/{name}"), b"", 404).await?;
    expect(&service, "POST", "/v1/sessions/gru", b"{}", 201).await?;
    // A body that does not come.
    let mut client = Client::connect(service.at).await.map_err(|e| e.to_string())?;
    let head = b"POST /v1/call/spin HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{";
    let (status, _) = client.raw(head).await.map_err(|e| e.to_string())?;
    if status != 408 {
        return Err(format!("a body that does not come: {status}"));
    }
    println!("limits hold: time 503, slow body 408, large body 413, sessions 429, idle sessions end");
    Ok(())
}

/// A file that changes is read again without being asked for; one that is broken is not taken.
async fn files(place: &Place) -> Outcome<()> {
    let file = place.deploy(&place.model, "changing.rscan")?;
    let service = Started::new(&place.service, &["--model", &file, "--watch", "0.1"]).await?;
    let broken = place.file("broken");
    std::fs::write(&broken, b"no file of functions").map_err(|e| e.to_string())?;
    place.deploy(&broken, "changing.rscan")?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    expect(&service, "POST", "/v1/reload", b"", 409).await?;
    expect(&service, "POST", "/v1/call/spin", br#"{"n": 10}"#, 200).await?;
    place.deploy(&place.other, "changing.rscan")?;
    let begun = Instant::now();
    while expect(&service, "GET", "/v1/model", b"", 200).await?["version"] != 2 {
        if begun.elapsed() > Duration::from_secs(10) {
            return Err("a new file was not noticed".into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("a broken file is refused, a new one is noticed");
    Ok(())
}

/// Kills the service while it learns: what it says has been learned is there after a start, and what is there are the weights of that step.
async fn commits(place: &Place, kills: usize) -> Outcome<()> {
    let file = place.deploy(&place.model, "learning.rscan")?;
    let settings = ["--model", &*file];
    let mut truth = Truth::new(&place.model)?;
    let (mut dice, mut known, mut lost) = (Dice::new(3), 0u64, 0);
    for kill in 0..kills {
        let service = Started::new(&place.service, &settings).await?;
        let (steps, loss) = learned(&service).await?;
        // One more may have been written, whose answer did not come.
        if !(known + 1..=known + 2).contains(&steps) || loss != truth.loss(steps)? {
            return Err(format!("after kill {kill}: {steps} steps where {known} were confirmed, loss {loss}"));
        }
        lost += u64::from(steps == known + 2);
        known = steps;
        let at = service.at;
        let learning = tokio::spawn(async move { until_killed(at, known).await });
        tokio::time::sleep(Duration::from_micros(5000 + dice.below(150_000) as u64)).await;
        service.kill().await?;
        let (steps, losses) = learning.await.map_err(|e| e.to_string())?;
        for (k, loss) in losses.into_iter().enumerate() {
            if loss != truth.loss(known + 1 + k as u64)? {
                return Err(format!("step {}: another loss", known + 1 + k as u64));
            }
        }
        known = steps;
    }
    let left = std::fs::read_dir(Path::new(&format!("{file}.state"))).map_err(|e| e.to_string())?.count();
    println!(
        "{kills} kills while learning: {known} steps, each loss that of an undisturbed run; {lost} were written, their answer lost; {left} files left"
    );
    Ok(())
}

/// A series and its goal.
fn lesson() -> (Vec<Vec<f64>>, f64) {
    ((0..20).map(|t| (0..16).map(|i| f64::from(t * i % 7) / 4.0 - 0.5).collect()).collect(), 0.75)
}

async fn learned(service: &Started) -> Outcome<(u64, f64)> {
    let (x, y) = lesson();
    let answer = expect(service, "POST", "/v1/train/train", json!({"x": x, "y": y}).to_string().as_bytes(), 200).await?;
    answer["steps"].as_u64().zip(answer["loss"].as_f64()).ok_or(format!("no loss: {answer}"))
}

/// The number of the last step that was confirmed, and the losses.
async fn until_killed(at: std::net::SocketAddr, mut known: u64) -> (u64, Vec<f64>) {
    let (x, y) = lesson();
    let (body, mut losses) = (json!({"x": x, "y": y}).to_string(), vec![]);
    let Ok(mut client) = Client::connect(at).await else { return (known, losses) };
    while let Ok((200, answer)) = client.send("POST", "/v1/train/train", "application/json", body.as_bytes()).await {
        let answer: Value = serde_json::from_slice(&answer).unwrap_or(Value::Null);
        let (Some(steps), Some(loss)) = (answer["steps"].as_u64(), answer["loss"].as_f64()) else { break };
        known = steps;
        losses.push(loss);
    }
    (known, losses)
}

/// The losses of a run that nobody disturbs.
struct Truth {
    module: Module,
    losses: Vec<f64>,
}

impl Truth {
    fn new(model: &str) -> Outcome<Truth> {
        Ok(Truth { module: Module::load(model).map_err(|e| e.to_string())?, losses: vec![] })
    }
    fn loss(&mut self, step: u64) -> Outcome<f64> {
        let (x, y) = lesson();
        let x = Array::new(&[x.len(), x[0].len()], x.concat());
        while (self.losses.len() as u64) < step {
            let f = self.module.function("train").map_err(|e| e.to_string())?;
            let outs = f.call(&mut EvalCx::new(), &[x.clone(), Array::scalar(y)]).map_err(|e| e.to_string())?;
            self.losses.push(outs[0].item_f64().ok_or("no loss")?);
        }
        Ok(self.losses[step as usize - 1])
    }
}

/// Stops while a request is under way: it is answered.
async fn stops(place: &Place) -> Outcome<()> {
    let file = place.deploy(&place.model, "stops.rscan")?;
    let service = Started::new(&place.service, &["--model", &file, "--time", "20", "--grace", "1"]).await?;
    expect(&service, "POST", "/v1/call/spin", br#"{"n": 10}"#, 200).await?;
    let at = service.at;
    let call = move |n: u64| async move {
        let mut client = Client::connect(at).await?;
        client.send("POST", "/v1/call/spin", "application/json", format!("{{\"n\": {n}}}").as_bytes()).await
    };
    let (short, endless) = (tokio::spawn(call(200_000_000)), tokio::spawn(call(1_000_000_000_000)));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let begun = Instant::now();
    let well = service.stop().await?;
    let took = begun.elapsed();
    let answers = [short.await, endless.await].map(|a| a.ok().and_then(Result::ok).map(|a| a.0));
    if !well || took > Duration::from_secs(4) || answers[0] != Some(200) && answers[0] != Some(503) || answers[1] != Some(503) {
        return Err(format!("stopped after {took:?}, well: {well}, answers {answers:?}"));
    }
    println!("stopped in {took:.1?}: requests under way were answered, an endless loop was stopped");
    Ok(())
}
