"""`inferd run`, `compare` and `bench`: where the batch comes from, how wrong files are refused."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fuzz"))
from make_tflite import Model, f32, s32, unary  # noqa: E402

TOOL = sys.argv[1]


def reshape(shape, target):
    """Its batch is not free: samples do not stay apart."""
    m = Model()
    x = m.input("x", shape)
    to = m.tensor("to", [len(target)], "INT32", s32(*target))
    y = m.tensor("y", target)
    m.op("RESHAPE", [x, to], [y])
    return m.output(y)


def npy(shape, values):
    dims = "".join(f"{d}," for d in shape)
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({dims}), }}".encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + f32(*values)


def numbers(count):
    return [(i % 7) - 3.0 for i in range(count)]


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.two = self.write("two.tflite", unary("RELU", shape=(2, 4, 4, 3)).bytes())
        self.one = self.write("one.tflite", unary("RELU", shape=(1, 4, 4, 3)).bytes())

    def write(self, name, content):
        path = pathlib.Path(self.folder.name) / name
        path.write_bytes(content)
        return path

    def samples(self, count, name="in.npy"):
        return self.write(name, npy([count, 4, 4, 3], numbers(count * 48)))

    def call(self, status, *arguments):
        done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        if status:
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr if status else done.stdout

    def test_check_says_what_runs_where(self):
        text = self.call(0, "check", self.one)
        for line in (f"{self.one} runs: tflite 3, 1 operators\n", 'input f32[1,4,4,3] "',
                     'output f32[1,4,4,3] "', "CpuAcc: 1 of 1 steps, 100 % of the time\n",
                     "memory: ", "speed: "):
            self.assertIn(line, text)
        self.assertIn("CpuRef: 1 of 1 steps, 100 % of the time\n",
                      self.call(0, "check", self.one, "--backend", "CpuRef,CpuAcc"))
        self.assertIn("Nobody", self.call(2, "check", self.one, "--backend", "Nobody"))

    def test_check_names_every_operator_that_is_not_supported(self):
        m = Model()
        x = m.input("x", [1, 4])
        for i, name in enumerate(("First", "Second", "First", "Third")):
            y = m.tensor(f"y{i}", [1, 4])
            m.op("CUSTOM", [x], [y], custom=name)
            x = y
        m.output(x)
        text = self.call(1, "check", self.write("custom.tflite", m.bytes()))
        self.assertIn("operator First (version 1, node 0", text)
        self.assertIn("is not supported, nor are Second, Third\n", text)

    def expect_relu(self, model, count, *options):
        out = pathlib.Path(self.folder.name) / "out"
        text = self.call(0, "run", model, *options, "--output-dir", out)
        self.assertEqual(text, f"out0 y f32 [{count},4,4,3]\n")
        want = f32(*[max(x, 0.0) for x in numbers(count * 48)])
        self.assertEqual((out / "out0.npy").read_bytes()[-len(want):], want)

    def test_run_takes_the_batch_from_its_arrays(self):
        for model in (self.one, self.two):
            for count in (1, 2, 5):
                self.expect_relu(model, count, "--input", self.samples(count))
                raw = self.write("in.raw", f32(*numbers(count * 48)))
                self.expect_relu(model, count, "--input", f"x={raw}")
        self.expect_relu(self.two, 3, "--input", self.samples(3), "--batch", "3")

    def test_run_of_a_fixed_shape_takes_that_shape(self):
        model = self.write("fixed.tflite", reshape([2, 6], [3, 4]).bytes())
        right, wrong = (self.write(f"{n}.npy", npy([n, 6], numbers(n * 6))) for n in (2, 4))
        self.assertEqual(self.call(0, "run", model, "--input", right), "out0 y f32 [3,4]\n")
        self.assertIn(f'input "x" from {wrong}: 96 bytes of f32, expected 48 of f32',
                      self.call(1, "run", model, "--input", wrong))

    def test_arrays_that_do_not_fit_are_refused_with_numbers(self):
        for content, options, want in (
                (npy([2, 4, 4, 3], numbers(96)), ["--batch", "3"],
                 "384 bytes of f32, expected 576 of f32 (batch 3)"),
                (npy([97], numbers(97)), [], "388 bytes of f32, expected 384 of f32 (batch 2)"),
                (b"", [], "0 bytes of f32, expected 384 of f32 (batch 2)"),
                (npy([4097, 48], [0.0] * 48 * 4097), [], "4097 samples, limit 4096")):
            path = self.write("in.npy" if content else "in.raw", content)
            self.assertIn(f'{self.two}: input "x" from {path}: {want}',
                          self.call(1, "run", self.two, "--input", path, *options))
        self.assertIn("0 inputs given (--input), the model has 1", self.call(1, "run", self.two))

    def test_giant_files_are_refused_before_memory_is_taken(self):
        giant = self.write("giant.npy", b"")
        with open(giant, "r+b") as file:
            file.truncate(5 << 30)  # takes no room on disk
        for arguments, limit in ((["run", self.two, "--input", giant], 1 << 30),
                                 (["compare", self.two, "--input", self.samples(2),
                                   "--golden", giant], (2 << 30) - 1)):
            self.assertIn(f'"{giant}" has {5 << 30} bytes, more than the limit of {limit}',
                          self.call(1, *arguments))

    def test_bench_and_compare_take_the_batch_from_the_model(self):
        bench = ["bench", "--json", "--iterations", "1"]
        for arguments, batch in (([self.one], 1), ([self.two], 2), ([self.two, "--batch", "3"], 3)):
            self.assertEqual(json.loads(self.call(0, *bench, *arguments))["batch"], batch)
        compare = ["compare", self.two, "--with", "CpuRef"]
        for options, elements in (([], 96), (["--batch", "3"], 144),
                                  (["--input", self.samples(5)], 240)):
            row = self.call(0, *compare, *options).splitlines()[1].split()
            self.assertEqual(row[:3], ["y", str(elements), "0"])

    def test_compare_with_golden_files_takes_the_batch_from_its_arrays(self):
        want = numbers(96)
        golden = self.write("want.npy", npy([2, 4, 4, 3], want))  # relu leaves out what is below 0
        compare = ["compare", self.two, "--golden", golden]
        row = self.call(0, *compare, "--input", self.samples(2)).splitlines()[1].split()
        self.assertEqual(row[:3], ["y", "96", str(sum(x < 0 for x in want))])
        self.assertIn("0 inputs given (--input), the model has 1", self.call(1, *compare))

    def test_an_input_is_given_once(self):
        m = Model()
        a, b, y = m.input("a", [1, 2]), m.input("b", [1, 2]), m.tensor("y", [1, 2])
        m.op("ADD", [a, b], [y])
        run = ["run", self.write("add.tflite", m.output(y).bytes())]
        x = self.write("x.npy", npy([1, 2], [1.0, 2.0]))
        self.call(0, *run, "--input", f"b={x}", "--input", f"a={x}")
        self.assertIn('input "a" is given twice',
                      self.call(1, *run, "--input", x, "--input", f"a={x}"))

    def test_help_names_every_option_and_ends_well(self):
        for command in ("run", "compare", "bench", "inspect"):
            text = self.call(0, command, "--help")
            self.assertTrue(text.startswith(f"usage: inferd {command} MODEL [options]\n"))
            self.assertLessEqual({"--backend", "--cpu", "--threads", "--help"}, set(text.split()))


unittest.main(argv=sys.argv[:1])
