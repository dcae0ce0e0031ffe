//! Why a command could not do its job, what to try next, and the table of exit codes.

use std::time::Duration;

use crate::cluster::client::ClientError;
use crate::facts::reading::{Gap, GapReason};
use crate::output::escape::visible;
use crate::output::stderr_line;

/// Everything was looked at and nothing is at `warning` or above.
pub const OK: u8 = 0;
/// The job could not be done.
pub const FAILED: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;

/// Refused for safety, or not confirmed; nothing was changed.
pub const REFUSED: u8 = 4;
/// Interrupted from the keyboard or by a signal.
pub const INTERRUPTED: u8 = 130;

/// The text about exit codes at the end of every help page.
pub const EXIT_CODES: &str = "\
Exit codes:
  0         looked at everything, nothing at warning or above
  1         could not do the job (cluster unreachable, object missing, ...)
  2         the command line is wrong
  3         some facts could not be read, and nothing worse was found
  4         refused for safety; nothing was changed
  10, 11    the worst finding is a warning, an error (they win over 3)
  124, 130  waited too long; interrupted";

/// What kind of failure it is; it decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    Failed,
    Usage,
    TimedOut,
    Refused,
    Interrupted,
}

/// An error with its causes and hints, printed in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandError {
    pub kind: ErrorKind,
    pub message: String,
    pub causes: Vec<String>,
    pub hints: Vec<String>,
}

impl CommandError {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), causes: Vec::new(), hints: Vec::new() }
    }

    /// The job could not be done.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// The command line is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Refused for safety, or the confirmation was not given; nothing was changed.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Refused, message)
    }

    /// The file to write exists; none is ever written over.
    pub fn exists(path: &std::path::Path) -> Self {
        Self::refused(format!("`{}` exists and is not written over", path.display()))
            .hint("choose another name for `--to`")
    }

    /// Stopped by the person at the keyboard.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Interrupted, message)
    }

    /// Adds the cause underneath.
    pub fn caused_by(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Adds the next thing to try.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The documented exit code.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            ErrorKind::Failed => FAILED,
            ErrorKind::Usage => USAGE,
            ErrorKind::TimedOut => 124,
            ErrorKind::Refused => REFUSED,
            ErrorKind::Interrupted => INTERRUPTED,
        }
    }

    /// Writes it to standard error.
    pub fn print(&self) {
        stderr_line(&format!("error: {}", self.message));
        for cause in &self.causes {
            stderr_line(&format!("caused by: {cause}"));
        }
        for hint in &self.hints {
            stderr_line(&format!("hint: {hint}"));
        }
    }
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        match error {
            ClientError::NoKubeconfig(_) => {
                Self::failed(message).hint("set `KUBECONFIG`, pass `--kubeconfig`, or read a snapshot with `--from`")
            }
            ClientError::Kubeconfig { .. } => {
                Self::failed(message).hint("`kubectl config view` shows what kubectl makes of it")
            }
            ClientError::NoContext { known, .. } => {
                let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
                Self::failed(message).hint(format!("contexts in the kubeconfig: {known}"))
            }
            ClientError::Selection(_) => Self::failed(message).hint("`kubectl config get-contexts` lists the contexts"),
            ClientError::Client { .. } => Self::failed(message),
        }
    }
}

/// The error for a read that the command cannot go on without.
pub fn unreadable(doing: &str, gap: &Gap, server: Option<&str>) -> CommandError {
    let at = server.map(|s| format!(" at {s}")).unwrap_or_default();
    let cause = |e: CommandError| if gap.detail.is_empty() { e } else { e.caused_by(visible(&gap.detail)) };
    match gap.reason {
        GapReason::Forbidden => {
            let e = cause(CommandError::failed(format!("{doing}: forbidden")));
            match &gap.permission {
                Some(p) => {
                    let scope = if p.namespace.is_empty() { "-A".to_string() } else { format!("-n {}", p.namespace) };
                    e.hint(format!("run `kubectl auth can-i {} {} {scope}`", p.verb, p.resource))
                }
                None => e,
            }
        }
        GapReason::Unauthorized => {
            cause(CommandError::failed(format!("{doing}: the server does not accept the credentials{at}")))
                .hint("the token or certificate may have expired; log in again and try `kubectl auth whoami`")
        }
        GapReason::TimedOut => {
            CommandError { kind: ErrorKind::TimedOut, ..cause(CommandError::failed(format!("{doing}: no answer{at}"))) }
                .hint("check the server's address and your network, or raise `--request-timeout`")
        }
        GapReason::NotInstalled => CommandError::failed("CAPTF is not installed in this cluster")
            .caused_by(format!("{doing}: the server does not know the kind"))
            .hint("check the context with `kubectl config current-context`"),
        GapReason::NotInSnapshot => cause(CommandError::failed(format!("{doing}: not in the snapshot")))
            .hint("a dump of that kind and namespace is needed, taken without a selector"),
        GapReason::Malformed | GapReason::Failed => {
            let e = cause(CommandError::failed(format!("{doing}: the read failed{at}")));
            if gap.detail.contains("onnect") || gap.detail.contains("dns") {
                e.hint("check the server's address, your network and the proxy settings (`kubectl cluster-info`)")
            } else {
                e
            }
        }
    }
}

/// A duration in kubectl's form: `0`, `30`, `30s`, `1m30s`, `1h`. Zero means no limit.
pub fn parse_timeout(text: &str) -> Result<Option<Duration>, String> {
    let bad = || format!("`{text}` is not a duration (try `30s` or `1m`)");
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok((seconds > 0).then(|| Duration::from_secs(seconds)));
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
        rest = &rest[digits..];
        let (unit, len) = match rest {
            r if r.starts_with("ms") => (Duration::from_millis(1), 2),
            r if r.starts_with('s') => (Duration::from_secs(1), 1),
            r if r.starts_with('m') => (Duration::from_secs(60), 1),
            r if r.starts_with('h') => (Duration::from_secs(3600), 1),
            _ => return Err(bad()),
        };
        let part = unit.checked_mul(u32::try_from(number).map_err(|_| bad())?).ok_or_else(bad)?;
        total = total.checked_add(part).ok_or_else(bad)?;
        rest = &rest[len..];
    }
    if text.is_empty() { Err(bad()) } else { Ok((!total.is_zero()).then_some(total)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_kubectl_reads_them() {
        for (text, expected) in [
            ("0", Ok(None)),
            ("0s", Ok(None)),
            ("5", Ok(Some(5_000))),
            ("30s", Ok(Some(30_000))),
            ("1m30s", Ok(Some(90_000))),
            ("250ms", Ok(Some(250))),
            ("1h", Ok(Some(3_600_000))),
            ("", Err(())),
            ("soon", Err(())),
            ("-1s", Err(())),
            ("5d", Err(())),
            ("99999999999999999999s", Err(())),
            ("1s5", Err(())),
        ] {
            let got = parse_timeout(text)
                .map(|d| d.map(|d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)))
                .map_err(|_| ());
            assert_eq!(got, expected, "{text}");
        }
    }
}
