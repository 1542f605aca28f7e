#!/usr/bin/env python3
"""Every operator of op_list.inc has golden cases from an independent source:
tests/ops/<symbol>.json.

Outside engine/ops, engine/build and engine/parse the engine names no operators: what it asks of one
is a trait of struct ifd_op_def. A file that rewrites particular operators names those, and says
here why."""
import json
import re

from tree import ROOT, finish, relative, sources

CONVOLUTIONS = {"CONV2D", "DEPTHWISE_CONV2D"} # share struct ifd_conv2d_attrs
LINEAR = {"ADD", "SUB", "MUL", "DIV"}
MAY_NAME = {
    "engine/exec/control.c": ({"LOOP"}, "which of the two it runs"),
    "engine/ir/count.c": ({"SPACE_TO_BATCH", "BATCH_TO_SPACE"},
                          "blocks are samples there until a pass folds them away"),
    "engine/model/ports.c": ({"LOOP"}, "how long it runs is not known"),
    "engine/opt/crop_filter.c": (CONVOLUTIONS, "pools average over what is over the image"),
    "engine/opt/drop_round_trip.c": ({"CAST", "DEQUANTIZE",
                                      "QUANTIZE"}, "pairs that undo each other"),
    "engine/opt/fold_dilation.c": (CONVOLUTIONS | {"SPACE_TO_BATCH", "BATCH_TO_SPACE", "RESHAPE"},
                                   "the pattern"),
    "engine/opt/fold_pad.c": (CONVOLUTIONS | {"PAD", "MAX_POOL2D"},
                              "writes windows, whose attributes differ"),
    "engine/opt/fold_scale.c": (LINEAR, "what each of the four computes"),
    "engine/opt/fold_tile.c": ({"TILE", "BROADCAST_TO"}, "the operators that go"),
    "engine/opt/fuse_clamp.c": ({"CLAMP"}, "the operator that it makes"),
    "engine/opt/fuse_gelu.c": ({"MUL", "ADD", "DIV", "ERF", "GELU"},
                               "the formula, and the operator that it is"),
    "engine/opt/fuse_norm.c": ({"REDUCE_MEAN", "NEG", "MUL", "ADD", "SUB"},
                               "the formula that it reads, and the one that it writes"),
    "engine/opt/fuse_table.c": ({"TABLE"}, "its list is no operand"),
    "engine/opt/merge_reshape.c": ({"RESHAPE"}, "the operator that goes"),
    "engine/opt/merge_scale.c": (LINEAR, "what each of the four computes"),
    "engine/opt/move_stored.c": ({"DEQUANTIZE", "QUANTIZE", "PAD"},
                                 "the pattern, and the operator that may bring a number along"),
    "engine/opt/move_transposes.c": ({"TABLE", "TRANSPOSE"},
                                     "the operator that moves, and one whose list does not"),
    "engine/opt/rewrite.c": ({"RESHAPE"}, "the operator that it makes"),
    "engine/opt/table.c": ({"TABLE"}, "the operator that it makes"),
    "engine/opt/transpose_to_reshape.c": ({"TRANSPOSE"}, "the operator that goes"),
}
# Their attributes are graphs, which the executor runs: tests/engine/exec/test_control.c.
CONTROL = {"cond", "loop"}
NO_OPERATORS = {"COUNT", "VARIADIC"}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)

rows = re.findall(r"^OP\(\w+, (\w+)\)", (ROOT / "engine/include/inferd/op_list.inc").read_text(),
                  re.M)
problems = []
for symbol in sorted(set(rows) - CONTROL):
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
            problems.append(
                f"{symbol}: case {number} does not say where its golden values come from")
named = set()
for source in sources(["engine"]):
    path = relative(source)
    if path.startswith(("engine/include/", "engine/ops/", "engine/build/", "engine/parse/")):
        continue
    allowed, _ = MAY_NAME.get(path, (set(), ""))
    text = COMMENT.sub(lambda m: "\n" * m.group().count("\n"), source.read_text())
    for match in re.finditer(r"\bIFD_OP_([A-Z0-9_]+)\b", text):
        operator = match.group(1)
        named.add((path, operator))
        if operator not in allowed | NO_OPERATORS:
            line = text.count("\n", 0, match.start()) + 1
            problems.append(
                f"{path}:{line}: names {operator}: ask for a trait of struct ifd_op_def, "
                "or say why not in "
                "tests/lint/check_ops.py")
for path, (operators, _) in MAY_NAME.items():
    problems += [f"{path}: does not name {operator} any more (tests/lint/check_ops.py)"
                 for operator in sorted(operators) if (path, operator) not in named]
finish(problems, len(rows))
