#!/usr/bin/env python3
"""docs/operators.md is what the tables of operators say. With --write it is made so."""
import json
import re
import sys
import textwrap

from tree import ROOT, finish

PATH = ROOT / "docs/operators.md"
HEAD = """# Operators

Made by `tests/lint/check_operators.py --write` from the tables of the sources; `lint.operators`
fails when it is stale.

CpuRef computes every operator, but for *cond* and *loop*, which the engine runs itself. *Types* are
those of the first input in the golden cases of `tests/ops`. A cross means that the backend has
kernels of its own; which shapes and types they take is theirs to say (`inferd inspect` names each
node's backend, and the reason where none takes it).

| operator | TFLite | types | CpuAcc | GpuAcc |
|---|---|---|---|---|
"""
ONNX = """Translated to the operators above, from opset 1 on. Operators that a model defines itself
(functions) are what they are made of. Constants may lie in files beside the model's."""
NARROW = """Casts and quantizations know floats of 8 bits (but for E8M0) and of 4, and whole
numbers of 4 and 2 bits. As inputs and outputs of a model each is a byte: UINT8 with the bits of a
float, INT8 or UINT8 with a whole number. Other operators compute these floats as f32."""


def read(path):
    return (ROOT / path).read_text()


def builtins():
    """TFLite's names of each of our operators."""
    numbers = dict((int(n), name) for name, n in re.findall(
        r"(\w+) = (\d+)", re.search(r"enum Builtin.*?\}", read("engine/parse/tflite/schema.fbs"),
                                    re.S).group()))
    names = {}
    for number, custom, op in re.findall(r"^    \{(\w+), (NULL|\"\w+\"), IFD_OP_(\w+),",
                                         read("engine/parse/tflite/ops.c"), re.M):
        name = numbers.get(int(number), number) if number.isdigit() else custom.strip('"')
        names.setdefault(op, []).append(name)
    return names


def composites():
    """TFLite's names of what becomes several of ours, graphs or variables."""
    schema = re.search(r"enum Builtin.*?\}", read("engine/parse/tflite/schema.fbs"), re.S).group()
    numbers = {int(n): name for name, n in re.findall(r"(\w+) = (\d+)", schema)}
    rows = re.findall(r"^    \{(\w+), (NULL|\"\w+\"), \d",
                      read("engine/parse/tflite/composite.c"), re.M)
    names = [numbers[int(n)] if n.isdigit() else custom.strip('"') for n, custom in rows]
    for file in "control.c", "variables.c":
        text = re.search(r"^enum \{(.*?)\};", read(f"engine/parse/tflite/{file}"), re.S | re.M)
        names += [numbers[int(n)] for n in re.findall(r"= (\d+)", text.group(1))]
    return sorted(set(names))


def tested_types(symbol):
    path = ROOT / "tests/ops" / f"{symbol}.json"
    cases = json.loads(path.read_text())["cases"] if path.exists() else []
    return sorted({c["inputs"][0]["dtype"] for c in cases if c["inputs"] and c["inputs"][0]})


def drivers(backend):
    return set(re.findall(r"^DRIVER\((\w+),", read(f"backends/{backend}/ops/op_list.inc"), re.M))


def onnx_list(domain):
    rows = re.findall(r"^    \{(\"\"|M[LS]), \"(\w+)\",", read("engine/parse/onnx/ops.c"), re.M)
    return sorted(name for d, name in rows if d == domain)


def paragraph(names):
    return textwrap.fill(", ".join(names) + ".", 100) + "\n"


def document():
    tflite, acc, gpu = builtins(), drivers("cpuacc"), drivers("gpuacc")
    text = HEAD
    for op, symbol in re.findall(r"^OP\((\w+), (\w+)\)",
                                 read("engine/include/inferd/op_list.inc"), re.M):
        text += (f"| {symbol} | {' '.join(tflite.get(op, []))} | {' '.join(tested_types(symbol))} "
                 f"| {'x' if op in acc else ''} | {'x' if op in gpu else ''} |\n")
    text += "\n## TFLite\n\nBeside those of the table:\n\n" + paragraph(composites())
    text += "\n## ONNX\n\n" + textwrap.fill(" ".join(ONNX.split()), 100) + "\n\nOf ai.onnx:\n\n"
    text += paragraph(onnx_list('""'))
    text += "\n" + textwrap.fill(" ".join(NARROW.split()), 100) + "\n"
    text += "\nOf ai.onnx.ml:\n\n" + paragraph(onnx_list("ML"))
    text += "\nOf com.microsoft:\n\n" + paragraph(onnx_list("MS"))
    return text


wanted = document()
if "--write" in sys.argv:
    PATH.write_text(wanted)
is_stale = not PATH.exists() or PATH.read_text() != wanted
problems = ["docs/operators.md: stale; tests/lint/check_operators.py --write makes it anew"]
finish(problems if is_stale else [], wanted.count("\n"))
