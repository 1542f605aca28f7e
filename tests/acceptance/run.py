"""Runs one module of acceptance tests: run.py NAME. Status 77: every test was
skipped; the reasons are printed."""
import pathlib
import sys
import unittest

SKIPPED = 77


def main(name):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    suite = unittest.defaultTestLoader.loadTestsFromName(f"test_{name}")
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    if not result.wasSuccessful():
        return 1
    ran = result.testsRun - len(result.skipped)
    return 0 if ran > 0 else SKIPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
