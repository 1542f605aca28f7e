"""Adds TFLite metadata to a model: what the picture input expects and the labels of the output.

The tables are those of the public metadata schema (file identifier M001), written by field number;
the label file is appended to the model as an uncompressed zip archive, which is where TFLite
readers look for it."""
import io
import zipfile

import flatbuffers
from ai_edge_litert import schema_py_generated as schema

LABELS_FILE = "labels.txt"
# members of the unions ContentProperties and ProcessUnitOptions
IMAGE_PROPERTIES, NORMALIZATION = 2, 1
RGB, TENSOR_AXIS_LABELS = 1, 2


def _table(b, fields):
    """Writes one table; fields maps a field number to ("ref", offset) or ("byte", value)."""
    b.StartObject(max(fields) + 1)
    for number, (kind, value) in sorted(fields.items()):
        if kind == "ref":
            b.PrependUOffsetTRelativeSlot(number, value, 0)
        else:
            b.PrependUint8Slot(number, value, 0)
    return b.EndObject()


def _refs(b, offsets):
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    return "ref", b.EndVector()


def _floats(b, values):
    b.StartVector(4, len(values), 4)
    for value in reversed(values):
        b.PrependFloat32(value)
    return "ref", b.EndVector()


def _text(b, text):
    return "ref", b.CreateString(text)


def describe(name, description, licence, mean, std, input_name, output_name):
    """The ModelMetadata FlatBuffer: (pixel - mean) / std is the input's real value."""
    b = flatbuffers.Builder(1024)
    image = _table(b, {0: ("byte", RGB)})
    content = _table(b, {0: ("byte", IMAGE_PROPERTIES), 1: ("ref", image)})
    options = _table(b, {0: _floats(b, mean), 1: _floats(b, std)})
    unit = _table(b, {0: ("byte", NORMALIZATION), 1: ("ref", options)})
    picture = _table(b, {0: _text(b, input_name), 3: ("ref", content), 4: _refs(b, [unit])})
    labels = _table(b, {0: _text(b, LABELS_FILE), 2: ("byte", TENSOR_AXIS_LABELS)})
    scores = _table(b, {0: _text(b, output_name), 6: _refs(b, [labels])})
    graph = _table(b, {2: _refs(b, [picture]), 3: _refs(b, [scores])})
    root = _table(
        b,
        {0: _text(b, name), 1: _text(b, description), 3: _refs(b, [graph]), 5: _text(b, licence)})
    b.Finish(root, b"M001")
    return bytes(b.Output())


def add(model_bytes, metadata, labels):
    """model_bytes with the metadata as its TFLITE_METADATA buffer and the labels as an associated
    file."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(model_bytes, 0))
    entry, buffer = schema.MetadataT(), schema.BufferT()
    entry.name, entry.buffer = "TFLITE_METADATA", len(model.buffers)
    buffer.data = list(metadata)
    model.buffers.append(buffer)
    model.metadata = (model.metadata or []) + [entry]
    b = flatbuffers.Builder(len(model_bytes) + len(metadata))
    b.Finish(model.Pack(b), b"TFL3")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr(zipfile.ZipInfo(LABELS_FILE), "".join(label + "\n" for label in labels))
    return bytes(b.Output()) + archive.getvalue()
