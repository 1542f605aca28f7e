#!/usr/bin/env python3
"""api/http/openapi.yaml has exactly the routes of route_list.inc, and names every {part}."""
import re

from tree import ROOT, finish

routes = {(method.lower(), path) for method, path in re.findall(
    r'^ROUTE\((\w+), "([^"]+)"', (ROOT / "api/http/route_list.inc").read_text(), re.M)}

described, parameters, path, key = set(), {}, None, None
for line in (ROOT / "api/http/openapi.yaml").read_text().splitlines():
    if re.match(r"\S", line):
        path = None
    if re.match(r"    \w", line):
        key = line.split(":")[0].strip()
    if found := re.match(r"  (/\S*):$", line):
        path = found[1]
        parameters[path], key = set(), None
    elif path and (found := re.match(r"    (get|post|put|delete|head|options|patch):$", line)):
        described.add((found[1], path))
    elif path and key == "parameters":
        parameters[path] |= set(re.findall(r"#/components/parameters/(\w+)", line))

problems = [f"openapi.yaml lacks {method} {path}" for method, path in sorted(routes - described)]
problems += [f"openapi.yaml has {method} {path}, route_list.inc has not"
             for method, path in sorted(described - routes)]
for path, named in sorted(parameters.items()):
    if set(re.findall(r"{(\w+)}", path)) != named:
        problems.append(f"openapi.yaml: parameters of {path} are {sorted(named)}")
finish(problems, len(routes & described))
