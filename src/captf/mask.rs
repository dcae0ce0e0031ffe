//! Masks what looks like a credential in free text: assignments, known token shapes, key blocks.
//!
//! It errs towards masking. Text that is shown passes through here before it becomes a fact.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// What stands in place of a value.
pub const MASK: &str = "****";

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is fixed and its test compiles it")
}

/// `password = "x"`, `"api_key": "x"`, `TF_VAR_token=x`, `--client-secret x`. A colon needs a value that is quoted
/// or no plain word, so that prose such as `token: unauthorized` stays readable.
static ASSIGNMENT: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r#"(?i)(?P<name>[a-z0-9_.\-]*(?:passw(?:or)?d|passphrase|pwd|secret|token|credentials?|authorization|"#,
        r#"(?:api|access|private|account|auth|signing|encryption|ssh|client|shared|master|storage)[_\-.]?key(?:[_\-.]?id)?|[_\-.]key|\bkey|\bauth)"#,
        r#"(?:[_\-.]?(?:value|data|string|hash|id|b64|base64|file))?\\?["']?)(?P<sep>\s*(?:=>|:=|=)\s*|\s*:\s*|(?:\s+is\s+))"#,
        r#"(?P<value>\\"[^"]*(?:"|$)|"(?:[^"\\]|\\.)*(?:"|$)|'[^']*(?:'|$)|(?:(?:Bearer|Basic)\s+)?[^\s,;)\]}]+)"#,
    ))
});

/// A flag with its value as the next word.
static FLAG: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?i)(?P<name>--?[a-z0-9\-]*(?:password|secret|token|api-?key|access-?key))\s+(?P<value>[^\s\-][^\s]*)")
});

/// Shapes that are credentials wherever they stand.
static SHAPES: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}|",
        r"\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_[A-Za-z0-9_]{16,}|\bglpat-[A-Za-z0-9_\-]{16,}|",
        r"\bxox[abeoprs]-[A-Za-z0-9\-]{8,}|\beyJ[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*){0,2}|",
        r"\bhv[sbr]\.[A-Za-z0-9_\-]{16,}|\bs\.[A-Za-z0-9]{24,}|\bAIza[A-Za-z0-9_\-]{30,}|\bya29\.[A-Za-z0-9_\-]+|",
        r"\bsk-[A-Za-z0-9_\-]{16,}|\bnpm_[A-Za-z0-9]{20,}|\bdop_v1_[a-f0-9]{20,}|\b[A-Za-z0-9]{10,}\.atlasv1\.[A-Za-z0-9]+|",
        r"\bSG\.[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]+|\$argon2[^\s]+|\$2[aby]\$[^\s]+",
    ))
});

/// `Bearer x`, `Basic x`.
static SCHEME: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?i)\b(?P<scheme>bearer|basic)\s+(?P<value>[A-Za-z0-9._~+/=\-]{8,})"));
/// `https://user:password@host`, and signed query parameters.
static IN_URL: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?P<head>[a-z][a-z0-9+.\-]*://)(?P<user>[^\s/@:]*):[^\s/@]+@"));
static SIGNED: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)(?P<name>[?&](?:sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature|access_token|code)=)[^\s&]+",
    )
});
static KEY_BLOCK_START: LazyLock<Regex> =
    LazyLock::new(|| regex(r"-----BEGIN [A-Z0-9 ]*(?:PRIVATE KEY|CERTIFICATE)[A-Z ]*-----"));

/// Masks one text. Key blocks that span lines are masked as a whole, an unfinished one to the end.
pub fn mask(text: &str) -> String {
    let text = mask_key_blocks(text);
    let text = IN_URL.replace_all(&text, format!("${{head}}${{user}}:{MASK}@"));
    let text = SIGNED.replace_all(&text, format!("${{name}}{MASK}"));
    let text = ASSIGNMENT.replace_all(&text, |c: &Captures<'_>| masked_assignment(c));
    let text = FLAG.replace_all(&text, format!("${{name}} {MASK}"));
    let text = SCHEME.replace_all(&text, |c: &Captures<'_>| {
        if is_plain_word(&c["value"]) { c[0].to_string() } else { format!("{} {MASK}", &c["scheme"]) }
    });
    SHAPES.replace_all(&text, MASK).into_owned()
}

