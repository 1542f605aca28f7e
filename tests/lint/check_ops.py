#!/usr/bin/env python3
"""Every operator of op_list.inc has golden cases from an independent source: tests/ops/<symbol>.json."""
import json
import re

from tree import ROOT, finish

rows = re.findall(r"^OP\(\w+, (\w+)\)", (ROOT / "engine/include/inferd/op_list.inc").read_text(), re.M)
problems = []
for symbol in rows:
    path = ROOT / "tests/ops" / f"{symbol}.json"
    if not path.exists():
        problems.append(f"{symbol}: no tests/ops/{symbol}.json")
        continue
    content = json.loads(path.read_text())
    cases = content["cases"] if isinstance(content, dict) else content
    source = content.get("source") if isinstance(content, dict) else None
    if not cases:
        problems.append(f"{symbol}: {path.name} has no case")
    for number, case in enumerate(cases):
        if not (case.get("source") or source):
            problems.append(f"{symbol}: case {number} does not say where its golden values come from")
finish(problems, len(rows))
