//! What the service answers.

use crate::codec::Format;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::model::{Model, Version};
use crate::refused::Refused;
use crate::sessions::{Open, Sessions};
use crate::work::Workers;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, MatchedPath, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use scan_core::prelude::{Array, EvalCx, Port, Result as Computed, Session};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A running service.
pub struct Service {
    /// Its settings.
    pub config: Config,
    /// The file.
    pub model: Model,
    /// The sessions of its clients.
    pub sessions: Sessions,
    /// Long computations.
    pub workers: Workers,
    /// Counters.
    pub metrics: Metrics,
}

type Shared = State<Arc<Service>>;
type Answer = Result<Response, Refused>;

impl Service {
    /// Opens the file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn open(config: Config) -> Result<Service, String> {
        let (model, sessions) = (Model::open(&config)?, Sessions::new(config.sessions));
        let workers = Workers::new(config.workers, config.time);
        Ok(Service { model, sessions, workers, config, metrics: Metrics::default() })
    }
    /// Reads the file again.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn reload(&self) -> Result<Arc<Version>, String> {
        let version = self.model.reload()?;
        self.metrics.reloads.fetch_add(1, Ordering::Relaxed);
        Ok(version)
    }
    /// Ends sessions that nobody uses.
    pub fn expire(&self) {
        let n = self.sessions.expire(self.config.idle);
        if n > 0 {
            self.metrics.expired.fetch_add(n as u64, Ordering::Relaxed);
            tracing::info!(n, "sessions expired");
        }
    }
}

/// All routes.
pub fn routes(service: Arc<Service>) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/metrics", get(metrics))
        .route("/v1/model", get(model))
        .route("/v1/reload", post(reload))
        .route("/v1/call/{function}", post(call))
        .route("/v1/train/{function}", post(train))
        .route("/v1/sessions/{function}", post(begin))
        .route("/v1/session/{session}", get(about).delete(end))
        .route("/v1/session/{session}/step", post(step))
        .route("/v1/session/{session}/run", post(run))
        .route("/v1/session/{session}/snapshot", get(snapshot).put(restore))
        .fallback(|| async { Refused::new(StatusCode::NOT_FOUND, "route", "there is nothing here") })
        .layer(DefaultBodyLimit::max(service.config.body))
        .layer(middleware::from_fn_with_state(service.clone(), watched))
        .with_state(service)
}

/// Around every request: its time limit, counters, a line in the log.
async fn watched(State(service): Shared, path: Option<MatchedPath>, request: Request, next: Next) -> Response {
    let (begun, method) = (Instant::now(), request.method().clone());
    let route = path.as_ref().map_or("none", MatchedPath::as_str).to_string();
    // Computations end by themselves; what is left is a client who sends slowly.
    let limit = service.config.time + Duration::from_secs(1);
    let response = tokio::time::timeout(limit, next.run(request)).await.unwrap_or_else(|_| {
        let text = format!("the request was not there within {limit:?}");
        Refused::new(StatusCode::REQUEST_TIMEOUT, "time", text).into_response()
    });
    let took = begun.elapsed();
    service.metrics.request(&route, response.status(), took);
    tracing::debug!(%method, route, status = response.status().as_u16(), micros = took.as_micros() as u64, "request");
    response
}

