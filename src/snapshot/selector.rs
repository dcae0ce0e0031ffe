//! Label and field selectors, as the API server understands them.

use serde_json::Value;

#[derive(Debug, PartialEq, Eq)]
enum Test {
    Is(String),
    IsNot(String),
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Missing,
}

/// A parsed label selector.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<(String, Test)>);

impl LabelSelector {
    /// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k`; an error when it is none of these.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut tests = Vec::new();
        for part in split_outside_parentheses(text) {
            let part = part.trim();
            if part.is_empty() {
                continue;
            }
            let bad = || format!("unable to parse requirement: {part}");
            let (key, test) = if let Some(key) = part.strip_prefix('!') {
                (key.trim(), Test::Missing)
            } else if let Some(head) = part.strip_suffix(')') {
                let (head, values) = head.split_once('(').ok_or_else(bad)?;
                let (key, word) = head.trim_end().rsplit_once(char::is_whitespace).ok_or_else(bad)?;
                let values = values.split(',').map(|value| value.trim().to_owned()).collect();
                match word {
                    "in" => (key.trim(), Test::In(values)),
                    "notin" => (key.trim(), Test::NotIn(values)),
                    _ => return Err(bad()),
                }
            } else {
                equality(part).map_or((part, Test::Exists), |(key, test)| (key, test))
            };
            if key.is_empty() || key.contains(char::is_whitespace) {
                return Err(bad());
            }
            tests.push((key.to_owned(), test));
        }
        Ok(Self(tests))
    }

    /// Whether the labels of an object match.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
        self.0.iter().all(|(key, test)| {
            let value = labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
            match test {
                Test::Is(wanted) => value == Some(wanted),
                Test::IsNot(wanted) => value != Some(wanted),
                Test::In(wanted) => value.is_some_and(|value| wanted.iter().any(|w| w == value)),
                Test::NotIn(wanted) => value.is_none_or(|value| wanted.iter().all(|w| w != value)),
                Test::Exists => value.is_some(),
                Test::Missing => value.is_none(),
            }
        })
    }
}

/// A parsed field selector: paths and values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<(String, Test)>);

impl FieldSelector {
    /// Parses `metadata.name=x,status.phase!=Running`; an error when it is something else.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts
            .map(|part| {
                let (path, test) = equality(part).ok_or_else(|| format!("invalid field selector: {part}"))?;
                Ok((path.to_owned(), test))
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether the fields of an object match; a missing field is an empty one.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(path, test)| {
            let value = field(object, path);
            match test {
                Test::Is(wanted) => value == *wanted,
                Test::IsNot(wanted) => value != *wanted,
                _ => false,
            }
        })
    }
}

fn equality(part: &str) -> Option<(&str, Test)> {
    let (key, rest) = part.split_once('=')?;
    let value = |text: &str| text.trim().to_owned();
    Some(match key.strip_suffix('!') {
        Some(key) => (key.trim(), Test::IsNot(value(rest))),
        None => (key.trim(), Test::Is(value(rest.strip_prefix('=').unwrap_or(rest)))),
    })
}

fn field(object: &Value, path: &str) -> String {
    let walk = |path: &str| path.split('.').try_fold(object, |value, step| value.get(step));
    let other = match path.split_once('.') {
        Some(("involvedObject", rest)) => Some(format!("regarding.{rest}")),
        Some(("regarding", rest)) => Some(format!("involvedObject.{rest}")),
        _ => None,
    };
    match walk(path).or_else(|| walk(&other?)) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(value) => value.to_string(),
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0usize, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels() {
        let object = json!({"metadata": {"labels": {"a": "b", "c/d": "e", "empty": ""}}});
        for (text, want) in [
            ("", true),
            ("a=b", true),
            ("a==b", true),
            ("a = b", true),
            ("a=c", false),
            ("a!=c", true),
            ("a!=b", false),
            ("x!=b", true),
            ("a in (x, b)", true),
            ("a in (x)", false),
            ("a notin (x,y),c/d=e", true),
            ("x notin (x)", true),
            ("a", true),
            ("x", false),
            ("!x", true),
            ("!a", false),
            ("empty=", true),
            ("x=", false),
        ] {
            assert_eq!(LabelSelector::parse(text).unwrap().matches(&object), want, "{text}");
        }
        for text in ["a in x", "a within (b)", "a b", "=b", "(a)"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fields() {
        let object = json!({"metadata": {"name": "n"}, "involvedObject": {"kind": "Pod"}, "status": {"phase": "Running", "n": 3}});
        for (text, want) in [
            ("metadata.name=n", true),
            ("metadata.name!=n", false),
            ("status.phase=Running,involvedObject.kind=Pod", true),
            ("regarding.kind=Pod", true),
            ("status.podIP=", true),
            ("status.podIP!=1.2.3.4", true),
            ("status.n=3", true),
            ("spec.nodeName=x", false),
        ] {
            assert_eq!(FieldSelector::parse(text).unwrap().matches(&object), want, "{text}");
        }
        assert!(FieldSelector::parse("metadata.name").is_err());
    }
}
