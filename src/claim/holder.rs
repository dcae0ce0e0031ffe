//! The holder identity `<user>@<host>/<pid>/<16 hex>`: three parts that a person can check, and a random
//! one that makes a second run of the same person another holder.

use std::fmt;
use std::hash::{BuildHasher, Hasher};

/// A holder identity of our form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderId {
    pub user: String,
    pub host: String,
    pub pid: u32,
    pub nonce: String,
}

impl HolderId {
    /// The identity of this run.
    pub fn of_this_process() -> Self {
        let from_env = |names: &[&str]| names.iter().find_map(|n| std::env::var(n).ok().filter(|v| !v.is_empty()));
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
            .ok()
            .or_else(|| from_env(&["HOSTNAME", "COMPUTERNAME"]))
            .or_else(|| std::process::Command::new("hostname").output().ok().map(|o| lossy(&o.stdout)));
        Self {
            user: word(&from_env(&["USER", "LOGNAME", "USERNAME"]).unwrap_or_default()),
            host: word(&host.unwrap_or_default()),
            pid: std::process::id(),
            nonce: nonce(),
        }
    }

    /// Reads an identity of our form; anything else (another tool's) is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.rsplitn(3, '/');
        let (nonce, pid, who) = (parts.next()?, parts.next()?, parts.next()?);
        let (user, host) = who.rsplit_once('@')?;
        let hex = nonce.len() == 16 && nonce.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let named = !user.is_empty() && !host.is_empty();
        (hex && named).then_some(())?;
        Some(Self { user: user.into(), host: host.into(), pid: pid.parse().ok()?, nonce: nonce.into() })
    }
}

impl fmt::Display for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}/{}/{}", self.user, self.host, self.pid, self.nonce)
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A name without anything that could be mistaken for a separator or be hard to type.
fn word(text: &str) -> String {
    let kept: String =
        text.trim().chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')).take(64).collect();
    if kept.is_empty() { "unknown".to_string() } else { kept }
}

/// 64 bits that no other run has: the standard library keys its hashers from the system's random source.
fn nonce() -> String {
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_as_it_is_written() {
        let id = HolderId::of_this_process();
        assert_eq!(HolderId::parse(&id.to_string()), Some(id.clone()));
        assert_ne!(HolderId::of_this_process().nonce, id.nonce, "a second run is another holder");
        assert_eq!(id.pid, std::process::id());
    }

    #[test]
    fn other_forms_are_not_ours() {
        for text in [
            "",
            "bob",
            "bob@host",
            "bob@host/12",
            "bob@host/x/0123456789abcdef",
            "bob@host/12/0123",
            "@host/12/0123456789abcdef",
            "bob@/12/0123456789abcdef",
            "bob@host/12/0123456789ABCDEF",
        ] {
            assert_eq!(HolderId::parse(text), None, "{text}");
        }
        let dcctl = HolderId::parse("ops@bastion-1/4711/00112233445566ff").expect("the same form in dcctl");
        assert_eq!((dcctl.user.as_str(), dcctl.host.as_str(), dcctl.pid), ("ops", "bastion-1", 4711));
    }

    #[test]
    fn names_lose_what_could_steer_or_confuse() {
        for (text, expected) in [("a b/c@d\u{1b}[2J\n", "abcd2J"), ("", "unknown"), ("web-1.example", "web-1.example")]
        {
            assert_eq!(word(text), expected);
        }
    }
}
