#!/usr/bin/env python3
"""The engine beside one peer on a machine whose speed changes from minute to minute: processes in
turn, ours before and after each of the peer's, and the median and quartiles of the peer's time by
the mean of the two beside it. Nothing here passes or fails.

    build/peers-venv/bin/python tests/bench/pairs.py litert MODEL.tflite \
        [--threads 2] [--pairs 21] [--iterations 25]

engine.sh makes the environment; needs ../shared/peers beside the checkout and build/bin/inferd."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
WARM_UP = "3"


def median_ms(command, options):
    """Median of one process, which prints a line of JSON or an error."""
    counts = ["--warmup", WARM_UP, "--iterations", str(options.iterations)]
    done = subprocess.run([*command, options.model, "--threads", str(options.threads), *counts],
                          stdout=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "OMP_NUM_THREADS": str(options.threads)})
    if done.returncode:
        sys.exit(done.returncode)
    return statistics.median(json.loads(done.stdout.splitlines()[-1])["times_ms"])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", help="litert, ort, openvino, openvino32, mnn or ncnn")
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--iterations", type=int, default=25)
    options = parser.parse_args()
    ours = [ROOT / "build/bin/inferd", "bench", "--json"]
    peer = [sys.executable, ROOT.parent / "shared/peers/engine.py", options.engine]
    ratios = []
    for _ in range(options.pairs):
        before = median_ms(ours, options)
        theirs = median_ms(peer, options)
        ratios.append(theirs / statistics.mean((before, median_ms(ours, options))))
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(
        f"{options.engine} / ours, {options.threads} threads, {options.pairs} pairs: {middle:.2f} "
        f"({low:.2f} to {high:.2f})"
    )


if __name__ == "__main__":
    main()
