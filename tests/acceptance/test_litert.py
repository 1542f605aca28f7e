"""Operators of TFLite and state, over HTTP to both backends, with the answers of LiteRT."""

import json
import math
import pathlib
import zlib

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import np_to_triton_dtype

import litert_states  # noqa: F401: adds models
import support
from litert_models import DELEGATED, MODELS, STATES, LiteRT, landmarks_matrix, pool_with_places
from litert_models import repeated_texts, resampler, table_of_texts, table_to_texts, transform
from litert_models import transform_landmarks
from litert_models import two_signatures, unpool, write_far

STEPS = 3


class Models:
    off = 0  # steps that 8-bit answers may be off

    @classmethod
    def prepare(cls, folder):
        cls.content, cls.ports = {}, {}
        for name, make in MODELS.items():
            made = make()
            cls.content[name], cls.ports[name] = made.bytes(), made.inputs()
            file = pathlib.Path(folder) / f"{name}.tflite"
            file.write_bytes(cls.content[name])
            support.add_model(folder, name, file, config="sequence_batching { }"
                              if name in STATES else None)
            if name in STATES:
                support.add_model(folder, f"{name}_anew", file)
            file.unlink()

    def inputs(self, name, rng):
        arrays = []
        for shape, dtype, limits in self.ports[name]:
            if np.dtype(dtype).kind == "f":
                arrays.append(rng.uniform(-1, 1, shape).astype(dtype))
            else:
                low, high = limits or (-100, 100)
                arrays.append(rng.integers(low, high, shape).astype(dtype))
        return arrays

    def ask(self, client, name, arrays, **options):
        tensors = []
        for i, array in enumerate(arrays):
            tensors.append(
                triton.InferInput(f"in{i}", list(array.shape), np_to_triton_dtype(array.dtype))
            )
            tensors[-1].set_data_from_numpy(array)
        return client.infer(name, tensors, **options)

    def judge(self, got, want, where):
        self.assertEqual(got.shape, want.shape, where)
        if want.dtype.kind == "f":
            scale = float(np.abs(want).max(initial=0)) or 1
            np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * scale, err_msg=where)
        else:
            worst = np.abs(got.astype(np.int64) - want.astype(np.int64)).max(initial=0)
            self.assertLessEqual(worst, self.off if want.dtype.itemsize == 1 else 0, where)

    def compare(self, client, name):
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        runtime = LiteRT(self.content[name], name in DELEGATED)
        for step in range(STEPS):
            arrays = self.inputs(name, rng)
            options = {"sequence_id": 5, "sequence_start": step == 0,
                       "sequence_end": step == STEPS - 1} if name in STATES else {}
            answer = self.ask(client, name, arrays, **options)
            if name not in STATES:
                runtime.made.reset_all_variables()
            for i, want in enumerate(runtime.step(arrays)):
                self.judge(answer.as_numpy(f"out{i}"), want, f"{name}, step {step}, output {i}")

    def test_sequences_have_states_of_their_own(self):
        """Two at a time; the models without sequences begin anew in each request."""
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        for name in sorted(STATES):
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            runtimes = {number: LiteRT(self.content[name]) for number in (7, 8)}
            for step, number in enumerate((7, 8, 8, 7, 7, 8)):
                arrays, where = self.inputs(name, rng), f"{name}, step {step}"
                answer = self.ask(client, name, arrays, sequence_id=number,
                                  sequence_start=step < 2, sequence_end=step > 3)
                for i, want in enumerate(runtimes[number].step(arrays)):
                    self.judge(answer.as_numpy(f"out{i}"), want, where)
                answer = self.ask(client, f"{name}_anew", arrays)
                for i, want in enumerate(LiteRT(self.content[name]).step(arrays)):
                    self.judge(answer.as_numpy(f"out{i}"), want, f"{where}, anew")

    def test_answers_are_those_of_litert(self):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        for name in MODELS:
            with self.subTest(name):
                self.compare(client, name)


