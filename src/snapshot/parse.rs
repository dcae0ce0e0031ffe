//! From the bytes of one file to its documents and the places that could not be parsed.
//!
//! JSON goes through serde_json (fast), everything else through serde-saphyr, one document at a time.
//! A fault carries a line and one of a few fixed reasons; the parser's own message, which quotes the
//! source, is dropped here and goes no further.

use std::borrow::Cow;

use serde::de::DeserializeSeed;
use serde_json::Value;
use serde_saphyr::Error as YamlError;

use super::split::{Chunk, yaml_documents};
use super::value::{Allowance, DUPLICATE_KEY, DocumentSeed, JsonDocument};

/// A place that could not be parsed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) reason: &'static str,
    /// The document has `{{`: a template perhaps.
    pub(crate) templated: bool,
}

/// What a file holds.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// The documents, each with the line it starts at.
    pub(crate) documents: Vec<(usize, Value)>,
    pub(crate) faults: Vec<Fault>,
}

/// Parses the bytes of one file: YAML documents, JSON values, or both forms mixed.
pub(crate) fn documents(bytes: &[u8]) -> Parsed {
    let bytes = match decode(bytes) {
        Ok(bytes) => bytes,
        Err(fault) => {
            return Parsed { documents: Vec::new(), faults: vec![fault] };
        }
    };
    let looks_json = bytes.trim_ascii_start().first().is_some_and(|b| matches!(b, b'{' | b'['));
    if !looks_json {
        return yaml(&bytes);
    }
    let json = json(&bytes);
    if json.faults.is_empty() {
        return json;
    }
    // Flow style YAML starts like JSON. It is believed only when it parses without a fault.
    let yaml = yaml(&bytes);
    if yaml.faults.is_empty() { yaml } else { json }
}

/// UTF-8 without its byte order mark; UTF-16 (what a PowerShell redirection writes) is converted.
fn decode(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Fault> {
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => return Ok(Cow::Borrowed(rest)),
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return Ok(Cow::Borrowed(bytes)),
    };
    let units = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units)
        .collect::<Result<String, _>>()
        .map(|text| Cow::Owned(text.into_bytes()))
        .map_err(|_| Fault { line: 1, reason: "it is not text", templated: false })
}

fn json(bytes: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let blank = rest.len() - rest.trim_ascii_start().len();
        line += newlines(&rest[..blank]);
        at += blank;
        let rest = &bytes[at..];
        if rest.is_empty() {
            break;
        }
        let mut stream = serde_json::Deserializer::from_slice(rest).into_iter::<JsonDocument>();
        match stream.next() {
            Some(Ok(JsonDocument(value))) => {
                let used = stream.byte_offset();
                parsed.documents.push((line, value));
                line += newlines(&rest[..used]);
                at += used;
            }
            Some(Err(error)) => {
                let fault_line = line + error.line().saturating_sub(1);
                parsed.faults.push(Fault { line: fault_line, reason: json_reason(&error), templated: false });
                // What follows is used again from the next value that starts in the first column.
                let Some(next) = rest.windows(2).position(|pair| pair == b"\n{") else {
                    break;
                };
                line += newlines(&rest[..=next]);
                at += next + 1;
            }
            None => break,
        }
    }
    if !parsed.faults.is_empty() {
        let templated = has_template(bytes);
        parsed.faults.iter_mut().for_each(|fault| fault.templated = templated);
    }
    parsed
}

fn json_reason(error: &serde_json::Error) -> &'static str {
    use serde_json::error::Category;
    match error.classify() {
        Category::Eof => "the JSON ends in the middle",
        Category::Data => DUPLICATE_KEY,
        Category::Syntax | Category::Io => "it is not valid JSON",
    }
}

