#!/usr/bin/env bash
# cargo-deny over deny.toml: licences, bans and sources always, advisories where their database can be had.
#
#   release/deny.sh [--advisories]     with --advisories, not to have checked them is a failure
#
# The advisory database is a git repository outside crates.io. Without it nothing is said about advisories, and
# that is what the output says; the rest needs no network once the crates are there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v cargo-deny >/dev/null || { echo 'deny: NOT RUN: cargo-deny is missing (cargo install --locked cargo-deny)' >&2; exit 1; }
# All platforms are looked at, so that all their crates have to be there.
cargo fetch --locked --quiet
cargo deny --offline check licenses bans sources
if cargo deny fetch db 2>/dev/null; then
  cargo deny check advisories
else
  echo 'deny: advisories NOT CHECKED: the advisory database could not be fetched' >&2
  [[ ${1:-} != --advisories ]]
fi