def windows(x, stride, window, before):
    """Each window of a picture [h,w,c] as [places, c], the least number outside; by its pixel."""
    low = np.finfo(np.float32).min
    wide = np.full([x.shape[0] + 8, x.shape[1] + 8, x.shape[2]], low, np.float32)
    wide[before[0] : before[0] + x.shape[0], before[1] : before[1] + x.shape[1]] = x
    return lambda i, k: wide[i * stride[0] : i * stride[0] + window[0],
                             k * stride[1] : k * stride[1] + window[1]].reshape(-1, x.shape[2])


def sample(image, x, y):
    """Bilinear; 0 outside of the image [h,w,c]."""
    height, width, channels = image.shape
    if not (0 <= x <= width - 1 and 0 <= y <= height - 1):
        return np.zeros(channels)
    left, top = int(x), int(y)
    right, below = min(left + 1, width - 1), min(top + 1, height - 1)
    upper = (1 - (x - left)) * image[top, left] + (x - left) * image[top, right]
    lower = (1 - (x - left)) * image[below, left] + (x - left) * image[below, right]
    return (1 - (y - top)) * upper + (y - top) * lower


EYE = {"left_rotation_idx": 2, "right_rotation_idx": 5, "output_height": 16, "output_width": 24,
       "scale_x": 1.5, "scale_y": 1.25, "subset_idxs": [0, 1, 2, 3, 7, 300],
       "target_rotation_radians": 0.25}


