"""Random cases, as in onnx_cases.py, of what converters write: operators of com.microsoft for which
ai.onnx has none, and those that ai.onnx had on trial before opset 7."""
import numpy as np

from onnx_cases import Case, F, array, axis_of, conv_transpose, pick, shape_of
from onnx_microsoft import ms
from onnx_rare import ANY, whole


def crop_and_resize(rng):
    images, channels, height, width = whole(rng, 1, 3), whole(rng, 1, 5), whole(rng, 1, 9), \
        whole(rng, 1, 9)
    count = whole(rng, 1, 6)
    low, high = pick(rng, (0, 1), (-0.3, 1.3))
    inputs = [array(rng, (images, channels, height, width)),
              rng.uniform(low, high, (count, 4)).astype(F),
              rng.integers(0, images, count).astype(np.int32),
              np.array([whole(rng, 1, 6), whole(rng, 1, 6)], np.int32)]
    return ms("CropAndResize", inputs, {"mode": pick(rng, "bilinear", "nearest"),
                                        "extrapolation_value": pick(rng, 0.0, -1.5)}, {3})


def resize_region(rng):
    """As tf2onnx writes a crop. A direction that keeps its size is cropped as others are, and as
    ONNX defines it; ONNX Runtime leaves it whole, so none does here."""
    x = array(rng, shape_of(rng, pick(rng, 3, 4, 5), 7))
    directions = x.ndim - 2
    region = np.concatenate([[0, 0], rng.uniform(-0.2, 0.6, directions), [1, 1],
                             rng.uniform(0.4, 1.2, directions)]).astype(F)
    sizes = [*x.shape[:2], *(whole(rng, 1, 9) for _ in range(directions))]
    sizes = [s + 1 if i > 1 and s == x.shape[i] else s for i, s in enumerate(sizes)]
    modes = ["nearest", "linear"] + ["cubic"] * (x.ndim == 4)
    return Case("Resize", [x, region, None, np.array(sizes, np.int64)],
                {"mode": pick(rng, *modes), "coordinate_transformation_mode": "tf_crop_and_resize",
                 "extrapolation_value": -1.5}, {1, 3}, opset=13, is_fixed=True)


def inverse(rng):
    n = whole(rng, 1, 7)
    lead = shape_of(rng, whole(rng, 0, 2), 3)
    x = array(rng, lead + (n, n), F, -1, 1) + (n + 1) * np.eye(n, dtype=F)[rng.permutation(n)]
    return ms("Inverse", [x.astype(F)])


def matmul_16(rng):
    m, k, n = shape_of(rng, 3, 9)
    lead = shape_of(rng, whole(rng, 0, 2), 3)
    x, y = [rng.integers(-2**15, 2**15, shape).astype(np.int16)
            for shape in (lead + (m, k), pick(rng, (), lead) + (k, n))]
    return ms("MatMulInteger16", [x, y], {}, pick(rng, set(), {1}))


def murmur_hash(rng):
    x = rng.integers(-2**31, 2**31, shape_of(rng))
    return ms("MurmurHash3", [x.astype(pick(rng, np.int32, np.uint32))],
              {"seed": whole(rng, 0, 1000), "positive": whole(rng, 0, 1)})


def unfold(rng):
    shape = shape_of(rng, whole(rng, 1, 5), 7)
    axis = axis_of(rng, len(shape))
    return ms("UnfoldTensor", [array(rng, shape, pick(rng, np.float32, np.int32, np.int64))],
              {"dim": axis, "size": whole(rng, 1, shape[axis]), "step": whole(rng, 1, 3)})


def unique(rng):
    return ms("Unique", [rng.integers(0, 6, whole(rng, 1, 20)).astype(F)], {}, set(), 3)


# ---- on trial ----


def former(op, rank=None, **attrs):
    def make(rng):
        shape = shape_of(rng, rank) if rank else shape_of(rng)
        return Case(op, [array(rng, shape)], {k: float(rng.uniform(*v)) for k, v in attrs.items()},
                    opset=9, is_fixed=True)

    return make


def image_scaler(rng):
    case = former("ImageScaler", 4, scale=(0.1, 2))(rng)
    case.attrs["bias"] = [float(x) for x in rng.uniform(-1, 1, case.inputs[0].shape[1])]
    return case


def crop(rng):
    x = array(rng, shape_of(rng, 2) + (whole(rng, 3, 8), whole(rng, 3, 8)))
    border = [whole(rng, 0, 1) for _ in range(4)]
    size = {"scale": [whole(rng, 1, x.shape[2] - border[1]), whole(rng, 1, x.shape[3] - border[0])]}
    return Case("Crop", [x], {"border": border, **pick(rng, {}, size)}, opset=9, is_fixed=True)


def dynamic_slice(rng):
    shape = shape_of(rng, whole(rng, 1, 4), 6)
    axes = rng.permutation(len(shape))[:whole(rng, 1, len(shape))]
    starts = [whole(rng, -shape[a], shape[a] - 1) for a in axes]
    ends = [whole(rng, s % shape[a] + 1, shape[a] + 2) for s, a in zip(starts, axes)]
    return Case("DynamicSlice", [array(rng, shape, pick(rng, *ANY)),
                                 *[np.array(x, np.int64) for x in (starts, ends, axes)]],
                constants={1, 2, 3}, opset=9, is_fixed=True)



def transposed_with_pads(rng):
    """The padding is an input, in front of the bias."""
    case = conv_transpose(rng)
    x, weights, *bias = case.inputs
    kernel = case.attrs["kernel_shape"]
    pads = np.array(case.attrs.pop("pads", [0] * 2 * len(kernel)), np.int64)
    return ms("ConvTransposeWithDynamicPads", [x, weights, pads, *bias], case.attrs, {1, 2, 3})

CONVERTED = {
    "ConvTransposeWithDynamicPads": transposed_with_pads,
    "CropAndResize": crop_and_resize, "Resize of a region": resize_region, "Inverse": inverse,
    "MatMulInteger16": matmul_16, "MurmurHash3": murmur_hash, "UnfoldTensor": unfold,
    "Unique of com.microsoft": unique,
    "Affine": former("Affine", alpha=(-2, 2), beta=(-1, 1)), "Crop": crop,
    "DynamicSlice": dynamic_slice, "ImageScaler": image_scaler,
    "ParametricSoftplus": former("ParametricSoftplus", alpha=(0.1, 2), beta=(0.1, 2)),
    "Scale": former("Scale", scale=(-2, 2)),
    "ScaledTanh": former("ScaledTanh", alpha=(0.1, 2), beta=(0.1, 2)),
}
