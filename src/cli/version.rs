//! `version`: of this plugin, and of the API server.

use clap::Args;
use serde::Serialize;

use super::args::{GlobalArgs, OutputFormat};
use super::error::{CommandError, unreadable};
use super::render::write_stdout;
use super::session::{Session, block_on};
use crate::facts::reading::Reading;
use crate::output::escape::visible;
use crate::output::json::{render_json, render_yaml};

/// Print the version of this plugin and of the API server
///
/// Reads only. With --client it touches no cluster.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl captf version
  kubectl captf version --client -o json")]
pub struct VersionArgs {
    /// Only this plugin's version; no cluster is touched
    #[arg(long)]
    pub client: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionView {
    client_version: ClientVersion,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_version: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClientVersion {
    version: &'static str,
    commit: &'static str,
    target: String,
}

/// Runs `version`.
pub fn run(global: &GlobalArgs, args: &VersionArgs) -> Result<u8, CommandError> {
    let server_version = if args.client { None } else { Some(server_version(global)?) };
    let view = VersionView {
        client_version: ClientVersion {
            version: concat!("v", env!("CARGO_PKG_VERSION")),
            commit: option_env!("CAPTF_COMMIT").unwrap_or("unknown"),
            target: format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        },
        server_version,
    };
    let mut out = Vec::new();
    let rendered = match global.output {
        OutputFormat::Json => render_json(&mut out, &view),
        OutputFormat::Yaml => render_yaml(&mut out, &view),
        OutputFormat::Text | OutputFormat::Wide | OutputFormat::Name => {
            out.extend(format!("Client Version: {}\n", view.client_version.version).bytes());
            if let Some(server) = &view.server_version {
                out.extend(format!("Server Version: {}\n", visible(server)).bytes());
            }
            Ok(())
        }
    };
    rendered.map_err(|e| CommandError::failed("write the output").caused_by(e.to_string()))?;
    write_stdout(&out)?;
    Ok(super::error::OK)
}

fn server_version(global: &GlobalArgs) -> Result<String, CommandError> {
    block_on(async {
        let session = Session::open(global)?;
        match session.api.read_path("/version", "the API server's version").await {
            Reading::Found(value) => Ok(crate::cluster::json::owned(&value, &["gitVersion"])),
            Reading::Absent => Err(CommandError::failed("the server has no version")),
            Reading::Unreadable(gap) => {
                Err(unreadable("read the API server's version", &gap, session.source.server.as_deref()))
            }
        }
    })
}
