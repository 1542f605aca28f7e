"""The Debian packages of deploy/package.sh: lintian has nothing to say, what they need is what the
programs need, packed again they are the same bytes; and in a clean Debian the package is installed,
asked by three commands as a new user would, removed and purged.

tests/run.sh makes the packages, and the root folder by root_folder.sh. With INFERD_ARCH these are
the packages of another processor: their programs run under QEMU, with the libraries that they were
linked with."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "acceptance"))
import support  # noqa: E402

HERE = subprocess.run(["dpkg", "--print-architecture"], capture_output=True,
                      text=True).stdout.strip()
ARCH = os.environ.get("INFERD_ARCH", HERE)
EMULATOR = {HERE: None, "arm64": "qemu-aarch64", "armhf": "qemu-arm"}[ARCH]
PACKAGES = support.SOURCE / "build/packages"
BUILD = support.SOURCE / f"build/package-{ARCH}"
SYSROOT = support.SOURCE / f"build/sysroot-package-{ARCH}"
ROOT = support.SOURCE / "build/debian-root"
SKIPPED = 77

# Runs a command with the folder as its root, and mounts of its own.
INSIDE = ("unshare", "--mount", "sh", "-ec", """
    mount -t proc proc "$0/proc"
    mount --rbind /dev "$0/dev"
    exec chroot "$0" "$@"
""")

# What systemd does before it starts the service, and the start itself.
START = """
install -d -o inferd -g inferd /run/inferd /var/lib/inferd/state /var/cache/inferd /var/log/inferd
exec setpriv --reuid inferd --regid inferd --clear-groups --no-new-privs \
    $EMULATOR /usr/bin/inferd serve --config /etc/inferd/inferd.conf --repository-settle-ms 100 \
    --repository-poll-secs 1 --http-port 0 --metrics-port 0
"""


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def package(name):
    found = sorted(PACKAGES.glob(f"{name}_*_{ARCH}.deb"))
    if not found:
        support.skip("there are no packages; deploy/package.sh makes them")
    return found[-1]


def names(needed):
    """Packages of a list like "libc6 (>= 2.35), systemd | other", without alternatives."""
    return {item.split()[0] for item in needed.split(",") if "|" not in item}


class Packages(unittest.TestCase):

    def test_lintian_has_nothing_to_say(self):
        if not shutil.which("lintian"):
            support.skip("there is no lintian (Debian's package lintian)")
        said = run("lintian", "--allow-root", "--fail-on", "none", "--tag-display-limit", "0",
                   *(package(name) for name in ("inferd", "libinferd-client0",
                                                "libinferd-client-dev", "inferd-gpuacc")))
        self.assertEqual("", said)

    def test_what_it_needs_is_what_its_programs_need(self):
        """dpkg-shlibdeps finds it out from the files."""
        for name in ("inferd", "libinferd-client0", "inferd-gpuacc"):
            with tempfile.TemporaryDirectory() as folder:
                files = pathlib.Path(folder, "debian", name)
                files.mkdir(parents=True)
                (files.parent / "control").write_text(
                    f"Source: inferd\n\nPackage: {name}\nArchitecture: any\n")
                run("dpkg-deb", "-R", package(name), files)
                programs = [p for p in files.rglob("*") if not p.is_symlink() and p.is_file()
                            and p.read_bytes()[:4] == b"\x7fELF"]
                found = run("dpkg-shlibdeps", "-O", *programs, cwd=folder)
            said = run("dpkg-deb", "-f", package(name), "Depends")
            needed = found.strip().split("=", 1)[1]
            self.assertEqual(names(needed), names(said) - {"inferd"}, name)
            for bound in needed.split(", "):
                self.assertIn(bound, said.strip().split(", "), name)

    def test_what_is_packed_again_is_the_same_bytes(self):
        package("inferd")  # which skips if there is none
        with tempfile.TemporaryDirectory() as folder:
            epoch = re.search(r"SOURCE_DATE_EPOCH=(\d+)", (BUILD / "epoch").read_text())[1]
            run("cpack", "-B", folder, cwd=BUILD, env=os.environ | {"SOURCE_DATE_EPOCH": epoch})
            for path in PACKAGES.glob(f"*_{ARCH}.deb"):
                again = pathlib.Path(folder, path.name)
                self.assertEqual(path.read_bytes(), again.read_bytes(), path.name)


class Installed(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        if not pathlib.Path(f"{ROOT}.complete").exists():
            support.skip(f"{ROOT} is not here; tests/run.sh makes it")
        if os.geteuid() != 0:
            raise unittest.SkipTest("only root may change its root folder")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.root = pathlib.Path(folder.name, "root")
        run("cp", "-a", ROOT, cls.root)
        shutil.copy(package("inferd"), cls.root / "tmp")
        cls.emulator = cls.add_emulator() if EMULATOR else ()

    @classmethod
    def add_emulator(cls):
        """Puts the emulator and the libraries of the processor into the root; returns the words in
        front of a program."""
        there, found = cls.root / "emulator", shutil.which(EMULATOR)
        there.mkdir()
        libraries = re.findall(r"(/\S+) \(0x", run("ldd", found))
        for path in (found, *libraries):
            shutil.copy(path, there)
        for libraries in ("lib", "usr/lib"):
            run("cp", "-an", f"{SYSROOT / libraries}/.", cls.root / "usr/lib")
        return ("/emulator/ld-linux-x86-64.so.2", "--library-path", "/emulator",
                f"/emulator/{EMULATOR}")

    def inside(self, *command):
        return run(*INSIDE, self.root, *command)

    def ask(self, *arguments):
        return self.inside(*self.emulator, "/usr/bin/inferctl", *arguments)

    def test_a_new_user_gets_an_answer_by_three_commands(self):
        foreign = ("--force-architecture", "--force-depends") if EMULATOR else ()
        self.inside("dpkg", *foreign, "-i", f"/tmp/{package('inferd').name}")
        self.assertEqual("root", (self.root / "var/lib/inferd/models").owner())
        self.assertIn("inferd:", (self.root / "etc/passwd").read_text())
        wants = self.root / "etc/systemd/system/multi-user.target.wants/inferd.service"
        self.assertTrue(wants.is_symlink(), "the service is not enabled")
        start = START.replace("$EMULATOR", " ".join(self.emulator))
        with subprocess.Popen([*map(str, (*INSIDE, self.root, "sh", "-ec", start))],
                              stdout=subprocess.PIPE, text=True) as server:
            try:
                url = re.search(r" ready at (\S+) ", server.stdout.readline())[1]
                self.inside("cp", "-r", "/usr/share/inferd/models/digits", "/var/lib/inferd/models")
                for _ in range(300):
                    if "\tREADY" in self.ask("--url", url, "index"):
                        break
                    time.sleep(0.1)
                answer = self.ask("--url", url, "infer", "digits", "--input",
                                  "/usr/share/inferd/models/digits/examples/three.png")
                self.assertIn("three", answer)
                self.ask("--admin-socket", "/run/inferd/admin.sock", "live")
            finally:
                server.terminate()
        self.inside("dpkg", "-r", "inferd")
        self.assertFalse((self.root / "usr/bin/inferd").exists())
        self.assertTrue((self.root / "etc/inferd/inferd.conf").exists())
        self.inside("dpkg", "-P", "inferd")
        for path in ("etc/inferd", "var/cache/inferd", "var/lib/inferd/state"):
            self.assertFalse((self.root / path).exists(), path)
        self.assertTrue((self.root / "var/lib/inferd/models/digits/1/model.tflite").exists())


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)