fn yaml(bytes: &[u8]) -> Parsed {
    let mut parsed = Parsed::default();
    for chunk in yaml_documents(bytes) {
        match yaml_document(&chunk) {
            Ok(value) => parsed.documents.push((chunk.line, value)),
            Err((line, reason)) => {
                let templated = has_template(chunk.bytes);
                parsed.faults.push(Fault { line, reason, templated });
            }
        }
    }
    parsed
}

/// How many numbers of one document are read as text before it is given up.
const MAX_QUOTED: usize = 100;
const ATTEMPT_BYTES: usize = 64 << 20;

fn yaml_document(chunk: &Chunk<'_>) -> Result<Value, (usize, &'static str)> {
    let text = std::str::from_utf8(chunk.bytes)
        .map_err(|error| (chunk.line + newlines(&chunk.bytes[..error.valid_up_to()]), "it is not UTF-8 text"))?;
    let mut text = Cow::Borrowed(text);
    // Each of them costs another reading of the document.
    let attempts = (ATTEMPT_BYTES / text.len().max(1)).clamp(3, MAX_QUOTED);
    for _ in 0..attempts {
        let error = match yaml_value(&text) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        // kubectl leaves a string like `12e4567` unquoted, because no float is that large.
        let quoted = match error.without_snippet() {
            YamlError::NonFiniteFloat { .. } => quote_scalar(&text, &error),
            _ => None,
        };
        let Some(quoted) = quoted else {
            return Err((chunk.line + line_of(&error) - 1, yaml_reason(&error)));
        };
        text = Cow::Owned(quoted);
    }
    Err((chunk.line, "it has numbers that are too large"))
}

fn yaml_value(text: &str) -> Result<Value, YamlError> {
    // Flow nesting costs the parser more than block nesting; no Kubernetes object comes near either.
    let budget = serde_saphyr::budget! {
        max_events: usize::MAX,
        max_nodes: usize::MAX,
        max_total_scalar_bytes: usize::MAX,
        max_depth: 100,
        flow_nesting_limit: 100,
        max_aliases: 10_000,
        max_anchors: 10_000,
        max_documents: 2,
    };
    let options = serde_saphyr::options! {
        budget: budget,
        emit_comments: false,
        legacy_octal_numbers: true,
        non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::Reject,
        with_snippet: false,
    };
    let allowance = Allowance::for_document(text.len());
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |deserializer| {
        DocumentSeed(&allowance).deserialize(deserializer)
    })
}

/// The line an error is at, counted from 1 within the document.
fn line_of(error: &YamlError) -> usize {
    error.location().and_then(|place| usize::try_from(place.line()).ok()).unwrap_or(1).max(1)
}

/// The document with the scalar the error is at in quotes; none when it is not a plain one.
fn quote_scalar(text: &str, error: &YamlError) -> Option<String> {
    let column = usize::try_from(error.location()?.column()).ok()?.checked_sub(1)?;
    let before: usize = text.split_inclusive('\n').take(line_of(error) - 1).map(str::len).sum();
    let line = text.get(before..)?.split('\n').next()?;
    let start = before + line.char_indices().nth(column)?.0;
    let scalar: &str = text.get(start..)?.split([' ', '\t', '\r', '\n', ',', ']', '}']).next()?;
    let is_plain = !scalar.is_empty() && scalar.chars().all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c));
    is_plain.then(|| format!("{}\"{scalar}\"{}", &text[..start], &text[start + scalar.len()..]))
}

fn yaml_reason(error: &YamlError) -> &'static str {
    match error.without_snippet() {
        YamlError::DuplicateMappingKey { .. } => DUPLICATE_KEY,
        YamlError::Budget { .. } => "it is nested too deeply or has too many aliases",
        YamlError::AliasReplayLimitExceeded { .. }
        | YamlError::AliasExpansionLimitExceeded { .. }
        | YamlError::AliasReplayStackDepthExceeded { .. } => "its aliases expand to too much",
        _ => "it is not valid YAML",
    }
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|b| **b == b'\n').count()
}

