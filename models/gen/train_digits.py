"""Trains the demo model "digits", writes it as int8 TFLite and measures the written file on
held-out digits.

    python train_digits.py      writes 1/model.tflite, labels.txt, examples/*.png of ../digits

Data: the 1797 handwritten digits (8x8 grey values 0..16) that scikit-learn ships. The last 360 in
the data's own order are held out. Everything random has a fixed seed."""
import pathlib

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from PIL import Image
from sklearn.datasets import load_digits

import metadata

MODEL = pathlib.Path(__file__).resolve().parent.parent / "digits"
LABELS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
SIDE, HELD_OUT, EPOCHS, BATCH, SEED = 32, 360, 200, 64, 20


def paint(ink, side, foreground, background, matrix=(1, 0, 0, 0, 1, 0)):
    """One 8x8 digit as a side x side x 3 picture; matrix is the affine map in units of the
    picture's size."""
    a, b, c, d, e, f = matrix
    scale = 8 / side
    grey = Image.fromarray((ink * (255 / 16)).astype(np.uint8))
    grey = grey.transform((side, side), Image.Transform.AFFINE,
                          (a * scale, b * scale, c * 8, d * scale, e * scale, f * 8),
                          Image.Resampling.BICUBIC)
    share = np.asarray(grey, np.float32)[..., None] / 255
    return share * foreground + (1 - share) * background


def disturb(ink, rng):
    """A training picture in [0, 1]: shifted, turned, scaled, in two random colours of enough
    contrast, with noise."""
    angle, zoom = rng.uniform(-0.25, 0.25), rng.uniform(0.8, 1.35)
    dx, dy = rng.uniform(-0.12, 0.12, 2)
    cos, sin = np.cos(angle) * zoom, np.sin(angle) * zoom
    matrix = (cos, -sin, 0.5 - 0.5 * cos + 0.5 * sin + dx, sin, cos,
              0.5 - 0.5 * sin - 0.5 * cos + dy)
    while True:
        foreground, background = rng.uniform(0, 255, (2, 3))
        if abs(foreground.mean() - background.mean()) > 60:
            break
    # half of them: dark on white, light on black
    if rng.random() < 0.5:
        foreground, background = np.full(3, rng.uniform(0, 60)), np.full(3, rng.uniform(200, 255))
        if rng.random() < 0.5:
            foreground, background = background, foreground
    picture = paint(ink, SIDE, foreground, background, matrix) + rng.normal(
        0, rng.uniform(0, 10), (SIDE, SIDE, 3))
    return np.clip(picture, 0, 255) / 255


def network():
    def block(x, filters, stride):
        x = tf.keras.layers.DepthwiseConv2D(3, stride, padding="same", use_bias=False)(x)
        x = tf.keras.layers.BatchNormalization()(x)
        x = tf.keras.layers.ReLU(6.0)(x)
        x = tf.keras.layers.Conv2D(filters, 1, use_bias=False)(x)
        x = tf.keras.layers.BatchNormalization()(x)
        return tf.keras.layers.ReLU(6.0)(x)

    image = tf.keras.Input((SIDE, SIDE, 3), name="image")
    x = tf.keras.layers.Conv2D(24, 3, 2, padding="same", use_bias=False)(image)
    x = tf.keras.layers.BatchNormalization()(x)
    x = tf.keras.layers.ReLU(6.0)(x)
    x = block(x, 48, 1)
    x = block(x, 96, 2)
    x = block(x, 96, 2)
    x = tf.keras.layers.GlobalAveragePooling2D()(x)
    x = tf.keras.layers.Dropout(0.2)(x)
    return tf.keras.Model(image,
                          tf.keras.layers.Dense(10, activation="softmax", name="probability")(x))


