//! The words: embeds `runbooks/*.md`, finds a section by its code and fills its placeholders.
//!
//! A section is a `##` heading that is the code, one paragraph that is the summary, free text about
//! the cause, then `### Next` with a numbered list and `### Confirm`. A step is text, then its command in a
//! code span at the end; `[changes]` in front marks one that changes something, `[clears]` one that clears a
//! lock. A step whose placeholder has no value is left out.

use super::code::Code;
use super::finding::Values;

/// A runbook file.
#[derive(Debug, Clone, Copy)]
pub struct Runbook {
    pub name: &'static str,
    pub text: &'static str,
}

/// Every embedded runbook.
pub const RUNBOOKS: &[Runbook] = &[
    Runbook { name: "stale-lock", text: include_str!("../../runbooks/stale-lock.md") },
    Runbook { name: "state-restore", text: include_str!("../../runbooks/state-restore.md") },
    Runbook { name: "state-unreadable", text: include_str!("../../runbooks/state-unreadable.md") },
    Runbook { name: "job-failures", text: include_str!("../../runbooks/job-failures.md") },
    Runbook { name: "slow-jobs", text: include_str!("../../runbooks/slow-jobs.md") },
    Runbook { name: "operator-claim", text: include_str!("../../runbooks/operator-claim.md") },
    Runbook { name: "force-unlock", text: include_str!("../../runbooks/force-unlock.md") },
];

/// Every placeholder that a section may use, and what it stands for.
pub const PLACEHOLDERS: &[(&str, &str)] = &[
    ("kubectl", "`kubectl` with the connection flags of this call"),
    ("captf", "`kubectl captf` with the connection flags of this call"),
    ("namespace", "namespace of the object"),
    ("name", "name of the object"),
    ("kind", "kind of the object, as in `kind:`"),
    ("owner_label", "the object's name as a label value, hashed when it is long"),
    ("object", "`terraformcluster/prod`, as kubectl takes it"),
    ("lease", "name of the state lock Lease"),
    ("lock_id", "`spec.holderIdentity`, the ID of the lock that counts"),
    ("who", "who the lock-info names"),
    ("host", "host part of who the lock-info names"),
    ("host_pod", "pod that has the host's name"),
    ("host_node", "node that has the host's name"),
    ("pod", "pod that the lock names"),
    ("job", "Job that the finding is about"),
    ("node", "node of that pod"),
    ("died", "how the pod's process ended"),
    ("what", "what runs next"),
    ("when", "when that is"),
    ("left", "time that is left of a grace period"),
    ("gives_up", "when a waiting Job gives up"),
    ("secret", "Secret that the finding is about"),
    ("labels", "labels as `key=value`, separated by spaces"),
    ("serial", "serial of a backup"),
    ("set", "name of a backup set, which is that of its first Secret"),
    ("taken", "when a backup was taken"),
    ("count", "how many"),
    ("gate", "condition that gates a Job"),
    ("reason", "reason of a condition"),
    ("op", "operation of the Job"),
    ("step", "step of the run"),
    ("because", "the reason in the words of who refused or failed"),
    ("container", "container of the pod"),
    ("image", "image of the container"),
    ("missing", "object that is missing, as `secret/x`"),
    ("key", "key that is missing in it"),
    ("account", "ServiceAccount of the runner"),
    ("deadline", "deadline of the Job, as a length of time"),
    ("took", "how long it took"),
    ("address", "resource that a call was about"),
    ("limit", "memory limit"),
    ("until", "time until which it may last"),
    ("plan", "TerraformPlan that waits"),
    ("changes", "what the plan would change"),
    ("holder", "Job that holds the lease"),
    ("claim_holder", "who holds a claim, as `<user>@<host>/<pid>/<16 hex>`"),
    ("claim_age", "when a claim was last renewed"),
    ("claim_lease", "name of a claim's Lease"),
    ("claim_target", "what `claim` commands take: the object, or `--lease NAME`"),
    ("method", "how a lock is released: runtime, job or lease"),
    ("make_files", "commands that write the files of an unlock by hand"),
    ("make_volume", "commands that make its volume and container"),
    ("copy_files", "command that copies the files into the volume"),
    ("run_init", "command that runs `init`"),
    ("run_unlock", "command that runs `force-unlock`"),
    ("clean_up", "commands that remove what was made"),
    ("other", "another object that is waited for, as `terraformmachine/web`"),
];