async fn metrics(State(service): Shared) -> Response {
    let text = service.metrics.text(service.sessions.len(), service.model.now().number);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

async fn model(State(service): Shared) -> Answer {
    let version = service.model.now();
    let port = |p: &Port| json!({"name": p.name, "dtype": p.ty.dtype.name(), "shape": p.axes, "default": p.default.is_some()});
    let mut functions = serde_json::Map::new();
    for name in version.module.names() {
        let s = version.signature(name)?;
        let [inputs, outputs] = [&s.inputs, &s.outputs].map(|ports| ports.iter().map(port).collect::<Vec<_>>());
        functions.insert(name.to_string(), json!({"doc": s.doc, "inputs": inputs, "outputs": outputs, "updates": s.updates}));
    }
    Ok(Json(json!({"version": version.number, "print": version.print, "functions": functions})).into_response())
}

async fn reload(State(service): Shared) -> Answer {
    let reading = service.clone();
    let done = tokio::task::spawn_blocking(move || reading.reload()).await;
    match done.unwrap_or_else(|_| Err("a fault of the service".into())) {
        Ok(version) => Ok(Json(json!({"version": version.number, "print": version.print})).into_response()),
        Err(why) => {
            tracing::error!(why, "not reloaded");
            Err(Refused::new(StatusCode::CONFLICT, "reload", "the file cannot be read; the log says why"))
        }
    }
}

async fn call(State(service): Shared, Path(function): Path<String>, headers: HeaderMap, body: Bytes) -> Answer {
    let (format, version) = (Format::of(&headers)?, service.model.now());
    version.check(&function, false)?;
    computed(&service, format, version, function, &body, |version, cx, function, args| version.module.function(function)?.call(cx, args))
        .await
}

async fn train(State(service): Shared, Path(function): Path<String>, headers: HeaderMap, body: Bytes) -> Answer {
    let (format, version) = (Format::of(&headers)?, service.model.now());
    version.check(&function, true)?;
    let answer = computed(&service, format, version, function, &body, Version::learn).await?;
    service.metrics.commits.fetch_add(1, Ordering::Relaxed);
    Ok(answer)
}

/// The answer to a call of a function.
async fn computed(
    service: &Service,
    format: Format,
    version: Arc<Version>,
    function: String,
    body: &Bytes,
    run: impl FnOnce(&Version, &mut EvalCx, &str, &[Array]) -> Computed<Vec<Array>> + Send + 'static,
) -> Answer {
    let given = format.read(body, &version.signature(&function)?.inputs, false)?;
    let args = version.arguments(&function, given)?;
    let (held, name) = (version.clone(), function.clone());
    let results = service.workers.long(move |cx| run(&held, cx, &name, &args)).await?;
    format.write(version.named(&function, results))
}

async fn begin(State(service): Shared, Path(function): Path<String>, headers: HeaderMap, body: Bytes) -> Answer {
    let (format, version) = (Format::of(&headers)?, service.model.now());
    service.sessions.room()?;
    let given = format.read(&body, &version.signature(&function)?.inputs, false)?;
    let (held, name) = (version.clone(), function.clone());
    let session = service.workers.long(move |cx| {
        let given: Vec<(&str, Array)> = given.iter().map(|(name, array)| (&**name, array.clone())).collect();
        held.module.session(cx, &name, &given)
    });
    let session = session.await?;
    let number = version.number;
    let name = service.sessions.add(version, function, session)?;
    service.metrics.begun.fetch_add(1, Ordering::Relaxed);
    Ok((StatusCode::CREATED, Json(json!({"session": name, "version": number}))).into_response())
}

async fn about(State(service): Shared, Path(session): Path<String>) -> Answer {
    let open = service.sessions.find(&session)?;
    let state = open.lock();
    let found = json!({"function": open.function, "version": open.version.number, "steps": state.len(), "stopped": state.stopped()});
    Ok(Json(found).into_response())
}

async fn end(State(service): Shared, Path(session): Path<String>) -> Answer {
    service.sessions.remove(&session)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn step(State(service): Shared, Path(session): Path<String>, headers: HeaderMap, body: Bytes) -> Answer {
    let (format, open) = (Format::of(&headers)?, service.sessions.find(&session)?);
    let rows = rows_of(&open, format.read(&body, &open.version.signature(&open.function)?.inputs, true)?)?;
    let stepped = |open: &Open, cx: &mut EvalCx, rows: &[Array]| {
        let mut state = open.lock();
        let begun = Instant::now();
        let results = state.step(cx, rows);
        open.took(begun.elapsed());
        results
    };
    let results = if open.slow() {
        let held = open.clone();
        service.workers.long(move |cx| stepped(&held, cx, &rows)).await?
    } else {
        service.workers.brief(|cx| stepped(&open, cx, &rows))?
    };
    service.metrics.steps.fetch_add(1, Ordering::Relaxed);
    format.write(open.version.named(&open.function, results))
}

/// How many steps; where there are rows their number is that of the steps.
#[derive(Deserialize)]
struct Steps {
    n: Option<usize>,
}

async fn run(State(service): Shared, Path(session): Path<String>, Query(steps): Query<Steps>, headers: HeaderMap, body: Bytes) -> Answer {
    let (format, open) = (Format::of(&headers)?, service.sessions.find(&session)?);
    let rows = rows_of(&open, format.read(&body, &open.version.signature(&open.function)?.inputs, false)?)?;
    let given = rows.first().map_or(steps.n, |x| x.shape().first().copied());
    let n = given.ok_or_else(|| Refused::body("without sequences ?n= says how many steps"))?;
    let held = open.clone();
    let (results, ran) = service
        .workers
        .long(move |cx| {
            let mut state = held.lock();
            let before = state.len();
            Ok((state.run(cx, n, &rows)?, state.len() - before))
        })
        .await?;
    service.metrics.steps.fetch_add(ran as u64, Ordering::Relaxed);
    format.write(open.version.named(&open.function, results))
}

/// What a step takes, in the order of the sequences.
fn rows_of(open: &Open, mut given: Vec<(String, Array)>) -> Result<Vec<Array>, Refused> {
    let inputs = &open.version.signature(&open.function)?.inputs;
    let function = open.version.module.function(&open.function)?;
    let mut rows = vec![];
    for &(at, _) in function.steps()?.streams() {
        let name = inputs[at].name.as_deref().unwrap_or("");
        let found = given.iter().position(|(n, _)| n == name).ok_or_else(|| Refused::body(format!("a step needs a row of `{name}`")))?;
        rows.push(given.swap_remove(found).1);
    }
    given.first().map_or(Ok(rows), |(name, _)| Err(Refused::body(format!("there is no sequence `{name}`"))))
}

async fn snapshot(State(service): Shared, Path(session): Path<String>) -> Answer {
    let bytes = service.sessions.find(&session)?.lock().snapshot()?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

async fn restore(State(service): Shared, Path(session): Path<String>, body: Bytes) -> Answer {
    let open = service.sessions.find(&session)?;
    // Bytes of a client: what is wrong with them is the client's.
    Session::restore(&mut open.lock(), &body).map_err(|e| Refused::new(StatusCode::UNPROCESSABLE_ENTITY, e.code, e.title))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
