#!/usr/bin/env bash
# Writes the demo snapshot of a release, demo.tar.gz, into a folder (default: dist). The same, byte by byte, each time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dist=${1:-dist}
mkdir -p "$dist"
tar -C testdata/lock/fleet --exclude=args --sort=name --owner=0 --group=0 --numeric-owner --mode=0644 \
  --mtime=@315532800 --format=ustar -cf - --transform='s,^,demo/,' $(cd testdata/lock/fleet && ls -- *.json) | gzip -9n >"$dist/demo.tar.gz"
printf '%s\n' "$dist/demo.tar.gz"