/// One step, with its placeholders filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub text: String,
    pub command: Option<String>,
    pub changes: bool,
    /// Clears a lock: never shown while the lock protects the state or the view is not live.
    pub clears: bool,
}

/// A section as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub code: String,
    /// The whole markdown below the heading.
    pub body: String,
    summary: String,
    steps: Vec<String>,
}

impl Section {
    /// The section of a code, or nothing (a test proves that every code has one).
    pub fn of(code: Code) -> Option<Self> {
        let book = RUNBOOKS.iter().find(|b| b.name == code.runbook())?;
        sections(book).into_iter().find(|s| s.code == code.as_str())
    }

    /// The summary with its placeholders filled; one without a value reads `unknown`.
    pub fn summary(&self, values: &Values) -> String {
        fill(&self.summary, values, Quote::Plain).unwrap_or_else(|missing| {
            let mut all = values.clone();
            all.extend(missing.into_iter().map(|name| (name, "unknown".to_string())));
            fill(&self.summary, &all, Quote::Plain).unwrap_or_else(|_| self.summary.clone())
        })
    }

    /// The steps whose placeholders all have a value.
    pub fn steps(&self, values: &Values) -> Vec<Step> {
        self.steps.iter().filter_map(|raw| step(raw, values)).collect()
    }
}

/// All sections of a runbook, in order.
pub fn sections(book: &Runbook) -> Vec<Section> {
    let mut found = Vec::new();
    for part in book.text.split("\n## ").skip(1) {
        let (code, body) = part.split_once('\n').unwrap_or((part, ""));
        let body = body.trim().to_string();
        let summary = body.split("\n\n").next().unwrap_or_default().replace('\n', " ");
        let next = body.split_once("### Next\n").map(|(_, rest)| rest).unwrap_or_default();
        let next = next.split("\n### ").next().unwrap_or_default();
        found.push(Section { code: code.trim().to_string(), summary, steps: list_items(next), body });
    }
    found
}

/// Items of a numbered markdown list, each on one line.
fn list_items(text: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in text.lines().filter(|l| !l.trim().is_empty()) {
        let trimmed = line.trim_start();
        let marker = trimmed.find(". ").filter(|at| trimmed[..*at].bytes().all(|b| b.is_ascii_digit()) && *at > 0);
        match (marker, items.last_mut()) {
            (Some(at), _) if line == trimmed => items.push(trimmed[at + 2..].trim().to_string()),
            (_, Some(last)) => {
                last.push(' ');
                last.push_str(trimmed.trim_end());
            }
            _ => {}
        }
    }
    items
}

fn step(raw: &str, values: &Values) -> Option<Step> {
    let (raw, changes, clears) = match (raw.strip_prefix("[changes] "), raw.strip_prefix("[clears] ")) {
        (Some(rest), _) => (rest, true, false),
        (None, Some(rest)) => (rest, true, true),
        (None, None) => (raw, false, false),
    };
    let (text, command) = match raw.strip_suffix('`').and_then(|r| r.rsplit_once('`')) {
        Some((text, command)) => (text.trim_end().trim_end_matches(':'), Some(command)),
        None => (raw, None),
    };
    let text = fill(text, values, Quote::Plain).ok()?;
    let command = command.map(|c| fill(c, values, Quote::Shell)).transpose().ok()?;
    Some(Step { text, command, changes, clears })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    Plain,
    Shell,
}

