#!/usr/bin/env python3
"""Names: include guards spell the path, exported functions begin with ifd_, no struct typedefs,
tests say what they do."""
import re

from tree import relative, sources, finish

FUNCTION = re.compile(r"^(?!static\b|typedef\b|#|\s)(?:[\w*]+[\s*]+)+([a-z]\w+)\([^;{]*\)[^;{]*\{",
                      re.M)
VAGUE = re.compile(r"T\((test_?\d*|case_?\d*|works|basic|simple\d*|misc)\)")

problems, checked = [], 0
for source in sources():
    path, text = relative(source), source.read_text()
    checked += 1
    if source.suffix == ".h" and not path.endswith(
            "_tmpl.h"):  # a template is included more than once
        guard = re.sub(r"[^A-Z0-9]", "_", path.upper())
        guard = "INFERD_" + re.sub(r"^ENGINE_INCLUDE_INFERD_", "", guard)
        if f"#ifndef {guard}\n#define {guard}\n" not in text:
            problems.append(f"{path}: guard should be {guard}")
    if re.search(r"\btypedef\s+(struct|enum|union)\s+(\w+\s*)?(\{|\w+\s*;)", text):
        problems.append(f"{path}: typedef of a struct, enum or union")
    if re.search(r"\b\w+_t\s*;\s*$", "\n".join(re.findall(r"typedef.*", text)), re.M):
        problems.append(f"{path}: names in _t belong to POSIX")
    if VAGUE.search(text):
        problems.append(
            f"{path}: a test's name says the behaviour, not \"{VAGUE.search(text).group(1)}\"")
    # Kernels export tables only, which lint.state sees; their helpers are static through a macro.
    if not path.startswith(("tests/", "backends/cpuacc/kernels/")) and source.suffix == ".c":
        for name in FUNCTION.findall(text):
            if not name.startswith("ifd_") and name != "main":
                problems.append(f"{path}: {name}() is visible outside but lacks the prefix ifd_")
finish(problems, checked)
