//! The one hash that CAPTF uses for names: SHA-256 in lower-case hex, cut from the left.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// The first `digits` hex digits of the SHA-256 of `text` (UTF-8 bytes).
pub fn short_hash(text: &[u8], digits: usize) -> String {
    let digest = Sha256::digest(text);
    let mut hex = String::with_capacity(64);
    for byte in digest {
        write!(hex, "{byte:02x}").expect("writing to a String does not fail");
    }
    hex.truncate(digits);
    hex
}
