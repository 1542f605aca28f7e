#!/usr/bin/env python3
"""Random models of one ONNX operator each, beside ONNX Runtime.

usage: onnx_ops.py INFERD [--count N] [--seed N] [--op NAME …] [--backends LIST …] [--keep FOLDER]

Each model runs under ONNX Runtime and under `inferd run` on each backend. What differs is written to
FOLDER (build/differential) with its inputs and what ONNX Runtime answered, and named with the
seed that makes it again. What ONNX Runtime itself refuses is passed over. Exit status: 0 nothing differs
and nothing is refused, 1 something is."""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

from onnx_cases import CASES

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RELATIVE = 2e-5  # of the output's range; sums of products in another order


def model_of(case):
    names = [f"in{i}" if x is not None else "" for i, x in enumerate(case.inputs)]
    outputs = [f"out{i}" for i in range(case.outputs)]
    while names and not names[-1]:
        names.pop()
    node = onnx.helper.make_node(case.op, names, outputs, **case.attrs)
    given, initializers = [], []
    for i, x in enumerate(case.inputs):
        if x is None:
            continue
        if i in case.constants:
            initializers.append(onnx.numpy_helper.from_array(np.asarray(x), f"in{i}"))
        else:
            kind = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
            given.append(onnx.helper.make_tensor_value_info(f"in{i}", kind, x.shape))
    graph = onnx.helper.make_graph([node], "one", given,
                                   [onnx.ValueInfoProto(name=n) for n in outputs], initializers)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", case.opset)])
    model.ir_version = 8
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    if all(o.HasField("type") for o in inferred.graph.output):
        return inferred.SerializeToString()
    return model.SerializeToString()


def truth(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def difference(got, want, steps):
    """What differs, or None."""
    if got.shape != want.shape:
        return f"shape {got.shape}, wanted {want.shape}"
    if got.dtype != want.dtype:
        return f"type {got.dtype}, wanted {want.dtype}"
    if want.dtype.kind != "f":
        far = np.abs(got.astype(np.int64) - want.astype(np.int64)) > steps
        return f"{int(far.sum())} of {far.size} integers differ" if far.any() else None
    if not np.array_equal(np.isnan(got), np.isnan(want)):
        return "NaN on one side"
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return "infinities differ"
    unit = RELATIVE if want.dtype != np.float16 else 2e-3
    bound = unit * max(1.0, float(np.abs(want[finite]).max(initial=0)))
    worst = float(np.abs(got[finite].astype(np.float64) - want[finite]).max(initial=0))
    return f"off by {worst:.3g}, at most {bound:.3g}" if worst > bound else None


def run_inferd(program, backend, folder, given, outputs):
    out = folder / backend.replace(",", "_")
    out.mkdir()
    command = [program, "run", str(folder / "model.onnx"), "--backend", backend, "--output-dir",
               str(out)]
    for name in given:
        command += ["--input", f"{name}={folder / (name + '.npy')}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        said = lines[-1] if lines else "nothing said"
        return None, f"exit {done.returncode}: {said.split('model.onnx: ')[-1]}"
    return [np.load(out / f"out{i}.npy") for i in range(outputs)], None


def judge(name, seed, arguments):
    """("equal" | "passed over" | "refused" | "differs", what, backend)"""
    rng = np.random.default_rng([seed, *name.encode()])
    case = CASES[name](rng)
    feeds = {f"in{i}": x for i, x in enumerate(case.inputs)
             if x is not None and i not in case.constants}
    try:
        model = model_of(case)
        want = truth(model, feeds)
    except Exception as error:  # the peer has many
        return [("passed over", str(error).splitlines()[0], "")]
    verdicts = []
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        (folder / "model.onnx").write_bytes(model)
        for key, x in feeds.items():
            np.save(folder / f"{key}.npy", x)
        for backend in arguments.backends:
            got, refusal = run_inferd(arguments.inferd, backend, folder, feeds, len(want))
            if refusal:
                verdicts.append(("refused", refusal, backend))
                continue
            what = next((f"out{i}: {d}" for i, (g, w) in enumerate(zip(got, want))
                         if (d := difference(g, np.asarray(w), case.steps))), None)
            verdicts.append(("differs", what, backend) if what else ("equal", "", backend))
        if any(v[0] != "equal" for v in verdicts):
            kept = arguments.keep / f"{name}_{seed}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept)
            for i, w in enumerate(want):
                np.save(kept / f"out{i}.npy", w)
            (kept / "case.txt").write_text(
                f"{name} seed {seed} opset {case.opset} {case.attrs}\n"
                + "".join(f"{v}\n" for v in verdicts))
    return verdicts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("inferd")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--op", nargs="*", default=sorted(CASES))
    parser.add_argument("--backends", nargs="*", default=["CpuRef", "CpuAcc,CpuRef"])
    parser.add_argument("--keep", type=pathlib.Path, default=ROOT / "build/differential")
    arguments = parser.parse_args()
    arguments.keep.mkdir(parents=True, exist_ok=True)
    total = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in arguments.op:
            seeds = range(arguments.seed, arguments.seed + arguments.count)
            tally, reasons = collections.Counter(), {}
            for seed, verdicts in zip(seeds, pool.map(lambda s: judge(name, s, arguments), seeds)):
                for kind, what, backend in verdicts:
                    tally[kind] += 1
                    if kind in ("refused", "differs"):
                        reasons.setdefault((kind, backend, what), []).append(seed)
            total.update(tally)
            print(f"{name}: " + ", ".join(f"{n} {k}" for k, n in sorted(tally.items())),
                  flush=True)
            for (kind, backend, what), found in list(reasons.items())[:5]:
                print(f"  {kind} on {backend}, {len(found)}, first seed {found[0]}: {what}")
    print("all: " + ", ".join(f"{n} {k}" for k, n in sorted(total.items())))
    return 1 if total["differs"] or total["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())
