//! `version`: of this plugin, of the API server, and the generation of CAPTF that the cluster has.

use clap::Args;
use serde::Serialize;

use super::args::{GlobalArgs, OutputFormat};
use super::error::{CommandError, unreadable};
use super::render::write_stdout;
use super::session::{Session, block_on};
use crate::cluster::generation::{MINIMUM, read_generation};
use crate::facts::reading::Reading;
use crate::output::escape::visible;
use crate::output::json::{render_json, render_yaml};

/// Print the version of this plugin, of the API server and of CAPTF
///
/// Reads only. With --client it touches no cluster. CAPTF does not tell its version, so its generation is told from
/// what its API holds; it is printed with what it was told from.
///
/// Needs: no permission that is not everybody's; with list on secrets it tells one generation more apart.
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
    #[serde(skip_serializing_if = "Option::is_none")]
    captf: Option<CaptfView>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ClientVersion {
    version: &'static str,
    commit: &'static str,
    /// `linux/x86_64`.
    target: String,
    /// The target triple that it was built for.
    triple: &'static str,
    /// The oldest generation of CAPTF that this plugin understands.
    minimum_captf_generation: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CaptfView {
    /// `G1` to `G6`; absent when it could not be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<&'static str>,
    detected_from: String,
}

/// The target triple. `CAPTF_TARGET` is set by the release build; other builds know its parts only.
const TRIPLE: &str = match option_env!("CAPTF_TARGET") {
    Some(triple) => triple,
    None if cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) => "x86_64-unknown-linux-gnu",
    None if cfg!(all(target_os = "linux", target_arch = "aarch64", target_env = "gnu")) => "aarch64-unknown-linux-gnu",
    None if cfg!(all(target_os = "macos", target_arch = "x86_64")) => "x86_64-apple-darwin",
    None if cfg!(all(target_os = "macos", target_arch = "aarch64")) => "aarch64-apple-darwin",
    None => "unknown",
};

/// Runs `version`.
pub fn run(global: &GlobalArgs, args: &VersionArgs) -> Result<u8, CommandError> {
    let (server_version, captf) = if args.client { (None, None) } else { of_cluster(global)? };
    let view = VersionView {
        client_version: ClientVersion {
            version: concat!("v", env!("CARGO_PKG_VERSION")),
            commit: option_env!("CAPTF_COMMIT").unwrap_or("unknown"),
            target: format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
            triple: TRIPLE,
            minimum_captf_generation: MINIMUM,
        },
        server_version,
        captf,
    };
    let mut out = Vec::new();
    let rendered = match global.output {
        OutputFormat::Json => render_json(&mut out, &view),
        OutputFormat::Yaml => render_yaml(&mut out, &view),
        OutputFormat::Text | OutputFormat::Wide | OutputFormat::Name => {
            out.extend(text(&view).bytes());
            Ok(())
        }
    };
    rendered.map_err(|e| CommandError::failed("write the output").caused_by(e.to_string()))?;
    write_stdout(&out)?;
    Ok(super::error::OK)
}

fn text(view: &VersionView) -> String {
    let client = &view.client_version;
    let mut out = format!("Client Version: {}\n", client.version);
    out.push_str(&format!(
        "  commit {}, {}, understands CAPTF from {}\n",
        client.commit, client.triple, client.minimum_captf_generation
    ));
    if let Some(server) = &view.server_version {
        out.push_str(&format!("Server Version: {}\n", visible(server)));
    }
    if let Some(captf) = &view.captf {
        let generation = captf.generation.unwrap_or("not known");
        out.push_str(&format!("CAPTF Generation: {generation} ({})\n", visible(&captf.detected_from)));
    }
    out
}

fn of_cluster(global: &GlobalArgs) -> Result<(Option<String>, Option<CaptfView>), CommandError> {
    block_on(async {
        let session = Session::open(global)?;
        let generation = read_generation(&session.api, session.namespace.as_deref()).await;
        let captf = match generation {
            Reading::Found((generation, from)) => CaptfView { generation: Some(generation), detected_from: from },
            Reading::Absent => CaptfView { generation: None, detected_from: "CAPTF is not installed".to_string() },
            Reading::Unreadable(gap) => {
                CaptfView { generation: None, detected_from: format!("{}: {}", gap.what, gap.reason.as_str()) }
            }
        };
        if !session.live {
            return Ok((None, Some(captf)));
        }
        match session.api.read_path("/version", "the API server's version").await {
            Reading::Found(value) => Ok((Some(crate::cluster::json::owned(&value, &["gitVersion"])), Some(captf))),
            Reading::Absent => Err(CommandError::failed("the server has no version")),
            Reading::Unreadable(gap) => {
                Err(unreadable("read the API server's version", &gap, session.source.server.as_deref()))
            }
        }
    })
}
