//! Writes the man pages of all commands into a folder: `cargo run --example man -- DIR`.

use std::path::PathBuf;

use clap::CommandFactory;

fn main() -> std::io::Result<()> {
    let dir = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("man"), PathBuf::from);
    std::fs::create_dir_all(&dir)?;
    clap_mangen::generate_to(kubectl_captf::cli::app::Cli::command(), dir)
}
