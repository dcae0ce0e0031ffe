//! JSON and YAML of the view. JSON escapes every hostile character inside strings, beyond what JSON
//! itself demands, so that it is safe on a terminal and still says exactly what the cluster said.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};

use super::escape::{is_hostile, visible};

/// Pretty JSON with a newline at the end.
pub fn render_json<T: Serialize>(out: &mut dyn Write, value: &T) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut buffer, Ascii(PrettyFormatter::new()));
    value.serialize(&mut serializer).map_err(io::Error::other)?;
    buffer.push(b'\n');
    out.write_all(&buffer)
}

/// YAML. It has no escape that every reader knows, so hostile characters are written out as text.
pub fn render_yaml<T: Serialize>(out: &mut dyn Write, value: &T) -> io::Result<()> {
    let mut value = serde_json::to_value(value).map_err(io::Error::other)?;
    make_visible(&mut value);
    let text = serde_saphyr::to_string(&value).map_err(io::Error::other)?;
    out.write_all(text.as_bytes())?;
    if text.ends_with('\n') { Ok(()) } else { out.write_all(b"\n") }
}

fn make_visible(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => *text = visible(text).into_owned(),
        serde_json::Value::Array(items) => items.iter_mut().for_each(make_visible),
        serde_json::Value::Object(map) => map.values_mut().for_each(make_visible),
        _ => {}
    }
}

/// A pretty formatter that writes hostile characters as `\uXXXX`.
struct Ascii<'a>(PrettyFormatter<'a>);

impl Formatter for Ascii<'_> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut start = 0;
        for (at, c) in fragment.char_indices().filter(|(_, c)| is_hostile(*c)) {
            writer.write_all(&fragment.as_bytes()[start..at])?;
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                write!(writer, "\\u{unit:04x}")?;
            }
            start = at + c.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[start..])
    }
    fn begin_array<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.begin_array(w)
    }
    fn end_array<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_array(w)
    }
    fn begin_array_value<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(w, first)
    }
    fn end_array_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_array_value(w)
    }
    fn begin_object<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.begin_object(w)
    }
    fn end_object<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_object(w)
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(w, first)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.begin_object_value(w)
    }
    fn end_object_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.0.end_object_value(w)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_safe_on_a_terminal_and_loses_nothing() {
        let text = "\u{1b}[2J \u{9b}31m \u{202e} \u{e0041} ünïcödé 🙂 \"\\";
        let mut out = Vec::new();
        render_json(&mut out, &serde_json::json!({ "who": text })).expect("write to memory");
        let json = String::from_utf8(out).expect("UTF-8");
        assert!(!json.chars().any(|c| is_hostile(c) && c != '\n'), "{json}");
        let back: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(back["who"], text);
    }

    #[test]
    fn yaml_shows_hostile_characters_as_text() {
        let mut out = Vec::new();
        render_yaml(&mut out, &serde_json::json!({ "who": "a\u{1b}[2J\u{9b}b" })).expect("write to memory");
        let yaml = String::from_utf8(out).expect("UTF-8");
        assert!(!yaml.chars().any(|c| is_hostile(c) && c != '\n'), "{yaml}");
        assert!(yaml.contains("\\u{1b}[2J\\u{9b}b"), "{yaml}");
    }
}