fn has_template(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"{{")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::stack::with_room;

    fn shape(text: &[u8]) -> (Vec<usize>, Vec<(usize, &'static str)>) {
        let parsed = documents(text);
        let faults = parsed.faults.iter().map(|f| (f.line, f.reason)).collect();
        (parsed.documents.iter().map(|d| d.0).collect(), faults)
    }

    #[test]
    fn faults_have_lines_and_fixed_reasons() {
        type Row = (&'static str, Vec<usize>, Vec<(usize, &'static str)>);
        let table: Vec<Row> = vec![
            ("a: 1\n---\nb: [\n---\nc: 3\n", vec![1, 4], vec![(4, "it is not valid YAML")]),
            ("a: 1\na: 2\n", vec![], vec![(2, DUPLICATE_KEY)]),
            ("{\"a\":1}\n{\"b\":2}\n", vec![1, 2], vec![]),
            ("{\"a\":1}{\"b\":2}", vec![1, 1], vec![]),
            ("{\"a\":1}\n{\"b\":}\n{\"c\":3}\n", vec![1, 3], vec![(2, "it is not valid JSON")]),
            ("{\"a\":\n1", vec![], vec![(2, "the JSON ends in the middle")]),
            ("{\"a\":1,\n\"a\":1}", vec![], vec![(2, DUPLICATE_KEY)]),
            ("{a: 1}\n", vec![1], vec![]),
            ("\u{feff}a: 1\n", vec![1], vec![]),
        ];
        for (text, docs, faults) in table {
            let got = shape(text.as_bytes());
            assert_eq!(got.0, docs, "{text:?}");
            assert_eq!(got.1.len(), faults.len(), "{text:?} {:?}", got.1);
            for (got, want) in got.1.iter().zip(&faults) {
                assert_eq!(got.1, want.1, "{text:?}");
                assert!(got.0 <= want.0 && got.0 + 1 >= want.0, "{text:?}: line {}", got.0);
            }
        }
    }

    #[test]
    fn scalars_read_as_kubernetes_reads_them() {
        let parsed = documents(b"a: 0644\nb: \"0644\"\nc: 12e45678\nd: yes\ne: 0x1F\nf: 2024-01-01T00:00:00Z\n1: x\n");
        assert_eq!(
            parsed.documents[0].1,
            serde_json::json!({"a": 420, "b": "0644", "c": "12e45678", "d": true, "e": 31,
                "f": "2024-01-01T00:00:00Z", "1": "x"})
        );
    }

    #[test]
    fn utf16_is_read() {
        let mut bytes = vec![0xff, 0xfe];
        bytes.extend("kind: Pod\n".encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(documents(&bytes).documents[0].1, serde_json::json!({"kind": "Pod"}));
    }

    #[test]
    fn hostile_documents_are_faults() {
        let mut bomb = "a: &a [xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx]\n".to_owned();
        for (this, last) in "bcdefghijk".chars().zip("abcdefghij".chars()) {
            bomb += &format!("{this}: &{this} [{}]\n", vec![format!("*{last}"); 9].join(","));
        }
        let wide = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 5000].join(","));
        let deep_flow = "[".repeat(100_000);
        let deep_json = "{\"a\":".repeat(100_000);
        let deep_block: String = (0..2000).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        let dashes = "- ".repeat(50_000);
        for text in [bomb, wide, deep_flow, deep_json, deep_block, dashes] {
            let parsed = with_room(|| documents(text.as_bytes())).unwrap();
            assert!(parsed.documents.is_empty(), "{}", &text[..20]);
            assert!(!parsed.faults.is_empty());
        }
        let huge = documents(format!("{{\"a\": {}}}", "9".repeat(5000)).as_bytes());
        assert!(huge.documents.len() + huge.faults.len() == 1);
        let huge = documents(format!("a: {}\n", "9".repeat(5000)).as_bytes());
        assert!(huge.documents.len() + huge.faults.len() == 1);
    }
}
