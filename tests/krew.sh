#!/usr/bin/env bash
# Installs the plugin as its users do, through a real krew and a real kubectl, into a private KREW_ROOT.
#
#   tests/krew.sh
#
# krew and its manifest validator are built as Go tools of tests/krew and kept outside the checkout. Nothing is
# fetched but Go modules: the index is a local git repository, archives come from this machine.
#
# CAPTF_TEST_CACHE     where builds are kept (default: ~/.cache/kubectl-captf)
# CAPTF_TEST_BINARY    a built plugin to pack instead of a release build
# CAPTF_TEST_KUBECTL   the kubectl to use (default: the one on PATH)
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
cache=${CAPTF_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubectl-captf}
passed=0 failed=0 server=
work=$(mktemp -d)
trap '[[ -z $server ]] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

die() { printf 'krew: %s\n' "$*" >&2; exit 1; }

# check NAME COMMAND...: runs a command, counts, shows its output when it fails.
check() {
  local name=$1
  shift
  if "$@" >"$work/out" 2>&1; then
    passed=$((passed + 1))
    printf 'ok      %s\n' "$name"
  else
    failed=$((failed + 1))
    printf 'FAILED  %s\n' "$name"
    sed 's/^/        /' "$work/out"
  fi
}

# says WORDS COMMAND...: the command must exit with 0, or the code in $code, and print the words.
says() {
  local words=$1 got=0 text
  shift
  text=$("$@" 2>&1) || got=$?
  printf 'exit %s\n%s\n' "$got" "$text"
  [[ $got == "${code:-0}" && $text == *"$words"* ]]
}

fails() { ! "$@"; }

tools() {
  local kept
  kept=$cache/krew-$(sha256sum "$here"/krew/go.mod "$here"/krew/go.sum | sha256sum | cut -c 1-16)
  if [[ ! -x $kept/validate-krew-manifest ]]; then
    mkdir -p "$kept.new" || return
    (cd "$here/krew" && CGO_ENABLED=0 GOWORK=off GOFLAGS='-mod=readonly -trimpath -buildvcs=false' \
      go build -o "$kept.new/" sigs.k8s.io/krew/cmd/krew sigs.k8s.io/krew/cmd/validate-krew-manifest) >&2 || return
    rm -rf "$kept"
    mv "$kept.new" "$kept"
  fi
  printf '%s\n' "$kept"
}

# archive VERSION: packs the plugin under that version into $work/served.
archive() {
  HOME=$real_home PATH=$real_path CAPTF_BINARY=$binary CAPTF_VERSION=$1 CAPTF_DIST=$work/served/$1 "$root/release/release.sh" 2>>"$work/pack.log"
}

command -v git >/dev/null || die 'git is missing'
command -v go >/dev/null || die 'go is missing'
kubectl=${CAPTF_TEST_KUBECTL:-$(command -v kubectl)} || die 'no kubectl: run through `make test`'
tools=$(tools) || die 'cannot build krew'
binary=${CAPTF_TEST_BINARY:-}
if [[ -z $binary ]]; then
  made=$(CAPTF_DIST=$work/built "$root/release/release.sh") || die 'cannot build the release'
  tar -C "$work" -xzf "$made" && binary=$work/kubectl-captf
fi
[[ -x $binary ]] || die "$binary is not there"

# A machine on which nothing is installed but kubectl, git and krew.
real_home=$HOME real_path=$PATH home=$work/home
mkdir -p "$home" "$work/bin" "$work/served"
ln -s "$kubectl" "$work/bin/kubectl"
export HOME=$home KREW_ROOT=$work/krew KREW_NO_UPGRADE_CHECK=1 GIT_CONFIG_NOSYSTEM=1 KUBECONFIG=/nonexistent
export PATH=$KREW_ROOT/bin:$work/bin:/usr/bin:/bin
export GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@example.com GIT_COMMITTER_NAME=test GIT_COMMITTER_EMAIL=test@example.com
krew=$tools/krew
unset CAPTF_TEST_BINARY

python3 -m http.server --bind 127.0.0.1 --directory "$work/served" 0 >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 50); do
  url=$(sed -n 's/.*(\(http:[^)]*[0-9]\)\/).*/\1/p' "$work/server.log")
  [[ -z $url ]] || break
  sleep 0.1
