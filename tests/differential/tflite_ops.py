#!/usr/bin/env python3
"""Random models of one TFLite operator each, beside LiteRT's reference kernels.

usage: tflite_ops.py INFERD [--count N] [--seed N] [--op NAME …] [--backends LIST …] [--keep FOLDER]

As onnx_ops.py. Quantized results of CpuRef and GpuAcc are LiteRT's bit for bit, but for ROUNDED;
those of CpuAcc are a step off at most."""
import os
import pathlib
import pickle
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "ops/gen"))

import beside
import litert
from tflite_cases import CASES, B, O, schema
from tflite_types import TYPES


PEER = threading.Lock()  # so that no other thread is in LiteRT when one forks
ROUNDED = ("LOG_SOFTMAX",)  # in other integers, a step off at most
LATER = {}


def run_newest(arguments, case):
    """The newest version that the peer has, of its other kernels where it has no reference."""
    for is_reference in (True, False) if case.reference else (False,):
        for version in range(15, 0, -1):
            arguments[5] = version
            try:
                return litert.run(*arguments, reference=is_reference,
                                  intermediates=case.intermediates, body=case.body)
            except (RuntimeError, ValueError) as error:
                if "Didn't find op" not in str(error):
                    raise
    raise ValueError("no kernel of this operator")


def run_apart(arguments, case):
    """run_newest in a process of its own: LiteRT aborts at some scales."""
    came, goes = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            made = [(t.data, t.shape) for t in run_newest(arguments, case)]
        except Exception as error:
            made = str(error)
        with os.fdopen(goes, "wb") as file:
            pickle.dump(made, file)
        os._exit(0)
    os.close(goes)
    with os.fdopen(came, "rb") as file:
        content = file.read()
    os.waitpid(child, 0)
    made = pickle.loads(content) if content else "aborts"
    if isinstance(made, str):
        raise ValueError(made)
    for t, (t.data, t.shape) in zip(arguments[4], made):
        pass


def make(case):
    options, kind = None, 0
    if case.options:
        options = getattr(schema, case.options[0] + "T")()
        name = case.options[0]
        kind = getattr(O, name) if hasattr(O, name) else litert.LATER + getattr(
            schema.BuiltinOptions2, name)
        for key, value in case.options[1:]:
            assert hasattr(options, key), key
            setattr(options, key, value)
    arguments = [getattr(B, case.op), kind, options, case.inputs, case.outputs, 1]
    with PEER:
        (run_apart if case.degenerate else run_newest)(arguments, case)
    given = {f"in{i}": t for i, t in enumerate(case.inputs) if t}
    inputs = {k: t.data for k, t in given.items() if not t.constant and not t.variable}
    text = f"{case.op} {case.options} of {[(t.dtype, t.shape) for t in given.values()]}"
    model = litert.build(*arguments, intermediates=case.intermediates, body=case.body)
    return beside.Beside(model, inputs, [t.data for t in case.outputs], text,
                         {"CpuRef": int(case.op in ROUNDED or not case.reference),
                          "GpuAcc,CpuRef": int(case.op in ROUNDED or not case.reference),
                          "CpuAcc,CpuRef": 1})


if __name__ == "__main__":
    sys.exit(beside.main(__doc__, make, {**CASES, **TYPES}, ".tflite", LATER))
