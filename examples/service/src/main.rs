//! Serves the functions of a file: `service --model model.rscan`.

use service::api::{Service, routes};
use service::config::{Config, USAGE};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let config = match Config::parse(std::env::args().skip(1)) {
        Ok(config) => config,
        Err(why) => {
            eprintln!("{why}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().json().with_env_filter(filter).with_writer(std::io::stderr).init();
    // Threads for long computations stay: the allocator keeps memory for each that there ever was.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(config.workers + 2)
        .thread_keep_alive(Duration::from_secs(3600))
        .build();
    match runtime.map_err(|e| e.to_string()).and_then(|runtime| runtime.block_on(serve(config))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            tracing::error!(why, "the service ends");
            ExitCode::FAILURE
        }
    }
}

async fn serve(config: Config) -> Result<(), String> {
    let service = Arc::new(Service::open(config)?);
    let config = &service.config;
    let listener = TcpListener::bind(config.listen).await.map_err(|e| format!("{}: {e}", config.listen))?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    tracing::info!(%address, model = %config.model.display(), print = service.model.now().print, "serving");
    // For whoever started it with port 0.
    println!("{address}");
    tokio::spawn(expire(service.clone()));
    tokio::spawn(watch(service.clone()));
    let (stopped, stop) = (service.clone(), Arc::new(tokio::sync::Notify::new()));
    let noticed = stop.clone();
    let server = axum::serve(listener, routes(service.clone())).with_graceful_shutdown(async move {
        asked_to_stop().await;
        tracing::info!("stopping: requests under way go on");
        noticed.notify_one();
    });
    let late = async move {
        stop.notified().await;
        tokio::time::sleep(stopped.config.grace).await;
        tracing::warn!("loops that still run are stopped");
        stopped.workers.stop();
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    tokio::select! {
        done = async { server.await } => done.map_err(|e| e.to_string())?,
        () = late => tracing::warn!("connections are cut"),
    }
    tracing::info!("stopped");
    Ok(())
}

async fn asked_to_stop() {
    let (interrupt, terminate) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
    let (Ok(mut interrupt), Ok(mut terminate)) = (interrupt, terminate) else { return std::future::pending().await };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

/// Ends idle sessions, a few times as often as they may be idle.
async fn expire(service: Arc<Service>) {
    let mut beat = tokio::time::interval((service.config.idle / 4).max(Duration::from_millis(100)));
    loop {
        beat.tick().await;
        service.expire();
    }
}

/// Reads the file again where it has changed, or on SIGHUP.
async fn watch(service: Arc<Service>) {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    let every = service.config.watch;
    loop {
        let look = tokio::select! {
            _ = hangup.recv() => true,
            () = tokio::time::sleep(every.max(Duration::from_millis(10))), if !every.is_zero() => service.model.changed(),
        };
        let reading = service.clone();
        let done = tokio::task::spawn_blocking(move || if look { reading.reload().map(drop) } else { Ok(()) });
        if let Ok(Err(why)) = done.await {
            tracing::error!(why, "not reloaded");
        }
    }
}
