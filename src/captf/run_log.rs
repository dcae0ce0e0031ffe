//! What the end of a runner's log shows: the runtime's own error blocks, and what it was doing last.
//!
//! Terraform and OpenTofu write diagnostics in three shapes: with a rule of box characters at the left
//! (colour on), plain from `Error:` on (colour off), and as JSON lines (`-json`). All three are read.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::mask::Redactor;
use crate::facts::run::{LogFacts, Refusal};

/// Lines of one block and blocks of one log that are kept: enough to act on.
const LINES_OF_BLOCK: usize = 12;
const BLOCKS: usize = 5;
const LAST_LINES: usize = 5;
/// Characters of one line that are kept.
const LINE: usize = 300;

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is fixed and its test compiles it")
}

static ANSI: LazyLock<Regex> = LazyLock::new(|| regex(r"\x1b\[[0-9;]*m"));
static STILL: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^(?P<address>\S.*): Still (?:creating|destroying|modifying|reading|opening)\.\.\. \[(?:id=[^,\]]*, )?(?P<elapsed>[0-9hms]+) elapsed\]",
    )
});
static FORBIDDEN: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?P<resource>leases|secrets)(?:\.coordination\.k8s\.io)? (?:"[^"]*" )?is forbidden: User "[^"]*" cannot [a-z]+ resource(?:.* in the namespace "(?P<ns>[^"]*)")?"#,
    )
});

/// The text without the runtime's colours, which may stand in the middle of a word.
pub fn without_colours(text: &str) -> std::borrow::Cow<'_, str> {
    ANSI.replace_all(text, "")
}

/// Reads the end of a log. `cut` says that its first line may be the rest of one.
pub fn read_log(text: &str, cut: bool, redactor: &Redactor) -> LogFacts {
    let clean = without_colours(text);
    let lines: Vec<&str> = clean.lines().skip(usize::from(cut)).map(str::trim_end).collect();
    let errors = blocks(&lines);
    let shown = |line: &str| redactor.mask(&clipped(line));
    let last: Vec<&str> = lines.iter().rev().filter(|l| !l.trim().is_empty()).take(LAST_LINES).copied().collect();
    let message = |line: &str| json_message(line).unwrap_or_else(|| line.to_string());
    let newest = last.first().map(|l| message(l)).unwrap_or_default();
    let all = lines.join("\n");
    LogFacts {
        waits_for_lock: newest.contains("Acquiring state lock"),
        lock_error: names_state_lock(&all) || errors.iter().any(|block| names_state_lock(&block.join(" "))),
        still: last.iter().find_map(|l| still(&message(l))),
        killed: lines.iter().rev().find(|l| is_killed(l)).map(|l| shown(l)),
        forbidden: lines.iter().rev().find_map(|l| forbidden(l)),
        errors: errors
            .iter()
            .rev()
            .take(BLOCKS)
            .rev()
            .map(|block| redactor.mask(&block.iter().map(|l| clipped(l)).collect::<Vec<_>>().join("\n")))
            .collect(),
        last_lines: last.into_iter().rev().map(shown).collect(),
    }
}

/// Whether an error is about the state lock: of a step that takes it, or of `init`, which takes it to write an
/// empty state where there is none.
pub fn names_state_lock(text: &str) -> bool {
    const SIGNS: [&str; 2] = ["Error acquiring the state lock", "the state is already locked by another"];
    SIGNS.iter().any(|sign| text.contains(sign))
}

/// `"@message"` of a JSON line of the runtime.
fn json_message(line: &str) -> Option<String> {
    let value: Value = serde_json::from_str(line.trim().strip_prefix('{').map(|_| line.trim())?).ok()?;
    value.get("@message").and_then(Value::as_str).map(str::to_string)
}

fn still(line: &str) -> Option<(String, i64)> {
    let found = STILL.captures(line.trim())?;
    Some((found["address"].to_string(), seconds(&found["elapsed"])?))
}

/// `10s`, `2m30s`, `01m20s`, `1h0m0s`.
fn seconds(text: &str) -> Option<i64> {
    let (mut total, mut digits) = (0, String::new());
    for c in text.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let unit = match c {
            'h' => 3600,
            'm' => 60,
            _ => 1,
        };
        total += digits.parse::<i64>().ok()?.checked_mul(unit)?;
        digits.clear();
    }
    Some(total)
}

