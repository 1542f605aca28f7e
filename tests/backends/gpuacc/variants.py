"""The sets of definitions that GpuAcc builds its kernel files with on a device without extensions,
and whether all of them ran.

SETS has, by file, the definitions that choose other code, and numbers that size a kernel's blocks;
test_variants prints the blocks of ops/blocking.c, which multiply the sets of their files. EACH has
numbers, types and texts of which every one must have run in some set: they do not choose code. A
definition that is in no table is an error, in a program as in a driver's source; so is a set that
did not run. Who adds one adds it here, and a test that runs it."""
import itertools
import re

# A line is a product: alternatives are separated by |, definitions of one by +; - is none.
STORED = "-|REAL_IN|REAL_OUT|REAL_IN+REAL_OUT"
REALS = "-|W16 " + STORED
WINDOWS = ["-|ODD|ALIGNED|ODD+ALIGNED " + REALS, "POINTWISE -|ODD|ALIGNED " + REALS]
PAIR = "-|REAL_IN -|REAL_B -|REAL_OUT"
Q8 = "Q=char|Q=uchar "
DOT = "-|DOT+DOT_PLAIN|DOT+DOT_PLAIN+HAS_W_ZERO "
PIXELS_Q8 = "PIXELS=1|PIXELS=2|PIXELS=4|PIXELS=8 " + Q8
PIXELS_DEEP = "PIXELS=1|PIXELS=2|PIXELS=4 "
SETS = {
    "conv.cl": [*WINDOWS, "TRANSPOSED " + WINDOWS[0]],
    "conv_slim.cl": ["-|POINTWISE|TRANSPOSED -|ALIGNED " + REALS],
    "conv_tile.cl": WINDOWS,
    "winograd_in.cl": ["PATCH=2|PATCH=4 -|ALIGNED -|REAL_IN"],
    "winograd_out.cl": ["PATCH=2|PATCH=4 -|ALIGNED -|REAL_OUT"],
    "depthwise.cl": [
        PIXELS_DEEP + "MULTIPLIER=1|MULTIPLIER=1+ALIGNED|MULTIPLIER=n -|FITS " + STORED
    ],
    "depthwise_q8.cl": [PIXELS_DEEP + "MULTIPLIER=1|MULTIPLIER=1+ALIGNED|MULTIPLIER=n " + Q8],
    "conv_q8.cl": [
        PIXELS_Q8 + "-|POINTWISE|REAL+POINTWISE " + DOT, PIXELS_Q8 + "TRANSPOSED"
    ],
    "elementwise.cl": ["-|ALIGNED " + STORED],
    "binary.cl": [PAIR],
    "matmul.cl": [PAIR],
    "pool.cl": ["AVERAGE=0|AVERAGE=1 -|ALIGNED " + STORED],
    "softmax.cl": ["LOG=0|LOG=1 " + STORED],
    "reduce.cl": [STORED],
    "resize.cl": ["-|ALIGNED " + STORED, "Q=uchar"],
    "pool_q8.cl": ["AVERAGE=0|AVERAGE=1 " + Q8],
    "softmax_q8.cl": [Q8],
    "log_softmax_q8.cl": [Q8],
    "reduce_q8.cl": [Q8],
    "matmul_q8.cl": ["Q=char"],
    "resize_steps.cl": ["Q=char"],
    "quantize.cl": ["Q=char|Q=uchar|Q=short -|EVEN"],
    "sample.cl": ["TAPS=1|TAPS=2|TAPS=4 PADDING=0|PADDING=1|PADDING=2 CORNERS=0|CORNERS=1"],
    "table.cl": ["-|REAL_IN"],
    "lstm.cl": ["-|COUPLED -|PROJECTS -|HAS_STATE -|KEEPS_STATE"],
}
PRODUCTS = "POINTWISE+ALIGNED"  # of Winograd's algorithm, by a block of MATRICES
BLOCK = {
    "PIXELS", "CHANNELS", "ROWS", "COLUMNS", "SLICES", "DEPTH", "W_CONSTANT", "W_IMAGE", "MATRICES"
}
WORDS = "uchar ushort uint ulong"
HALVES = {"REAL_IN": "half", "REAL_OUT": "half"}  # which kernels that move do not look at
EACH = {
    "copy.cl": {"ELEMENT": WORDS, "RANK": "0 1 2 3 4 5"} | HALVES,
    "choose.cl": {"ELEMENT": "uchar uint ulong", "RANK": "1 2"},
    "mirror.cl": {"ELEMENT": WORDS, "RANK": "2 4"} | HALVES,
    "gather.cl": {"ELEMENT": WORDS} | HALVES,
    "nearest.cl": {"ELEMENT": "uchar ushort uint"} | HALVES,
    "one_hot.cl": {"ELEMENT": "uchar uint ulong"},
    "elementwise.cl": {"REAL_T0": "half float", "TAIL": "some"},
} | {
    file: {"TAIL": "none some"}
    for file in ("conv.cl", "conv_slim.cl", "conv_tile.cl", "winograd_out.cl", "depthwise.cl",
                 "pool.cl")
}
# Numbers and texts of a model, or of its sizes: every row of an operator's table has a golden case.
FREE = {
    "KH", "KW", "STRIDE_X", "DILATION_X", "SLICES", "ITEMS", "TAIL_PARAMS", "TAIL", "START",
    "FINISH", "LOWEST", "HIGHEST", "IN", "OUT", "COMBINE", "CONVERT", "OPERATOR", "BETTER",
    "REDUCE", "ADD", "T", "INDEX", "OPERAND", "RESULT", "NORMS", "PEEPHOLES"
}
# Not on Oclgrind, which has no extensions.
ELSEWHERE = {"SUMS16", "DOT_KHR", "DOT_ARM"}


