#!/usr/bin/env python3
"""No mutable state at file scope: objects of engine, backends, api, server and clients have nothing
in .data or .bss.

usage: check_state.py BUILD-FOLDER"""
import pathlib
import re
import subprocess
import sys

from tree import finish

# What is allowed, and why.
ALLOWED = {"png_memory"}  # of its thread: libspng passes no context to its allocator

build = pathlib.Path(sys.argv[1])
problems, checked = [], 0
folders = [build / name for name in ("engine", "backends", "api", "server", "clients")]
# archives, and the objects of programs, which are in no archive
files = [
    f for folder in folders
    for f in sorted([*folder.rglob("lib*.a"), *folder.glob("**/CMakeFiles/*.dir/**/*.o")])
    if f.suffix == ".a" or
    not f.relative_to(build).as_posix().split("CMakeFiles/")[1].startswith("ifd_")
]
for archive in files:
    table = subprocess.run(["objdump", "-t", archive], capture_output=True, text=True,
                           check=True).stdout
    member = archive.name
    for line in table.splitlines():
        if "file format elf" in line:
            member = line.split(":")[0]
            checked += 1
        # address flags section size name; sections of constants with relocations are .data.rel.ro
        match = re.match(
            r"[0-9a-f]+ (.{7}) (\.(?:data|bss|tdata|tbss)\S*)\s+([0-9a-f]+)\s+(?:\.hidden )?(\S+)$",
            line)
        if not match:
            continue
        flags, section, size, name = match.groups()
        is_object = flags[-1] == "O" or (section.startswith(".t") and "d" not in flags
                                         )  # threads' own have no type
        if is_object and not section.startswith(".data.rel.ro") and int(
                size, 16) > 0 and name not in ALLOWED:
            problems.append(f"{archive.name}({member}): {name} lies in {section}")
finish(problems, checked)
