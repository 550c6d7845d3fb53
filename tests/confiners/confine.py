#!/usr/bin/env python3
"""A confiner for the tests on Linux, called as macOS' sandbox-exec: -f PROFILE PROGRAM ARGUMENT...

It does not read the rules of the profile, only the ports of the gate. With Landlock and a mount namespace it makes real
what the self-test attacks: writes outside of the working directory, TMPDIR and HOME, the directory of the profile,
protected names in $PROJECT, signals to others, and connections to other ports.
"""

import ctypes
import os
import re
import signal
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
NEWUSER, NEWNS = 0x10000000, 0x20000
RDONLY, REMOUNT, BIND, REC, PRIVATE = 1, 32, 4096, 16384, 1 << 18
# Writing files, making, removing and moving names, truncating.
WRITES = 1 << 1 | 0x3FF << 4 | 1 << 14
CONNECTS, SIGNALS = 1 << 1, 1 << 1


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def mount(source, target, kind, flags):
    none = None if kind is None else kind.encode()
    checked(libc.mount(source.encode(), target.encode(), none, ctypes.c_ulong(flags), None))


def hide(profile):
    user, group = os.getuid(), os.getgid()
    checked(libc.unshare(NEWNS if user == 0 else NEWUSER | NEWNS))
    if user != 0:
        for name, text in ("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1"):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    mount("none", "/", None, REC | PRIVATE)
    # Empty, and read-only: the directory in which the profile lies.
    mount("none", os.path.dirname(os.path.realpath(profile)), "tmpfs", RDONLY)
    project = os.environ.get("PROJECT")
    if project:
        name = os.path.join(project, os.environ["PROTECTED"])
        open(name, "w").close()
        git = os.path.join(project, ".git")
        os.mkdir(git)
        for place in name, git:
            mount(place, place, None, BIND)
            mount(place, place, None, BIND | REMOUNT | RDONLY)


def restrict(ports):
    attributes = struct.pack("QQQ", WRITES, CONNECTS, SIGNALS)
    rules = checked(libc.syscall(LANDLOCK_CREATE, attributes, len(attributes), 0))
    for place in os.getcwd(), os.environ.get("TMPDIR"), os.environ.get("HOME"), "/dev/null":
        if place and os.path.exists(place):
            descriptor = os.open(place, os.O_PATH)
            rights = WRITES if os.path.isdir(place) else 1 << 1 | 1 << 14
            rule = struct.pack("=Qi", rights, descriptor)
            checked(libc.syscall(LANDLOCK_ADD, rules, 1, rule, 0))
    for port in ports:
        checked(libc.syscall(LANDLOCK_ADD, rules, 2, struct.pack("QQ", CONNECTS, port), 0))
    checked(libc.prctl(38, 1, 0, 0, 0))
    checked(libc.syscall(LANDLOCK_RESTRICT, rules, 0))


def main():
    assert sys.argv[1] == "-f"
    with open(sys.argv[2]) as file:
        text = file.read()
    assert text.startswith("(version 1)\n(deny default)\n")
    ports = [int(port) for port in re.findall(r'"localhost:(\d+)"', text)]
    cwd = os.getcwd()
    hide(sys.argv[2])
    os.chdir(cwd)
    restrict(ports)
    # Python ignores them, and a program would inherit that.
    for number in signal.SIGPIPE, signal.SIGXFSZ:
        signal.signal(number, signal.SIG_DFL)
    os.execvp(sys.argv[3], sys.argv[3:])


main()
