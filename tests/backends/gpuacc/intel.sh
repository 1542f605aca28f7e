#!/usr/bin/env bash
# GpuAcc on Intel's OpenCL runtime for CPUs.
#
#   tests/backends/gpuacc/intel.sh install        into build/intel-opencl, from PyPI: 830 MB
#   tests/backends/gpuacc/intel.sh run FOLDER     tests of that build folder on it
#
# A run fails where the runtime is not there or lacks what it is there for; nothing is skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
venv=$PWD/build/intel-opencl

install() {
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps \
        -r tests/backends/gpuacc/requirements.txt
    mkdir -p "$venv/icd"
    echo "$venv/lib/libintelocl.so" >"$venv/icd/intel.icd"
}

# What is not of the device: the fake library, Oclgrind, clang; and what takes minutes on one core.
others='faults|kernel_files_compile|kernels_keep_to_their_memory|^golden\.gpuacc\.|every_blocking'
small_floats=face_detection_short_range,kws_ref_model_float32,mnist_lstm_float
small_floats+=,mobilenet_v1_0_25_224_float,resnet8_cifar10_float,vww_96_float
halves=kws_ref_model_float32,mobilenet_v1_0_25_224_float,resnet8_cifar10_float,vww_96_float
small_quantized=ad01_int8,kws_ref_model,mobilenet_v1_0_25_128_quant,mobilenet_v2_1_0_224_quant
small_quantized+=,resnet8_cifar10_int8,str_ww_ref_model,vww_96_int8

golden() { # FOLDER MODELS OPTION…
    [ -d ../shared ] || return 0
    "$1/tests/golden_run" --backend-path "$1/lib/inferd/backends" --backend GpuAcc,CpuRef \
        --model "$2" "${@:3}" ../shared
}

run() { # FOLDER
    local folder=$1 seen
    export OCL_ICD_VENDORS=$venv/icd LD_LIBRARY_PATH=$venv/lib # no other device is there
    export INFERD_TEST_NO_SKIPS=1 INFERD_TEST_DOT=khr          # nor another way of dot products
    seen=$("$folder/bin/inferd" inspect --backend GpuAcc,CpuRef --backend-option \
        "GpuAcc:device=Intel(R) OpenCL" models/digits/1/model.tflite)
    grep "backend: GpuAcc" <<<"$seen"
    grep -q "backend: GpuAcc available" <<<"$seen"
    ctest --test-dir "$folder" -j "$(nproc)" --output-on-failure --no-tests=error \
        -R '^backends\.gpuacc\.|\.GpuAcc\.' -E "$others"
    golden "$folder" "$small_quantized" --exact
    golden "$folder" "$small_floats" --fast
    golden "$folder" "$halves" --precision fp16
}

case "${1-}:$#" in
    install:1) install ;;
    run:2) run "$2" ;;
    *)
        sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
        exit 2 ;;
esac
