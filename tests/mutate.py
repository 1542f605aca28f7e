#!/usr/bin/env python3
"""Mutation testing: changes one place of the product at a time and says which changes no test
notices.

usage: tests/mutate.py [--count N] [--seed N] [--only PREFIX …] [--jobs N] [--plain]
                       [--results FILE] [--work FOLDER]

A mutant flips a comparison or a logical operator, moves a number by one, or drops a statement, in
the files of AREAS. Mutants are drawn at random with the seed. The tree is copied to WORK
(build/mutants) and built there with clang's AddressSanitizer (--plain: without), as the suite of
tests/run.sh is. For each mutant only the tests of its area are built and run, the quickest first,
until one fails or exceeds ten times what it takes without a mutant. A mutant that does not compile,
or compiles to the same object, is replaced by another. Every outcome is a line of JSON in RESULTS;
survivors are listed at the end, and what they mean is answered in tests/MUTANTS.md. Exit status: 0
at least 90 % are caught, 1 fewer are."""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
# Files of an area → stages of tests, as patterns of ctest names: near ones first.
ENGINE = [
    r"^engine\.", r"^golden\.cpuacc\.(ad01|kws|resnet8|vww|str_ww|mobilenet_v1_0_25|yamnet)",
    r"^conformance\..*equal_golden", r"^backends\.cpuacc\.(memory|networks|parts|strips)"
]
AREAS = {
    "engine/exec": [r"^engine\.exec\.", *ENGINE, r"^http\.(batching|faults)\."],
    "engine/plan": [r"^engine\.plan\.", *ENGINE],
    "server/sched": [
        r"^server\.sched\.",
        r"^http\.(batching|limits|shutdown|metrics|protocol|connections|faults|warm_up)\.",
        r"^acceptance\.(control|tritonclient|wire|interrupts|signals)$"
    ],
    "server/repo": [
        r"^server\.repo\.",
        r"^http\.(repository|reload|checksums|polling|clock|shutdown|faults|metrics)\.",
        r"^acceptance\.(control|examples|interrupts|metrics|service|settings|wire)$"
    ],
    "server/net/gate.c": [
        r"^server\.net\.", r"^http\.(gate|protocol|limits|torture|slow|connections)\."
    ],
    "api/http/guard": [r"^api\.", r"^http\.tokens\.", r"^acceptance\.tokens$"],
    "server/auth": [r"^server\.auth\.", r"^http\.tokens\.", r"^acceptance\.tokens$"],
}
BLANKED = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*',
    re.S | re.M)
FLIPS = {
    "<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="], "&&": ["||"],
    "||": ["&&"]
}
FLIP = re.compile(r"(?<= )(<=|>=|==|!=|<|>|&&|\|\|)(?=[ \n])")
NUMBER = re.compile(r"(?<![\w.\[])(\d+)(?![\w.\]])")
STATEMENT = re.compile(
    r"^[ \t]+(?!return\b|break\b|goto\b|continue\b|case\b|default\b)[^\s{}][^{}]*;$", re.M)
DECLARATION = re.compile(
    r"^\s*(?:static |const |unsigned )*(?:struct |enum |union )?\w+[ *]+(?:const )?"
    r"\w+(?:\[[^]]*\])*\s*(?:=|;|,)"
)
ASSIGNED = re.compile(
    r"^\s*[\w.>\-\[\]*()]+\s*(?:[-+|&*/^]|<<|>>)?=[^=]|"
    r"^\s*[\w.>\-\[\]()*]+(?:\+\+|--);|"
    r"^\s*(?:\(void\))?\w[\w.>\-]*\("
)


