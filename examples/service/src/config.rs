//! Settings, given as `--name value`.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What a service is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The file of functions.
    pub model: PathBuf,
    /// The folder of what was learned since.
    pub state: PathBuf,
    /// The most sessions at a time.
    pub sessions: usize,
    /// Sessions that nobody has used for so long end.
    pub idle: Duration,
    /// The longest body of a request, in bytes.
    pub body: usize,
    /// How long a request may take, its computation included.
    pub time: Duration,
    /// The most long computations at a time.
    pub workers: usize,
    /// How often the file is looked at; zero for never.
    pub watch: Duration,
    /// How long requests that are under way may go on when the service stops.
    pub grace: Duration,
}

/// Names of settings with their values where none are given, in words.
pub const USAGE: &str = "service --model model.rscan [--listen 127.0.0.1:8080] [--state MODEL.state] [--sessions 10000] [--idle 600]
        [--body 1048576] [--time 2] [--workers CORES] [--watch 1] [--grace 5]
times are seconds";

impl Config {
    /// Reads arguments of a command.
    ///
    /// # Errors
    /// What is wrong with them, in words.
    pub fn parse(args: impl Iterator<Item = String>) -> Result<Config, String> {
        let mut given = HashMap::new();
        let mut args = args;
        while let Some(name) = args.next() {
            let key = name.strip_prefix("--").ok_or_else(|| format!("`{name}` is no setting"))?.to_string();
            given.insert(key, args.next().ok_or_else(|| format!("{name} needs a value"))?);
        }
        let model: PathBuf = given.remove("model").ok_or("--model is missing")?.into();
        let mut beside = model.clone().into_os_string();
        beside.push(".state");
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        let config = Config {
            listen: take(&mut given, "listen", SocketAddr::from(([127, 0, 0, 1], 8080)))?,
            state: take(&mut given, "state", beside.into())?,
            model,
            sessions: take(&mut given, "sessions", 10_000)?,
            idle: seconds(&mut given, "idle", 600.0)?,
            body: take(&mut given, "body", 1 << 20)?,
            time: seconds(&mut given, "time", 2.0)?,
            workers: take(&mut given, "workers", cores)?,
            watch: seconds(&mut given, "watch", 1.0)?,
            grace: seconds(&mut given, "grace", 5.0)?,
        };
        given.keys().next().map_or(Ok(config), |name| Err(format!("there is no setting --{name}")))
    }
}

fn take<T: std::str::FromStr>(given: &mut HashMap<String, String>, name: &str, otherwise: T) -> Result<T, String> {
    given.remove(name).map_or(Ok(otherwise), |text| text.parse().map_err(|_| format!("--{name} cannot be `{text}`")))
}

fn seconds(given: &mut HashMap<String, String>, name: &str, otherwise: f64) -> Result<Duration, String> {
    let found = take(given, name, otherwise)?;
    Duration::try_from_secs_f64(found).map_err(|_| format!("--{name} cannot be {found} seconds"))
}
