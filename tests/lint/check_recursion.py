#!/usr/bin/env python3
"""No recursion but the one listed here with its bound: who asks, or writes a file, must not decide
how deep the stack gets.

Reads the calls in the compiled archives of engine, backends, api and server; calls through pointers
are not seen. usage: check_recursion.py BUILD-FOLDER"""
import pathlib
import re
import subprocess
import sys

from tree import finish

# functions that call themselves or each other → why the depth is bounded
KNOWN = {
    "check_unlisted": "folders of a version: DEPTH_MAX, 8 (server/repo/checksums.c)",
    "walk_folder walk_entry": "folders of a model: DEPTH_MAX, 8 (server/repo/scan.c)",
    "parse_fields parse_value": "messages of a config: IFD_TEXT_DEPTH_MAX, 32 (server/repo/text.c)",
    "place": "levels of a sparse tensor: LEVELS_MAX, 16 (engine/parse/tflite/constants.c)",
    "ifd_tflite_inline build_operators ifd_tflite_build_operator ifd_tflite_build_control "
    "build_while unroll turn build_if build_cond build_loop build_graph "
    "ifd_tflite_build_variable build_once":
        "subgraphs: IFD_TFLITE_DEPTH_MAX, 8 (engine/parse/tflite/tflite.c)",
    "ifd_control_compile compile_graphs compile_graph ifd_executable_init compile_part":
        "graphs that nodes name: as deep as the parser allows, 128",
    "ifd_model_drop_instance ifd_spare_destroy":
        "a spare instance has no spare itself (engine/model/spare.c)",
    "read_graph read_node read_attr read_inner": "graphs in nodes: DEPTH_MAX, 8 "
        "(engine/parse/onnx/onnx_reader.c)",
    "capture_graph": "the same graphs, after they were read (engine/parse/onnx/inner.c)",
    "mark_used": "the same (engine/parse/onnx/cut.c)",
    "find_missing": "the same (engine/parse/onnx/missing.c)",
    "note_needs": "the same (engine/parse/onnx/sort.c)",
    "ifd_onnx_call_local ifd_onnx_inline build_node": "graphs and functions: LEVELS_MAX, 128 "
        "(engine/parse/onnx/onnx.c)",
    "is_default": "the same messages, after they were parsed (server/repo/fields.c)",
}
FOLDERS = ("engine", "backends", "api", "server")
SUFFIX = re.compile(r"(\.(cold|part|constprop|isra)(\.\d+)?)+$")
MEMBER = re.compile(r"^(\S+):\s+file format")
SECTION = re.compile(r"^Disassembly of section (\S+):")
FUNCTION = re.compile(r"^([0-9a-f]+) <([^>]+)>:$")
BRANCH = re.compile(r"^\s+[0-9a-f]+:\s+(callq?|jmpq?|bl|b)\s+[0-9a-f]+ <([^>+]+)(\+0x[0-9a-f]+)?>")
RELOCATION = re.compile(
    r"^\s+[0-9a-f]+: R_\S*(?:PLT32|PC32|CALL26|JUMP26)\s+([^\s+-]+)([+-]0x[0-9a-f]+)?")


def read_calls(archive):
    """(caller, callee, is a call and no jump); a name that only its file knows has that file in
    front."""
    text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", archive],
                          capture_output=True,
                          text=True,
                          check=True).stdout
    starts, lines, member, section = {}, text.splitlines(), "", ""
    for line in lines:  # where functions begin, for relocations against sections
        if found := MEMBER.match(line):
            member = found[1]
        elif found := SECTION.match(line):
            section = found[1]
        elif found := FUNCTION.match(line):
            starts.setdefault((member, section), []).append((int(found[1],
                                                                 16), SUFFIX.sub("", found[2])))
    caller, pending = None, None
    for line in lines + [""]:
        relocation = RELOCATION.match(line)
        if pending and not relocation:
            yield member, *pending
        elif pending and relocation:
            name, offset = relocation[1], int(relocation[2] or "0", 16) + 4
            if (member, name) in starts:
                name = max(s for s in starts[member, name]
                           if s[0] <= offset)[1] if offset >= 0 else caller
            yield member, pending[0], SUFFIX.sub("", name), pending[2]
        pending = None
        if found := MEMBER.match(line):
            member = found[1]
        elif found := FUNCTION.match(line):
            caller = SUFFIX.sub("", found[2])
        elif found := BRANCH.match(line):
            is_call = found[1] in ("call", "callq", "bl")
            name = SUFFIX.sub("", found[2])
            if is_call or not found[3] or name != caller:
                pending = (caller, name, is_call)


def cycles(edges):
    """Groups of functions that reach each other (Tarjan's, without recursion)."""
    index, low, on_stack, stack, groups = {}, {}, set(), [], []
    for root in list(edges):
        if root in index:
            continue
        work = [(root, iter(edges.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, callees = work[-1]
            for callee in callees:
                if callee not in index:
                    index[callee] = low[callee] = len(index)
                    stack.append(callee)
                    on_stack.add(callee)
                    work.append((callee, iter(edges.get(callee, ()))))
                    break
                if callee in on_stack:
                    low[node] = min(low[node], index[callee])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = set()
                    while node not in group:
                        group.add(stack.pop())
                    on_stack -= group
                    groups.append(group)
    return groups


build = pathlib.Path(sys.argv[1])
edges, real, checked = {}, set(), 0
for archive in sorted(a for folder in FOLDERS for a in (build / folder).rglob("libifd_*.a")
                      if "kernels" not in a.name):
    defined = {}
    for member, caller, callee, is_call in read_calls(archive):
        checked += 1
        pair = (f"{caller}", f"{callee}")
        # a static function of another file may have the same name: only ifd_ names are known
        # outside their file
        pair = tuple(n if n.startswith(("ifd_", "_Z")) else f"{member}:{n}" for n in pair)
        edges.setdefault(pair[0], set()).add(pair[1])
        if is_call:
            real.add(pair)
problems, seen = [], set()
for group in cycles(edges):
    if not any(a in group and b in group for a, b in real if a in group):
        continue
    names = {n.split(":")[-1] for n in group}
    known = [k for k in KNOWN if names <= set(k.split())]
    seen.update(known)
    if not known:
        problems.append(
            f"{', '.join(sorted(group))}: "
            "recursion that tests/lint/check_recursion.py does not know"
        )
problems += [f"{k}: listed, but does not recurse any more" for k in KNOWN if k not in seen]
finish(problems, checked)