/// Replaces `{name}` of known placeholders; anything else in braces stays. `Err` names those that have
/// no value.
fn fill(text: &str, values: &Values, quote: Quote) -> Result<String, Vec<&'static str>> {
    let mut out = String::with_capacity(text.len());
    let mut missing = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let known = after.split_once('}').and_then(|(inner, tail)| {
            PLACEHOLDERS.iter().find(|(name, _)| *name == inner).map(|(name, _)| (*name, tail))
        });
        match known {
            Some((name, tail)) => {
                // Inside quotes that the section itself opened nothing can be quoted again, so only a
                // value that needs no quotes may stand there.
                let inside_quotes = quote == Quote::Shell && out.matches('\'').count() % 2 == 1;
                match values.get(name) {
                    Some(value) if inside_quotes && shell_quote(value) != *value => missing.push(name),
                    Some(value) => out.push_str(&quoted(name, value, quote)),
                    None => missing.push(name),
                }
                rest = tail;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    if missing.is_empty() { Ok(out) } else { Err(missing) }
}

/// Values that are commands or several words by design; their makers quote each word.
const WHOLE: [&str; 10] = [
    "kubectl",
    "captf",
    "labels",
    "claim_target",
    "make_files",
    "make_volume",
    "copy_files",
    "run_init",
    "run_unlock",
    "clean_up",
];

/// In a command, a value that a shell would take apart is quoted, except those of [`WHOLE`].
fn quoted(name: &str, value: &str, quote: Quote) -> String {
    if quote == Quote::Plain || WHOLE.contains(&name) {
        return value.to_string();
    }
    shell_quote(value)
}

/// A word for a POSIX shell: as it is when harmless, else in single quotes.
pub fn shell_quote(word: &str) -> String {
    let harmless = |b: u8| {
        b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/' | b':' | b'@' | b'%' | b'+' | b'=' | b',')
    };
    if !word.is_empty() && word.bytes().all(harmless) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_has_a_section_and_every_section_a_code() {
        let codes: BTreeSet<String> = Code::ALL.iter().map(|c| format!("{}#{c}", c.runbook())).collect();
        let written: BTreeSet<String> =
            RUNBOOKS.iter().flat_map(|b| sections(b).into_iter().map(|s| format!("{}#{}", b.name, s.code))).collect();
        assert_eq!(codes, written);
    }

    #[test]
    fn every_placeholder_used_is_known_and_every_known_one_is_used() {
        let mut used = BTreeSet::new();
        for book in RUNBOOKS {
            for piece in book.text.split('{').skip(1) {
                let name = piece.split('}').next().unwrap_or_default();
                assert!(
                    PLACEHOLDERS.iter().any(|(p, _)| *p == name)
                        || !name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
                    "{{{name}}} in {} is not known",
                    book.name
                );
                used.insert(name.to_string());
            }
        }
        for (name, _) in PLACEHOLDERS {
            assert!(used.contains(*name), "{{{name}}} is used nowhere");
        }
    }

    #[test]
    fn every_section_is_whole() {
        for book in RUNBOOKS {
            for section in sections(book) {
                assert!(!section.summary.is_empty(), "{} has no summary", section.code);
                assert!(!section.steps.is_empty(), "{} has no next step", section.code);
                assert!(
                    section.body.contains("### Confirm\n"),
                    "{} does not say how to see that it worked",
                    section.code
                );
                let paragraph = section.body.split("\n\n").nth(1).unwrap_or_default();
                assert!(!paragraph.starts_with('#'), "{} does not say why it happens", section.code);
            }
        }
    }

    #[test]
    fn steps_without_a_value_are_left_out_and_values_are_quoted_for_the_shell() {
        let values = Values::from([("namespace", "team-a".to_string()), ("pod", "it's; rm -rf".to_string())]);
        assert_eq!(step("Look at {node}: `kubectl get node {node}`", &values), None);
        assert_eq!(
            step("[changes] Delete it in {namespace}: `kubectl -n {namespace} delete pod {pod}`", &values),
            Some(Step {
                text: "Delete it in team-a".to_string(),
                command: Some(r"kubectl -n team-a delete pod 'it'\''s; rm -rf'".to_string()),
                changes: true,
                clears: false,
            })
        );
        assert_eq!(
            step("Wait.", &values),
            Some(Step { text: "Wait.".to_string(), command: None, changes: false, clears: false })
        );
        let patch = "[clears] Clear: `kubectl patch -p '[{\"value\":\"{lock_id}\"}]'`";
        let with_id = |id: &str| step(patch, &Values::from([("lock_id", id.to_string())]));
        assert_eq!(
            with_id("00000001-0000-4000-8000-000000000001").and_then(|s| s.command).as_deref(),
            Some("kubectl patch -p '[{\"value\":\"00000001-0000-4000-8000-000000000001\"}]'")
        );
        for hostile in ["x'; rm -rf ~; '", "\",\"x", "$(id)", ""] {
            assert_eq!(with_id(hostile), None, "{hostile}");
        }
        assert_eq!(fill("{.status.phase} {unknown", &values, Quote::Plain), Ok("{.status.phase} {unknown".to_string()));
    }
}
