//! Loads a service, and tests it: `load run …`, `load accept …`.

mod accept;
mod drive;
mod malformed;
mod started;

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "load run --at 127.0.0.1:8080 --model model.rscan [--connections 64] [--seconds 10] [--rate 50]
load accept --service PROGRAM --model model.rscan --other other.rscan [--seconds 60] [--malformed 10000] [--kills 20]
a rate is steps per second and connection; 0 for as many as there can be";

/// Results of tests: what is wrong, in words.
pub type Outcome<T> = Result<T, String>;

#[tokio::main]
async fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let rest: Vec<String> = args.collect();
    let given: HashMap<String, String> =
        rest.chunks(2).filter_map(|pair| Some((pair[0].strip_prefix("--")?.to_string(), pair.get(1)?.clone()))).collect();
    let done = match &*command {
        "run" => run(&given).await,
        "accept" => accept::all(&given).await,
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// A setting, or its value where it is not given.
pub fn setting<T: std::str::FromStr>(given: &HashMap<String, String>, name: &str, otherwise: Option<T>) -> Outcome<T> {
    match given.get(name) {
        Some(text) => text.parse().map_err(|_| format!("--{name} cannot be `{text}`")),
        None => otherwise.ok_or_else(|| format!("--{name} is missing\n{USAGE}")),
    }
}

async fn run(given: &HashMap<String, String>) -> Outcome<()> {
    let load = drive::Load {
        at: setting(given, "at", None)?,
        connections: setting(given, "connections", Some(64))?,
        time: Duration::from_secs_f64(setting(given, "seconds", Some(10.0))?),
        rate: setting(given, "rate", Some(50.0))?,
    };
    let models = [drive::expected(&setting::<String>(given, "model", None)?)?];
    let found = drive::run(load, models.into()).await;
    println!("{}\n{}", drive::HEAD, found.row("steps", load.connections));
    if found.errors.is_empty() {
        Ok(())
    } else {
        Err(format!("{} errors: {:?}", found.errors.len(), &found.errors[..found.errors.len().min(3)]))
    }
}
