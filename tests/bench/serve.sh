#!/usr/bin/env bash
# Measures inferd's server beside Triton (C identity backend, 1, 2 and its default of 8 HTTP
# threads), MLServer and nginx in one run on this machine, and prints a table and ratios. Not a
# test: nothing here passes or fails.
#
#   tests/bench/serve.sh [PART …]
#   default: nginx triton triton1 triton2 inferd workers mlserver mobilenet own
#
# nginx, triton…, mlserver: the peers. inferd: as it comes. workers: inferd with
# --inline-identity=false. mobilenet: MobileNetV2 uint8 on inferd, Triton (Python backend, LiteRT)
# and MLServer (LiteRT). own: size, start, idle memory, added latency, overload.
#
# ROUNDS (5) passes over all parts, each server started anew; SECONDS_A_RUN (3); PATIENCE (30):
# seconds to wait for a calm machine before each run; FOREIGN (0.1): a run during which others took
# more than this share of a core is done again, up to five times. Needs ../shared/peers/servers
# beside the checkout, build/bin/inferd, PyPI, and root or the peers' Debian packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

peers=../shared/peers/servers
ours=$PWD/build/bin/inferd
if [ ! -e "$peers/measure.py" ]; then
    echo "error: $peers is not here; it holds the peers and the harness" >&2
    exit 1
fi
if [ ! -x "$ours" ]; then
    echo "error: $ours is not built; deploy/quickstart.sh builds it" >&2
    exit 1
fi
work=$PWD/build/serve-bench
venv=${SERVE_VENV:-$work/venv}
results=$work/results.jsonl
export PEERS_RUN=$work/run FOREIGN=${FOREIGN:-0.1} PYTHONDONTWRITEBYTECODE=1
mkdir -p "$work" "$PEERS_RUN"
if [ ! -x "$venv/triton/bin/python" ] ||
    [ ! -e "$venv/backends/identity/libtriton_identity.so" ]; then
    "$peers/setup.sh" "$venv"
fi
python3 "$peers/body.py" make "$work/bodies"
# shellcheck source=/dev/null
. "$peers/lib.sh"
# shellcheck disable=SC2154
trap 'for name in triton mlserver nginx inferd; do
    ! own_pid "$name" >/dev/null || stop "$name"
done' EXIT

# measure.py with another bound for the work of others
harness() {
    PYTHONPATH=$peers python3 -c 'import measure, os
measure.FOREIGN_LIMIT = float(os.environ["FOREIGN"])
measure.main()' "$@"
}

# measure NAME LABEL URL MODEL BODY CONNECTIONS
measure() {
    local body=$5
    [ "$body" = - ] || body=$work/bodies/$body
    harness run "$results" --label "$2" --pid "$(own_pid "$1")" --url "$3" --model "$4" \
        --body "$body" --connections "$6" --seconds "${SECONDS_A_RUN:-3}" --runs 1 \
        --patience "${PATIENCE:-30}"
}

# identities NAME LABEL URL: the four rows that all servers of the dialect share
identities() {
    measure "$1" "$2" "$3" identity floats16.bin 1,8,32,128
    measure "$1" "$2" "$3" identity_image image.bin 1,8
    measure "$1" "$2" "$3" identity_image image.json 8
}

nginx_part() {
    "$peers/nginx.sh" start
    measure nginx nginx http://127.0.0.1:8300/ok - - 1,8,32,128
    "$peers/nginx.sh" stop
}

# triton_part LABEL [FLAG …]
triton_part() {
    local label=$1
    shift
    TRITON_ARGS="$*" TRITON_MODELS="identity identity_image" "$peers/triton.sh" start "$venv"
    identities triton "$label" http://127.0.0.1:8100
    "$peers/triton.sh" stop
}

mlserver_part() {
    "$peers/mlserver.sh" start "$venv"
    measure mlserver MLServer http://127.0.0.1:8200 identity floats16.json 1,8,32,128
    measure mlserver MLServer http://127.0.0.1:8200 identity_image image.json 8
    "$peers/mlserver.sh" stop
}

# repository NAME…: a folder with those of the peers' models that inferd has, by the same configs
repository() {
    local repo=$work/repo
    rm -rf "$repo"
    for model; do
        mkdir -p "$repo/$model/1"
        [ "$model" = mobilenet_v2 ] || cp "$peers/triton/repo/$model/config.pbtxt" "$repo/$model/"
        [ "$model" != mobilenet_v2 ] || {
            cp "$(mobilenet_file)" "$repo/$model/1/model.tflite"
            echo "instance_group { count: 1 }" >"$repo/$model/config.pbtxt"
        }
    done
    echo "$repo"
}

# start_ours REPOSITORY [FLAG …]
start_ours() {
    start inferd http://127.0.0.1:8400/v2/health/ready \
        "$ours" serve --http-port=8400 --metrics-port=8402 "$@"
}

ours_part() {
    local label=$1
    shift
    start_ours "$(repository identity identity_image)" "$@"
    identities inferd "$label" http://127.0.0.1:8400
    stop inferd
}

mobilenet_part() {
    mobilenet_file >/dev/null || { echo "mobilenet left out, no model file" >&2; return; }
    start_ours "$(repository mobilenet_v2)" --default-threads=1
    measure inferd "inferd, 1 thread" http://127.0.0.1:8400 mobilenet_v2 mobilenet.bin 1,8
    stop inferd
    TRITON_MODELS=mobilenet_v2 "$peers/triton.sh" start "$venv"
    measure triton "Triton, LiteRT in Python" http://127.0.0.1:8100 mobilenet_v2 mobilenet.bin 1,8
    "$peers/triton.sh" stop
    "$peers/mlserver.sh" start "$venv"
    measure mlserver "MLServer, LiteRT" http://127.0.0.1:8200 mobilenet_v2 mobilenet.json 1,8
    "$peers/mlserver.sh" stop
}

[ $# -gt 0 ] || set -- nginx triton triton1 triton2 inferd workers mlserver mobilenet own
rm -f "$results"
for ((round = 0; round < ${ROUNDS:-5}; round++)); do
    for part; do
        case $part in
        nginx) nginx_part ;;
        triton) triton_part "Triton, 8 threads" ;;
        triton1) triton_part "Triton, 1 thread" --http-thread-count=1 ;;
        triton2) triton_part "Triton, 2 threads" --http-thread-count=2 ;;
        inferd) ours_part inferd ;;
        workers) ours_part "inferd, workers only" --inline-identity=false ;;
        mlserver) mlserver_part ;;
        mobilenet) mobilenet_part ;;
        own) ;;
        *)
            echo "error: no part named $part" >&2
            exit 1
            ;;
        esac
    done
done

grep -m1 "model name" /proc/cpuinfo || true
if [ -s "$results" ]; then
    harness table "$results"
    python3 tests/bench/serve.py ratios "$results"
fi
if [[ " $* " == *" own "* ]]; then
    python3 tests/bench/serve.py own "$ours" models "$(mobilenet_file || true)" "$work"
fi