fn masked_assignment(c: &Captures<'_>) -> String {
    let (name, sep, value) = (&c["name"], &c["sep"], &c["value"]);
    let quoted = value.starts_with(['"', '\'', '\\']);
    let prose = !sep.contains('=') && !quoted && is_plain_word(value);
    let empty = value.trim_matches(['"', '\'', '\\']).is_empty();
    // Terraform's own marks, which say that there is a value and not which.
    let marked = value.starts_with("(sensitive") || value.starts_with("(known") || value.starts_with("<sensitive");
    if prose || empty || marked { c[0].to_string() } else { format!("{name}{sep}{MASK}") }
}

/// Letters only, maybe with a full stop: prose, not a credential.
fn is_plain_word(value: &str) -> bool {
    let word = value.trim_end_matches(['.', ':', '!', '?']);
    word.len() < 16 && word.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-' || b == b'\'')
}

fn mask_key_blocks(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = KEY_BLOCK_START.find(rest) {
        out.push_str(&rest[..start.start()]);
        out.push_str(MASK);
        let after = &rest[start.end()..];
        rest = match after
            .find("-----END ")
            .and_then(|end| after[end + 9..].find("-----").map(|close| end + 9 + close + 5))
        {
            Some(end) => &after[end..],
            None => "",
        };
    }
    out.push_str(rest);
    out
}

/// Values that must not be shown, known exactly. It prints nothing of them, also not for debugging.
#[derive(Clone, Default)]
pub struct Redactor(Vec<String>);

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} values)", self.0.len())
    }
}

impl Redactor {
    /// Shorter values would blank out ordinary words.
    const SHORTEST: usize = 6;

    /// Adds a value, whole and by line, for a value of several lines is logged line by line.
    pub fn add(&mut self, value: &str) {
        for part in std::iter::once(value.trim()).chain(value.lines().map(str::trim)) {
            if part.len() >= Self::SHORTEST && !self.0.iter().any(|known| known == part) {
                self.0.push(part.to_string());
            }
        }
        self.0.sort_by_key(|v| std::cmp::Reverse(v.len()));
    }

    /// The text without the known values and without anything that looks like a credential.
    pub fn mask(&self, text: &str) -> String {
        let mut text = text.to_string();
        for value in &self.0 {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), MASK);
            }
        }
        for value in self.0.iter().filter(|v| v.contains(' ')) {
            text = text.split('\n').map(|line| without_wrapped(line, value)).collect::<Vec<_>>().join("\n");
        }
        mask(&text)
    }

    /// How many values are known.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The line without the part of a value that the runtime broke at a space: its start at the end of the line, its
/// end at the start of the next, or the whole line in the middle. Box characters before the text stay.
fn without_wrapped(line: &str, value: &str) -> String {
    let at = line.find(|c: char| !c.is_whitespace() && c != '│').unwrap_or(line.len());
    let (lead, content) = line.split_at(at);
    let content = content.trim_end();
    if content.len() < Redactor::SHORTEST {
        return line.to_string();
    }
    let breaks = || value.match_indices(' ').map(|(i, _)| i);
    let whole = value.find(content).is_some_and(|from| {
        let to = from + content.len();
        (from == 0 || value[..from].ends_with(' ')) && (to == value.len() || value[to..].starts_with(' '))
    });
    if whole {
        return format!("{lead}{MASK}");
    }
    let long = |part: &str| part.len() >= Redactor::SHORTEST;
    if let Some(head) = breaks().map(|i| &value[..i]).rfind(|head| long(head) && content.ends_with(head)) {
        return format!("{lead}{}{MASK}", &content[..content.len() - head.len()]);
    }
    match breaks().map(|i| &value[i + 1..]).find(|tail| long(tail) && content.starts_with(tail)) {
        Some(tail) => format!("{lead}{MASK}{}", &content[tail.len()..]),
        None => line.to_string(),
    }
}

/// Masks a log line by line, remembering a key block that is open.
#[derive(Debug, Default)]
pub struct LineMasker {
    redactor: Redactor,
    in_block: bool,
}

impl LineMasker {
    pub fn new(redactor: Redactor) -> Self {
        Self { redactor, in_block: false }
    }

