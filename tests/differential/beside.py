"""Random cases of one operator each under `inferd run`, beside the answers of a peer."""
import argparse
import collections
import concurrent.futures
import dataclasses
import os
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RELATIVE = 2e-5  # of the output's range; sums of products in another order


@dataclasses.dataclass
class Beside:
    """A model, its inputs by name, and the peer's outputs."""
    model: bytes
    inputs: dict
    outputs: list
    text: str  # what the case is
    steps: dict  # backends → by which integers may differ
    off: float = 0  # by which floats may differ beyond their rounding


def difference(got, want, steps, off=0):
    """What differs, or None."""
    if got.shape != want.shape:
        return f"shape {got.shape}, wanted {want.shape}"
    if got.dtype != want.dtype:
        return f"type {got.dtype}, wanted {want.dtype}"
    if want.dtype.kind == "c":
        got, want = (np.stack([x.real, x.imag]) for x in (got, want))
    if want.dtype.kind != "f":
        steps = 0 if want.dtype.itemsize > 2 or want.dtype.kind == "b" else steps
        far = np.abs(got.astype(np.int64) - want.astype(np.int64)) > steps
        return f"{int(far.sum())} of {far.size} integers differ" if far.any() else None
    if not np.array_equal(np.isnan(got), np.isnan(want)):
        return "NaN on one side"
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return "infinities differ"
    unit = RELATIVE if want.dtype != np.float16 else 2e-3
    bound = off + unit * max(1.0, float(np.abs(want[finite]).max(initial=0)))
    worst = float(np.abs(got[finite].astype(np.float64) - want[finite]).max(initial=0))
    return f"off by {worst:.3g}, at most {bound:.3g}" if worst > bound else None


def run_inferd(program, backends, folder, model, names, outputs):
    out = folder / backends.replace(",", "_")
    out.mkdir()
    command = [program, "run", str(model), "--backend", backends, "--output-dir", str(out)]
    for name in names:
        command += ["--input", f"{name}={folder / (name + '.npy')}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        said = lines[-1] if lines else "nothing said"
        return None, f"exit {done.returncode}: {said.split(model.name + ': ')[-1]}"
    return [np.load(out / f"out{i}.npy") for i in range(outputs)], None


class Judge:
    def __init__(self, make, cases, suffix, arguments):
        self.make, self.cases, self.suffix, self.arguments = make, cases, suffix, arguments

    def verdicts(self, name, seed):
        """For each list of backends: ("equal" | "passed over" | "refused" | "differs", what,
        backends)."""
        rng = np.random.default_rng([seed, *name.encode()])
        case = self.cases[name](rng)
        try:
            beside = self.make(case)
        except Exception as error:  # the peer has many
            return [("passed over", str(error).splitlines()[0], "")]
        with tempfile.TemporaryDirectory() as text:
            folder = pathlib.Path(text)
            model = folder / f"model{self.suffix}"
            model.write_bytes(beside.model)
            for key, x in beside.inputs.items():
                np.save(folder / f"{key}.npy", x)
            found = [self.verdict(beside, folder, model, b) for b in self.arguments.backends]
            if any(v[0] != "equal" for v in found):
                self.keep(folder, f"{name}_{seed}", beside, found)
        return found

    def verdict(self, beside, folder, model, backends):
        got, refusal = run_inferd(self.arguments.inferd, backends, folder, model, beside.inputs,
                                  len(beside.outputs))
        if refusal:
            return "refused", refusal, backends
        steps = beside.steps.get(backends, 1)
        for i, (g, want) in enumerate(zip(got, beside.outputs)):
            what = difference(g, np.asarray(want), steps, beside.off)
            if what:
                return "differs", f"out{i}: {what}", backends
        return "equal", "", backends

    def keep(self, folder, name, beside, found):
        kept = self.arguments.keep / name
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept)
        for i, want in enumerate(beside.outputs):
            np.save(kept / f"out{i}.npy", want)
        (kept / "case.txt").write_text(beside.text + "\n" + "".join(f"{v}\n" for v in found))


def main(usage, make, cases, suffix, later):
    """make(case) returns a Beside or raises what the peer says. later: operators → what is said of
    those of their cases that are refused so far. Returns the exit status."""
    parser = argparse.ArgumentParser(description=usage,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inferd")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--op", nargs="*", default=sorted(cases))
    parser.add_argument("--backends", nargs="*", default=["CpuRef", "CpuAcc,CpuRef"])
    parser.add_argument("--keep", type=pathlib.Path, default=ROOT / "build/differential")
    arguments = parser.parse_args()
    arguments.keep.mkdir(parents=True, exist_ok=True)
    stale = []
    judge = Judge(make, cases, suffix, arguments)
    total = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name in arguments.op:
            seeds = range(arguments.seed, arguments.seed + arguments.count)
            tally, reasons = collections.Counter(), {}
            for seed, found in zip(seeds, pool.map(lambda s: judge.verdicts(name, s), seeds)):
                for kind, what, backends in found:
                    if kind == "refused" and later.get(name, "\n") in what:
                        kind = "later"
                    tally[kind] += 1
                    if kind != "equal":
                        reasons.setdefault((kind, backends, what), []).append(seed)
            total.update(tally)
            if name in later and not tally["later"] and arguments.count >= 20:
                stale.append(name)
            print(f"{name}: " + ", ".join(f"{n} {k}" for k, n in sorted(tally.items())),
                  flush=True)
            for (kind, backends, what), found in list(reasons.items())[:5]:
                where = f" on {backends}" if backends else ""
                print(f"  {kind}{where}, {len(found)}, first seed {found[0]}: {what}")
    print("all: " + ", ".join(f"{n} {k}" for k, n in sorted(total.items())))
    for name in stale:
        print(f"{name} is refused no longer: its row can go")
    return 1 if total["differs"] or total["refused"] or stale or not total["equal"] else 0
