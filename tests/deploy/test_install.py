"""What `cmake --install` puts in place: the program serves, the C client compiles by pkg-config
against both kinds of library, the texts are sound, completions complete.

BUILD: the build folder; INFERD_CC: the C compiler."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "acceptance"))
import support  # noqa: E402

BUILD = os.environ["BUILD"]
SKIPPED = 77

ASKS = """
#include <inferd_client.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    struct ifd_client_options options = {.url = argv[argc - 1]};
    struct ifd_client *client = NULL;
    struct ifd_client_err err;
    if (ifd_client_create(&options, &client, &err) != IFD_CLIENT_OK ||
        ifd_client_ready(client, "digits", NULL, &err) != IFD_CLIENT_OK) {
        fprintf(stderr, "%s\\n", err.text);
        return 1;
    }
    ifd_client_destroy(client);
    return 0;
}
"""


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def need(tool):
    if not shutil.which(tool):
        support.skip(f"there is no {tool}")


class Installed(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.root)
        run("cmake", "--install", BUILD, env=os.environ | {"DESTDIR": str(cls.root)})
        cache = pathlib.Path(BUILD, "CMakeCache.txt").read_text()
        cls.version = re.search(r"^CMAKE_PROJECT_VERSION:STATIC=(.*)$", cache, re.M)[1]
        cls.prefix = cls.root / re.search(r"^CMAKE_INSTALL_PREFIX:PATH=/(.*)$", cache, re.M)[1]

    def one(self, name, folder=""):
        """The only installed file of this name, in a folder whose path ends so."""
        found = [path for path in self.root.rglob(name) if str(path.parent).endswith(folder)
                 and "share/doc" not in str(path)]
        self.assertEqual(1, len(found), f"{name}: {found}")
        return found[0]

    def test_everything_has_its_place(self):
        names = {str(p.relative_to(self.prefix)) for p in self.prefix.rglob("*") if p.is_file()}
        for name in ("bin/inferd", "bin/inferctl", "bin/inferd-camera", "include/inferd_client.h",
                     "share/man/man1/inferd.1.gz", "share/man/man1/inferctl.1.gz",
                     "share/man/man1/inferd-camera.1.gz",
                     "share/man/man5/inferd.conf.5.gz", "share/bash-completion/completions/inferd",
                     "share/bash-completion/completions/inferctl",
                     "share/zsh/vendor-completions/_inferd",
                     "share/zsh/vendor-completions/_inferctl", "lib/systemd/system/inferd.service",
                     "lib/sysusers.d/inferd.conf", "lib/tmpfiles.d/inferd.conf",
                     "lib/inferd/backends/gpuacc.so",
                     "share/inferd/models/digits/1/model.tflite"):
            self.assertIn(name, names)
        unit = self.one("inferd.service").read_text()
        for path in re.search(r"^ExecStart=(\S*) serve --config=(\S*)$", unit, re.M).groups():
            self.assertTrue(pathlib.Path(f"{self.root}{path}").exists(), path)

        self.assertTrue(self.one("inferd.conf", "etc/inferd"))
        self.assertIn("/var/log/inferd", self.one("inferd", "etc/logrotate.d").read_text())
        self.assertRegex(self.one("inferd.conf", "lib/tmpfiles.d").read_text(),
                         r"(?m)^d /var/lib/inferd/models ")

    def test_links_of_the_documents_lead_to_what_is_installed(self):
        pages = list((self.prefix / "share/doc").rglob("*.md"))
        self.assertGreater(len(pages), 10)
        for page in pages:
            for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
                if "://" not in target:
                    self.assertTrue((page.parent / target).exists(), f"{page}: {target}")

    def test_one_version_everywhere(self):
        for program in ("inferd", "inferctl"):
            self.assertEqual(f"{program} {self.version}\n", run(self.prefix / "bin" / program,
                                                         "--version"))
        self.assertIn(f"\nVersion: {self.version}\n", self.one("inferd-client.pc").read_text())
        changes = (support.SOURCE / "CHANGELOG.md").read_text()
        self.assertEqual(self.version, re.search(r"^## (\S+)", changes, re.M)[1])

    def test_the_client_library_links_and_asks(self):
        pkgconfig = self.one("inferd-client.pc").parent
        environment = os.environ | {"PKG_CONFIG_PATH": str(pkgconfig),
                                    "PKG_CONFIG_SYSROOT_DIR": str(self.root)}
        source = self.root / "asks.c"
        source.write_text(ASKS)
        server = support.Server(self.prefix / "share/inferd/models")
        try:
            for kind in ("shared", "static"):
                flags = run("pkg-config", "--cflags", "--libs", "inferd-client", env=environment)
                if kind == "static": # with the shared libraries that it needs itself
                    flags = flags.replace("-linferd-client", "-l:libinferd-client.a") + run(
                        "pkg-config", "--libs", "libcurl", "jansson")
                program = self.root / kind
                run(os.environ["INFERD_CC"], "-Wall", "-Werror", source, "-o", program,
                    *flags.split())
                libraries = run("ldd", program, env=os.environ | {"LD_LIBRARY_PATH": ""})
                self.assertEqual(kind == "shared", "libinferd-client.so.0" in libraries)
                run(program, f"http://{server.address}",
                    env=os.environ | {"LD_LIBRARY_PATH": str(pkgconfig.parent)})
        finally:
            server.stop()

    def test_the_shared_library_exports_its_header_and_nothing_else(self):
        header = self.one("inferd_client.h").read_text()
        declared = set(re.findall(r"\b(ifd_client_\w+)\(", header))
        library = self.one(f"libinferd-client.so.{self.version}")
        table = run("nm", "-D", "--defined-only", library)
        self.assertEqual(declared, {line.split()[2] for line in table.splitlines()})

    def test_the_reference_of_settings_is_that_of_the_program(self):
        self.assertEqual((support.SOURCE / "docs/config.md").read_text(),
                         run(self.prefix / "bin/inferd", "--markdown"),
                         "stale: build/bin/inferd --markdown > docs/config.md")

    def test_manual_pages_are_sound(self):
        need("mandoc")
        for page in ("inferd.1.gz", "inferctl.1.gz", "inferd-camera.1.gz", "inferd.conf.5.gz"):
            text = subprocess.run(["gzip", "-dc", self.one(page)], check=True, capture_output=True)
            said = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=text.stdout,
                                  capture_output=True).stdout.decode()
            problems = [line for line in said.splitlines() if "missing date" not in line]
            self.assertEqual([], problems)

    def complete(self, program, *words):
        """What bash offers for the last of these words."""
        script = self.prefix / f"share/bash-completion/completions/{program}"
        return run("bash", "-c", f". {script}; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); "
                   f"_{program}; printf '%s\\n' \"${{COMPREPLY[@]}}\"", "bash", program,
                   *words).split()

    def test_bash_completes(self):
        self.assertEqual(["serve"], self.complete("inferd", "ser"))
        self.assertEqual(["--http-port"], self.complete("inferd", "serve", "--http-po"))
        self.assertEqual(["explicit"],
                         self.complete("inferd", "serve", "--model-control-mode", "=", "e"))
        self.assertEqual(["true", "false"], self.complete("inferd", "serve", "--exact", "="))
        self.assertEqual(["metadata"], self.complete("inferctl", "met"))
        self.assertEqual(["--admin-socket"], self.complete("inferctl", "load", "--adm"))

    def test_zsh_reads_its_completions(self):
        need("zsh")
        for program in ("inferd", "inferctl"):
            script = self.prefix / f"share/zsh/vendor-completions/_{program}"
            run("zsh", "-n", script)
            self.assertIn(f"#compdef {program}\n", script.read_text())


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)
