//! `kubectl-captf`: parse, run, say what went wrong, return the documented exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    kubectl_captf::cli::main(std::env::args_os())
}
