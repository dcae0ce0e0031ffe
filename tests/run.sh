#!/usr/bin/env bash
# Runs every suite, one after another, and sums up. A suite that cannot run is a failure, never a skip.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

unset KUBECONFIG NO_COLOR CLICOLOR_FORCE
export CARGO_TERM_COLOR=never INSTA_UPDATE=no INSTA_FORCE_PASS=0
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
names=() results=() seconds=() passed=0 failed=0

# suite NAME COMMAND...: runs it, counts the tests that cargo reports, or one for a check without tests.
suite() {
  local name=$1 start=$SECONDS ok
  shift
  printf '\n=== %s: %s\n' "$name" "$*"
  if "$@" 2>&1 | tee "$log/out"; then ok=1; else ok=0; fi
  local counts p f i
  counts=$(awk '/^test result:/ { for (k = 1; k <= NF; k++) { if ($k ~ /^passed/) p += $(k-1); if ($k ~ /^failed/) f += $(k-1); if ($k ~ /^ignored/) i += $(k-1) } }
                /^[0-9]+ passed, [0-9]+ failed/ { p += $1; f += $3 } END { print p + 0, f + 0, i + 0 }' "$log/out")
  read -r p f i <<<"$counts"
  if ((p + f == 0)); then ((ok)) && p=1 || f=1; fi
  if ((!ok && f == 0)); then f=1; fi
  names+=("$name") seconds+=($((SECONDS - start)))
  results+=("$p passed, $f failed$( ((i)) && printf ', %s left to another suite' "$i")")
  passed=$((passed + p)) failed=$((failed + f))
}

# optional NAME TOOL COMMAND...: a suite for a tool that may be missing. Then it says that it was not run.
optional() {
  local name=$1 tool=$2
  shift 2
  if command -v "$tool" >/dev/null; then
    suite "$name" "$@"
  else
    names+=("$name") seconds+=(-) results+=("NOT RUN: $tool is not installed")
  fi
}

setup() {
  tests/setup.sh >"$log/env" || return 1
  cat "$log/env"
}

suite format cargo fmt --check
suite clippy cargo clippy --locked --all-targets -- -D warnings
suite rustdoc env RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps --document-private-items
suite units cargo test --locked --lib
suite golden cargo test --locked --test cli
suite setup setup
# shellcheck disable=SC1091
source "$log/env"
suite cluster cargo test --locked --test cluster -- --include-ignored
suite krew env CAPTF_TEST_BINARY="$PWD/target/debug/kubectl-captf" tests/krew.sh
suite manifest release/manifest.py check plugin.yaml
suite demo make --no-print-directory demo
optional deny cargo-deny release/deny.sh

printf '\n'
for n in "${!names[@]}"; do
  printf '%-10s %5ss  %s\n' "${names[n]}" "${seconds[n]}" "${results[n]}"
done
printf 'total      %5ss\n\n%d passed, %d failed\n' "$SECONDS" "$passed" "$failed"
((failed == 0))
