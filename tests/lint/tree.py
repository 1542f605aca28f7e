"""What every check shares: the files of the tree, and one way to report."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["engine", "backends", "api", "server", "clients", "tests"]


def sources(folders=FOLDERS, suffixes=(".c", ".h", ".cc", ".inc")):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                yield path


def relative(path):
    return path.relative_to(ROOT).as_posix()


def finish(problems, checked):
    """Prints the problems; fails if there is one, or if nothing was checked (a check that cannot fail)."""
    for problem in problems:
        print(problem)
    if checked == 0:
        print("nothing was checked")
    print(f"{checked} checked, {len(problems)} problems")
    sys.exit(1 if problems or checked == 0 else 0)
