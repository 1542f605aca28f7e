"""Plugins: backends/null built out of tree with the installed headers, and shared objects that are
no plugin for this engine.

usage: test_plugin.py INFERD BUILD-FOLDER MODEL"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

INFERD, BUILD, MODEL = sys.argv[1:4]
SOURCE = pathlib.Path(__file__).resolve().parents[2]
STRANGE = """
#include "inferd/backend.h"
{}
static const struct ifd_backend strange = {{.abi = {}, .bytes = sizeof(strange), .name = "{}"}};
IFD_EXPORT const struct ifd_backend *ifd_backend_query(uint32_t abi)
{{
    return {};
}}
"""


def install(folder):
    subprocess.run(["cmake", "--install", BUILD, "--component", "headers", "--prefix", folder],
                   check=True, capture_output=True)


class Plugins(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.root.cleanup)
        cls.include = pathlib.Path(cls.root.name) / "include"
        install(cls.root.name)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def build(self, source, name):
        done = subprocess.run(["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC",
                               "-shared", "-fvisibility=hidden", f"-I{self.include}", source, "-o",
                               self.folder / name], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def strange(self, name, abi="IFD_BACKEND_ABI", backend="Strange", result="&strange", more=""):
        source = self.folder / f"{name}.c"
        source.write_text(STRANGE.format(more, abi, backend, result + ";(void)abi"))
        self.build(source, f"{name}.so")

    def null(self, name="null.so"):
        self.build(SOURCE / "backends/null/null.c", name)

    def call(self, status, *arguments):
        done = subprocess.run([INFERD, *map(str, arguments)], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, status, done.stdout[-2000:] + done.stderr)
        return done.stderr if status else done.stdout

    def lines(self, *more):
        text = self.call(0, "inspect", MODEL, "--backend-path", self.folder, *more)
        return [line for line in text.splitlines() if line.startswith("backend: ")]

    def test_the_example_builds_alone_and_is_taken(self):
        self.null()
        names = subprocess.run(["nm", "-D", self.folder / "null.so"], capture_output=True,
                               text=True, check=True).stdout
        ours = [line.split()[-2:] for line in names.splitlines() if "ifd_" in line]
        self.assertEqual(ours, [["T", "ifd_backend_query"]])
        self.assertIn(f"backend: Null available, from {self.folder}/null.so", self.lines())
        text = self.call(0, "inspect", MODEL, "--backend-path", self.folder, "--backend",
                         "Null,CpuRef")
        self.assertIn(" on CpuRef: ", text)
        error = self.call(1, "inspect", MODEL, "--backend-path", self.folder, "--backend", "Null")
        self.assertRegex(error, r'Null: computes nothing, not even \w+ "')

    def test_plugins_beside_the_program_are_found_without_being_named(self):
        self.null()
        program = self.folder / "bin" / "inferd"
        plugins = self.folder / "lib/inferd/backends"
        program.parent.mkdir()
        plugins.mkdir(parents=True)
        shutil.copy(INFERD, program)
        command = [program, "inspect", MODEL]
        before = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.assertNotIn("Null", before)
        shutil.copy(self.folder / "null.so", plugins)
        after = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.assertIn("backend: Null available, from ", after)
        self.assertEqual([line for line in after.splitlines() if "Null" not in line],
                         before.splitlines(), "a plugin that nobody names changes nothing")

    def test_an_option_reaches_the_backend_it_names(self):
        self.null()
        path = ["inspect", MODEL, "--backend-path", self.folder, "--backend-option"]
        for option, want in (("Null:device=1", 'backend Null: no option "device": Null has none'),
                             ("CpuRef:a=b", 'backend CpuRef: no option "a": CpuRef has none'),
                             ("Other:a=b", "there is no backend Other"),
                             ("Null", 'backend option "Null": expected NAME:KEY=VALUE'),
                             (":a=b", "expected NAME:KEY=VALUE"),
                             ("Null:=b", "expected NAME:KEY=VALUE")):
            self.assertIn(want, self.call(2, *path, option))

    def test_a_file_that_is_not_taken_has_its_reason(self):
        (self.folder / "text.so").write_text("no shared object")
        (self.folder / "folder.so").mkdir()
        (self.folder / "notes.txt").write_text("not looked at")
        self.strange("older", abi="1")
        self.strange("refuses", result="NULL")
        self.strange("named", backend="Two words")
        self.strange("twin", backend="CpuRef")
        self.strange("first", backend="Twice")
        self.strange("second", backend="Twice")
        self.strange("needs", more="void ifd_nowhere(void);", result="(ifd_nowhere(), &strange)")
        silent = self.folder / "silent.c"
        silent.write_text("int ifd_other;\n")
        self.build(silent, "silent.so")
        text = "\n".join(self.lines())
        for want in ("text.so not taken: .*(invalid ELF header|file too short)",
                     "folder.so not taken: it is not a regular file",
                     r"older.so not taken: ABI version 1, expected \d+",
                     "refuses.so not taken: it does not offer version",
                     'named.so not taken: .*"Two words" is not made of letters and digits',
                     "twin.so not taken: .*CpuRef is that of a built-in backend",
                     "Twice not available: descriptor .* lacks a function|Twice not available: "
                     "backend Twice: descriptor lacks a function",
                     "second.so not taken: .*Twice is that of .*/first.so",
                     "needs.so not taken: .*ifd_nowhere",
                     "silent.so not taken: it does not export ifd_backend_query"):
            self.assertRegex(text, want)
        self.assertNotIn("notes", text)

    def test_a_backend_that_is_missing_says_why(self):
        self.strange("lost", abi="1")
        arguments = ["--backend-path", self.folder, "--backend", "Lost,CpuRef"]
        want = r'unknown backend "Lost"; there are .*CpuRef.*; not taken: lost.so: ABI version 1'
        for command in ("run", "bench", "inspect"):
            self.assertRegex(self.call(2, command, MODEL, *arguments), want)
        self.assertRegex(self.call(2, "compare", MODEL, "--with", "CpuRef", *arguments), want)
        error = self.call(2, "serve", self.folder, "--http-port=0", "--metrics-port=0", *arguments)
        self.assertRegex(error, "plugin not taken name=lost.so file=.*/lost.so reason=\"ABI ver")
        self.assertRegex(error, "inferd: --backend: " + want)

    def test_a_server_whose_backends_are_all_absent_says_why(self):
        source = self.folder / "away.c"
        text = (SOURCE / "backends/null/null.c").read_text()
        source.write_text(text.replace('.name = "Null"', '.name = "Away"').replace(
            "if (host->option_count > 0) {",
            'if (!host->option_count) {\n        return host->fail(err, IFD_UNAVAILABLE, '
            '"no such device");\n    }\n    if (host->option_count > 0) {'))
        self.build(source, "away.so")
        path = ["--backend-path", self.folder]
        self.assertIn(f"backend: Away not available: no such device, from {self.folder}/away.so",
                      self.lines())
        error = self.call(1, "serve", self.folder, "--http-port=0", "--metrics-port=0", *path,
                          "--backend", "Away")
        self.assertIn("inferd: --backend: Away is not available: no such device", error)
        error = self.call(1, "run", MODEL, *path, "--backend", "Away", "--input", MODEL)
        self.assertIn("Away: no such device", error)

    def test_folders_that_cannot_be_trusted_or_read_are_refused(self):
        missing = self.folder / "missing"
        self.assertIn(f'backend path "{missing}": No such file or directory',
                      self.call(2, "inspect", MODEL, "--backend-path", missing))
        os.chmod(self.folder, 0o777)
        self.assertIn("every user may write in it",
                      self.call(2, "inspect", MODEL, "--backend-path", self.folder))

    def test_more_plugins_than_fit_are_refused(self):
        for i in range(65):
            (self.folder / f"{i}.so").write_text("")
        self.assertIn("more than 64 plugins",
                      self.call(2, "inspect", MODEL, "--backend-path", self.folder))


unittest.main(argv=sys.argv[:1])