fn is_killed(line: &str) -> bool {
    const SIGNS: [&str; 5] = [
        "signal: killed",
        "Plugin did not respond",
        "plugin exited",
        "error reading from server: EOF",
        "fatal error: runtime: out of memory",
    ];
    SIGNS.iter().any(|s| line.contains(s))
}

fn forbidden(line: &str) -> Option<Refusal> {
    let found = FORBIDDEN.captures(line)?;
    let whole = found.get(0).map(|m| m.as_str()).unwrap_or_default();
    Some(Refusal {
        resource: found["resource"].to_string(),
        namespace: found.name("ns").map(|n| n.as_str().to_string()),
        line: clipped(whole),
    })
}

/// The error blocks, oldest first, without the box characters.
fn blocks(lines: &[&str]) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let document = if line == "{" { validate_document(&lines[at..]) } else { None };
        if let Some((blocks, read)) = document {
            found.extend(blocks);
            at += read;
        } else if let Some(block) = json_block(line) {
            found.push(block);
            at += 1;
        } else if is_box_start(line) {
            let body: Vec<&str> = lines[at + 1..].iter().take_while(|l| is_box_line(l)).copied().collect();
            at += 1 + body.len();
            let block: Vec<String> = body.iter().map(|l| unboxed(l)).collect();
            if block.first().is_some_and(|l| l.starts_with("Error: ")) {
                found.push(trimmed(block));
            }
        } else if line.starts_with("Error: ") {
            let rest = lines[at + 1..].iter().take_while(|l| !ends_plain_block(l));
            let block: Vec<String> = std::iter::once(&line).chain(rest).map(|l| l.to_string()).collect();
            at += block.len();
            found.push(trimmed(block));
        } else {
            at += 1;
        }
    }
    found
}

fn is_box_start(line: &str) -> bool {
    line.trim_start().starts_with('╷')
}

fn is_box_line(line: &str) -> bool {
    line.trim_start().starts_with('│')
}

fn unboxed(line: &str) -> String {
    let line = line.trim_start().trim_start_matches('│');
    line.strip_prefix(' ').unwrap_or(line).to_string()
}

/// What cannot belong to a plain block any more: the next diagnostic, progress, the runner's own lines.
fn ends_plain_block(line: &str) -> bool {
    const STARTS: [&str; 7] = [
        "Error: ",
        "Warning: ",
        "╷",
        "{\"@level\"",
        "Releasing state lock",
        "Acquiring state lock",
        "Terraform has been",
    ];
    STARTS.iter().any(|s| line.starts_with(s)) || line.contains(": Still ") || line.starts_with("time=")
}

/// Without empty lines at the ends and in rows, and not longer than what is shown.
fn trimmed(block: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = block.into_iter().filter(|l| !l.trim().is_empty()).collect();
    if out.len() > LINES_OF_BLOCK {
        out.truncate(LINES_OF_BLOCK - 1);
        out.push("[...]".to_string());
    }
    out
}

/// The document that `validate -json` prints over many lines: its error blocks, and how many lines it has.
fn validate_document(lines: &[&str]) -> Option<(Vec<Vec<String>>, usize)> {
    let end = lines.iter().position(|l| *l == "}")?;
    let value: Value = serde_json::from_str(&lines[..=end].join("\n")).ok()?;
    let diagnostics = value.get("diagnostics")?.as_array()?;
    Some((diagnostics.iter().filter_map(diagnostic_block).collect(), end + 1))
}

fn json_block(line: &str) -> Option<Vec<String>> {
    if !line.trim_start().starts_with('{') {
        return None;
    }
    let value: Value = serde_json::from_str(line.trim()).ok()?;
    diagnostic_block(value.get("diagnostic")?)
}

fn diagnostic_block(diagnostic: &Value) -> Option<Vec<String>> {
    if diagnostic.get("severity").and_then(Value::as_str) != Some("error") {
        return None;
    }
    let text = |key: &str| diagnostic.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut block = vec![format!("Error: {}", text("summary"))];
    let place = diagnostic.get("range").and_then(|r| {
        let line = r.get("start")?.get("line")?.as_i64()?;
        Some(format!("on {} line {line}", r.get("filename")?.as_str()?))
    });
    let address = Some(text("address")).filter(|a| !a.is_empty()).map(|a| format!("with {a}"));
    block.extend(address.into_iter().chain(place));
    block.extend(text("detail").lines().map(str::to_string));
    Some(trimmed(block))
}

