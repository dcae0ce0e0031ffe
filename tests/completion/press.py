#!/usr/bin/env python3
"""Types on a pseudo-terminal as a person does, and prints what the shell shows.

    press.py SHELL SETUP TYPED

SHELL is bash, zsh or fish; SETUP is a file it sources first; `<TAB>` in TYPED is the key.
The screen is printed without escape sequences, from the first key on. A shell that does
not get ready within 20 s is an error.
"""
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

ARGV = {
    "bash": ["bash", "--noprofile", "--norc", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}


def read(fd, quiet, limit, until=None):
    """Reads until nothing came for `quiet` seconds, `until` was seen, or `limit` is over."""
    out, end = b"", time.monotonic() + limit
    while time.monotonic() < end:
        ready, _, _ = select.select([fd], [], [], quiet)
        if not ready:
            if until is None:
                break
            continue
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
        if until is not None and until in out:
            break
    return out


def plain(data):
    text = data.decode("utf-8", "replace")
    text = re.sub(r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)", "", text)
    text = re.sub(r"\x1b\[[0-9;?<>=]*[ -/]*[@-~]", "", text)
    return re.sub(r"\x1b[@-_=>()][0-9A-Za-z]?", "", text).replace("\r", "")


def main():
    shell, setup, typed = sys.argv[1:]
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(ARGV[shell][0], ARGV[shell])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    read(fd, 0.5, 5)
    os.write(fd, f"source {setup}; echo REA''DY\r".encode())
    if b"READY" not in read(fd, 0.5, 20, until=b"READY"):
        sys.exit("the shell did not get ready")
    read(fd, 0.5, 3)
    out = b""
    for part in re.split("(<TAB>)", typed):
        if part == "<TAB>":
            os.write(fd, b"\t")
            out += read(fd, 2.5, 8)
        elif part:
            os.write(fd, part.encode())
            out += read(fd, 0.3, 2)
    sys.stdout.write(plain(out))
    os.close(fd)


main()
