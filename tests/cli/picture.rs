//! Pictures of a terminal in `docs/`, made from the real ANSI output of the binary.

use std::fmt::Write as _;

use super::docs::page;
use super::run::run;

/// Width and height of a character, and the margin, in pixels.
const CELL: (f64, f64) = (8.4, 18.0);
const MARGIN: f64 = 14.0;

#[test]
fn pictures_are_the_real_output() {
    for (file, line) in [
        ("lock-list.svg", "lock list --all --from testdata/lock/fleet --color always"),
        ("lock-inspect.svg", "lock inspect terraformmachinepool/workers --from testdata/lock/fleet --color always"),
    ] {
        let output = run(line);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(text.contains('\u{1b}'), "`{line}` has no colour");
        let command = line.replace(" --color always", "");
        page(file, &svg(&format!("\u{1b}[1m$ kubectl captf {command}\u{1b}[0m\n{text}")));
    }
}

/// The style of a piece of text, as an SVG attribute.
#[derive(Clone, Copy, Default, PartialEq)]
struct Style {
    color: Option<&'static str>,
    bold: bool,
    dim: bool,
}

impl Style {
    fn apply(mut self, codes: &str) -> Self {
        let codes: Vec<&str> = codes.split(';').collect();
        if let ["38", "5", number] = codes.as_slice() {
            return Self { color: Some(color(number.parse::<u8>().expect("a colour") % 8)), ..self };
        }
        for code in codes {
            match code {
                "" | "0" => self = Self::default(),
                "1" => self.bold = true,
                "2" => self.dim = true,
                "39" => self.color = None,
                code => match code.strip_prefix('3') {
                    Some(number) => self.color = Some(color(number.parse().expect("a colour"))),
                    None => panic!("no picture for the escape {code}"),
                },
            }
        }
        self
    }
}

fn color(number: u8) -> &'static str {
    ["#6b7280", "#f87171", "#4ade80", "#facc15", "#60a5fa", "#c084fc", "#22d3ee", "#e5e7eb"][usize::from(number)]
}

fn svg(text: &str) -> String {
    let mut style = Style::default();
    let mut body = String::new();
    let (mut rows, mut columns) = (0u16, 0u16);
    for line in text.lines() {
        rows += 1;
        let mut column = 0u16;
        let y = MARGIN + CELL.1 * f64::from(rows);
        for (index, part) in line.split("\u{1b}[").enumerate() {
            let shown = if index == 0 {
                part
            } else {
                let (codes, rest) = part.split_once('m').expect("an escape of colour");
                style = style.apply(codes);
                rest
            };
            if !shown.trim().is_empty() {
                let fill = style.color.map(|c| format!(" fill=\"{c}\"")).unwrap_or_default();
                let bold = if style.bold { " font-weight=\"bold\"" } else { "" };
                let dim = if style.dim { " opacity=\"0.6\"" } else { "" };
                let x = MARGIN + CELL.0 * f64::from(column);
                let escaped = shown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                writeln!(body, "<text x=\"{x:.1}\" y=\"{y:.1}\"{fill}{bold}{dim}>{escaped}</text>").expect("a String");
            }
            column += u16::try_from(shown.chars().count()).expect("a short line");
        }
        columns = columns.max(column);
    }
    let width = MARGIN * 2.0 + CELL.0 * f64::from(columns);
    let height = MARGIN * 2.0 + CELL.1 * f64::from(rows);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#111827\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\" fill=\"#e5e7eb\" xml:space=\"preserve\">\n{body}</g>\n</svg>\n"
    )
}
