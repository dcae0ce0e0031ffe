#!/usr/bin/env python3
"""The krew manifest, made from release/plugin.yaml.tmpl and the archives of a release.

    manifest.py render VERSION DIR [--url PREFIX] [--only OS_ARCH]   prints the manifest
    manifest.py index VERSION DIR TARGET [--url PREFIX]   writes a krew index to TARGET
    manifest.py check FILE                                compares FILE with the template

VERSION starts with a v. DIR holds kubectl-captf_VERSION_OS_ARCH.tar.gz (.zip on Windows)
for every platform; --only makes a manifest of one platform, for tests on one machine.
"""
import argparse
import hashlib
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
RELEASES = "https://github.com/kubectl-captf/kubectl-captf/releases/download"
PLATFORMS = ["linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "windows_amd64"]
PLATFORM = """\
    - selector:
        matchLabels:
          os: {os}
          arch: {arch}
      uri: {uri}
      sha256: "{sha256}"
      bin: {bin}
      files:
        - from: {bin}
          to: .
        - from: LICENSE
          to: .
"""


def archive(version, platform):
    return f"kubectl-captf_{version}_{platform}." + ("zip" if platform.startswith("windows") else "tar.gz")


def render(version, url, sums):
    """The manifest of a version; `sums` holds the SHA-256 of the archive of each platform."""
    if not re.fullmatch(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", version):
        sys.exit(f"{version} is not a version: it is written v1.2.3")
    blocks = []
    for platform, digest in sums.items():
        system, arch = platform.split("_")
        name = "kubectl-captf.exe" if system == "windows" else "kubectl-captf"
        uri = f"{url}/{version}/{archive(version, platform)}"
        blocks.append(PLATFORM.format(os=system, arch=arch, uri=uri, sha256=digest, bin=name))
    text = (HERE / "plugin.yaml.tmpl").read_text()
    return text.replace("@VERSION@", version).replace("@PLATFORMS@\n", "".join(blocks))


def sums_of(version, folder, platforms):
    sums = {}
    for platform in platforms:
        file = folder / archive(version, platform)
        if not file.is_file():
            sys.exit(f"{file} is missing")
        sums[platform] = hashlib.sha256(file.read_bytes()).hexdigest()
    return sums


def check(file):
    """The file must be what the template makes of its own version and checksums, and keep krew's rules."""
    text = file.read_text()
    version = re.search(r"^  version: (\S+)$", text, re.M)
    digests = re.findall(r'^      sha256: "([0-9a-f]{64})"$', text, re.M)
    if not version or len(digests) != len(PLATFORMS):
        sys.exit(f"{file}: a version and {len(PLATFORMS)} checksums are expected")
    if text != render(version[1], RELEASES, dict(zip(PLATFORMS, digests))):
        sys.exit(f"{file} is not what release/plugin.yaml.tmpl makes: use `release/manifest.py render`")
    short = re.search(r"^  shortDescription: (.+)$", text, re.M)[1]
    if len(short) > 50 or re.search("kubectl|kubernetes", short, re.I):
        sys.exit(f"shortDescription: at most 50 characters, without kubectl or Kubernetes ({len(short)})")
    prose = text.split("  description: |")[1].split("  platforms:")[0]
    for line in prose.splitlines():
        if len(line) > 80 or re.search(r"(^|\s)--?[a-z]", line):
            sys.exit(f"description: at most 80 columns and no flags: {line!r}")
    if set(digests) == {"0" * 64}:
        print(f"{file}: no release was published yet, its checksums are zeros")
    print(f"{file}: agrees with the template")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ["render", "index"]:
        command = commands.add_parser(name)
        command.add_argument("version")
        command.add_argument("dir", type=pathlib.Path)
        if name == "index":
            command.add_argument("target", type=pathlib.Path)
        command.add_argument("--url", default=RELEASES)
        command.add_argument("--only")
    commands.add_parser("check").add_argument("file", type=pathlib.Path)
    args = parser.parse_args()
    if args.command == "check":
        return check(args.file)
    platforms = [args.only] if args.only else PLATFORMS
    text = render(args.version, args.url, sums_of(args.version, args.dir, platforms))
    if args.command == "render":
        sys.stdout.write(text)
    else:
        plugins = args.target / "plugins"
        plugins.mkdir(parents=True, exist_ok=True)
        (plugins / "captf.yaml").write_text(text)
        print(plugins / "captf.yaml")


main()
