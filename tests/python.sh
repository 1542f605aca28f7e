#!/bin/sh
# python.sh SCRIPT …: a script of this folder in the virtual environment that tests/run.sh makes.
top=$(cd "$(dirname "$0")/.." && pwd)
python=$top/.venv/bin/python
if [ ! -x "$python" ]; then
    echo "skipped: $top/.venv is not here; tests/run.sh makes it"
    [ -z "${INFERD_TEST_NO_SKIPS-}" ] || exit 1
    exit 77
fi
script=$top/tests/$1
shift
exec "$python" "$script" "$@"
