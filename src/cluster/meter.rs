//! A layer that counts requests and bytes, and logs them on request: method, path, status, time.
//!
//! Headers and bodies are never logged. The counts feed `make bench` and `-v`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use http_body_util::combinators::MapFrame;
use tower::{Layer, Service};

/// One finished request.
#[derive(Debug, Clone)]
pub struct Call {
    pub line: String,
    pub start: Duration,
    pub took: Duration,
}

/// Shared record of the requests of one run.
#[derive(Clone)]
pub struct Meter {
    began: Instant,
    calls: Arc<Mutex<Vec<Call>>>,
    bytes: Arc<AtomicU64>,
    verbose: bool,
}

/// Counts the bytes of a response as they pass.
type Count = Box<dyn FnMut(Frame<Bytes>) -> Frame<Bytes> + Send>;

impl Meter {
    /// A meter; with `verbose` each request is written to standard error as it ends.
    pub fn new(verbose: bool) -> Self {
        Self { began: Instant::now(), calls: Arc::default(), bytes: Arc::default(), verbose }
    }

    /// The requests so far, in the order in which they ended.
    pub fn calls(&self) -> Vec<Call> {
        self.calls.lock().map(|c| c.clone()).unwrap_or_default()
    }

    /// Bytes of all response bodies, after decompression.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// With `verbose`, writes one line that sums up the requests so far.
    pub fn log_summary(&self) {
        if self.verbose {
            let (requests, chain, bytes) = (self.calls().len(), self.longest_chain(), self.bytes());
            crate::output::stderr_line(&format!("{requests} requests, longest chain {chain}, {bytes} bytes read"));
        }
    }

    fn counted<B>(&self, response: Response<B>) -> Response<MapFrame<B, Count>>
    where
        B: http_body::Body<Data = Bytes>,
    {
        let total = self.bytes.clone();
        let count: Count = Box::new(move |frame| {
            if let Some(data) = frame.data_ref() {
                total.fetch_add(data.len() as u64, Ordering::Relaxed);
            }
            frame
        });
        response.map(|body| body.map_frame(count))
    }

    /// The longest chain of requests each of which began after the one before it had ended.
    pub fn longest_chain(&self) -> usize {
        let mut calls = self.calls();
        calls.sort_by_key(|c| c.start + c.took);
        let mut chain = 0;
        let mut free_from = Duration::ZERO;
        for call in calls {
            if chain == 0 || call.start >= free_from {
                chain += 1;
                free_from = call.start + call.took;
            }
        }
        chain
    }
}

impl<S> Layer<S> for Meter {
    type Service = Metered<S>;
    fn layer(&self, inner: S) -> Metered<S> {
        Metered { inner, meter: self.clone() }
    }
}

/// The service that [`Meter`] wraps around another.
#[derive(Clone)]
pub struct Metered<S> {
    inner: S,
    meter: Meter,
}

impl<S, A, B> Service<Request<A>> for Metered<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes>,
{
    type Response = Response<MapFrame<B, Count>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let meter = self.meter.clone();
        let start = meter.began.elapsed();
        let line = format!("{} {}", request.method(), request.uri());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let result = answer.await;
            let took = meter.began.elapsed().saturating_sub(start);
            let status = result.as_ref().map_or_else(|_| "failed".to_string(), |r| r.status().as_u16().to_string());
            if meter.verbose {
                crate::output::stderr_line(&format!("{line} {status} in {} ms", took.as_millis()));
            }
            if let Ok(mut calls) = meter.calls.lock() {
                calls.push(Call { line, start, took });
            }
            result.map(|response| meter.counted(response))
        })
    }
}