def eye_matrix(points, options):
    """Steps of MediaPipe's landmarks_to_transform_matrix, version 2, in doubles."""
    left, right = points[options["left_rotation_idx"]], points[options["right_rotation_idx"]]
    turn = options["target_rotation_radians"] - math.atan2(right[1] - left[1], right[0] - left[0])

    def rotation(angle):
        made = np.eye(4)
        made[:2, :2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
        return made

    def shift(x, y):
        made = np.eye(4)
        made[:2, 3] = x, y
        return made

    turned = points[options["subset_idxs"], :2] @ rotation(turn)[:2, :2].T
    most, least = turned.max(0), turned.min(0)
    middle = rotation(-turn)[:2, :2] @ ((most + least) / 2)
    size = np.array([options["output_width"], options["output_height"]])
    scale = np.array([options["scale_x"], options["scale_y"]]) * (most - least) / size
    return (shift(*middle) @ rotation(-turn) @ np.diag([*scale, 1, 1]) @ shift(*(-size / 2)))


class MediaPipe(support.ServerCase):
    """Operators that LiteRT lacks, by NumPy as their sources describe them."""

    @classmethod
    def prepare(cls, folder):
        file = pathlib.Path(folder) / "model.tflite"
        for name, made in (
            ("pool_valid", pool_with_places([1, 6, 8, 3], [1, 3, 2, 3], 2, (2, 3), (2, 3))),
            ("pool_same", pool_with_places([1, 5, 5, 2], [1, 3, 3, 2], 1, (2, 2), (3, 3))),
            ("unpool", unpool([1, 2, 3, 2], (2, 3))),
            ("transform", transform([1, 5, 6, 2], [1, 4, 7, 2], 1)),
            ("transform_centres", transform([1, 5, 6, 2], [1, 4, 7, 2], 2)),
            ("warp", resampler([2, 5, 6, 3], [2, 4, 7, 2])),
            ("eye", landmarks_matrix(301, EYE)),
            ("planar", transform_landmarks(7, 2)),
            ("spatial", transform_landmarks(5, 3)),
        ):
            file.write_bytes(made.bytes())
            support.add_model(folder, name, file)
        file.unlink()

    def setUp(self):
        self.rng = np.random.default_rng(3)
        self.client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(self.client.close)

    def ask(self, name, *arrays):
        tensors = []
        for i, array in enumerate(arrays):
            tensors.append(triton.InferInput(f"in{i}", list(array.shape), "FP32"))
            tensors[-1].set_data_from_numpy(array)
        return self.client.infer(name, tensors)

    def real(self, *shape):
        return self.rng.uniform(-1, 1, shape).astype(np.float32)

    def test_pools_say_where_the_largest_number_was(self):
        for name, shape, out, stride, window, before in (
            ("pool_valid", (6, 8, 3), (3, 2, 3), (2, 3), (2, 3), (0, 0)),
            ("pool_same", (5, 5, 2), (3, 3, 2), (2, 2), (3, 3), (1, 1)),
        ):
            x = self.real(1, *shape)
            answer = self.ask(name, x)
            window_at = windows(x[0], stride, window, before)
            for i in range(out[0]):
                for k in range(out[1]):
                    numbers = window_at(i, k)
                    np.testing.assert_array_equal(answer.as_numpy("out0")[0, i, k], numbers.max(0))
                    places = np.float32(numbers.argmax(0)) + np.float32(0.1)
                    np.testing.assert_array_equal(answer.as_numpy("out1")[0, i, k], places)

    def test_unpooling_puts_numbers_where_they_were(self):
        x, places = self.real(1, 2, 3, 2), self.rng.integers(0, 6, (1, 2, 3, 2))
        want = np.zeros([4, 9, 2], np.float32)
        for i, k, c in np.ndindex(2, 3, 2):
            place = places[0, i, k, c]
            want[2 * i + place // 3, 3 * k + place % 3, c] = x[0, i, k, c]
        answer = self.ask("unpool", x, (places + 0.1).astype(np.float32))
        np.testing.assert_array_equal(answer.as_numpy("out0")[0], want)

    def test_pictures_are_transformed(self):
        x = self.real(1, 5, 6, 2)
        matrix = np.float32([[0.8, 0.3, 0, -0.4], [-0.2, 1.1, 0, 0.6], [0, 0, 1, 0], [0, 0, 0, 1]])
        for name, shift in (("transform", 0.0), ("transform_centres", 0.5)):
            answer = self.ask(name, x, matrix[None]).as_numpy("out0")[0]
            for i, k in np.ndindex(4, 7):
                at = matrix @ np.float32([k + shift, i + shift, 0, 1])
                want = sample(x[0], at[0] - shift, at[1] - shift)
                np.testing.assert_allclose(answer[i, k], want, rtol=0, atol=1e-5, err_msg=name)


    def test_images_are_resampled(self):
        x, at = self.real(2, 5, 6, 3), self.rng.uniform(-2, 7, (2, 4, 7, 2)).astype(np.float32)
        at[0, 0, :4] = [0, 0], [5, 4], [5.5, 4.5], [-0.5, 2]
        at[0, 0, 4:] = [-1, 2], [6, 1], [3, 2]
        around = np.pad(x, ((0, 0), (3, 3), (3, 3), (0, 0)))
        answer = self.ask("warp", x, at).as_numpy("out0")
        for n, i, k in np.ndindex(2, 4, 7):
            want = sample(around[n], *(np.clip(at[n, i, k], -3, [8, 7]) + 3))
            np.testing.assert_allclose(answer[n, i, k], want, rtol=0, atol=1e-5)

    def test_landmarks_make_a_matrix(self):
        points = self.real(1, 301, 3)
        one_point = points.copy()
        one_point[0, 5] = one_point[0, 2]  # no line to turn: an angle of 0
        for x in points, one_point:
            np.testing.assert_allclose(self.ask("eye", x).as_numpy("out0")[0],
                                       eye_matrix(x[0].astype(np.float64), EYE), rtol=0, atol=1e-5)

    def test_landmarks_are_transformed(self):
        matrix = self.real(4, 4)
        for name, count, size in ("planar", 7, 2), ("spatial", 5, 3):
            x = self.real(1, count, size)
            want = x[0].copy()
            want[:, :2] = x[0, :, :2] @ matrix[:2, :2].T + matrix[:2, 3]
            np.testing.assert_allclose(self.ask(name, x, matrix[None]).as_numpy("out0")[0], want,
                                       rtol=0, atol=1e-6)


class Signatures(support.ServerCase):
    options = ("--strict-readiness=false",)
    config = 'parameters { key: "signature" value { string_value: "%s" } }'

    @classmethod
    def prepare(cls, folder):
        file = pathlib.Path(folder) / "model.tflite"
        file.write_bytes(two_signatures().bytes())
        for name in "sum", "product", "quotient":
            support.add_model(folder, name, file, config=cls.config % name)
        support.add_model(folder, "first", file)
        support.add_model(folder, "renamed", file, config=cls.config % "product"
                          + 'input { name: "x" } output { name: "y" dims: [ 1, 3 ] }')
        support.add_model(folder, "twice", file, config='input { name: "x" } input { name: "in0" }')
        file.unlink()

    def test_a_config_may_use_the_names_of_the_signature(self):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        metadata = client.get_model_metadata("renamed")
        self.assertEqual([t["name"] for t in metadata["inputs"] + metadata["outputs"]], ["x", "y"])
        tensor = triton.InferInput("x", [1, 3], "FP32")
        tensor.set_data_from_numpy(np.float32([[1, 3, 5]]))
        answer = client.infer("renamed", [tensor]).as_numpy("y")
        np.testing.assert_array_equal(answer, [[2, 6, 10]])
        index = json.loads(self.server.ask("POST", "/v2/repository/index").data)
        reason = next(row["reason"] for row in index if row["name"] == "twice")
        self.assertIn('input "in0" is listed twice', reason)
        lines = self.server.log_text().splitlines()
        told = [line for line in lines if "several signatures" in line]
        self.assertEqual(len(told), 1, told)
        self.assertIn("model=first", told[0])

    def test_a_config_chooses_the_signature(self):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        x = np.float32([[1, 3, 5]])
        for name, want in ("sum", x + 2), ("product", x * 2), ("first", x + 2):
            tensor = triton.InferInput("in0", [1, 3], "FP32")
            tensor.set_data_from_numpy(x)
            answer = client.infer(name, [tensor]).as_numpy("out0")
            np.testing.assert_array_equal(answer, want, name)
        index = json.loads(self.server.ask("POST", "/v2/repository/index").data)
        reason = next(row["reason"] for row in index if row["name"] == "quotient")
        self.assertIn('no signature "quotient"; it has "sum", "product"', reason)


class Tables(support.ServerCase):
    MADE = {"of_texts": (table_of_texts, [[b"", b"cat", b"dog"], [b"ca", b"a longer name", b"c"]]),
            "to_texts": (table_to_texts, [0, -4, 900000000000, 5, 0, 3]),
            "repeated": (repeated_texts, [[b"", b"cat", b"dog"], [b"ca", b"a longer name", b"c"]])}

    @classmethod
    def prepare(cls, folder):
        file = pathlib.Path(folder) / "model.tflite"
        for name, (make, _) in cls.MADE.items():
            file.write_bytes(make().bytes())
            support.add_model(folder, name, file)
        file.unlink()

    def test_what_is_looked_up_is_what_litert_finds(self):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        for name, (make, x) in self.MADE.items():
            is_text = isinstance(x[0], list)
            x = np.array(x, dtype=object if is_text else np.int64)
            tensor = triton.InferInput("in0", list(x.shape), "BYTES" if is_text else "INT64")
            tensor.set_data_from_numpy(x)
            answer = client.infer(name, [tensor])
            wanted = LiteRT(make().bytes()).step([x])
            for i, want in enumerate(wanted):
                np.testing.assert_array_equal(answer.as_numpy(f"out{i}"), want, name)


class Far(support.ServerCase):
    """A FlatBuffer holds 2 GiB at most; what is larger has its weights behind it."""

    PLACE = (1 << 31) + (1 << 28)

    @classmethod
    def prepare(cls, folder):
        cls.file = pathlib.Path(folder) / "far/1/model.tflite"
        cls.file.parent.mkdir(parents=True)
        write_far(cls.file, cls.PLACE)

    def test_weights_beyond_2_gib_are_found(self):
        self.assertLess(self.file.stat().st_blocks * 512, 1 << 20)
        runtime = LiteRT.make_of(model_path=str(self.file))
        x = np.float32([[1, -2, 3, 0.5]])
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        tensor = triton.InferInput("in0", [1, 4], "FP32")
        tensor.set_data_from_numpy(x)
        runtime.set_tensor(runtime.get_input_details()[0]["index"], x)
        runtime.invoke()
        want = runtime.get_tensor(runtime.get_output_details()[0]["index"])
        got = client.infer("far", [tensor]).as_numpy("out0")
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)


class OnCpuRef(Models, support.ServerCase):
    options = ("--backend", "CpuRef")


class OnCpuAcc(Models, support.ServerCase):
    off = 1
