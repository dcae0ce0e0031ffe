#!/usr/bin/env bash
# Builds the release archive of one platform into dist/, with its checksum beside it.
#
#   release/release.sh [TARGET]
#
# TARGET is a Rust target triple; without one it is this machine's. Linux targets are linked by zig against
# glibc 2.17, so that the binary starts on distributions as old as RHEL 7; cargo-zigbuild and zig come from
# PyPI into a folder of the cache. The archive is the same, byte by byte, for the same binary.
#
# CAPTF_TEST_CACHE   where tools are kept (default: ~/.cache/kubectl-captf)
# CAPTF_VERSION      the version (default: v and that of Cargo.toml)
# CAPTF_BINARY       a binary to pack instead of building one, for tests of the packaging
# CAPTF_DIST         where the archive goes (default: dist)
# CAPTF_GLIBC        the glibc to link against (default: 2.17)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${CAPTF_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubectl-captf}
glibc=${CAPTF_GLIBC:-2.17}
cd "$root"

say() { printf 'release: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

target=${1:-$(rustc -vV | sed -n 's/^host: //p')}
version=${CAPTF_VERSION:-v$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)}
export CAPTF_TARGET=$target
CAPTF_COMMIT=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
[[ -z $(git status --porcelain --untracked-files=no 2>/dev/null) ]] || CAPTF_COMMIT+=-dirty
export CAPTF_COMMIT

case $target in
  x86_64-*-linux-*) platform=linux_amd64 ;;
  aarch64-*-linux-*) platform=linux_arm64 ;;
  x86_64-apple-darwin) platform=darwin_amd64 ;;
  aarch64-apple-darwin) platform=darwin_arm64 ;;
  x86_64-pc-windows-*) platform=windows_amd64 ;;
  *) die "no release is made for $target" ;;
esac

# The folder with cargo-zigbuild and zig.
zigbuild() {
  local venv=$cache/zigbuild
  if [[ ! -x $venv/bin/cargo-zigbuild ]]; then
    say "installing cargo-zigbuild and ziglang from PyPI into $venv"
    rm -rf "$venv"
    python3 -m venv "$venv" && "$venv/bin/pip" install -q cargo-zigbuild ziglang >&2 ||
      { rm -rf "$venv"; die "cannot install cargo-zigbuild and ziglang"; }
  fi
  printf '%s\n' "$venv/bin"
}

name=kubectl-captf
built=${CARGO_TARGET_DIR:-target}/$target/release
case ${CAPTF_BINARY:+given}$platform in
  given*) say "packing $CAPTF_BINARY" ;;
  linux_*)
    PATH=$(zigbuild):$PATH
    cargo zigbuild --release --locked --target "$target.$glibc" >&2
    ;;
  windows_*)
    name=kubectl-captf.exe
    cargo build --release --locked --target "$target" >&2
    ;;
  *) cargo build --release --locked --target "$target" >&2 ;;
esac

binary=${CAPTF_BINARY:-$built/$name}
if [[ -z ${CAPTF_BINARY:-} && $platform == linux_* ]] && command -v objdump >/dev/null; then
  newest=$(objdump -T "$binary" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
  [[ $(printf '%s\n%s\n' "$newest" "$glibc" | sort -V | tail -n 1) == "$glibc" ]] ||
    die "the binary needs glibc $newest, newer than $glibc"
  objdump -p "$binary" | grep -E 'NEEDED.*(ssl|crypto)' && die 'the binary needs OpenSSL'
  say "needs glibc $newest or newer, no OpenSSL"
fi

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
cp "$binary" "$stage/$name"
cp LICENSE README.md "$stage"
chmod 755 "$stage/$name"
chmod 644 "$stage/LICENSE" "$stage/README.md"
dist=${CAPTF_DIST:-$root/dist}
mkdir -p "$dist"
if [[ $platform == windows_* ]]; then
  archive=$dist/kubectl-captf_${version}_$platform.zip
  rm -f "$archive"
  python3 - "$archive" "$stage" <<'PYTHON'
import pathlib
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as archive:
    for file in sorted(pathlib.Path(sys.argv[2]).iterdir()):
        info = zipfile.ZipInfo(file.name, (1980, 1, 1, 0, 0, 0))
        info.external_attr = 0o755 << 16 if file.suffix == ".exe" else 0o644 << 16
        archive.writestr(info, file.read_bytes(), zipfile.ZIP_DEFLATED, 9)
PYTHON
else
  archive=$dist/kubectl-captf_${version}_$platform.tar.gz
  tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@315532800 --format=ustar -cf - "$name" LICENSE README.md | gzip -9n >"$archive"
fi
(cd "$dist" && sha256sum "$(basename "$archive")" | tee "$(basename "$archive").sha256" >&2)
say "$(stat -c %s "$binary" 2>/dev/null || stat -f %z "$binary") bytes of binary, $(wc -c <"$archive") of archive"
printf '%s\n' "$archive"
