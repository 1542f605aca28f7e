"""Another opset and other types for a case, as the operator's definition allows them."""
import dataclasses

import numpy as np
import onnx

OLDEST, NEWEST = 7, 24  # what inferd promises, what ONNX Runtime knows
TYPES = {f"tensor({name})": np.dtype(kind) for name, kind in (
    ("float", "float32"), ("double", "float64"), ("float16", "float16"), ("int8", "int8"),
    ("uint8", "uint8"), ("int16", "int16"), ("uint16", "uint16"), ("int32", "int32"),
    ("uint32", "uint32"), ("int64", "int64"), ("uint64", "uint64"), ("bool", "bool"))}
NAMES = {kind: name for name, kind in TYPES.items()}


def definition(case, opset):
    try:
        return onnx.defs.get_schema(case.op, opset, case.domain)
    except onnx.defs.SchemaError:
        return None


def formal(schema, i):
    """What the definition says of input i, or None."""
    inputs = schema.inputs
    if i < len(inputs):
        return inputs[i]
    is_variadic = inputs and inputs[-1].option == onnx.defs.OpSchema.FormalParameterOption.Variadic
    return inputs[-1] if is_variadic else None


def allows(schema, case):
    if not schema or schema.deprecated or not set(case.attrs) <= set(schema.attributes):
        return False
    if any(a.required and name not in case.attrs for name, a in schema.attributes.items()):
        return False
    if not schema.min_input <= len(case.inputs) <= schema.max_input:
        return False
    return all(x is None or NAMES.get(x.dtype) in formal(schema, i).types
               for i, x in enumerate(case.inputs))


def retyped(x, kind):
    if kind.kind == "b":
        return np.asarray(x > 0)
    with np.errstate(all="ignore"):
        return np.asarray(np.abs(x) if kind.kind == "u" else x).astype(kind)


def with_other_types(case, schema, rng):
    """The inputs that share the type of the first get another that this opset allows."""
    shared = schema.inputs[0].type_str
    kinds = [TYPES[t] for t in sorted(schema.inputs[0].types) if t in TYPES]
    if case.inputs[0] is None or len(kinds) < 2:
        return case
    kind = kinds[int(rng.integers(len(kinds)))]
    inputs = [retyped(x, kind) if x is not None and formal(schema, i).type_str == shared else x
              for i, x in enumerate(case.inputs)]
    return dataclasses.replace(case, inputs=inputs)


def vary(case, rng):
    """Half of the cases change their opset, and half their types."""
    if case.nodes or case.domain or case.is_fixed:
        return case
    opsets = [o for o in range(OLDEST, NEWEST + 1) if allows(definition(case, o), case)]
    if opsets and rng.integers(2):
        case = dataclasses.replace(case, opset=opsets[int(rng.integers(len(opsets)))])
    schema = definition(case, case.opset)
    if allows(schema, case) and rng.integers(2):
        case = with_other_types(case, schema, rng)
    return case
