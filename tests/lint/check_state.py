#!/usr/bin/env python3
"""No mutable state at file scope: objects of engine, backends and api have nothing in .data or .bss.

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
archives = [a for folder in ("engine", "backends", "api") for a in sorted((build / folder).rglob("libifd_*.a"))]
for archive in archives:
    table = subprocess.run(["objdump", "-t", archive], capture_output=True, text=True, check=True).stdout
    member = archive.name
    for line in table.splitlines():
        if "file format elf" in line:
            member = line.split(":")[0]
            checked += 1
        # address flags section size name; sections of constants with relocations are .data.rel.ro
        match = re.match(r"[0-9a-f]+ (.{7}) (\.(?:data|bss|tdata|tbss)\S*)\s+([0-9a-f]+)\s+(?:\.hidden )?(\S+)$", line)
        if match and not match.group(2).startswith(".data.rel.ro") and int(match.group(3), 16) > 0 \
                and match.group(1)[-1] == "O" and match.group(4) not in ALLOWED:
            problems.append(f"{archive.name}({member}): {match.group(4)} lies in {match.group(2)}")
finish(problems, checked)
