//! The documents of a YAML stream, cut by lines before any of them is parsed.
//!
//! A parser gives up at the first broken document; cutting first keeps the others. Only a line that
//! starts with `---` or `...` in its first column cuts: indented ones belong to a block scalar.

/// One document of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chunk<'a> {
    /// The line of the stream its first line is, counted from 1.
    pub(crate) line: usize,
    /// Its text, with its `---` line if it has one.
    pub(crate) bytes: &'a [u8],
}

/// The documents of `stream` that have content, in order.
pub(crate) fn yaml_documents(stream: &[u8]) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let (mut start, mut start_line, mut at) = (0, 1, 0);
    let mut push = |start: usize, end: usize, line: usize| {
        let bytes = &stream[start..end];
        if has_content(bytes) {
            chunks.push(Chunk { line, bytes });
        }
    };
    for (number, line) in stream.split_inclusive(|b| *b == b'\n').enumerate() {
        let end = at + line.len();
        if is_marker(line, b"---") {
            push(start, at, start_line);
            (start, start_line) = (at, number + 1);
        } else if is_marker(line, b"...") {
            push(start, at, start_line);
            (start, start_line) = (end, number + 2);
        }
        at = end;
    }
    push(start, stream.len(), start_line);
    chunks
}

fn is_marker(line: &[u8], marker: &[u8]) -> bool {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    line.strip_prefix(marker).is_some_and(|rest| rest.first().is_none_or(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')))
}

/// Whether there is more than blank lines, comments, directives and a bare `---`.
fn has_content(chunk: &[u8]) -> bool {
    chunk.split(|b| *b == b'\n').any(|line| {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let line = if is_marker(line, b"---") { &line[3..] } else { line };
        let text = line.trim_ascii();
        !(text.is_empty() || text.starts_with(b"#") || line.starts_with(b"%"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_markers_in_the_first_column_cut() {
        let table: &[(&str, &[(usize, &str)])] = &[
            ("", &[]),
            ("\n# only a comment\n", &[]),
            ("a: 1\n", &[(1, "a: 1\n")]),
            ("a: 1\n---\nb: 2\n", &[(1, "a: 1\n"), (2, "---\nb: 2\n")]),
            ("---\na: 1\n---\n---\n", &[(1, "---\na: 1\n")]),
            ("a: |\n  x\n  ---\n  y\n", &[(1, "a: |\n  x\n  ---\n  y\n")]),
            ("a: 1\n----\n", &[(1, "a: 1\n----\n")]),
            ("a: 1\n---b\n", &[(1, "a: 1\n---b\n")]),
            ("a: 1\r\n---\r\nb: 2", &[(1, "a: 1\r\n"), (2, "---\r\nb: 2")]),
            ("a: 1\n--- # next\nb: 2\n", &[(1, "a: 1\n"), (2, "--- # next\nb: 2\n")]),
            ("a: 1\n--- {b: 2}\n", &[(1, "a: 1\n"), (2, "--- {b: 2}\n")]),
            ("%YAML 1.1\n---\na: 1\n", &[(2, "---\na: 1\n")]),
            ("a: 1\n...\n%YAML 1.2\n---\nb: 2\n", &[(1, "a: 1\n"), (4, "---\nb: 2\n")]),
            ("a: 1\n...\nb: 2\n", &[(1, "a: 1\n"), (3, "b: 2\n")]),
            ("\u{feff}---\na: 1\n", &[(1, "\u{feff}---\na: 1\n")]),
        ];
        for (text, want) in table {
            let got: Vec<_> = yaml_documents(text.as_bytes())
                .into_iter()
                .map(|c| (c.line, String::from_utf8(c.bytes.to_vec()).unwrap()))
                .collect();
            let want: Vec<_> = want.iter().map(|(l, t)| (*l, (*t).to_owned())).collect();
            assert_eq!(got, want, "{text:?}");
        }
    }
}
