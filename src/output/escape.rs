//! Text from a cluster is hostile: whatever could steer a terminal or hide text is made visible.

use std::borrow::Cow;

/// Whether a character must not reach a terminal as it is: control characters of C0 and C1, bidi
/// controls, invisible and line-breaking format characters, tags, private use.
pub fn is_hostile(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}')
}

/// The text with every hostile character written out: `\n`, `\r`, `\t` or `\u{1b}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hostile) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_hostile(c) => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_passes() {
        for (text, shown) in [
            ("plain text, ünïcödé 漢字 🙂", "plain text, ünïcödé 漢字 🙂"),
            ("\u{1b}[2J\u{1b}[1;1H", "\\u{1b}[2J\\u{1b}[1;1H"),
            ("a\rb\nc\td", "a\\rb\\nc\\td"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("\u{1b}]52;c;aGk=\u{7}", "\\u{1b}]52;c;aGk=\\u{7}"),
            ("abc\u{202e}cba", "abc\\u{202e}cba"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("a\u{2028}b\u{85}c", "a\\u{2028}b\\u{85}c"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn every_control_character_is_hostile() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32).filter(|c| c.is_control()) {
            assert!(is_hostile(c), "{:x}", u32::from(c));
        }
    }
}
