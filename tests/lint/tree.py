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


def stale(places):
    """Places of a table (folders, files, or how their paths begin) that the tree has no longer."""
    return [
        f"{place}: a table of this lint names it, and it does not exist"
        for place in sorted(set(places)) if not any(ROOT.glob(f"{place.rstrip('/')}*"))
    ]


def finish(problems, checked):
    """Prints the problems; fails if there is one, or if nothing was checked (a check that cannot
    fail)."""
    for problem in problems:
        print(problem)
    if checked == 0:
        print("nothing was checked")
    print(f"{checked} checked, {len(problems)} problems")
    sys.exit(1 if problems or checked == 0 else 0)
