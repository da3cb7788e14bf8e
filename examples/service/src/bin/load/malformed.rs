//! Requests that are wrong in all ways: each is answered with a status from 400 to 499, and nobody else notices.

use super::Outcome;
use super::drive::{Expected, begin};
use scan_core::prelude::{Array, module::params_to_bytes};
use service::client::Client;
use std::net::SocketAddr;

/// Small random numbers.
pub struct Dice(u64);

impl Dice {
    /// From a seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }
    /// Below n.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }
}

/// Sends so many; a session steps in between, whose rows stay right.
pub async fn send(at: SocketAddr, n: usize, model: &Expected) -> Outcome<()> {
    let mut dice = Dice::new(7);
    let mut good = Client::connect(at).await.map_err(|e| e.to_string())?;
    let (session, _) = begin(&mut good).await?;
    let mut steps = 0;
    for i in 0..n {
        let request = request(&mut dice, &session);
        // Some of them are no HTTP: the connection ends with the answer.
        let mut client = Client::connect(at).await.map_err(|e| e.to_string())?;
        let shown = || String::from_utf8_lossy(&request[..request.len().min(300)]).into_owned();
        let (status, _) = client.raw(&request).await.map_err(|e| format!("request {i}: {e}\n{}", shown()))?;
        if !(400..500).contains(&status) {
            return Err(format!("request {i}: status {status}\n{}", shown()));
        }
        if i % 50 == 0 {
            model.step(&mut good, &session, steps).await.map_err(|why| format!("after request {i}: {why}"))?;
            steps += 1;
        }
    }
    Ok(())
}

fn http(method: &str, path: &str, media: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("{method} {path} HTTP/1.1\r\nhost: rscan\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn request(dice: &mut Dice, session: &str) -> Vec<u8> {
    let step = format!("/v1/session/{session}/step");
    let (json, tensors) = ("application/json", "application/octet-stream");
    match dice.below(12) {
        0 => http("POST", &step, json, &junk(dice)),
        1 => http("POST", &step, tensors, &junk(dice)),
        2 => http("POST", &step, tensors, &damaged(dice)),
        3 => http("POST", &step, "text/html", b"<p>"),
        4 => http("POST", &step, json, &json_of(dice)),
        5 => http("POST", &format!("/v1/session/{:032x}/step", dice.below(usize::MAX)), json, b"{}"),
        6 => http("POST", &format!("/v1/call/{}", ["nothing", "train", "gru", "%00", "spin"][dice.below(5)]), json, b"{}"),
        7 => http(["PUT", "DELETE", "PATCH", "GET"][dice.below(4)], "/v1/call/gru", json, b"{}"),
        8 => http("POST", &format!("/v1/{}", dice.below(1 << 30)), json, b""),
        9 => http("PUT", &format!("/v1/session/{session}/snapshot"), tensors, &junk(dice)),
        10 => http("POST", &format!("/v1/{}/gru", ["call", "sessions", "train"][dice.below(3)]), json, &json_of(dice)),
        _ => no_http(dice),
    }
}

/// JSON that a step, or a call, of the GRU does not take.
fn json_of(dice: &mut Dice) -> Vec<u8> {
    let all = [
        "[]",
        "1",
        "null",
        "{\"x\"",
        "{\"x\": {}}",
        "{\"x\": \"row\"}",
        "{\"x\": [null]}",
        "{\"x\": 1.5}",
        "{\"x\": true}",
        "{\"x\": [[[1]]]}",
        "{\"y\": [1]}",
        "{\"x\": [[1, 2], [3]]}",
        "{\"x\": [1e400]}",
        "{\"x\": [[1, 2, 3]], \"z\": 0}",
    ];
    all[dice.below(all.len())].into()
}

fn junk(dice: &mut Dice) -> Vec<u8> {
    let n = 1 + dice.below(200);
    // No byte of it begins JSON, and its length as a header's is beyond any file.
    (0..n).map(|_| 0x80 | dice.below(128) as u8).collect()
}

/// A file of a row whose length, shape or dtype is not that of the model.
fn damaged(dice: &mut Dice) -> Vec<u8> {
    let rows =
        [Array::zeros(scan_core::prelude::DType::F32, &[16]), Array::vector(&[1.0, 2.0]), Array::scalar(1i64), Array::vector(&[true; 16])];
    let bytes = params_to_bytes(&[("x".to_string(), rows[dice.below(rows.len())].clone())].into()).unwrap_or_default();
    let keep = if dice.below(2) == 0 { bytes.len() } else { 1 + dice.below(bytes.len() - 1) };
    bytes[..keep].to_vec()
}

/// What is no request of HTTP.
fn no_http(dice: &mut Dice) -> Vec<u8> {
    let all: [&[u8]; 5] = [
        b"GET\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"POST /v1/model HTTP/1.1\r\nhost: a\r\ncontent-length: many\r\n\r\n",
        b"GET /v1/nowhere HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ];
    all[dice.below(all.len())].to_vec()
}
