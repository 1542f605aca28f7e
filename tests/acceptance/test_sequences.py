"""Streaming models of others as sequences, in the shape of tritonclient's example: each value of a
sequence is a request of its own, the first says start, the last says end. Two run beside each
other, and one meets a reload."""

import json
import pathlib
import re
import time

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

import support
from test_golden import SILERO, STREAMS, model_name

# The wake word's network keeps nothing: its client moves the window along the sound.
WAKE_WORD = "tflite/str_ww_ref_model.tflite"
WINDOWS = 5
IDLE_US = 300_000


def steps(case):
    """What the inputs of a golden stream hold at each step, and what the outputs do."""
    for folder in sorted(support.shared("golden/" + case["path"]).glob("step*")):
        yield (
            {name: np.load(folder / f"in{i}.npy") for i, name in enumerate(case["inputs"])},
            {name: np.load(folder / f"out{i}.npy") for i, name in enumerate(case["outputs"])},
        )


class Sequences(support.ServerCase):
    options = ("--model-control-mode=explicit", "--load-model=*", "--admin-on-http")

    @classmethod
    def prepare(cls, folder):
        cls.folder = pathlib.Path(folder)
        for model, states in {**STREAMS, WAKE_WORD: ""}.items():
            config = SILERO if "silero" in model else ""
            for name, idle_us in (model_name(model), 600_000_000), ("idle", IDLE_US):
                if name == "idle" and "silero" not in model:
                    continue
                support.add_model(
                    folder, name, support.shared("models/" + model),
                    config=config + "sequence_batching { max_sequence_idle_microseconds: "
                    f"{idle_us} {states} }}\n",
                )

    def setUp(self):
        self.client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(self.client.close)

    def send(self, model, feed, **sequence):
        inputs = []
        for name, array in feed.items():
            inputs.append(triton.InferInput(name, array.shape, np_to_triton_dtype(array.dtype)))
            inputs[-1].set_data_from_numpy(array)
        result = self.client.infer(model_name=model, inputs=inputs, **sequence)
        return {row["name"]: result.as_numpy(row["name"])
                for row in result.get_response()["outputs"]}

    def stream(self, model, feeds, sequence_id):
        """A sequence, a request for each step that it is asked for."""
        for count, feed in enumerate(feeds, 1):
            yield self.send(model, feed, sequence_id=sequence_id, sequence_start=count == 1,
                            sequence_end=count == len(feeds))

    def beside(self, model, first, second):
        """Two sequences, their requests in turn."""
        return zip(*zip(self.stream(model, first, 1000), self.stream(model, second, 1001)))

    def expect_same(self, got, want):
        for a, b in zip(got, want, strict=True):
            self.assertEqual(a.keys(), b.keys())
            for name in a:
                np.testing.assert_array_equal(a[name], b[name], name)

    def cases(self):
        cases = [c for c in json.loads(support.shared("golden/cases.json").read_text())
                 if c["model"] in STREAMS]
        self.assertEqual(len(cases), len(STREAMS))
        for case in cases:
            hidden = re.findall('_name: "(.*?)"', STREAMS[case["model"]])
            feeds, answers = zip(*steps(case))
            feeds = [{n: a for n, a in feed.items() if n not in hidden} for feed in feeds]
            yield model_name(case["model"]), case, feeds, answers, hidden

    def test_two_sequences_beside_each_other_answer_as_each_alone(self):
        for model, case, feeds, answers, hidden in self.cases():
            with self.subTest(model):
                # the same sound, begun one step later: other states at every step
                later = feeds[1:] + feeds[:1]
                alone = list(self.stream(model, later, 7))
                got, other = self.beside(model, feeds, later)
                self.expect_same(other, alone)
                self.assertFalse(all(np.array_equal(a[n], b[n])
                                     for a, b in zip(got[1:], alone[:-1]) for n in a),
                                 "the states change nothing")
                for answer, want in zip(got, answers, strict=True):
                    self.assertEqual(answer.keys(), want.keys() - set(hidden))
                    for name, array in answer.items():
                        self.judge(array, want[name], case["tolerance"], f"{model} {name}")

    def judge(self, got, want, tolerance, where):
        self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype), where)
        worst = np.abs(got.astype(np.float64) - want.astype(np.float64)).max()
        unit = 1 if tolerance["kind"] == "lsb" else float(np.ptp(want)) or 1
        self.assertLessEqual(worst / unit, tolerance["fast"], where)

    def test_windows_of_a_sound_are_a_sequence_of_a_model_without_state(self):
        model = model_name(WAKE_WORD)
        name = "serving_default_input_1:0"
        sound = np.load(support.shared("golden/str_ww_ref_model/uniform/in0.npy"))
        sound = np.concatenate([sound, np.full((1, WINDOWS, 1, 40), 127, np.int8)], axis=1)
        windows = [{name: sound[:, i:i + 30]} for i in range(WINDOWS)]
        alone = [next(iter(self.stream(model, [window], 7))) for window in windows]
        got, reverse = self.beside(model, windows, windows[::-1])
        self.expect_same(got, alone)
        self.expect_same(reverse[::-1], alone)
        self.assertGreater(len({str(answer) for answer in alone}), 1)

    def refused(self, words, *arguments, **sequence):
        with self.assertRaisesRegex(InferenceServerException, words):
            self.send(*arguments, **sequence)

    def test_a_reload_in_the_middle_ends_a_sequence_and_the_answer_says_so(self):
        for model, _, feeds, _, _ in self.cases():
            with self.subTest(model):
                first = self.send(model, feeds[0], sequence_id=5, sequence_start=True)
                config = self.folder / model / "config.pbtxt"
                config.write_text(config.read_text() + "\n")
                self.client.load_model(model)
                self.refused("sequence 5 .* START flag .* when its model is reloaded",
                             model, feeds[1], sequence_id=5)
                again = self.send(model, feeds[0], sequence_id=5, sequence_start=True,
                                  sequence_end=True)
                self.expect_same([again], [first])

    def test_a_sequence_without_requests_is_forgotten_and_the_answer_says_so(self):
        feeds = next(f for m, _, f, _, _ in self.cases() if "silero" in m)
        self.send("idle", feeds[0], sequence_id=5, sequence_start=True)
        time.sleep(2 * IDLE_US / 1e6)
        self.refused(f"START flag .* forgotten after {IDLE_US} us", "idle", feeds[1], sequence_id=5)


if __name__ == "__main__":
    import unittest
    unittest.main()
