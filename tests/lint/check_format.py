#!/usr/bin/env python3
"""Every C file is as clang-format leaves it (the .clang-format at the top; version 14, Debian
12's)."""
import subprocess

from tree import ROOT, finish, relative, sources

files = [path for path in sources(suffixes=(".c", ".h", ".cc"))]
problems = []
for start in range(0, len(files), 40):
    part = files[start:start + 40]
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *map(str, part)],
                          capture_output=True,
                          text=True,
                          cwd=ROOT)
    if done.returncode:
        bad = {line.split(":")[0] for line in done.stderr.splitlines() if ": error:" in line}
        problems += [
            f"{relative(type(part[0])(name))}: run clang-format -i" for name in sorted(bad)
        ] or [done.stderr]
finish(problems, len(files))
