#!/usr/bin/env python3
"""LIVE settings (server/config/config_list.inc) are read only where a change is seen: by what the
applier of their row calls, and those with the applier USE where they are used, never into a copy. A
new reader is a line here, and a thought."""
import re

from tree import ROOT, relative, sources, finish

# applier → functions that may read its settings: they run at the start and after each change
# (server/server.c)
READERS = {
    "HTTP": ["ifd_server_http_options", "raise_descriptors"],  # the latter only warns, at the start
    "API": ["ifd_server_create_front", "apply_to_api"],
    "LOG": ["ifd_server_log_levels"],
    # these use the value and keep nothing
    "USE": ["deadline_of", "ifd_service_is_ready", "ifd_server_begin_stop"],
}
ROW = re.compile(r"^LIVE\((\w+), \"[^\"]*\", (\w+),", re.M)
FUNCTION = re.compile(r"^(?!static const|typedef)[A-Za-z_][^\n;=]*?\b(\w+)\([^;]*?\)\n\{", re.M)

rows = dict((member, applier) for applier, member in
            ROW.findall((ROOT / "server/config/config_list.inc").read_text()))
use = re.compile(r"config(?:->|\.)(%s)\b" % "|".join(rows))
problems, checked = [], 0
for source in sources():
    path = relative(source)
    if not path.startswith("server/") or path.startswith("server/config/"):
        continue
    text = source.read_text()
    functions = [(found.start(), found.group(1)) for found in FUNCTION.finditer(text)]
    for found in use.finditer(text):
        checked += 1
        reader = max((f for f in functions if f[0] < found.start()), default=(0, "no function"))[1]
        applier = rows[found.group(1)]
        if reader not in READERS[applier]:
            line = text.count("\n", 0, found.start()) + 1
            problems.append(
                f"{path}:{line}: {reader} reads the live setting {found.group(1)}, which only "
                f"{', '.join(READERS[applier])} may: a change would not be seen")
if not rows or checked < len(rows):
    problems.append(f"{len(rows)} live settings, {checked} uses of them were found")
finish(problems, checked)
