#!/usr/bin/env bash
# Installs the packages, builds everything and runs all tests. The last lines are ctest's summary.
#
#   tests/run.sh                       all of it: both compilers, sanitizers, other processors
#   tests/run.sh --quick               gcc and the suite alone
#   tests/run.sh --sanitize address    the whole suite under AddressSanitizer and UBSan, by clang
#   tests/run.sh --sanitize thread     the whole suite under ThreadSanitizer, by clang
#   … --only REGEX                     with --sanitize: tests whose names match
#   … --allow-skips                    lets tests skip for want of a file, a tool or Python, which
#                                      fails otherwise where ../shared is
#
# Everything is built below build/ and .venv/; nothing else of the tree is written.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/packages.sh

usage() {
    sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
}

quick=false sanitize= allow_skips=false only=.
while [ $# -gt 0 ]; do
    case $1 in
        --quick) quick=true ;;
        --allow-skips) allow_skips=true ;;
        --only)
            only=${2?"--only REGEX"}
            shift ;;
        --sanitize)
            case ${2-} in address | thread) sanitize=$2 ;; *) usage ;; esac
            shift ;;
        *) usage ;;
    esac
    shift
done
if [ -d ../shared ] && ! $allow_skips; then
    export INFERD_TEST_NO_SKIPS=1
fi
jobs=$(nproc)
# What runs where, by measured seconds (Testing/Temporary/CTestCostData.txt of each folder); the
# last suite runs everything.
# what its optimizer could get wrong; server and API are clang's in the sanitizers' builds, and
# GpuAcc's kernels are those of the OpenCL runtime, whoever compiled what calls it
clang_quick='^(backends|conformance|engine|golden|kernels)\.'
clang_slow='[Gg]pu[Aa]cc|_in_time$|cpuacc\.long'
# lints, tests that time out where work grows too fast, and models on one more level of instructions
# or on CpuRef once more
address_slow='^lint|in_time$|cpuacc\.long|pose_landmark_heavy|^differential'
address_slow+='|acceptance\.(golden|shapes)|golden\.cpuacc_(scalar|avx2|avx512|vnni)\.'
# what starts threads: the server, its tests over HTTP and by signals, the executor
thread_suites='^(server|http|engine\.exec)\.'
thread_suites+='|^acceptance\.(control|interrupts|metrics|settings|signals|streams|tokens)$'
# the same on every processor: lints, growth of work, failing allocations; reference kernels called
# without the backend
emulated_slow='^lint|odd_files_run|_in_time$|cpuacc\.long|a_plan_without_memory|\.ref_equals_'
# hostile files and calls where sizes are narrow: armv7; real models: aarch64
aarch64_slow="$emulated_slow|pose_landmark_heavy|hostile|damaged_golden|flipped_bits"
armv7_slow="$emulated_slow|^golden"
tested=() # folders whose tests ran
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
    # one more than cores: many wait for clocks and sockets
    ctest --test-dir "$folder" -j $((jobs + 1)) --output-on-failure --no-tests=error "$@"
}

# test_step NAME FOLDER CTEST-ARGUMENT …
test_step() {
    local name=$1
    shift
    tested+=("$1")
    step "$name" run_ctest "$@"
}

