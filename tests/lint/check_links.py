#!/usr/bin/env python3
"""Every relative link of a Markdown file leads to a file of the tree, and to a heading of it if it
names one. Addresses of other machines are not asked."""
import re

from tree import ROOT, finish, relative

UNTRACKED = ("build", ".git", ".venv")


def anchors(path):
    """The names that headings get: small letters, hyphens for spaces, nothing else."""
    text = re.sub(r"(?ms)^```.*?^```$", "", path.read_text())
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in re.findall(r"(?m)^#+ (.*)$", text)}


def fault(path, target):
    name, _, anchor = target.partition("#")
    there = (path.parent / name).resolve() if name else path
    if not there.exists():
        return "there is no such file"
    if anchor and anchor not in anchors(there):
        return "there is no such heading"
    return None


problems, checked = [], 0
tops = [path for path in ROOT.iterdir() if path.name not in UNTRACKED]
for path in sorted(file for top in tops for file in ([top] if top.is_file() else top.rglob("*.md"))
                   if file.suffix == ".md"):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if "://" in target or target.startswith("mailto:"):
                continue
            checked += 1
            why = fault(path, target)
            if why:
                problems.append(f"{relative(path)}:{number}: {target}: {why}")
finish(problems, checked)
