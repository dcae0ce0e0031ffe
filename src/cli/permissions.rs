//! `permissions`: the Role of a command as YAML, the roles of `deploy/rbac`, and what is missing in a cluster.

pub mod check;
pub mod role;
pub mod table;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::Value;

use self::table::{Row, rows};
use super::args::{GlobalArgs, OutputFormat};
use super::error::CommandError;
use super::render::write_stdout;
use crate::cluster::resolve::closest;
use crate::output::json::{render_json, render_yaml};

/// Print the Role that a command needs, or check what is missing
///
/// Reads nothing and changes nothing: prints YAML for `kubectl apply -f -`. Without a command it prints the roles
/// viewer, operator and unlocker as ClusterRoles, which RoleBindings give in single namespaces.
///
/// Needs: no permission.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  # The Role for one command, for the namespace team-a
  kubectl captf permissions lock inspect -n team-a

  # As a ClusterRole, for all namespaces
  kubectl captf permissions lock list -A

  # Everything that only reads
  kubectl captf permissions --role viewer

  # What I lack for a command here
  kubectl captf permissions check lock inspect -n team-a"
)]
pub struct PermissionsArgs {
    #[command(subcommand)]
    pub command: Option<PermissionsCommand>,

    /// The command, as it is typed: `lock inspect`
    #[arg(value_name = "COMMAND")]
    pub words: Vec<String>,

    /// Print one of the roles of `deploy/rbac` instead of a command's
    #[arg(long, value_enum, conflicts_with = "words")]
    pub role: Option<Level>,
}

#[derive(Debug, Subcommand)]
pub enum PermissionsCommand {
    Check(CheckArgs),
}

/// Ask the API server which permissions of a command are missing
///
/// Reads only: each question is a SelfSubjectAccessReview, which the API server answers and does not keep.
/// Without a command it asks for all that only read.
///
/// Needs: create on selfsubjectaccessreviews.authorization.k8s.io, which every user has by default.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl captf permissions check -n team-a
  kubectl captf permissions check lock inspect -n team-a -o json
  kubectl captf permissions check lock list -A --as system:serviceaccount:ops:oncall")]
pub struct CheckArgs {
    /// The command, as it is typed: `lock inspect`
    #[arg(value_name = "COMMAND")]
    pub words: Vec<String>,
}

/// Who may use a command: each level holds the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Level {
    /// Reads
    Viewer,
    /// Restores states and frees claims
    Operator,
    /// Clears locks by hand
    Unlocker,
}

impl Level {
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Unlocker];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Unlocker => "unlocker",
        }
    }
}

/// Runs `permissions`.
pub fn run(global: &GlobalArgs, args: &PermissionsArgs) -> Result<u8, CommandError> {
    if let Some(PermissionsCommand::Check(args)) = &args.command {
        return check::run(global, &args.words);
    }
    let documents = match (&args.role, args.words.is_empty()) {
        (Some(level), _) => vec![role::of_level(*level)],
        (None, true) => Level::ALL.iter().map(|level| role::of_level(*level)).collect(),
        (None, false) => role::of_rows(&found(&args.words)?, global),
    };
    if documents.is_empty() {
        return Err(CommandError::failed(format!("`{}` needs no permission", args.words.join(" "))));
    }
    write_stdout(&rendered(&documents, global.output)?)?;
    Ok(super::error::OK)
}

fn rendered(documents: &[Value], output: OutputFormat) -> Result<Vec<u8>, CommandError> {
    let failed = |e: std::io::Error| CommandError::failed("write the output").caused_by(e.to_string());
    let mut out = Vec::new();
    if output == OutputFormat::Json {
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": documents});
        render_json(&mut out, if documents.len() == 1 { &documents[0] } else { &list }).map_err(failed)?;
        return Ok(out);
    }
    for (index, document) in documents.iter().enumerate() {
        if index > 0 {
            out.extend(b"---\n");
        }
        render_yaml(&mut out, document).map_err(failed)?;
    }
    Ok(out)
}

/// The rows of a command, or of a group of commands.
fn found(words: &[String]) -> Result<Vec<&'static Row>, CommandError> {
    let path = words.join(" ");
    let exact: Vec<&Row> = rows().filter(|r| r.command == path).collect();
    let group = format!("{path} ");
    let all = if exact.is_empty() { rows().filter(|r| r.command.starts_with(&group)).collect() } else { exact };
    if !all.is_empty() {
        return Ok(all);
    }
    let known: Vec<String> = rows().map(|r| r.command.to_string()).collect();
    let error = CommandError::usage(format!("`{path}` is not a command of this plugin"));
    Err(match closest(&path, &known).first() {
        Some(close) => error.hint(format!("did you mean `{close}`?")),
        None => error.hint("`kubectl captf --help` lists the commands"),
    })
}
