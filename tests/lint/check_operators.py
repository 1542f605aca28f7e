#!/usr/bin/env python3
"""docs/operators.md is what the tables of operators say, and what their definitions and the
backends answer when asked (tests/conformance/operator_types.c). With --write it is made so.

    check_operators.py [--write] PROGRAM        build/gcc/tests/operator_types"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

from tree import ROOT, finish

PATH = ROOT / "docs/operators.md"
NODES = "/usr/share/libonnx-testdata/data/node"  # Debian's libonnx-testdata
BACKENDS = ["CpuRef", "CpuAcc", "GpuAcc"]
MOVES = ["reshape", "transpose"]
HEAD = """# Operators

Made by `tests/lint/check_operators.py --write build/gcc/tests/operator_types` from the tables of
the sources; `lint.operators` fails when it is stale.

The last three columns are the types of an operator's first input, of {count} in all. CpuRef's are
those of its definition; it computes every operator, but for *cond* and *loop*, which the engine
runs itself. Of CpuAcc and GpuAcc they are those for which the backend, when asked, takes a case of
`tests/ops`; what an empty cell lacks is left to CpuRef. CpuAcc's are those of x86-64: on Arm a cell
with u8 alone has s8 alone. Which shapes and types of other inputs a backend takes is its to say:
`inferd inspect` names each node's backend, and the reason where none takes it. An operator of ONNX
stands where a node of ONNX's own tests becomes just this one; the others are listed below.

| operator | TFLite | ONNX | CpuRef | CpuAcc | GpuAcc |
|---|---|---|---|---|---|
"""
ONNX = """Translated to the operators above, from opset 1 on. Operators that a model defines itself
(functions) are what they are made of. Constants may lie in files beside the model's."""
NARROW = """Casts and quantizations know floats of 8 bits and of 4, and whole numbers of 4 and 2
bits. As inputs and outputs of a model each is a byte: UINT8 with the bits of a float, INT8 or UINT8
with a whole number. Other operators compute these floats as f32."""

LEVELS = """MatMulNBits multiplies floats at every `accuracy_level`; ONNX Runtime rounds activations
to 8 bits at level 4 (`tests/differential/README.md` has the bound of what that changes).

Numbers of ONNX of type DOUBLE, FLOAT16 and BFLOAT16 are computed as f32 and rounded where they
leave the model. A file that needs 64 bits inside loses digits: variances of a Gaussian process
whose matrix is nearly singular, for instance."""


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
    names = [numbers[int(n)] if n.isdigit() else custom.strip('"') for n, custom in rows
             if n.isdigit() or custom != "NULL"]  # a row of a name is also one of the table
    for file in "control.c", "variables.c":
        text = re.search(r"^enum \{(.*?)\};", read(f"engine/parse/tflite/{file}"), re.S | re.M)
        names += [numbers[int(n)] for n in re.findall(r"= (\d+)", text.group(1))]
    return sorted(set(names))


