#!/usr/bin/env python3
"""GpuAcc's kernels on Oclgrind, an interpreter that reports every access outside of a buffer, data
races between work items, and wrong calls of OpenCL: all golden cases of the operators that have a
driver, some divisions of convolutions, dot products, and a network in half precision. Results must
be right there, too. That nobody reads what nobody wrote is left to the cases, whose memory is full
of numbers that are none: Oclgrind 21.10 loses track of parts of a buffer. Every kernel of
kernel_list.inc must have run there, but for NOT_THERE.

usage: check_memory.py TEST_CONFORMANCE_BACKEND OPS_FOLDER OP_LIST TEST_BLOCKING TEST_HALVES
TEST_DOT KERNEL_LIST"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

program, ops, op_list = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
PROGRAMS = {
    "blocking": [sys.argv[4], "some_blockings_compute_what_the_reference_does"],
    "dot": [sys.argv[6], "dot_products_give_the_bits_of_the_reference"],
    "halves": [sys.argv[5], "every_kernel_widens_what_it_loads"]
}
NOT_THERE = {"conv2d_mma"}  # instructions of NVIDIA's GPUs
LIBRARY = "/usr/lib/oclgrind/liboclgrind-rt-icd.so"
# The name of a kernel, with a number behind it if its program was merged (merge.h).
RAN = re.compile(r"Instructions executed for kernel '(\w+?)(?:_\d+)?'")
BROKEN = "kernel void f(global int *y) { y[get_global_id(0)] = 1; }"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(1 if "INFERD_TEST_NO_SKIPS" in os.environ else 77)


def finds_errors(folder):
    """Does Oclgrind report a kernel that writes behind its buffer?"""
    (folder / "broken.cl").write_text(BROKEN)
    (folder / "broken.sim").write_text(f"{folder}/broken.cl\nf\n4 1 1\n1 1 1\n<size=8 fill=0>\n")
    result = subprocess.run(["oclgrind-kernel", folder / "broken.sim"],
                            capture_output=True,
                            text=True)
    return "Invalid write" in result.stdout + result.stderr


def command(name):
    return PROGRAMS.get(
        name, [program, "exact_results_equal_golden_values", "GpuAcc", ops / f"{name}.json"])


def check(folder, name):
    log = folder / f"{name}.log"
    environment = os.environ | {
        "OCL_ICD_VENDORS": str(folder),
        "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",  # it does not know every optimized instruction
        "OCLGRIND_CHECK_API": "1",
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_INST_COUNTS": "1",  # names the kernels that run
        "OCLGRIND_NUM_THREADS": "1",
        "OCLGRIND_LOG": str(log)
    }
    result = subprocess.run(command(name), capture_output=True, text=True, env=environment)
    report = log.read_text() if log.exists() else ""
    ran = set(RAN.findall(result.stdout))
    text = re.sub(r"(?m)^.*(Instructions executed for| - ).*\n", "", result.stdout)
    return result.returncode == 0 and not report, text + result.stderr + report, ran


if not pathlib.Path(LIBRARY).exists():
    skip(f"there is no {LIBRARY}")
names = [name.lower() for name in re.findall(r"^DRIVER\((\w+),", op_list.read_text(), re.M)]
names = [*PROGRAMS, *names]
ran = set()
with tempfile.TemporaryDirectory() as path:
    folder = pathlib.Path(path)
    (folder / "oclgrind.icd").write_text(LIBRARY + "\n")
    bad = 0 if finds_errors(folder) else 1
    print("" if not bad else "Oclgrind does not report a broken kernel")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, (ok, text, seen) in zip(names, pool.map(lambda name: check(folder, name), names)):
            bad += not ok
            ran |= seen
            print("" if ok else f"{name}:\n{text[:2000]}", end="")
kernels = set(re.findall(r"^KERNEL\((\w+),", pathlib.Path(sys.argv[7]).read_text(), re.M))
for kernel in sorted((kernels - ran) ^ NOT_THERE):
    bad += 1
    print(f"{kernel}: " + ("ran after all" if kernel in ran else "did not run"))
print(f"{len(names)} programs, {len(kernels & ran)} kernels, {bad} with errors")
sys.exit(1 if bad or len(names) < 10 else 0)
