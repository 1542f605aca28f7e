#!/usr/bin/env python3
"""Runs the node tests of the installed onnx package (PyPI), which are newer than Debian's.

    python tests/conformance/newest_nodes.py BUILD-FOLDER [BACKEND …]

Needs onnx and what its test cases import (ml_dtypes, Pillow); not part of the suite. Exceptions:
newest_nodes.inc.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case import node

NARROW = {TensorProto.DataType.Value(name) for name in
          "FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ FLOAT8E8M0 FLOAT4E2M1 UINT4 INT4 "
          "UINT2 INT2".split()}


def outside(value):
    """Numbers of 8 bits and less as they come in and go out: floats as their bits, whole numbers
    of 4 and 2 bits as those of 8."""
    if isinstance(value, TensorProto):
        value = numpy_helper.to_array(value)
    if value.dtype.name.startswith("float"):
        return value.view(np.uint8)
    return value.astype(np.int8 if value.dtype.name.startswith("i") else np.uint8)


def message(value, port):
    kind = port.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, port.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, port.name)
    if port.type.tensor_type.elem_type in NARROW:
        value = outside(value)
    if isinstance(value, TensorProto):
        return value
    return numpy_helper.from_array(value, port.name)


def write(case, folder):
    values = folder / case.name / "test_data_set_0"
    values.mkdir(parents=True)
    (folder / case.name / "model.onnx").write_bytes(case.model.SerializeToString())
    inputs, outputs = case.data_sets[0]
    for kind, found, ports in (("input", inputs, case.model.graph.input),
                               ("output", outputs, case.model.graph.output)):
        for k, (value, port) in enumerate(zip(found, ports)):
            path = values / f"{kind}_{k}.pb"
            path.write_bytes(message(value, port).SerializeToString())


def main():
    build, backends = sys.argv[1], sys.argv[2:] or ["CpuRef", "CpuAcc"]
    program = pathlib.Path(build) / "tests/test_onnx_nodes"
    with tempfile.TemporaryDirectory() as name:
        for case in node.collect_testcases(None):
            write(case, pathlib.Path(name))
        codes = [subprocess.run([program, "newest_node_tests_pass_or_are_excepted", backend, name],
                                check=False).returncode for backend in backends]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
