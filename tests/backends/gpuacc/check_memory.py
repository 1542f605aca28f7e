#!/usr/bin/env python3
"""GpuAcc's kernels on Oclgrind, an interpreter that reports every access outside of a buffer, data
races between work items, and wrong calls of OpenCL: all golden cases of the operators that have a
driver, and small layers and operators with every set of definitions (variants.py), beside the
reference. Results must be right there, too. That nobody reads what nobody wrote, or beside a
tensor, is left to the tests, which fill its memory with numbers that are none and guard its ends:
Oclgrind 21.10 loses track of parts of a buffer. Every kernel of kernel_list.inc must have run, but
for NOT_THERE.

usage: check_memory.py TEST_CONFORMANCE_BACKEND OPS_FOLDER GPUACC_FOLDER TEST_VARIANTS TEST_HALVES
TEST_DOT TEST_NODES TEST_NUMBERS"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import variants

program, ops, gpuacc = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
VARIANTS = [  # the longest first
    "tiles", "slim_blockings", "direct_blockings", "winograd", "depthwise_layers",
    "operators_of_reals"
]
PROGRAMS = {name: [sys.argv[4], name] for name in VARIANTS} | {
    "halves": [sys.argv[5], "every_kernel_widens_what_it_loads"],
    "bytes": [sys.argv[6], "every_form_gives_the_bits_of_the_reference"],
    "movers": [sys.argv[5], "every_mover_moves_halves"],
    "nodes": [sys.argv[7]],
    "numbers": [sys.argv[8]],
}
OPTIMIZED = {"tiles", "slim_blockings", "movers", "conv2d"}
NOT_THERE = {"conv2d_mma"}  # instructions of NVIDIA's GPUs
LIBRARY = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
# The name of a kernel, with a number behind it if its program was merged (merge.h).
RAN = re.compile(r"Instructions executed for kernel '(\w+?)(?:_\d+)?'")
BUILT = re.compile(r"(?m)^(program|blocking) (.*)\n")
# Writes behind its buffer; two items write to one element.
BROKEN = {
    "Invalid write": "kernel void f(global int *y) { y[get_global_id(0)] = 1; }",
    "data race": "kernel void f(global int *y) { y[get_global_id(0) / 4] = get_global_id(0); }"
}


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(1 if "INFERD_TEST_NO_SKIPS" in os.environ else 77)


def finds(folder, error):
    """Does Oclgrind report it?"""
    (folder / "broken.cl").write_text(BROKEN[error])
    (folder / "broken.sim").write_text(f"{folder}/broken.cl\nf\n4 1 1\n1 1 1\n<size=8 fill=0>\n")
    result = subprocess.run(["oclgrind-kernel", "--data-races", folder / "broken.sim"],
                            capture_output=True,
                            text=True)
    return error in result.stdout + result.stderr


def command(name):
    return PROGRAMS.get(
        name, [program, "exact_results_equal_golden_values", "GpuAcc", ops / f"{name}.json"])


def check(folder, name):
    log = folder / f"{name}.log"
    environment = os.environ | {
        "OCL_ICD_VENDORS": str(folder),
        # it does not know every optimized instruction; where it does it is faster
        "OCLGRIND_BUILD_OPTIONS": "" if name in OPTIMIZED else "-cl-opt-disable",
        "OCLGRIND_CHECK_API": "1",
        "OCLGRIND_DATA_RACES": "1",
        # it counts that of all kernels of a program, which may be merged ones
        "OCLGRIND_LOCAL_MEM_SIZE": str(4 << 20),
        "OCLGRIND_NUM_THREADS": "1",
        "OCLGRIND_LOG": str(log),
        "INFERD_TEST_PROGRAMS": "1"
    }
    if name not in PROGRAMS:  # it names the kernels that run, and breaks on large programs
        environment["OCLGRIND_INST_COUNTS"] = "1"
    result = subprocess.run(command(name), capture_output=True, text=True, env=environment)
    report = log.read_text() if log.exists() else ""
    ran = set(RAN.findall(result.stdout))
    built = BUILT.findall(result.stdout)
    text = re.sub(r"(?m)^.*(Instructions executed for| - ).*\n", "", BUILT.sub("", result.stdout))
    return result.returncode == 0 and not report, text + result.stderr + report, ran, built


if not pathlib.Path(LIBRARY).exists():
    skip(f"there is no {LIBRARY}")
names = re.findall(r"^DRIVER\((\w+),", (gpuacc / "ops/op_list.inc").read_text(), re.M)
names = [name.lower() for name in names]
names = [*PROGRAMS, *names]
ran, built = set(), {"program": set(), "blocking": set()}
with tempfile.TemporaryDirectory() as path:
    folder = pathlib.Path(path)
    (folder / "oclgrind.icd").write_text(LIBRARY + "\n")
    bad = 0
    for error in BROKEN:
        if not finds(folder, error):
            bad += 1
            print(f"Oclgrind does not report a kernel with this: {error}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda name: check(folder, name), names)
        for name, (ok, text, seen, lines) in zip(names, results):
            bad += not ok
            ran |= seen
            for kind, line in lines:
                built[kind].add(line)
            print("" if ok else f"{name}:\n{text[:2000]}", end="")
kernel_list = (gpuacc / "kernels/kernel_list.inc").read_text()
files = dict(re.findall(r"^KERNEL\((\w+), (\w+),", kernel_list, re.M))
kernels = set(files)
of_files = {line.split(".cl")[0] for line in built["program"]}
ran |= {  # those of PROGRAMS, whose files have one kernel
    kernel for kernel, file in files.items()
    if file in of_files and list(files.values()).count(file) == 1
}
for kernel in sorted((kernels - ran) ^ NOT_THERE):
    bad += 1
    print(f"{kernel}: " + ("ran after all" if kernel in ran else "did not run"))
sources = [path.read_text() for path in gpuacc.rglob("*.c") if path.name != "merge.c"]
for problem in variants.problems(built["program"], built["blocking"], sources):
    bad += 1
    print(problem)
print(f"{len(names)} tests, {len(kernels & ran)} kernels, {len(built['program'])} programs, "
      f"{bad} errors")
sys.exit(1 if bad or len(names) < 10 else 0)
