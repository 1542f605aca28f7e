#!/usr/bin/env python3
"""GpuAcc with and without what its tuner learned: processes in turn, one with the file and one
without, and the median and quartiles of without / with of neighbours; above 1 the file pays. Then
the first three starts, in ms until a model is loaded, each with the files that those before left.

usage: tuner.py INFERD FOLDER MODEL ... [--device NAME] [--level 2] [--pairs 15] [--batch 1]
                [--precision f32] [--iterations 40] [--learned] [--beside OPTION=VALUE]

FOLDER gets a file of lessons and a cache of programs for each model; --learned: those that are
there from an earlier run count, and nothing is learned anew. --beside: with and without this option
of GpuAcc (record=always), not the file. Nothing passes or fails."""
import argparse
import json
import pathlib
import statistics
import subprocess


def bench(args, model, *options):
    """What a process reports."""
    command = [
        args.inferd, "bench", model, "--backend", "GpuAcc,CpuAcc", "--json", "--warmup", "5",
        "--precision", args.precision, "--batch", str(args.batch), "--iterations",
        str(args.iterations)
    ]
    options = [f"GpuAcc:device={args.device}", *options]
    for option in options:
        command += ["--backend-option", option]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads([line for line in text.splitlines() if line.startswith("{")][-1])


def measure(args, model):
    name = f"{model.stem}-{args.batch}-{args.precision}"
    lessons = args.folder / f"{name}.tuning"
    cache = args.folder / f"{name}.cache"
    cache.mkdir(mode=0o700, exist_ok=True)
    if not args.learned:
        lessons.unlink(missing_ok=True)
        for file in cache.iterdir():
            file.unlink()
    without = [f"GpuAcc:cache={cache}"]
    file = [*without, f"GpuAcc:{args.beside or f'tuning-file={lessons}'}"]
    tuning = file if args.beside else [*file, f"GpuAcc:tuning={args.level}"]
    starts = [bench(args, model, *tuning)["init_ms"] for _ in range(3)]
    bench(args, model, *without)
    ratios, ours = [], []
    for i in range(args.pairs):
        order = (without, file) if i % 2 else (file, without)
        times = {id(options): bench(args, model, *options)["median_ms"] for options in order}
        ratios.append(times[id(without)] / times[id(file)])
        ours.append(times[id(file)])
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"| {model.stem} | {args.batch} | {args.precision} | {statistics.median(ours):.3f} "
          f"| {middle:.3f} ({low:.3f} to {high:.3f}) | "
          f"{' | '.join(f'{ms:.0f}' for ms in starts)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inferd", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path, nargs="+")
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--level", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--learned", action="store_true")
    parser.add_argument("--beside")
    args = parser.parse_args()
    args.inferd = args.inferd.resolve()
    args.folder.mkdir(exist_ok=True)
    print("| model | batch | precision | ms | without / with | first start | second | third |")
    print("|---|" + "---|" * 7)
    for model in args.model:
        measure(args, model)


main()