def mutants_of(path, text):
    """(line, start, end, replacement, kind) of every mutant of a file."""
    code = BLANKED.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    found = []
    for match in FLIP.finditer(code):
        found += [(match.start(1), match.end(1), other, "flip") for other in FLIPS[match[1]]]
    for match in NUMBER.finditer(code):
        value = int(match[1])
        found += [(match.start(1), match.end(1), str(value + 1), "off by one")]
        found += [(match.start(1), match.end(1), str(value - 1), "off by one")] if value > 0 else []
    depth = 0
    for start, line in zip((0, *(m.end() for m in re.finditer("\n", code))), code.split("\n")):
        is_whole = line.count("(") == line.count(")")
        is_statement = STATEMENT.match(line) and ASSIGNED.match(line)
        if depth > 0 and is_whole and is_statement and not DECLARATION.match(line):
            indent = len(line) - len(line.lstrip())
            found.append((start + indent, start + len(line), ";", "drop"))
        depth += line.count("{") - line.count("}")
    return [(text.count("\n", 0, start) + 1, start, end, new, kind)
            for start, end, new, kind in found]


class Tree:
    """A copy of the sources with a build folder beside it."""

    def __init__(self, work, plain, jobs):
        # laid out as the tree itself, so that ccache has most of what was built there
        self.source, self.jobs = work, jobs
        self.build = work / "build" / ("gcc" if plain else "sanitize-address")
        self.environment = {**os.environ, "ASAN_OPTIONS": "detect_stack_use_after_return=1",
                            "CCACHE_NOHASHDIR": "1"}
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
        if (work / ".git").exists():
            sys.exit(f"{work} is a checkout; --work names a folder for a copy of it")
        for old in work.glob("*") if work.exists() else []:
            if old.is_dir() and not old.is_symlink() and old.name != "build":
                shutil.rmtree(old)
        for name in filter(None, files.stdout.decode().split("\0")):
            if (ROOT / name).is_file():
                (self.source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.source / name)
        if (ROOT / ".venv").exists() and not (self.source / ".venv").exists():
            (self.source / ".venv").symlink_to((ROOT / ".venv").resolve())
        flags = "-O1 -gline-tables-only"  # as in tests/run.sh, so that ccache has most of it
        options = ["-DIFD_WERROR=ON", "-DCMAKE_BUILD_TYPE=Release"] if plain else [
            "-DIFD_WERROR=ON", "-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++",
            "-DIFD_SANITIZE=address,undefined", "-DIFD_FUZZ=ON",
            "-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DCMAKE_C_FLAGS_RELWITHDEBINFO={flags}",
            f"-DCMAKE_CXX_FLAGS_RELWITHDEBINFO={flags}"
        ]
        if shutil.which("ccache"):
            options += [
                "-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"
            ]
        self.must([
            "cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", f"-DIFD_SHARED={SHARED}",
            *options
        ])
        self.must(["ninja", "-C", self.build,
                   f"-j{jobs}"])  # ctest knows the commands of programs that exist
        listing = self.must(["ctest", "--test-dir", self.build, "--show-only=json-v1"])
        self.tests = {test["name"]: test for test in json.loads(listing)["tests"]}
        self.seconds = {}

    def must(self, command):
        done = subprocess.run(command,
                              capture_output=True,
                              text=True,
                              check=False,
                              env=self.environment)
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def compile(self, names):
        """Builds what these tests run; false: it does not compile."""
        programs = {pathlib.Path(self.tests[name]["command"][0]).name for name in names}
        programs = {program for program in programs if not program.endswith((".sh", "python3"))}
        if any(name.startswith("acceptance.") for name in names):
            programs |= {"inferd", "inferctl"}
        done = subprocess.run(["ninja", "-C", self.build, f"-j{self.jobs}", *sorted(programs)],
                              capture_output=True,
                              check=False,
                              env=self.environment)
        return done.returncode == 0

    def object_of(self, path):
        """Digest of what a source file compiles to."""
        top, *rest = path.parts
        objects = sorted((self.build / top / "CMakeFiles").glob(f"*.dir/{'/'.join(rest)}.o"))
        if not objects:
            sys.exit(f"{path}: no object file below {self.build / top}")
        return hashlib.sha256(b"".join(file.read_bytes() for file in objects)).hexdigest()

    def passes(self, name, limit):
        """Runs a test by itself, with everything that it starts; false: it failed, or took longer
        than limit seconds."""
        test = self.tests[name]
        environment, folder = dict(self.environment), self.build
        for prop in test.get("properties", []):
            if prop["name"] == "ENVIRONMENT":
                environment.update(entry.split("=", 1) for entry in prop["value"])
            if prop["name"] == "WORKING_DIRECTORY":
                folder = prop["value"]
        start = time.monotonic()
        with subprocess.Popen(test["command"],
                              cwd=folder,
                              env=environment,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL,
                              start_new_session=True) as process:
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return False
        self.seconds.setdefault(name, time.monotonic() - start)
        return status in (0, 77)

    def first_failure(self, names, limit_of):
        """The name of a test that fails, or None."""
        names = sorted(names, key=lambda name: self.seconds.get(name, 0))
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            running = {pool.submit(self.passes, name, limit_of(name)): name for name in names}
            for done in concurrent.futures.as_completed(running):
                if not done.result():
                    for other in running:
                        other.cancel()
                    return running[done]
        return None

    def in_stage(self, pattern):
        return [name for name in self.tests if re.search(pattern, name)]


