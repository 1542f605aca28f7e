#!/usr/bin/env bash
# Counts the instructions that one inference retires on aarch64, by class and by function, under
# user-mode QEMU with a plugin (qemu_count.c). Exact on any machine; it knows no caches, no latency.
#
#   tests/bench/aarch64.sh MODEL [CPU …]      default: cortex-a53 (base) cortex-a76 (dot) max (i8mm)
#   FUNCTIONS=20 tests/bench/aarch64.sh …     the 20 functions with the largest shares (default 8)
#
# Runs a model with 1 and with 3 inferences and prints half the difference: loading does not count.
# Needs the cross build of tests/run.sh (build/aarch64), qemu-user with plugins and a compiler.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

[ $# -ge 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
model=$1
shift
[ $# -gt 0 ] || set -- cortex-a53 cortex-a76 max
program=build/aarch64/tests/engine_tools
plugin=build/aarch64/libqemu_count.so
if [ ! -x "$program" ]; then
    echo "error: $program is not built; tests/run.sh builds it" >&2
    exit 1
fi
cc -std=c11 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden -o "$plugin" \
    tests/bench/qemu_count.c

counted() { # CPU RUNS
    qemu-aarch64 -cpu "$1" -plugin "$plugin" -d plugin -L /usr/aarch64-linux-gnu \
        "$program" bench "$model" \
        --threads 1 --warmup 0 --iterations "$2" 2>&1 >/dev/null
}

for cpu in "$@"; do
    echo "$(basename "$model") on $cpu: million instructions an inference"
    { counted "$cpu" 1; echo "--"; counted "$cpu" 3; } | awk -v most="${FUNCTIONS-8}" '
        $1 == "--" { second = 1; next }
        NF < 2 { next }
        { key = $1 == "function" ? "  " $2 : $1; sum[key] += (second ? 1 : -1) * $NF }
        END {
            if (!("all" in sum)) {
                print "error: no counts: does this qemu-aarch64 take -plugin?"
                exit 1
            }
            for (key in sum) {
                if (sum[key] == 0) continue
                order = substr(key, 1, 2) == "  " ? 1 : key == "all" ? -1 : 0
                printf "%d %s %.2f\n", order, key, sum[key] / 2e6
            }
        }' | sort -k1,1n -k3,3nr |
        awk -v most="${FUNCTIONS-8}" '$1 < 1 || rows++ < most { $1 = $1 == 1 ? "   " : ""; print }'
done
