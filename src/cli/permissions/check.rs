//! `permissions check`: which rights of a command the caller has, asked of the API server.

use std::fmt::Write as _;

use serde::Serialize;

use super::role::rights_of;
use super::table::{Need, Right, Row, rows};
use super::{Level, found};
use crate::cli::args::{GlobalArgs, OutputFormat};
use crate::cli::error::{CommandError, unreadable};
use crate::cli::render::write_stdout;
use crate::cli::session::{Session, block_on};
use crate::cluster::rights::{Question, may};
use crate::facts::reading::Reading;
use crate::output::escape::visible;
use crate::output::json::{render_json, render_yaml};
use crate::output::view::API_VERSION;
use crate::runbook::words::shell_quote;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckView {
    api_version: &'static str,
    kind: &'static str,
    commands: Vec<&'static str>,
    /// Absent: all namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    permissions: Vec<PermissionView>,
    exit_code: u8,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PermissionView {
    verb: &'static str,
    resource: String,
    /// `namespace` or `cluster`.
    scope: &'static str,
    /// `false`: answers are fuller with it, or only some arguments need it.
    needed: bool,
    /// `yes`, `no`, or `unknown` when the API server did not answer.
    allowed: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

/// Runs `permissions check`.
pub fn run(global: &GlobalArgs, words: &[String]) -> Result<u8, CommandError> {
    let asked = if words.is_empty() { rows().filter(|r| r.level == Level::Viewer).collect() } else { found(words)? };
    block_on(async {
        let session = Session::open(global)?;
        if !session.live {
            return Err(CommandError::usage("a snapshot has no permissions to check"));
        }
        let view = ask(&session, &asked).await?;
        let mut out = Vec::new();
        match global.output {
            OutputFormat::Json => render_json(&mut out, &view),
            OutputFormat::Yaml => render_yaml(&mut out, &view),
            OutputFormat::Text | OutputFormat::Wide | OutputFormat::Name => {
                out.extend(text(&view, global.quiet).bytes());
                Ok(())
            }
        }
        .map_err(|e| CommandError::failed("write the output").caused_by(e.to_string()))?;
        write_stdout(&out)?;
        Ok(view.exit_code)
    })
}

async fn ask(session: &Session, asked: &[&'static Row]) -> Result<CheckView, CommandError> {
    // Each verb on each resource once; needed by one command is needed.
    let mut questions: Vec<(Question, Right)> = Vec::new();
    for right in asked.iter().flat_map(|row| rights_of(row)) {
        for verb in right.verbs {
            let namespace = if right.namespaced { session.namespace.clone() } else { None };
            let question = Question { verb, group: right.group, resource: right.resource, namespace };
            match questions.iter_mut().find(|(q, r)| *q == question && r.namespaced == right.namespaced) {
                Some((_, known)) => known.need = known.need.min(right.need),
                None => questions.push((question, right)),
            }
        }
    }
    let answers = futures::future::join_all(questions.iter().map(|(q, _)| may(&session.api, q))).await;
    if let Some(gap) = answers.first().and_then(Reading::gap)
        && answers.iter().all(|a| a.gap().is_some())
    {
        return Err(unreadable("ask which permissions there are", gap, session.source.server.as_deref()));
    }
    let kubectl = session.values.get("kubectl").map_or("kubectl", String::as_str);
    let permissions: Vec<PermissionView> = questions
        .iter()
        .zip(answers)
        .map(|((question, right), answer)| {
            let allowed = match answer {
                Reading::Found(true) => "yes",
                Reading::Found(false) => "no",
                Reading::Absent | Reading::Unreadable(_) => "unknown",
            };
            let scope = match &question.namespace {
                Some(namespace) => format!(" -n {}", shell_quote(namespace)),
                None if right.namespaced => " -A".to_string(),
                None => String::new(),
            };
            PermissionView {
                verb: question.verb,
                resource: right.qualified(),
                scope: if right.namespaced { "namespace" } else { "cluster" },
                needed: right.need == Need::Needed,
                allowed,
                command: (allowed != "yes")
                    .then(|| format!("{kubectl} auth can-i {} {}{scope}", question.verb, right.qualified())),
            }
        })
        .collect();
    let exit_code = exit_code(&permissions);
    Ok(CheckView {
        api_version: API_VERSION,
        kind: "PermissionCheck",
        commands: asked.iter().map(|r| r.command).collect(),
        namespace: session.namespace.clone(),
        permissions,
        exit_code,
    })
}

/// 10 when something needed is missing, 3 when something is not known, else 0.
fn exit_code(permissions: &[PermissionView]) -> u8 {
    if permissions.iter().any(|p| p.needed && p.allowed == "no") {
        10
    } else if permissions.iter().any(|p| p.allowed == "unknown") {
        3
    } else {
        0
    }
}

fn text(view: &CheckView, quiet: bool) -> String {
    let mut out = String::new();
    let place = view.namespace.as_ref().map_or("all namespaces".to_string(), |n| visible(n).into_owned());
    let commands: Vec<String> = view.commands.iter().map(|c| format!("`{c}`")).collect();
    writeln!(out, "{} in {place}", commands.join(", ")).expect("writing to a String does not fail");
    for p in view.permissions.iter().filter(|p| !quiet || p.allowed != "yes") {
        let word = match (p.allowed, p.needed) {
            ("yes", _) => "ok",
            ("unknown", _) => "unknown",
            (_, true) => "missing",
            (_, false) => "missing, not needed",
        };
        let line = format!("  {word:<20} {:<7} {:<52}", p.verb, p.resource);
        let command = p.command.as_ref().map(|c| visible(c).into_owned()).unwrap_or_default();
        writeln!(out, "{}", format!("{line} {command}").trim_end()).expect("writing to a String does not fail");
    }
    let missing = view.permissions.iter().filter(|p| p.allowed == "no" && p.needed).count();
    let unknown = view.permissions.iter().filter(|p| p.allowed == "unknown").count();
    let last = match (missing, unknown) {
        (0, 0) => "Nothing that is needed is missing.".to_string(),
        (0, _) => format!("{unknown} could not be asked."),
        _ => format!("{missing} missing; `kubectl captf permissions` prints the Role."),
    };
    writeln!(out, "{last}").expect("writing to a String does not fail");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permission(needed: bool, allowed: &'static str) -> PermissionView {
        PermissionView { verb: "get", resource: "pods".to_string(), scope: "namespace", needed, allowed, command: None }
    }

    #[test]
    fn the_exit_code_follows_the_worst() {
        for (all, expected) in [
            (vec![], 0),
            (vec![permission(true, "yes"), permission(false, "no")], 0),
            (vec![permission(true, "yes"), permission(true, "unknown")], 3),
            (vec![permission(false, "unknown"), permission(true, "no")], 10),
        ] {
            assert_eq!(exit_code(&all), expected, "{all:?}");
        }
    }
}
