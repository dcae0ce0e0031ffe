//! Masks what looks like a credential in free text: logs, arguments, annotations.
//!
//! It is a net, not a proof: text that does not look like a credential passes. Digests and the UUIDs of locks are kept, as
//! judgements rest on them.

use std::borrow::Cow;

/// What stands for masked text.
pub const MASKED: &str = "***masked***";

const WORDS: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "access-key",
    "accesskey",
    "private_key",
    "credential",
    "authorization",
];
const PREFIXES: &[&str] = &[
    "AKIA",
    "ASIA",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "dop_v1_",
    "hvs.",
    "sk-",
    "eyJ",
];

/// Whether a name says that its value is a credential.
pub fn names_a_credential(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    WORDS.iter().any(|w| lower.contains(w)) || lower == "key" || lower.ends_with("_key")
}

/// The text with credentials masked, line by line.
pub fn mask(text: &str) -> Cow<'_, str> {
    let mut out = String::with_capacity(text.len());
    let mut in_key = false;
    for line in text.split_inclusive('\n') {
        if line.contains("-----BEGIN ") && line.contains("PRIVATE KEY") {
            in_key = !line.contains("-----END ");
            out.push_str(MASKED);
            out.push_str(if line.ends_with('\n') { "\n" } else { "" });
        } else if in_key {
            in_key = !line.contains("-----END ");
        } else {
            mask_line(line, &mut out);
        }
    }
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

fn is_break(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '"' | '\'' | ',' | ';' | '&' | '(' | ')' | '{' | '}' | '[' | ']' | '<' | '>' | '`' | '|')
}

fn mask_line(line: &str, out: &mut String) {
    // The value that a credential's name announces: `password = x`, `"token": "x"`, `Authorization: Bearer x`.
    let mut announced = false;
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        if is_break(first) {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find(is_break).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        rest = tail;
        if announced && matches!(word, "=" | ":" | ":=" | "=>" | "Bearer" | "Basic" | "bearer" | "basic" | "is") {
            out.push_str(word);
        } else if announced && word.chars().any(char::is_alphanumeric) {
            out.push_str(MASKED);
            announced = false;
        } else {
            announced = mask_word(word, rest, out);
        }
    }
}

/// Writes a word; returns whether the next one is the value of a credential.
fn mask_word(word: &str, rest: &str, out: &mut String) -> bool {
    if let Some(at) = word.find("://")
        && let Some(end) = word[at + 3..].find('@')
    {
        out.push_str(&word[..at + 3]);
        out.push_str(MASKED);
        out.push_str(&word[at + 3 + end..]);
        return false;
    }
    if let Some(at) = word.find(['=', ':'])
        && names_a_credential(&word[..at])
    {
        out.push_str(&word[..=at]);
        let value = &word[at + 1..];
        if value.is_empty() {
            return true;
        }
        out.push_str(MASKED);
        return false;
    }
    let value = word.rsplit(['=', ':']).next().unwrap_or(word);
    if looks_like_a_token(value) && !word.contains("sha256:") {
        out.push_str(&word[..word.len() - value.len()]);
        out.push_str(MASKED);
        return false;
    }
    out.push_str(word);
    // `password = x`, `"password": "x"`: only a sign behind the name announces a value.
    let sign = rest.trim_start_matches(['"', '\'', ' ']).starts_with(['=', ':']);
    names_a_credential(word) && sign
}

fn looks_like_a_token(word: &str) -> bool {
    if PREFIXES.iter().any(|p| word.starts_with(p)) && word.len() >= 16 {
        return true;
    }
    let run = |part: &str| {
        part.len() >= 32 && part.bytes().any(|b| b.is_ascii_digit()) && part.bytes().any(|b| b.is_ascii_alphabetic())
    };
    word.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '_' | '=')))
        .any(|part| run(part) && part.matches('/').count() < 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_masked_and_what_judgements_need_is_kept() {
        for (text, expected) in [
            ("password=hunter2 next", "password=***masked*** next"),
            ("db_password = \"hunter2\"", "db_password = \"***masked***\""),
            ("{\"token\": \"abc\", \"name\": \"x\"}", "{\"token\": \"***masked***\", \"name\": \"x\"}"),
            ("{\"token\":\"abc\",\"name\":\"x\"}", "{\"token\":\"***masked***\",\"name\":\"x\"}"),
            ("Authorization: Bearer abc.def", "Authorization: Bearer ***masked***"),
            ("https://user:pw@host/x", "https://***masked***@host/x"),
            ("key AKIAIOSFODNN7EXAMPLE used", "key ***masked*** used"),
            ("jwt eyJhbGciOiJIUzI1NiJ9.e30.x", "jwt ***masked***"),
            ("v wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY1 v", "v ***masked*** v"),
            ("a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb\n", "a\n***masked***\nb\n"),
        ] {
            assert_eq!(mask(text), expected, "{text}");
        }
        for text in [
            "Lock ID: 00000001-0000-4000-8000-00000000000a",
            "image registry.example.com/team-a/cluster@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "Secret tfstate-default-f66792f9106e7299-c not found",
            "captf-c-prod-apply-a1-5e1f00-x7k2p finished at 2026-01-10T08:00:00.123456789Z",
            "the token was refused",
            "no secret of that name",
        ] {
            assert_eq!(mask(text), text);
        }
    }
}
