#!/usr/bin/env bash
# Installs what the tests need, builds everything and runs all tests. The last lines are ctest's own summary.
#
#   tests/run.sh                          gcc, the other compiler, the other processors, then the whole suite
#   tests/run.sh --quick                  gcc and the suite alone
#   tests/run.sh --sanitize address       the suite under AddressSanitizer and UBSan, built with clang
#   tests/run.sh --sanitize thread        the suite under ThreadSanitizer, built with clang
#
# Everything is built below build/ and .venv/; nothing else of the tree is written.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/packages.sh

usage() {
    sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

quick=false sanitize=
while [ $# -gt 0 ]; do
    case $1 in
        --quick) quick=true ;;
        --sanitize)
            case ${2-} in address | thread) sanitize=$2 ;; *) usage ;; esac
            shift ;;
        *) usage ;;
    esac
    shift
done
jobs=$(nproc)
launcher=()
if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi

# step NAME COMMAND …: runs it with its output in build/logs/NAME.log, which is shown if it fails.
step() {
    local name=$1 log=build/logs/$1.log start=$SECONDS
    shift
    mkdir -p build/logs
    if ! "$@" >"$log" 2>&1; then
        tail -n 60 "$log"
        echo "FAILED: $name (all of it in $log)"
        exit 1
    fi
    echo "ok: $name ($((SECONDS - start)) s)"
}

configure_and_build() { # FOLDER CMAKE-ARGUMENT …
    local folder=$1
    shift
    cmake -S . -B "$folder" -G Ninja -DIFD_WERROR=ON "${launcher[@]}" "$@"
    cmake --build "$folder" -j "$jobs"
}

make_venv() {
    [ -x .venv/bin/python ] || python3 -m venv .venv
    .venv/bin/python -m pip install -q --disable-pip-version-check -r tests/requirements.txt
}

run_ctest() { # FOLDER CTEST-ARGUMENT …
    local folder=$1
    shift
    ctest --test-dir "$folder" -j "$jobs" --output-on-failure --no-tests=error "$@"
}

passes_or_skips() {
    local status=0
    "$@" || status=$?
    [ $status = 0 ] || [ $status = 77 ]
}

# Processors that know fewer instructions, by the emulator, to which what is newer is illegal: operators and two models.
run_on_processors() { # FOLDER EMULATOR CPU …
    local folder=$1 emulator=$2 cpu file
    shift 2
    for cpu in "$@"; do
        echo "$cpu"
        for file in tests/ops/*.json; do
            passes_or_skips $emulator -cpu "$cpu" "$folder/tests/test_conformance_backend" \
                exact_results_equal_golden_values CpuAcc "$file" || return 1
        done
        passes_or_skips $emulator -cpu "$cpu" "$folder/tests/golden_run" --fast \
            --model resnet8_cifar10_int8,resnet8_cifar10_float ../shared || return 1
    done
}

echo "packages"
packages_install build tests
step venv make_venv
clang=(-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++)

if [ -n "$sanitize" ]; then
    [ "$sanitize" != address ] || sanitize=address,undefined
    folder=build/sanitize-${sanitize%%,*}
    step "build-${sanitize%%,*}" configure_and_build "$folder" "${clang[@]}" \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo -DIFD_SANITIZE="$sanitize"
    export ASAN_OPTIONS=${ASAN_OPTIONS-detect_stack_use_after_return=1}
    export UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1}
    export TSAN_OPTIONS=${TSAN_OPTIONS-halt_on_error=1}
    run_ctest "$folder"
    exit 0
fi

step build-gcc configure_and_build build/gcc -DCMAKE_BUILD_TYPE=Release
if ! $quick; then
    step build-clang configure_and_build build/clang "${clang[@]}" -DCMAKE_BUILD_TYPE=Debug
    for target in aarch64 armv7; do
        case $target in aarch64) arch=arm64 ;; armv7) arch=armhf ;; esac
        step "packages-$target" packages_unpack "$arch" "build/sysroot-$target" \
            libjansson4 libjansson-dev zlib1g zlib1g-dev
        step "build-$target" configure_and_build "build/$target" -DCMAKE_BUILD_TYPE=Release \
            -DCMAKE_TOOLCHAIN_FILE="$PWD/deploy/cmake/toolchain-$target.cmake" \
            -DIFD_SYSROOT="$PWD/build/sysroot-$target" -DIFD_SERVER=OFF
        # Under emulation: no lints again, nothing that takes minutes there; real models on aarch64 only.
        case $target in aarch64) slow='^lint|odd_files_run|pose_landmark_heavy' ;; armv7) slow='^lint|odd_files_run|^golden' ;; esac
        step "test-$target" run_ctest "build/$target" -E "$slow"
    done
    step processors-aarch64 run_on_processors build/aarch64 "qemu-aarch64 -L /usr/aarch64-linux-gnu" cortex-a53 cortex-a76
    if [ "$(uname -m)" = x86_64 ]; then # QEMU knows no AVX-512; golden.cpuacc_* hide it from programs
        step processors-x86 run_on_processors build/gcc qemu-x86_64 Nehalem Haswell
    fi
fi
run_ctest build/gcc
