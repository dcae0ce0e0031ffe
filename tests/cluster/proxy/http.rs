//! As much of HTTP/1.1 as a proxy needs: heads, and bodies piece by piece.

use std::io::{self, Read, Write};

pub fn header(head: &str, name: &str) -> Option<String> {
    let line = head.lines().find(|l| l.split(':').next().is_some_and(|n| n.eq_ignore_ascii_case(name)))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

fn is_chunked(head: &str) -> bool {
    header(head, "transfer-encoding").is_some_and(|v| v.contains("chunked"))
}

pub fn is_framed(head: &str) -> bool {
    is_chunked(head) || header(head, "content-length").is_some()
}

/// One side of a connection, with what was read too far.
pub struct Half<S> {
    pub stream: S,
    ahead: Vec<u8>,
}

impl<S: Read + Write> Half<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, ahead: Vec::new() }
    }

    /// Reads some bytes; none at the end.
    fn more(&mut self) -> io::Result<usize> {
        let mut buffer = [0; 16 * 1024];
        let count = match self.stream.read(&mut buffer) {
            // A TLS peer that just closes.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => 0,
            read => read?,
        };
        self.ahead.extend_from_slice(&buffer[..count]);
        Ok(count)
    }

    fn through(&mut self, end: &[u8]) -> io::Result<Vec<u8>> {
        loop {
            if let Some(at) = self.ahead.windows(end.len()).position(|w| w == end) {
                return Ok(self.ahead.drain(..at + end.len()).collect());
            }
            if self.more()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// A head with its empty line.
    pub fn head(&mut self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.through(b"\r\n\r\n")?).into_owned())
    }

    fn exactly(&mut self, count: usize, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        while all.len() < count {
            if self.ahead.is_empty() && self.more()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let part: Vec<u8> = self.ahead.drain(..self.ahead.len().min(count - all.len())).collect();
            each(&part)?;
            all.extend(part);
        }
        Ok(all)
    }

    /// Reads a body and returns it; `each` is given every piece as it is on the wire, at once.
    pub fn body(
        &mut self,
        head: &str,
        to_the_end: bool,
        each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<Vec<u8>> {
        if is_chunked(head) {
            let mut all = Vec::new();
            loop {
                let line = self.through(b"\r\n")?;
                each(&line)?;
                let size = String::from_utf8_lossy(&line);
                let size = size.trim().split(';').next().unwrap_or_default().to_string();
                let size = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
                let mut chunk = self.exactly(size + 2, each)?;
                if size == 0 {
                    return Ok(all);
                }
                chunk.truncate(size);
                all.extend(chunk);
            }
        }
        if let Some(length) = header(head, "content-length") {
            return self.exactly(length.parse().map_err(io::Error::other)?, each);
        }
        let mut all = Vec::new();
        if !to_the_end {
            return Ok(all);
        }
        loop {
            if self.ahead.is_empty() && self.more()? == 0 {
                break;
            }
            let part = std::mem::take(&mut self.ahead);
            each(&part)?;
            all.extend(part);
        }
        Ok(all)
    }
}