fn clipped(line: &str) -> String {
    if line.chars().count() <= LINE {
        return line.to_string();
    }
    line.chars().take(LINE).chain("[...]".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> LogFacts {
        read_log(text, false, &Redactor::default())
    }

    #[test]
    fn error_blocks_are_cut_out_of_all_three_shapes() {
        let boxed = "init done\n\u{1b}[31m╷\u{1b}[0m\n│ \u{1b}[31mError: \u{1b}[0mNo quota\n│ \n│   with a.b,\n│   on main.tf line 3, in resource \"a\" \"b\":\n│    3: resource \"a\" \"b\" {\n│ \n│ password = \"canary\"\n╵\nafter\n";
        let plain = "x\n\nError: No quota\n\n  with a.b,\n  on main.tf line 3, in resource \"a\" \"b\":\n   3: resource \"a\" \"b\" {\n\npassword = \"canary\"\n";
        let json = "{\"@level\":\"error\",\"@message\":\"Error: No quota\",\"type\":\"diagnostic\",\"diagnostic\":{\"severity\":\"error\",\"summary\":\"No quota\",\"detail\":\"password = \\\"canary\\\"\",\"address\":\"a.b\",\"range\":{\"filename\":\"main.tf\",\"start\":{\"line\":3}}}}\n";
        for (shape, log) in [("boxed", boxed), ("plain", plain), ("json", json)] {
            let facts = read(log);
            assert_eq!(facts.errors.len(), 1, "{shape}: {facts:?}");
            let block = &facts.errors[0];
            assert!(block.starts_with("Error: No quota\n"), "{shape}: {block}");
            assert!(block.contains("with a.b") && block.contains("main.tf line 3"), "{shape}: {block}");
            assert!(
                block.contains("password = ****") && !block.contains("canary") && !block.contains("after"),
                "{shape}: {block}"
            );
        }
        let warning = "╷\n│ Warning: old\n╵\n{\"type\":\"diagnostic\",\"diagnostic\":{\"severity\":\"warning\",\"summary\":\"w\"}}\n";
        assert!(read(warning).errors.is_empty());
    }

    #[test]
    fn what_the_runtime_did_last_is_told_apart() {
        let lock = read("Initializing\nAcquiring state lock. This may take a few moments...\n");
        assert!(lock.waits_for_lock);
        assert!(
            !read("Acquiring state lock. This may take a few moments...\na.b: Refreshing state...\n").waits_for_lock
        );
        assert!(read("│ Error: Error acquiring the state lock\n").lock_error);
        assert!(
            read("Error: Error loading state: the state is already locked by another terraform client\n").lock_error
        );
        assert!(
            read("╷\n│ Error: Error loading state\n│ \n│ the state is already\n│ locked by another tofu client\n╵\n")
                .lock_error
        );
        assert!(!read("Error: Error loading state: gzip: invalid header\n").lock_error);
        assert_eq!(read("a.b: Still creating... [52m10s elapsed]\n").still, Some(("a.b".to_string(), 3130)));
        assert_eq!(read("a.b: Still destroying... [id=i-1, 01m20s elapsed]\n").still, Some(("a.b".to_string(), 80)));
        assert_eq!(read("a.b: Creation complete after 3s\n").still, None);
        assert!(read("Error: signal: killed\n").killed.is_some());
        assert!(read("Error: the call failed\n").killed.is_none());
        let refused = read(
            "Error: leases.coordination.k8s.io \"lock\" is forbidden: User \"system:serviceaccount:team-a:captf-runner\" cannot create resource \"leases\" in API group \"coordination.k8s.io\" in the namespace \"default\"\n",
        );
        let refused = refused.forbidden.expect("a refusal");
        assert_eq!((refused.resource.as_str(), refused.namespace.as_deref()), ("leases", Some("default")));
        assert!(read("configmaps \"x\" is forbidden: User \"y\" cannot get resource\n").forbidden.is_none());
    }
}
