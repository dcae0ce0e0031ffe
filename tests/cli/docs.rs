//! The pages of `docs/`: what is generated from the binary and its tables, and real output on the demo snapshot.
//!
//! `UPDATE_DOCS=1 cargo test --test cli docs::` writes them; without it a page that differs fails.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::{Command, CommandFactory};
use kubectl_captf::cli::app::Cli;
use kubectl_captf::cli::error::EXIT_CODES;
use kubectl_captf::cli::permissions::role::rights_of;
use kubectl_captf::cli::permissions::table::{Need, rows};
use kubectl_captf::runbook::code::Code;
use kubectl_captf::runbook::words::{RUNBOOKS, sections};

use super::run::{root, run};

const NOTE: &str = "<!-- Made by `UPDATE_DOCS=1 cargo test --test cli docs::`; edit the sources instead. -->\n\n";

/// Command lines shown on the page of a command, run on the demo snapshot. A command that needs a cluster has none.
const SHOWN: &[(&str, &[&str])] = &[
    ("lock inspect", &["lock inspect terraformmachine/web --from testdata/lock/fleet"]),
    ("lock list", &["lock list --from testdata/lock/fleet", "lock list --all -o wide --from testdata/lock/fleet"]),
    ("lock history", &["lock history terraformcluster/prod --from testdata/lock/history-force-unlocked"]),
    ("explain", &["explain lock-stale"]),
    ("runbook list", &["runbook list"]),
    ("runbook show", &[]),
    ("version", &[]),
    ("completion", &["completion kubectl"]),
    ("permissions", &["permissions lock history -n team-a"]),
    ("permissions check", &[]),
    ("collect", &[]),
];

/// Compares a page with what it should be, or writes it.
pub fn page(path: &str, made: &str) {
    let file = root().join("docs").join(path);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, made).expect("write the page");
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == made, "docs/{path} is not what it should be: run `UPDATE_DOCS=1 cargo test --test cli docs::`");
}

fn runnable(command: &Command, path: &str, all: &mut Vec<String>) {
    for next in command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        let path = format!("{path} {}", next.get_name()).trim().to_string();
        if !next.is_subcommand_required_set() {
            all.push(path.clone());
        }
        runnable(next, &path, all);
    }
}

fn commands() -> Vec<String> {
    let mut all = Vec::new();
    runnable(&Cli::command(), "", &mut all);
    all
}

fn text(line: &str) -> String {
    let output = run(line);
    String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8")
}

#[test]
fn every_command_has_its_page_with_real_output() {
    let mut pages = BTreeSet::from(["README.md".to_string()]);
    let mut index = format!("{NOTE}# Commands\n\n");
    for path in commands() {
        let shown = SHOWN.iter().find(|(command, _)| *command == path);
        let (_, lines) = shown.unwrap_or_else(|| panic!("add a row for `{path}` to SHOWN"));
        let help = text(&format!("{path} --help"));
        let mut out = format!("{NOTE}# kubectl captf {path}\n\n```text\n{}```\n", visible_code(&help));
        for line in *lines {
            let output = run(line);
            let body = String::from_utf8(output.stdout).expect("UTF-8");
            assert!(!body.is_empty(), "`{line}` prints nothing");
            let code = output.status.code().expect("an exit code");
            write!(out, "\n```console\n$ kubectl captf {line}\n{}```\n\nExit code {code}.\n", visible_code(&body))
                .expect("a String");
        }
        let file = format!("{}.md", path.replace(' ', "-"));
        writeln!(index, "- [{path}]({file}): {}", help.lines().next().unwrap_or_default()).expect("a String");
        page(&format!("commands/{file}"), &out);
        pages.insert(file);
    }
    page("commands/README.md", &index);
    let kept = std::fs::read_dir(root().join("docs/commands")).expect("docs/commands");
    let kept: BTreeSet<String> =
        kept.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(kept, pages, "docs/commands has pages of commands that do not exist");
}

fn visible_code(text: &str) -> String {
    assert!(!text.contains("```"), "output that would end its block");
    if text.ends_with('\n') { text.to_string() } else { format!("{text}\n") }
}

#[test]
fn the_page_of_codes_is_that_of_the_runbooks() {
    let mut out = format!("{NOTE}# Finding codes\n\nEach is explained by `kubectl captf explain CODE`.\n");
    let mut seen = 0;
    for book in RUNBOOKS {
        write!(
            out,
            "\n## [{0}](../runbooks/{0}.md)\n\n| Code | Severity | Meaning |\n| --- | --- | --- |\n",
            book.name
        )
        .expect("a String");
        for section in sections(book) {
            let Some(code) = Code::parse(&section.code) else { continue };
            let summary =
                section.body.trim().split("\n\n").next().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
            let summary: String = summary.trim_start_matches('#').trim().to_string();
            writeln!(
                out,
                "| [`{code}`](../runbooks/{}.md#{code}) | {} | {summary} |",
                book.name,
                code.severity().as_str()
            )
            .expect("a String");
            seen += 1;
        }
    }
    assert_eq!(seen, Code::ALL.len(), "codes without a row");
    page("codes.md", &out);
}

#[test]
fn exit_codes_and_permissions_are_those_of_the_binary() {
    page(
        "exit-codes.md",
        &format!(
            "{NOTE}# Exit codes\n\n```text\n{EXIT_CODES}\n```\n\nA finding is a result, not an error: scripts tell the two apart by 10 and 11 against 1.\n"
        ),
    );
    let mut out = format!(
        "{NOTE}# Permissions\n\n`kubectl captf permissions COMMAND` prints the Role of a command, `permissions check` asks the API server \
        what is missing. `deploy/rbac` holds the roles viewer, operator and unlocker, made from the same table.\n\n\
        What is marked * makes an answer fuller, or is needed by some arguments only. Rights outside namespaces are in italics.\n\n\
        | Command | Role | Rights |\n| --- | --- | --- |\n"
    );
    for row in rows() {
        let rights: Vec<String> = rights_of(row)
            .map(|r| {
                let star = if r.need == Need::Better { "*" } else { "" };
                let name = if r.namespaced { format!("`{}`", r.qualified()) } else { format!("_{}_", r.qualified()) };
                format!("{} {name}{star}", r.verbs.join(", "))
            })
            .collect();
        let rights = if rights.is_empty() { "none".to_string() } else { rights.join("; ") };
        writeln!(out, "| `{}` | {} | {rights} |", row.command, row.level.as_str()).expect("a String");
    }
    page("permissions.md", &out);
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut checked = 0;
    let docs = root().join("docs");
    for folder in [docs.clone(), docs.join("commands")] {
        for entry in std::fs::read_dir(&folder).expect("docs") {
            let file = entry.expect("an entry").path();
            if file.extension().is_none_or(|e| e != "md") {
                continue;
            }
            let text = std::fs::read_to_string(&file).expect("a page");
            for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let path = link.split('#').next().unwrap_or_default();
                if path.is_empty() || path.contains("://") {
                    continue;
                }
                assert!(folder.join(path).exists(), "{}: {link} leads nowhere", file.display());
                checked += 1;
            }
        }
    }
    assert!(checked > 10, "only {checked} links were looked at");
}
