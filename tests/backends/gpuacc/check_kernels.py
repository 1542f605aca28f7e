#!/usr/bin/env python3
"""Every kernel file through clang's OpenCL front end, with warnings as errors, with each set of
definitions in kernel_list.inc.

usage: check_kernels.py CLANG FOLDER"""
import pathlib
import re
import subprocess
import sys

clang, folder = sys.argv[1], pathlib.Path(sys.argv[2])
FLAGS = [
    "-x", "cl", "-cl-std=CL1.2", "-fsyntax-only", "-Xclang", "-finclude-default-header", "-Wall",
    "-Wextra", "-Werror", "-Wno-unused-parameter", "-"
]


def defines(text):
    """C text of "A=1|F(x)=(x + 1)"."""
    pairs = [part.split("=", 1) for part in text.split("|") if part]
    return "".join(f"#define {name} {value}\n" for name, value in pairs)


rows = re.findall(r"^KERNEL\((\w+), (\w+),(.*?)\)$",
                  (folder / "kernel_list.inc").read_text().split("*/", 1)[1], re.M | re.S)
problems, checked, files = [], 0, set()
common = (folder / "common.cl").read_text()
for name, file, sets in rows:
    text = (folder / f"{file}.cl").read_text()
    files.add(file)
    if not re.search(rf"kernel void {name}\(", text):
        problems.append(f"{file}.cl: has no kernel {name}")
    literals = re.sub(r'"\s*\n\s*"', "", sets)  # of several lines
    for variant in re.findall(r'"([^"]*)"', literals):
        source = defines(variant) + common + text
        result = subprocess.run([clang, *FLAGS], input=source, capture_output=True, text=True)
        checked += 1
        if result.returncode != 0:
            problems.append(f"{file}.cl with \"{variant}\":\n{result.stderr}")
for path in folder.glob("*.cl"):
    if path.stem not in files | {"common"}:
        problems.append(f"{path.name}: is in no row of kernel_list.inc")
print(*problems, f"{checked} variants, {len(problems)} problems", sep="\n")
sys.exit(1 if problems or checked < 10 else 0)
