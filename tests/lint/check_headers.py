#!/usr/bin/env python3
"""Every header compiles alone: as C11, and the public ones as C++17 too.

usage: check_headers.py C-COMPILER C++-COMPILER [include flag …]"""
import concurrent.futures
import subprocess
import sys

from tree import ROOT, finish, relative, sources, stale

cc, cxx, *flags = sys.argv[1:]
# Headers that are pieces of one kernel object, or that only C++ reads.
PRIVATE = ("backends/cpuacc/kernels/",)


def check(job):
    path, compiler, standard, language = job
    done = subprocess.run([
        compiler, f"-std={standard}", "-x", language, "-fsyntax-only", "-Wall", "-Wextra",
        "-Werror", "-Wno-pragma-once-outside-header", "-Wno-unused-function", "-D_GNU_SOURCE",
        f"-I{ROOT}", f"-I{ROOT}/engine/include", *flags, path
    ],
                          capture_output=True,
                          text=True)
    return f"{path}: {standard}\n{done.stderr}" if done.returncode else None


jobs = []
for header in sources(suffixes=(".h",)):
    path = relative(header)
    if path.startswith(PRIVATE):
        continue
    jobs.append((str(header), cc, "c11", "c"))
    if path.startswith(("engine/include/", "clients/c/inferd_client.h")):
        jobs.append((str(header), cxx, "c++17", "c++"))
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    problems = stale(PRIVATE) + [problem for problem in pool.map(check, jobs) if problem]
finish(problems, len(jobs))
