//! Requests that are not answered with a result.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use scan_core::prelude::{Diagnostic, Kind};
use serde_json::json;

/// Why a request has no result.
#[derive(Debug)]
pub struct Refused {
    /// The status of HTTP.
    pub status: StatusCode,
    /// What programs tell it by: rscan's code, or a word.
    pub code: &'static str,
    /// One sentence for people.
    pub text: String,
}

impl Refused {
    /// A request that is not answered.
    pub fn new(status: StatusCode, code: &'static str, text: impl Into<String>) -> Refused {
        Refused { status, code, text: text.into() }
    }
    /// A body that is not what the function takes.
    pub fn body(text: impl Into<String>) -> Refused {
        Refused::new(StatusCode::UNPROCESSABLE_ENTITY, "body", text)
    }
}

impl From<Box<Diagnostic>> for Refused {
    fn from(error: Box<Diagnostic>) -> Refused {
        let status = match (error.kind, error.code) {
            (Kind::Internal | Kind::File | Kind::Device, _) => StatusCode::INTERNAL_SERVER_ERROR,
            (Kind::Interrupted | Kind::Memory, _) => StatusCode::SERVICE_UNAVAILABLE,
            (_, "E0925") => StatusCode::NOT_FOUND,
            // A session that has ended: the request fits, its time is over.
            (_, "E0533") => StatusCode::CONFLICT,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        match status {
            StatusCode::INTERNAL_SERVER_ERROR => tracing::error!(code = error.code, "{error}"),
            StatusCode::SERVICE_UNAVAILABLE => tracing::warn!(code = error.code, "{}", error.title),
            _ => {}
        }
        // The title alone: the lines of the program behind it are nobody's business.
        Refused::new(status, error.code, error.title)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, Json(json!({"error": {"code": self.code, "message": self.text}}))).into_response()
    }
}