    /// The line as it may be shown.
    pub fn mask(&mut self, line: &str) -> String {
        if self.in_block {
            let Some((_, after)) = line.split_once("-----END ").and_then(|(_, rest)| rest.split_once("-----")) else {
                return MASK.to_string();
            };
            self.in_block = false;
            return format!("{MASK}{}", self.redactor.mask(after));
        }
        let last_start = KEY_BLOCK_START.find_iter(line).last();
        self.in_block = last_start.is_some_and(|start| !line[start.end()..].contains("-----END "));
        self.redactor.mask(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_masked_and_ordinary_text_is_not() {
        for (text, shown) in [
            ("password = \"hunter2\"", "password = ****"),
            ("db_password=hunter2 host=x", "db_password=**** host=x"),
            ("\"api_key\": \"abc def\", \"n\": 1", "\"api_key\": ****, \"n\": 1"),
            ("TF_VAR_hcloud_token=abc123", "TF_VAR_hcloud_token=****"),
            ("secret_key => 'x y'", "secret_key => ****"),
            ("{\\\"token\\\":\\\"abc\\\"}", "{\\\"token\\\":****}"),
            ("token: aB3dE5gH", "token: ****"),
            ("Authorization: Bearer abc.def-123", "Authorization: ****"),
            ("curl -H Bearer abcdef012345", "curl -H Bearer ****"),
            ("login --token abc123 now", "login --token **** now"),
            ("https://bob:pw@example.com/x", "https://bob:****@example.com/x"),
            ("GET /b?X-Amz-Signature=0af1&y=2", "GET /b?X-Amz-Signature=****&y=2"),
            ("id AKIAIOSFODNN7EXAMPLE used", "id **** used"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.sig-x", "****"),
            ("ghp_0123456789abcdefghij", "****"),
            ("a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb", "a\n****\nb"),
            ("x -----BEGIN PRIVATE KEY-----\nMIIE", "x ****"),
            // Near misses.
            ("secret \"captf-inputs-c-a\" not found", "secret \"captf-inputs-c-a\" not found"),
            ("couldn't find key token in Secret team-a/creds", "couldn't find key token in Secret team-a/creds"),
            ("token: unauthorized", "token: unauthorized"),
            ("password = (sensitive value)", "password = (sensitive value)"),
            ("monkey = banana", "monkey = banana"),
            ("Error: creating EC2 Instance: quota", "Error: creating EC2 Instance: quota"),
            ("secrets is forbidden: User \"x\"", "secrets is forbidden: User \"x\""),
            ("basic authentication failed", "basic authentication failed"),
            ("aws_key_pair.main: Creating...", "aws_key_pair.main: Creating..."),
        ] {
            assert_eq!(mask(text), shown, "{text}");
        }
    }

    #[test]
    fn a_key_block_is_masked_line_by_line_too() {
        let mut masker = LineMasker::default();
        let lines = ["a", "k: -----BEGIN PRIVATE KEY-----", "MIIEcanary", "-----END PRIVATE KEY----- b", "c"];
        let shown: Vec<String> = lines.iter().map(|l| masker.mask(l)).collect();
        assert_eq!(shown, ["a", "k: ****", "****", "**** b", "c"]);
    }

    #[test]
    fn known_values_go_first_and_are_not_printed() {
        let mut redactor = Redactor::default();
        redactor.add("canary-value\nsecond-line");
        redactor.add("short");
        assert_eq!(redactor.mask("x canary-value y second-line short"), "x **** y **** short");
        assert!(!format!("{redactor:?}").contains("canary"));
    }

    #[test]
    fn a_known_value_that_was_wrapped_is_masked_in_its_parts() {
        let mut redactor = Redactor::default();
        redactor.add("correct horse battery staple");
        for (text, shown) in [
            ("it was correct horse battery staple.", "it was ****."),
            ("│ it was correct horse\n│ battery staple made", "│ it was ****\n│ **** made"),
            ("it was correct\nhorse battery\nstaple made", "it was ****\n****\n**** made"),
            // Near misses: ordinary words that stand elsewhere in the line.
            ("a staple of it, correct or not", "a staple of it, correct or not"),
            ("the horse battery ran", "the horse battery ran"),
        ] {
            assert_eq!(redactor.mask(text), shown, "{text}");
        }
    }
}
