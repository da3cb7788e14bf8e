//! A client of HTTP/1.1 over one connection: what a load generator needs, and no more.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A connection that is kept.
pub struct Client {
    stream: BufReader<TcpStream>,
}

/// The media type of safetensors bodies.
pub const TENSORS: &str = "application/octet-stream";

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn connect(to: SocketAddr) -> Result<Client> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Client { stream: BufReader::new(stream) })
    }
    /// Sends a request, and waits for the answer: status and body.
    ///
    /// # Errors
    /// Those of the system; an answer that is none.
    pub async fn send(&mut self, method: &str, path: &str, media: &str, body: &[u8]) -> Result<(u16, Vec<u8>)> {
        let head = format!("{method} {path} HTTP/1.1\r\nhost: rscan\r\ncontent-type: {media}\r\ncontent-length: {}\r\n\r\n", body.len());
        self.raw(&[head.as_bytes(), body].concat()).await
    }
    /// Sends any bytes.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn raw(&mut self, bytes: &[u8]) -> Result<(u16, Vec<u8>)> {
        self.stream.get_mut().write_all(bytes).await?;
        let status = self.line().await?;
        let status = status.split(' ').nth(1).and_then(|s| s.parse().ok()).ok_or_else(|| bad("a status"))?;
        let mut length = 0;
        loop {
            let line = self.line().await?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(n) = line.strip_prefix("content-length:") {
                length = n.trim().parse().map_err(|_| bad("a length"))?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok((status, body))
    }
    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_string())
    }
}

fn bad(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("an answer without {what}"))
}
