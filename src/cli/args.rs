//! The flags that every command takes, with kubectl's names and meanings.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::error::parse_timeout;
use crate::cluster::client::Connection;
use crate::output::style::ColorChoice;

/// Requests are given up after this time unless `--request-timeout` says otherwise: a tool for the
/// night does not hang.
const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    Text,
    Wide,
    Json,
    Yaml,
    Name,
}

#[derive(Debug, Clone, Args)]
pub struct GlobalArgs {
    /// Namespace to look in (default: the context's)
    #[arg(short, long, global = true, value_name = "NAMESPACE", help_heading = "Scope")]
    pub namespace: Option<String>,

    /// Look in all namespaces
    #[arg(short = 'A', long, global = true, help_heading = "Scope", conflicts_with = "namespace")]
    pub all_namespaces: bool,

    /// Only objects whose labels match
    #[arg(short = 'l', long, global = true, value_name = "SELECTOR", help_heading = "Scope")]
    pub selector: Option<String>,

    /// Read a snapshot instead of a cluster: a directory, a file, a .tar.gz, or - for standard input
    #[arg(long, global = true, value_name = "PATH", help_heading = "Scope")]
    pub from: Option<PathBuf>,

    /// With --from: the time to count from (RFC 3339; default: the newest time in the snapshot)
    #[arg(long, global = true, value_name = "TIME", help_heading = "Scope", requires = "from")]
    pub now: Option<String>,

    /// Output format
    #[arg(short, long, global = true, value_enum, default_value = "text", help_heading = "Output")]
    pub output: OutputFormat,

    /// Only problems: warnings, errors and what could not be read
    #[arg(short, long, global = true, help_heading = "Output")]
    pub quiet: bool,

    /// Leave out the header line of tables
    #[arg(long, global = true, help_heading = "Output")]
    pub no_headers: bool,

    /// When to use colour (NO_COLOR and CLICOLOR_FORCE are honoured)
    #[arg(long, global = true, value_enum, default_value = "auto", value_name = "WHEN", help_heading = "Output")]
    pub color: ColorChoice,

    /// Log requests to standard error (any level from 1 on)
    #[arg(short = 'v', long = "v", global = true, value_name = "LEVEL", default_value_t = 0, num_args = 0..=1,
          default_missing_value = "6", require_equals = true, help_heading = "Output")]
    pub verbosity: u8,

    #[command(flatten)]
    pub connection: ConnectionArgs,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArgs {
    /// Path of the kubeconfig file
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use
    #[arg(long, global = true)]
    pub context: Option<String>,

    /// Cluster of the kubeconfig to use
    #[arg(long, global = true)]
    pub cluster: Option<String>,

    /// User of the kubeconfig to use
    #[arg(long, global = true)]
    pub user: Option<String>,

    /// Address of the API server
    #[arg(short = 's', long, global = true, value_name = "URL")]
    pub server: Option<String>,

    /// Bearer token for the API server
    #[arg(long, global = true)]
    pub token: Option<String>,

    /// User to impersonate
    #[arg(long = "as", global = true, value_name = "USER")]
    pub as_user: Option<String>,

    /// Group to impersonate; can be repeated
    #[arg(long = "as-group", global = true, value_name = "GROUP")]
    pub as_group: Vec<String>,

    /// Certificate file of the API server's authority
    #[arg(long, global = true, value_name = "FILE")]
    pub certificate_authority: Option<PathBuf>,

    /// Certificate file to log in with
    #[arg(long, global = true, value_name = "FILE")]
    pub client_certificate: Option<PathBuf>,

    /// Key file of the certificate to log in with
    #[arg(long, global = true, value_name = "FILE")]
    pub client_key: Option<PathBuf>,

    /// Do not check the API server's certificate
    #[arg(long, global = true)]
    pub insecure_skip_tls_verify: bool,

    /// Name to check the API server's certificate against
    #[arg(long, global = true, value_name = "NAME")]
    pub tls_server_name: Option<String>,

    /// How long to wait for one request (default 30s; 0 waits for ever)
    #[arg(long, global = true, value_name = "DURATION", value_parser = timeout)]
    pub request_timeout: Option<Timeout>,
}

/// A parsed `--request-timeout`; `None` inside means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout(pub Option<Duration>);

fn timeout(text: &str) -> Result<Timeout, String> {
    parse_timeout(text).map(Timeout)
}

impl ConnectionArgs {
    /// The flags as the client takes them.
    pub fn connection(&self) -> Connection {
        Connection {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            cluster: self.cluster.clone(),
            user: self.user.clone(),
            server: self.server.clone(),
            token: self.token.clone(),
            as_user: self.as_user.clone(),
            as_groups: self.as_group.clone(),
            certificate_authority: self.certificate_authority.clone(),
            client_certificate: self.client_certificate.clone(),
            client_key: self.client_key.clone(),
            insecure_skip_tls_verify: self.insecure_skip_tls_verify,
            tls_server_name: self.tls_server_name.clone(),
            request_timeout: self.request_timeout.map_or(Some(DEFAULT_REQUEST_TIMEOUT), |t| t.0),
        }
    }

    /// The flags that printed commands have to repeat. A token is never repeated.
    pub fn repeated(&self) -> Vec<String> {
        let path = |p: &PathBuf| p.to_string_lossy().into_owned();
        let named = [
            ("--kubeconfig", self.kubeconfig.as_ref().map(path)),
            ("--context", self.context.clone()),
            ("--cluster", self.cluster.clone()),
            ("--user", self.user.clone()),
            ("--server", self.server.clone()),
            ("--as", self.as_user.clone()),
            ("--certificate-authority", self.certificate_authority.as_ref().map(path)),
            ("--client-certificate", self.client_certificate.as_ref().map(path)),
            ("--client-key", self.client_key.as_ref().map(path)),
            ("--tls-server-name", self.tls_server_name.clone()),
        ];
        let mut words = Vec::new();
        for (flag, value) in named {
            words.extend(value.map(|v| format!("{flag} {}", crate::runbook::words::shell_quote(&v))));
        }
        words.extend(self.as_group.iter().map(|g| format!("--as-group {}", crate::runbook::words::shell_quote(g))));
        if self.insecure_skip_tls_verify {
            words.push("--insecure-skip-tls-verify".to_string());
        }
        words
    }
}

/// Writes `-v 6` and `--v 6` as `-v=6`, which kubectl takes both ways.
pub fn normalize(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::new();
    let mut after_dashes = false;
    for arg in args {
        let is_level =
            arg.to_str().is_some_and(|a| !a.is_empty() && a.len() <= 2 && a.bytes().all(|b| b.is_ascii_digit()));
        match out.last_mut() {
            Some(last) if !after_dashes && is_level && (last == "-v" || last == "--v") => {
                last.push("=");
                last.push(arg);
            }
            _ => {
                after_dashes |= arg == "--";
                out.push(arg);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbosity_is_taken_both_ways() {
        let run = |args: &[&str]| -> Vec<String> {
            normalize(args.iter().map(OsString::from)).into_iter().map(|a| a.to_string_lossy().into_owned()).collect()
        };
        assert_eq!(run(&["x", "-v", "6", "lock"]), ["x", "-v=6", "lock"]);
        assert_eq!(run(&["x", "-v", "lock"]), ["x", "-v", "lock"]);
        assert_eq!(run(&["x", "--v", "9"]), ["x", "--v=9"]);
        assert_eq!(run(&["x", "restore", "41"]), ["x", "restore", "41"]);
        assert_eq!(run(&["x", "--", "-v", "6"]), ["x", "--", "-v", "6"]);
    }
}