def fields(message):
    """Number, content and place behind it of each field of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            number |= (message[at] & 127) << shift
            shift += 7
            at += 1
            if message[at - 1] < 128:
                return number

    while at < len(message):
        begin = at
        tag = varint()
        size = {0: 0, 1: 8, 2: None, 5: 4}[tag & 7]
        if tag & 7 == 0:
            varint()
        size = varint() if size is None else size
        at += size
        yield tag >> 3, message[at - size:at], message[begin:at]


def field(number, content):
    size, head = len(content), bytes([number << 3 | 2])
    while size > 127:
        head += bytes([size & 127 | 128])
        size >>= 7
    return head + bytes([size]) + content


def with_constants(case):
    """The model of a node test, whose inputs but the first are constants, as weights are."""
    model = graph = b""
    count = 0
    for number, content, whole in fields((case / "model.onnx").read_bytes()):
        if number != 7:
            model += whole
            continue
        for inner, port, part in fields(content):
            count += inner == 11
            value = case / f"test_data_set_0/input_{count - 1}.pb"
            if inner == 11 and count > 1 and value.exists():
                name = next(c for n, c, _ in fields(port) if n == 1)
                part = field(5, value.read_bytes() + field(8, name))
            graph += part
    return model + field(7, graph)


def answers(program):
    """Types by operator and backend, and names of ONNX by operator."""
    if not pathlib.Path(NODES).is_dir():
        print(f"skipped: {NODES} is not here (Debian's package libonnx-testdata)")
        sys.exit(1 if os.environ.get("INFERD_TEST_NO_SKIPS") else 77)
    program = pathlib.Path(program).resolve()
    environment = {**os.environ, "LD_LIBRARY_PATH": str(program.parent / "fake_opencl")}
    with tempfile.TemporaryDirectory() as folder:
        for case in pathlib.Path(NODES).iterdir():
            (pathlib.Path(folder) / f"{case.name}.onnx").write_bytes(with_constants(case))
        done = subprocess.run([program, "tell", ROOT / "tests/ops", NODES, folder],
                              capture_output=True, text=True, env=environment, check=True)
    types, onnx = {}, {}
    for line in done.stdout.splitlines():
        words = line.split()
        if words[0] == "op":
            types[words[1], words[2]] = sorted(words[3:])
        elif words[0] == "onnx":
            onnx.setdefault(words[2], set()).add(words[1])
    return types, onnx


def onnx_list(domain):
    rows = re.findall(r"^    \{(\"\"|M[LS]), \"(\w+)\",", read("engine/parse/onnx/ops.c"), re.M)
    return sorted(name for d, name in rows if d == domain)


def paragraph(names):
    return textwrap.fill(", ".join(names) + ".", 100) + "\n"


def cell(types, every):
    """A list of types, said in short where it has nearly all."""
    rest = sorted(every - set(types))
    if len(rest) > 4:
        return " ".join(types)
    return f"all but {' '.join(rest)}" if rest else "all"


def document(program):
    tflite, (types, onnx) = builtins(), answers(program)
    every = set().union(*types.values())
    single = set().union(*(names for op, names in onnx.items() if op not in MOVES))
    for op in MOVES:  # a sum of one, a clip without bounds
        onnx[op] -= single
    single = set().union(*onnx.values())
    text = HEAD.replace("{count}", str(len(every)))
    for op, symbol in re.findall(r"^OP\((\w+), (\w+)\)",
                                 read("engine/include/inferd/op_list.inc"), re.M):
        cells = [symbol, " ".join(tflite.get(op, [])), " ".join(sorted(onnx.get(symbol, []))),
                 *(cell(types[symbol, backend], every) for backend in BACKENDS)]
        text += f"| {' | '.join(cells)} |\n"
    text += "\n## TFLite\n\nBeside those of the table:\n\n" + paragraph(composites())
    text += "\n## ONNX\n\n" + textwrap.fill(" ".join(ONNX.split()), 100)
    text += "\n\nOf ai.onnx beside those of the table, as several operators:\n\n"
    text += paragraph(name for name in onnx_list('""') if name not in single)
    text += "\n" + textwrap.fill(" ".join(NARROW.split()), 100) + "\n"
    for domain, title in (("ML", "Of ai.onnx.ml"), ("MS", "Of com.microsoft")):
        text += f"\n{title}:\n\n" + paragraph(onnx_list(domain))
    return text + "\n" + textwrap.fill(" ".join(LEVELS.split()), 100) + "\n"


arguments = [word for word in sys.argv[1:] if word != "--write"]
if len(arguments) != 1:
    sys.exit(__doc__)
wanted = document(arguments[0])
if "--write" in sys.argv:
    PATH.write_text(wanted)
is_stale = not PATH.exists() or PATH.read_text() != wanted
problems = [f"docs/operators.md: stale; tests/lint/check_operators.py --write {arguments[0]} makes "
            "it anew"]
finish(problems if is_stale else [], wanted.count("\n"))