done
[[ -n $url ]] || { sleep 1; url=http://127.0.0.1:$(sed -n 's/.* port \([0-9]*\).*/\1/p' "$work/server.log"); }

platform=linux_$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')
old=v0.0.1 new=v0.0.2
first=$(archive $old) || die "cannot pack the plugin: $(tail -n 3 "$work/pack.log")"
archive $new >/dev/null || die 'cannot pack the plugin'
# Served as a release is: PREFIX/VERSION/ARCHIVE.
manifest=$root/release/manifest.py
"$manifest" render $old "$work/served/$old" --url "$url" --only "$platform" >"$work/one.yaml" || die 'cannot make the manifest'

# The manifests of all platforms, as a release makes them: the validator sees every selector.
mkdir -p "$work/all"
for name in linux_amd64 linux_arm64 darwin_amd64 darwin_arm64; do
  cp "$first" "$work/all/kubectl-captf_${old}_$name.tar.gz"
done
(cd "$work" && tar -xzf "$first" -C all LICENSE && cp "$binary" all/kubectl-captf.exe &&
  python3 -m zipfile -c "all/kubectl-captf_${old}_windows_amd64.zip" all/kubectl-captf.exe all/LICENSE)
mkdir -p "$work/valid" "$work/wrong"
"$manifest" render $old "$work/all" >"$work/valid/captf.yaml"
sed '/bin: kubectl-captf$/d' "$work/valid/captf.yaml" >"$work/wrong/captf.yaml"
cp "$root/plugin.yaml" "$work/captf.yaml"

check 'the committed manifest agrees with its template' "$manifest" check "$root/plugin.yaml"
check 'the committed manifest is valid for krew' "$tools/validate-krew-manifest" -manifest "$work/captf.yaml" -skip-install
check 'a manifest of all platforms is valid for krew' "$tools/validate-krew-manifest" -manifest "$work/valid/captf.yaml" -skip-install
check 'a manifest without `bin` is refused' fails "$tools/validate-krew-manifest" -manifest "$work/wrong/captf.yaml" -skip-install

# The default index is an empty one, as nothing may come from outside.
mkdir -p "$work/empty/plugins"
touch "$work/empty/plugins/.keep"
(cd "$work/empty" && git init -q -b master . && git add -A && git commit -qm empty) >/dev/null
export KREW_DEFAULT_INDEX_URI=$work/empty
check 'krew starts with an empty default index' "$krew" index add default "$work/empty"
check 'krew installs from manifest and archive' "$krew" install --manifest="$work/one.yaml" --archive="$first"
check 'krew lists it' says captf "$krew" list
check 'kubectl finds it' says "$KREW_ROOT/bin/kubectl-captf" kubectl plugin list
check 'kubectl captf version runs' says 'Client Version: v' kubectl captf version --client
code=11 check 'kubectl captf lock inspect --from judges the demo snapshot' \
  says TerraformCluster kubectl captf lock inspect --from "$root/testdata/lock/fleet"
check 'the LICENSE is installed' test -s "$KREW_ROOT/store/captf/$old/LICENSE"
check 'kubectl captf completion kubectl prints the script' says __complete kubectl captf completion kubectl
tampered=$work/tampered.tar.gz
cp "$first" "$tampered" && printf x >>"$tampered"
check 'krew uninstalls' "$krew" uninstall captf
check 'an archive with another checksum is refused' fails "$krew" install --manifest="$work/one.yaml" --archive="$tampered"
check 'nothing is left behind' test -z "$(find "$KREW_ROOT/bin" "$KREW_ROOT/store" "$KREW_ROOT/receipts" -name '*captf*' 2>/dev/null)"

# The first screen of the README, as a fresh user follows it: its first two commands, with the addresses served here.
release=https://github.com/kubectl-captf/kubectl-captf/releases/latest/download
mkdir -p "$work/served/latest"
"$root/release/demo.sh" "$work/served/latest" >/dev/null
cp "$work/one.yaml" "$work/served/latest/plugin.yaml"
ln -s "$krew" "$work/bin/kubectl-krew"
mapfile -t screen < <(awk '/^```console/ { on = 1; next } /^```/ { if (on) exit } on && /^\$ / { sub(/^\$ /, ""); print }' "$root/README.md")
first_screen() {
  local line
  for line in "${screen[@]:0:2}"; do
    [[ $line == *"$release"* ]] || { printf 'no address of a release in: %s\n' "$line"; return 1; }
    printf '$ %s\n' "$line"
    bash -c "${line//$release/$url/latest}"
  done
}
check 'the first screen has at most three commands' test "${#screen[@]}" -ge 2 -a "${#screen[@]}" -le 3
code=11 check 'a fresh user gets a verdict from the demo snapshot within them' says 'TerraformMachine team-a/web  foreign' first_screen
check 'the third command is one that the plugin has' says 'Usage: kubectl captf lock inspect' bash -c "${screen[2]% terraformcluster*} --help"
check 'krew uninstalls what the first screen installed' "$krew" uninstall captf

# Through a custom index.
mkdir -p "$work/index"
"$manifest" index $old "$work/served/$old" "$work/index" --url "$url" --only "$platform" >/dev/null
(cd "$work/index" && git init -q -b master . && git add -A && git commit -qm $old) >/dev/null
check 'a custom index is added' "$krew" index add ours "$work/index"
check 'the custom index knows the plugin' says ours/captf "$krew" search captf
check 'krew installs from the custom index, over HTTP' "$krew" install ours/captf
check 'that is the old version' test -d "$KREW_ROOT/store/captf/$old"
"$manifest" index $new "$work/served/$new" "$work/index" --url "$url" --only "$platform" >/dev/null
(cd "$work/index" && git commit -qam $new) >/dev/null
check 'krew upgrades to the new version' says $new "$krew" upgrade captf
check 'that is the new version' test -d "$KREW_ROOT/store/captf/$new" -a ! -d "$KREW_ROOT/store/captf/$old"
check 'it still runs' says 'Client Version: v' kubectl captf version --client
check 'krew uninstalls the upgraded plugin' "$krew" uninstall captf
check 'nothing is left behind then either' \
  test -z "$(find "$KREW_ROOT/bin" "$KREW_ROOT/store" "$KREW_ROOT/receipts" -name '*captf*' 2>/dev/null)"
code=1 check 'kubectl does not find it any more' says 'unknown command "captf"' kubectl captf version --client

printf '%s passed, %s failed\n' "$passed" "$failed"
[[ $failed == 0 ]]
