#!/usr/bin/env python3
"""No line of a text file is longer than 100 columns. Tables of Markdown cannot be wrapped; recorded
data and a licence are not ours to wrap."""
from tree import ROOT, finish, relative

LONGEST = 100
SUFFIXES = {".c", ".h", ".cc", ".cl", ".inc", ".py", ".sh", ".md", ".txt", ".cmake", ".yaml",
            ".conf", ".service", ".fbs", ".pbtxt", ""}
UNTRACKED = ("build", ".git", ".venv")
EXCEPT = ("tests/fuzz/corpus/", "tests/data/", "LICENSE")

problems, checked = [], 0
tops = [path for path in ROOT.iterdir() if path.name not in UNTRACKED]
for path in sorted(file for top in tops for file in ([top] if top.is_file() else top.rglob("*"))):
    name = relative(path)
    if name.startswith(EXCEPT) or path.suffix not in SUFFIXES or not path.is_file():
        continue
    try:
        lines = path.read_text().splitlines()
    except UnicodeDecodeError:
        continue
    checked += 1
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST and not (path.suffix == ".md" and line.lstrip().startswith("|")):
            problems.append(f"{name}:{number}: {len(line)} columns, at most {LONGEST}")
finish(problems, checked)