def train(inks, digits):
    rng = np.random.default_rng(SEED)
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    model = network()
    steps = EPOCHS * ((len(inks) + BATCH - 1) // BATCH)
    rate = tf.keras.optimizers.schedules.CosineDecay(3e-3, steps)
    model.compile(tf.keras.optimizers.Adam(rate), loss="sparse_categorical_crossentropy")
    for epoch in range(EPOCHS):
        pictures = np.stack([disturb(ink, rng) for ink in inks]).astype(np.float32)
        history = model.fit(pictures, digits, BATCH, verbose=0)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: loss {history.history['loss'][0]:.4f}", flush=True)
    return model


def quantize(model, inks):
    rng = np.random.default_rng(SEED + 1)

    def samples():
        # both ends of the range: a step is then 1/255
        yield [np.zeros((1, SIDE, SIDE, 3), np.float32)]
        yield [np.ones((1, SIDE, SIDE, 3), np.float32)]
        for ink in inks[:500]:
            yield [disturb(ink, rng)[None].astype(np.float32)]

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = samples
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.uint8
    converter.inference_output_type = tf.float32
    return converter.convert()


def rename(model_bytes, names):
    """Gives inputs and outputs the names that clients send."""
    schema = metadata.schema
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(model_bytes, 0))
    graph = model.subgraphs[0]
    for index, name in zip(list(graph.inputs) + list(graph.outputs), names, strict=True):
        graph.tensors[index].name = name
    b = metadata.flatbuffers.Builder(len(model_bytes))
    b.Finish(model.Pack(b), b"TFL3")
    return bytes(b.Output())


def accuracy(path, pictures, digits):
    """Share of right answers of the written file, run by LiteRT's reference kernels."""
    interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    image, = interpreter.get_input_details()
    probability, = interpreter.get_output_details()
    right = 0
    for picture, digit in zip(pictures, digits, strict=True):
        interpreter.set_tensor(image["index"], picture[None])
        interpreter.invoke()
        right += int(interpreter.get_tensor(probability["index"])[0].argmax() == digit)
    return right / len(digits)


def main():
    data = load_digits()
    inks, digits = data.images[:-HELD_OUT], data.target[:-HELD_OUT]
    held_inks, held_digits = data.images[-HELD_OUT:], data.target[-HELD_OUT:]
    model = train(inks, digits)

    (MODEL / "1").mkdir(parents=True, exist_ok=True)
    path = MODEL / "1" / "model.tflite"
    about = metadata.describe(
        "digits", "Recognises one handwritten digit.",
        "Apache-2.0; trained on the UCI handwritten digits (CC BY 4.0) as shipped by scikit-learn",
        [0.0], [255.0], "image", "probability")
    path.write_bytes(
        metadata.add(rename(quantize(model, inks), ["image", "probability"]), about, LABELS))
    (MODEL / "labels.txt").write_text("".join(label + "\n" for label in LABELS))

    looks = {"dark on white": (0, 255), "light on black": (255, 0)}
    for look, (foreground, background) in looks.items():
        pictures = np.stack([paint(ink, SIDE, foreground, background) for ink in held_inks])
        pictures = np.repeat(np.rint(pictures), 3, axis=3).astype(np.uint8)
        floats = model.predict(pictures / np.float32(255), verbose=0).argmax(1)
        print(
            f"{look}: float {np.mean(floats == held_digits):.4f}, "
            f"int8 file {accuracy(path, pictures, held_digits):.4f}"
        )
    rng = np.random.default_rng(SEED + 2)
    pictures = np.stack([np.rint(disturb(ink, rng) * 255) for ink in held_inks]).astype(np.uint8)
    print(f"disturbed: int8 file {accuracy(path, pictures, held_digits):.4f}")
    print(f"{path.stat().st_size} bytes")

    (MODEL / "examples").mkdir(exist_ok=True)
    for label in (3, 7):
        ink = held_inks[list(held_digits).index(label)]
        colours = (np.array([40, 40, 90]), np.array([250, 248, 240]))
        picture = np.rint(paint(ink, 128, *colours)).astype(np.uint8)
        Image.fromarray(picture).save(MODEL / "examples" / f"{LABELS[label]}.png", optimize=True)
        print(f"example {LABELS[label]}: held-out digit {list(held_digits).index(label)}")


if __name__ == "__main__":
    main()