def prepare(tree, areas):
    """Runs the areas' tests without a mutant; those that fail then are left out."""
    for area in areas:
        for pattern in AREAS[area]:
            if not tree.in_stage(pattern):
                sys.exit(f"{area}: no test has a name like {pattern}")
    names = sorted(
        {name
         for area in areas
         for pattern in AREAS[area]
         for name in tree.in_stage(pattern)})
    with concurrent.futures.ThreadPoolExecutor(tree.jobs) as pool:
        for name, passed in zip(names, pool.map(lambda name: tree.passes(name, 600), names)):
            if not passed:
                print(f"left out, fails without a mutant: {name}", flush=True)
                del tree.tests[name]


def outcome_of(tree, area, path, original_object):
    """caught by a test's name; survived; or None for no mutant at all."""
    for number, pattern in enumerate(AREAS[area]):
        names = tree.in_stage(pattern)
        if not tree.compile(names):
            return None
        if number == 0 and tree.object_of(path) == original_object:
            return None
        killer = tree.first_failure(names, lambda name: 20 + 10 * tree.seconds.get(name, 60))
        if killer:
            return killer
    return "survived"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build/mutants.json")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build/mutants")
    options = parser.parse_args()

    tree = Tree(options.work.resolve(), options.plain, options.jobs)
    drawn = []
    for area in AREAS:
        for path in sorted(
                tree.source.glob(f"{area}*" if area.endswith((".c",
                                                              "guard")) else f"{area}/**/*.c")):
            name = path.relative_to(tree.source)
            if path.suffix == ".c" and (not options.only or
                                        str(name).startswith(tuple(options.only))):
                drawn += [(area, name, mutant) for mutant in mutants_of(name, path.read_text())]
    random.Random(options.seed).shuffle(drawn)
    print(f"{len(drawn)} possible mutants", flush=True)
    prepare(tree, sorted({area for area, _, _ in drawn}))
    objects = {name: tree.object_of(name) for name in {name for _, name, _ in drawn}}

    tried, survivors = 0, []
    with options.results.open("w", encoding="utf-8") as results:
        for area, name, (line, start, end, new, kind) in drawn:
            if tried == options.count:
                break
            path = tree.source / name
            text = path.read_text()
            begun = time.monotonic()
            path.write_text(text[:start] + new + text[end:])
            try:
                outcome = outcome_of(tree, area, name, objects[name])
            finally:
                path.write_text(text)
            if outcome is None:
                continue
            tried += 1
            row = {
                "file": f"{name}:{line}", "kind": kind, "from": text[start:end], "to": new,
                "outcome": outcome, "line": text.splitlines()[line - 1].strip(),
                "seconds": round(time.monotonic() - begun, 1)
            }
            results.write(json.dumps(row) + "\n")
            results.flush()
            print(f"{tried:4} {row['file']} {kind} \"{row['from']}\" -> \"{new}\": {outcome}",
                  flush=True)
            survivors += [row] if outcome == "survived" else []
    print(f"\n{tried - len(survivors)} of {tried} mutants caught; survivors:")
    for row in survivors:
        print(
            f"  {row['file']} {row['kind']} \"{row['from']}\" -> \"{row['to']}\" in: {row['line']}")
    return 0 if tried and len(survivors) * 10 <= tried else 1


if __name__ == "__main__":
    sys.exit(main())