# Which kernel tables ran, and every skip by name and reason, of all folders whose tests ran.
report() {
    local folder log skips
    for folder in "${tested[@]}"; do
        log=$folder/Testing/Temporary/LastTest.log
        sed -n "s#^ISA tables run:#$folder: ISA tables run:#p" "$log" | sort -u
        skips=$(awk '/^[0-9]+\/[0-9]+ Testing: / { name = $3 }
            sub(/^skipped: /, "") { print "  " name ": " $0 }' "$log")
        echo "$folder: $(grep -c . <<<"$skips" || true) skipped"
        [ -z "$skips" ] || echo "$skips"
    done
}

# The suite, what the other steps left to tell, and ctest's summary once more.
last_suite() { # FOLDER CTEST-ARGUMENT …
    local status=0
    tested+=("$1")
    run_ctest "$@" | tee build/logs/ctest.log || status=$?
    report
    sed -n '/% tests passed/,$p' build/logs/ctest.log
    return $status
}

# Processors that know fewer instructions, by the emulator, to which what is newer is illegal:
# operators and two models.
run_on_processors() { # FOLDER EMULATOR CPU …
    local folder=$1 emulator=$2 test=exact_results_equal_golden_values cpu ops op
    shift 2
    ops=$(ctest --test-dir "$folder" -N | sed -n "s/.*: conformance\.\(.*\)\.CpuAcc\.$test$/\1/p")
    [ -n "$ops" ] || return 1
    for cpu in "$@"; do
        echo "$cpu"
        for op in $ops; do
            $emulator -cpu "$cpu" "$folder/tests/test_conformance_backend" "$test" CpuAcc \
                "tests/ops/$op.json" || return 1
        done
        if [ -d ../shared ]; then
            $emulator -cpu "$cpu" "$folder/tests/golden_run" --backend CpuAcc,CpuRef \
                --model resnet8_cifar10_int8,resnet8_cifar10_float ../shared || return 1
        fi
    done
}

# The other compiler, with assertions and a sanitizer; with address also libFuzzer's programs, which
# replay their corpus.
sanitized_build() { # address | thread
    local name=$1 sanitizer=$1 fuzz=OFF flags="-O1 -gline-tables-only"
    if [ "$name" = address ]; then
        sanitizer=address,undefined fuzz=ON
    fi
    step "build-$name" configure_and_build "build/sanitize-$name" "${clang[@]}" \
        -DIFD_SANITIZE="$sanitizer" -DIFD_FUZZ=$fuzz -DCMAKE_BUILD_TYPE=RelWithDebInfo \
        -DCMAKE_C_FLAGS_RELWITHDEBINFO="$flags" -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="$flags"
}

echo "packages"
packages_install build tests
step venv make_venv
clang=(-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++)
export ASAN_OPTIONS=${ASAN_OPTIONS-detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS-halt_on_error=1}

if [ -n "$sanitize" ]; then
    sanitized_build "$sanitize"
    last_suite "build/sanitize-$sanitize" -R "$only"
    exit
fi

step build-gcc configure_and_build build/gcc -DCMAKE_BUILD_TYPE=Release
step package deploy/package.sh "$(dpkg --print-architecture)" -DIFD_WERROR=ON
step proxies packages_unpack "$(dpkg --print-architecture)" build/proxies haproxy nginx caddy
step schemas tests/deploy/schemas.sh build/schemas
if [ "$(id -u)" = 0 ]; then # where packages are installed; only root may change its root folder
    step root-folder tests/deploy/root_folder.sh build/debian-root
fi
if ! $quick; then
    step reproducible tests/deploy/reproducible.sh
    if [ "$(id -u)" = 0 ]; then
        step image tests/deploy/image.sh
    fi
    step build-clang configure_and_build build/clang "${clang[@]}" -DCMAKE_BUILD_TYPE=Release
    test_step test-clang build/clang -R "$clang_quick" -E "$clang_slow"
    if [ "$(uname -m)" = x86_64 ]; then
        step intel-opencl tests/backends/gpuacc/intel.sh install
        step test-intel-opencl tests/backends/gpuacc/intel.sh run build/gcc
    fi
    sanitized_build address
    test_step test-address build/sanitize-address -E "$address_slow"
    sanitized_build thread
    test_step test-thread build/sanitize-thread -R "$thread_suites"
    for target in aarch64 armv7; do
        case $target in aarch64) arch=arm64 ;; armv7) arch=armhf ;; esac
        # the package first: its objects are the tests' where there is ccache
        step "package-$target" deploy/package.sh "$arch" -DIFD_WERROR=ON
        step "build-$target" configure_and_build "build/$target" -DCMAKE_BUILD_TYPE=Release \
            -DCMAKE_TOOLCHAIN_FILE="$PWD/deploy/cmake/toolchain-$target.cmake" \
            -DIFD_SYSROOT="$PWD/build/sysroot-package-$arch" -DIFD_SERVER=OFF -DIFD_GPUACC=OFF
        case $target in aarch64) slow=$aarch64_slow ;; armv7) slow=$armv7_slow ;; esac
        test_step "test-$target" "build/$target" -E "$slow"
        step "package-test-$target" tests/deploy/foreign_package.sh "$arch"
        if [ "$(id -u)" = 0 ]; then
            step "package-install-$target" env "INFERD_ARCH=$arch" python3 \
                tests/deploy/test_package.py Installed Packages.test_lintian_has_nothing_to_say
        fi
    done
    step processors-aarch64 run_on_processors build/aarch64 \
        "qemu-aarch64 -L $PWD/build/sysroot-package-arm64" cortex-a53 cortex-a76
    # QEMU knows no AVX-512; golden.cpuacc_* hide it from programs
    if [ "$(uname -m)" = x86_64 ]; then
        step processors-x86 run_on_processors build/gcc qemu-x86_64 Nehalem Haswell
    fi
fi
last_suite build/gcc
