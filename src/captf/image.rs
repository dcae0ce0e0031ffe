//! Image references: repository, tag, digest, with registry ports and digests told apart.

/// A reference without its tag: what a digest pins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    pub repository: String,
    /// `sha256:<64 hex>`.
    pub digest: String,
}

impl Pinned {
    /// `repository@digest`.
    pub fn reference(&self) -> String {
        format!("{}@{}", self.repository, self.digest)
    }
}

/// The repository of a reference: without `@digest` and without `:tag`. A colon before the last slash
/// belongs to a registry's port.
pub fn repository(reference: &str) -> &str {
    let name = reference.split_once('@').map_or(reference, |(name, _)| name);
    match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => name,
    }
}

/// Reads a digest out of a bare one or of `repo@digest`.
pub fn digest(text: &str) -> Option<&str> {
    let digest = text.rsplit_once('@').map_or(text, |(_, digest)| digest);
    let (algorithm, hex) = digest.split_once(':')?;
    let length = match algorithm {
        "sha256" => 64,
        "sha512" => 128,
        _ => return None,
    };
    (hex.len() == length && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))).then_some(digest)
}

/// The pinned image of a reference and the digest recorded beside it, or the one that it carries itself.
pub fn pinned(image: &str, recorded: Option<&str>) -> Option<Pinned> {
    let repository = repository(image);
    let well_formed = !repository.is_empty()
        && !repository.starts_with(['-', '/'])
        && repository.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'/' | b':'));
    if !well_formed {
        return None;
    }
    let digest = recorded
        .filter(|d| !d.is_empty())
        .map_or_else(|| image.contains('@').then(|| digest(image)).flatten(), digest)?;
    Some(Pinned { repository: repository.to_string(), digest: digest.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_every_form_are_pinned() {
        let d = format!("sha256:{}", "a1".repeat(32));
        let other = format!("sha256:{}", "b2".repeat(32));
        let longer = format!("sha512:{}", "c3".repeat(64));
        for (image, recorded, expected) in [
            (
                "registry.example.com:5000/team/runner:1.9",
                Some(d.as_str()),
                Some("registry.example.com:5000/team/runner"),
            ),
            ("localhost:5000/x", Some(&d), Some("localhost:5000/x")),
            ("x:1", Some(&d), Some("x")),
            ("team/x", Some(&d), Some("team/x")),
            (&format!("registry.example.com:5000/x:1.9@{other}"), Some(&d), Some("registry.example.com:5000/x")),
            (&format!("localhost:5000/x@{d}"), None, Some("localhost:5000/x")),
            ("x", Some(&format!("mirror.example.com/y@{d}")), Some("x")),
            ("x:1", None, None),
            ("x:1", Some(""), None),
            ("x:1", Some(&d[..70]), None),
            ("x:1", Some(&d.to_uppercase()), None),
            ("x:1", Some("md5:00"), None),
            ("", Some(&d), None),
            ("--help", Some(&d), None),
            ("a b", Some(&d), None),
        ] {
            let got = pinned(image, recorded);
            assert_eq!(got.as_ref().map(|p| p.repository.as_str()), expected, "{image} {recorded:?}");
            assert!(got.is_none_or(|p| p.digest == d), "{image} {recorded:?}");
        }
        assert_eq!(pinned("x", Some(&longer)).map(|p| p.digest), Some(longer));
    }
}
