#!/usr/bin/env python3
"""confined.py UNIT COMMAND …: runs a command under the system call filters of a systemd unit, but
deadlier: a call that the unit answers with an error ends the process (SIGSYS), so that a test sees
it.

What systemd does with SystemCallFilter=, SystemCallArchitectures=, MemoryDenyWriteExecute=,
RestrictAddressFamilies=, RestrictNamespaces=, RestrictSUIDSGID=, RestrictRealtime= and
LockPersonality= is done here with the same library, libseccomp; which calls a set like
@system-service has, systemd-analyze says. Without one of the two: status 77, for "skipped"."""
import ctypes
import os
import re
import socket
import subprocess
import sys

KILL, ALLOW = 0x80000000, 0x7FFF0000
NOT_EQUAL, LESS, EQUAL, GREATER, MASKED_EQUAL = 1, 2, 4, 6, 7
PROT_WRITE, PROT_EXEC, SHM_EXEC = 2, 4, 0o100000
CLONE_NEW = 0x7E020080      # namespaces
NO_NEW_PRIVS = 38
ENOSYS = 0x00050000 | 38


def skip(reason):
    print(f"skipped: {reason}", file=sys.stderr)
    sys.exit(77)


def settings(unit):
    """name → its values in order"""
    all_values = {}
    for line in open(unit):
        name, equals, value = line.strip().partition("=")
        if equals and not line.startswith(("#", ";")):
            all_values.setdefault(name, []).append(value)
    return all_values


def calls_of(name, seen=()):
    """The system calls of a set, of the sets in it, or the call itself."""
    if not name.startswith("@"):
        return {name}
    try:
        text = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", name],
                              check=True,
                              capture_output=True,
                              text=True).stdout
    except FileNotFoundError:
        skip("there is no systemd-analyze (Debian's package systemd)")
    words = [
        word for word in (line.strip() for line in text.splitlines()[1:])
        if word and not word.startswith("#")
    ]
    assert words, f"systemd-analyze knows no calls of {name}"
    return set().union(*(calls_of(word) for word in words))


class Condition(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64),
                ("b", ctypes.c_uint64)]


class Filter:
    """One filter; those of a process are all asked, and the strictest answer counts."""

    def __init__(self, library, default):
        self.library = library
        self.context = library.seccomp_init(default)
        assert self.context

    def add(self, action, name, *conditions):
        """False: this processor has no such call."""
        number = self.library.seccomp_syscall_resolve_name(name.encode())
        array = (Condition * max(len(conditions), 1))(*(Condition(*condition)
                                                        for condition in conditions))
        return number >= 0 and \
            self.library.seccomp_rule_add_array(self.context, action, number, len(conditions),
                                                array) == 0

    def load(self):
        assert self.library.seccomp_load(self.context) == 0
        self.library.seccomp_release(self.context)


def open_library():
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        skip("there is no libseccomp.so.2 (Debian's package libseccomp2)")
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_load.argtypes = library.seccomp_release.argtypes = [ctypes.c_void_p]
    library.seccomp_syscall_resolve_name.argtypes = [ctypes.c_char_p]
    library.seccomp_rule_add_array.argtypes = [
        ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint,
        ctypes.POINTER(Condition)
    ]
    return library


def allowed_calls(values):
    """SystemCallFilter=: the first line allows, those that begin with ~ take away."""
    allowed = set()
    for value in values:
        calls = set().union(*(calls_of(word) for word in value.lstrip("~").split()))
        allowed = allowed - calls if value.startswith("~") else allowed | calls
    return allowed


def filters(library, unit):
    """All filters of the unit, made but not loaded; loading one needs calls that the next may
    forbid."""
    made = []

    def only(name):
        return unit.get(name, [""])[-1]

    if only("MemoryDenyWriteExecute") == "yes":
        f = Filter(library, ALLOW)
        both = PROT_WRITE | PROT_EXEC
        assert f.add(KILL, "mmap", (2, MASKED_EQUAL, both, both))
        assert f.add(KILL, "mprotect", (2, MASKED_EQUAL, PROT_EXEC, PROT_EXEC))
        assert f.add(KILL, "pkey_mprotect", (2, MASKED_EQUAL, PROT_EXEC, PROT_EXEC))
        assert f.add(KILL, "shmat", (2, MASKED_EQUAL, SHM_EXEC, SHM_EXEC))
        made.append(f)
    families = sorted(getattr(socket, name) for name in only("RestrictAddressFamilies").split())
    if families:
        f = Filter(library, ALLOW)
        assert f.add(KILL, "socket", (0, LESS, families[0], 0))
        assert f.add(KILL, "socket", (0, GREATER, families[-1], 0))
        for family in range(families[0], families[-1]):
            assert family in families or f.add(KILL, "socket", (0, EQUAL, family, 0))
        made.append(f)
    if only("RestrictNamespaces") == "yes":
        f = Filter(library, ALLOW)
        assert f.add(KILL, "unshare") and f.add(KILL, "setns")
        # its flags cannot be looked at; the C library then uses clone
        assert f.add(ENOSYS, "clone3")
        for bit in range(32):
            assert not CLONE_NEW >> bit & 1 or f.add(KILL, "clone",
                                                     (0, MASKED_EQUAL, 1 << bit, 1 << bit))
        made.append(f)
    if only("RestrictSUIDSGID") == "yes":
        f = Filter(library, ALLOW)
        for name, arg in (("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("mkdir", 1),
                          ("mkdirat", 2), ("mknod", 1), ("mknodat", 2)):
            for bit in (0o4000, 0o2000):
                f.add(KILL, name, (arg, MASKED_EQUAL, bit, bit))
        made.append(f)
    if only("RestrictRealtime") == "yes":
        f = Filter(library, ALLOW)
        assert f.add(KILL, "sched_setscheduler", (1, GREATER, 0, 0))
        made.append(f)
    if only("LockPersonality") == "yes":
        f = Filter(library, ALLOW)
        assert f.add(KILL, "personality", (0, NOT_EQUAL, 0xFFFFFFFF, 0))
        made.append(f)
    f = Filter(library, KILL)
    missing = [
        name for name in sorted(allowed_calls(unit["SystemCallFilter"])) if not f.add(ALLOW, name)
    ]
    assert "read" not in missing and "execve" not in missing
    made.append(f)
    return made


def main():
    unit = settings(sys.argv[1])
    assert "native" in unit["SystemCallArchitectures"]      # libseccomp's own default
    made = filters(open_library(), unit)
    assert ctypes.CDLL(None).prctl(NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    # The list of allowed calls last: it has no seccomp(2).
    for f in made:
        f.load()
    os.execvp(sys.argv[2], sys.argv[2:])


main()
