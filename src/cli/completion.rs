//! `completion SHELL`: the scripts through which shells, and kubectl, ask `__complete` for candidates.

use clap::{Args, ValueEnum};

use super::error::CommandError;
use super::render::write_stdout;

/// Print a completion script for a shell, or for kubectl
///
/// Reads nothing and changes nothing. `completion kubectl` prints the file with which `kubectl captf` completes in
/// every shell where kubectl does: save it as `kubectl_complete-captf` in a folder of PATH and make it executable.
/// The others complete the bare `kubectl-captf`.
///
/// Completion looks into the cluster of the flags already typed: names, lock IDs, serials, namespaces. It reads no
/// Secret's data, takes two seconds at most, starts no login program, and is silent when the cluster is not
/// reached.
///
/// Needs: no permission; list on what is completed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # For `kubectl captf`, in every shell
  kubectl captf completion kubectl > ~/.local/bin/kubectl_complete-captf
  chmod +x ~/.local/bin/kubectl_complete-captf

  # See what a script does before it is used
  kubectl captf completion bash | less

  # For `kubectl-captf`, in this bash
  source <(kubectl-captf completion bash)")]
pub struct CompletionArgs {
    /// The shell, or kubectl
    pub shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
    Kubectl,
}

impl Shell {
    /// The script.
    pub fn script(self) -> &'static str {
        match self {
            Self::Bash => include_str!("completion/captf.bash"),
            Self::Zsh => include_str!("completion/captf.zsh"),
            Self::Fish => include_str!("completion/captf.fish"),
            Self::Powershell => include_str!("completion/captf.ps1"),
            Self::Kubectl => include_str!("completion/kubectl_complete-captf"),
        }
    }
}

/// Runs `completion`.
pub fn run(args: &CompletionArgs) -> Result<u8, CommandError> {
    write_stdout(args.shell.script().as_bytes())?;
    Ok(super::error::OK)
}
