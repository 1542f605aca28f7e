#!/usr/bin/env bash
# Compares inferd's engine with LiteRT, ONNX Runtime, OpenVINO, MNN and ncnn in one run on this
# machine, and prints medians and the ratio of the best peer to ours. Not a test: nothing here
# passes or fails.
#
#   tests/bench/engine.sh [side_by_side.py option …]
#   default: --threads 1 2 --rounds 5 --iterations 20 --warmup 5
#
# Needs ../shared/peers beside the checkout, build/bin/inferd (deploy/quickstart.sh builds it) and
# PyPI.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

peers=../shared/peers
ours=build/bin/inferd
if [ ! -e "$peers/side_by_side.py" ]; then
    echo "error: $peers is not here; it holds the harness that runs the peers" >&2
    exit 1
fi
if [ ! -x "$ours" ]; then
    echo "error: $ours is not built; deploy/quickstart.sh builds it" >&2
    exit 1
fi
venv=build/peers-venv
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install -q --disable-pip-version-check numpy \
        ai-edge-litert==2.3.0 onnxruntime==1.31.1 openvino==2026.4.1 MNN==3.6.1 ncnn==1.0.20261020
fi
[ $# -gt 0 ] || set -- --threads 1 2 --rounds 5 --iterations 20 --warmup 5

grep -m1 "model name" /proc/cpuinfo || true
# {model} and the others are for the harness
# shellcheck disable=SC1083
bench="$PWD/$ours bench {model} --threads {threads} --json"
bench+=" --warmup {warmup} --iterations {iterations}"
"$venv/bin/python" "$peers/side_by_side.py" --set "$peers/models.json" \
    --cache build/peers-cache --json build/peers.json --ours "$bench" "$@"