def expand(line):
    """All sets of a product."""
    parts = [choice.split("|") for choice in line.split()]
    return {
        frozenset(name for part in chosen for name in part.split("+") if name != "-")
        for chosen in itertools.product(*parts)
    }


def parse(line):
    """File and definitions of a line that programs.h prints."""
    file, *lines = line.split("\t")
    found = [re.match(r"#define (\w+)(?:\([^)]*\))? ?(.*)", text) for text in lines if text]
    definitions = {match[1]: match[2].strip() for match in found if match}
    if "MULTIPLIER" in definitions and definitions["MULTIPLIER"] != "1":
        definitions["MULTIPLIER"] = "n"
    if "KH" in definitions:  # depthwise.cl: a window that fits into registers
        pixels, high, wide, stride, dilation = (
            int(definitions[name]) for name in ("PIXELS", "KH", "KW", "STRIDE_X", "DILATION_X"))
        if (pixels - 1) * stride + (wide - 1) * dilation < 32 and high <= 11:
            definitions["FITS"] = ""
    if "TAIL" in definitions:
        definitions["TAIL"] = "some" if definitions["TAIL"] else "none"
    return file, definitions


def chosen(definitions, names):
    """Those with these names, as SETS has them."""
    return frozenset(name if value in ("", "half") else f"{name}={value}"
                     for name, value in definitions.items() if name in names)


def wanted(blocks):
    """Sets by file."""
    sets = {file: set().union(*map(expand, lines)) for file, lines in SETS.items()}
    by_file = {}
    for file, definitions in map(parse, blocks):
        forms = expand(PRODUCTS) if "MATRICES" in definitions else sets[file]
        block = chosen(definitions, BLOCK)
        by_file.setdefault(file, set()).update(form | block for form in forms)
    return sets | by_file


def names_of(sets):
    return {item.split("=")[0] for path in sets for item in path}


def check_programs(programs, sets):
    """What ran and is not in a table, and the other way."""
    ran, values, problems = {}, {}, set()
    for file, definitions in map(parse, programs):
        names = names_of(sets.get(file, ()))
        for name, value in definitions.items():
            values.setdefault((file, name), set()).add(value)
            if name not in names | FREE | set(EACH.get(file, ())) and not name.startswith("REAL_T"):
                problems.add(f"{file}: {name} is not in variants.py")
        path = chosen(definitions, names)
        ran.setdefault(file, set()).add(path)
        if path not in sets.get(file, {frozenset()}):
            problems.add(f"{file}: {' '.join(sorted(path)) or 'nothing'} is not in variants.py")
    for file, paths in sets.items():
        for path in paths - ran.get(file, set()):
            problems.add(f"{file}: {' '.join(sorted(path)) or 'nothing'} did not run")
    for file, names in EACH.items():
        for name, all_values in names.items():
            for value in set(all_values.split()) - values.get((file, name), set()):
                problems.add(f"{file}: {name} {value} did not run")
    return problems


def check_sources(sources, sets):
    """Definitions that drivers have and no table, and the other way."""
    text = "\n".join(sources)
    made = set(re.findall(r'(?:"|\\n)#define (\w+)\b(?!%)', text))
    made |= set(re.findall(r'"(DOT_\w+)"', text))
    made |= {"REAL_" + name for name in re.findall(r'"(IN|B)"', text)}
    known = set().union(*map(names_of, sets.values())) - {"FITS"} | FREE | ELSEWHERE | BLOCK
    known |= {name for names in EACH.values() for name in names if not name.startswith("REAL_T")}
    return {f"{name} is in a driver or in variants.py, not in both" for name in made ^ known}


def problems(programs, blocks, sources):
    sets = wanted(blocks)
    return sorted(check_programs(programs, sets) | check_sources(sources, sets))
