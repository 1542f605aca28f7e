#!/usr/bin/env bash
# Builds inferd, starts it with this repository's models, asks it about a picture and lets it run.
#
#   deploy/quickstart.sh [--port N]     as often as you like: nothing is done twice
#   deploy/quickstart.sh --stop         ends the server that this script started
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/packages.sh

program=$PWD/build/bin/inferd
run_dir=$PWD/build/run
pid_file=$run_dir/inferd.pid
port_file=$run_dir/inferd.port
log_file=$run_dir/inferd.log
picture=models/digits/examples/three.png
model=digits

die() {
    echo "error: $*" >&2
    exit 1
}

# Prints the process id of the server that this script started, if it still runs. The id alone
# proves nothing after a reboot, so the program behind it is compared too; " (deleted)" is what it
# is called once it has been built anew.
server_pid() {
    local pid exe
    [ -r "$pid_file" ] || return 0
    pid=$(cat "$pid_file")
    case $pid in '' | *[!0-9]*) return 0 ;; esac
    exe=$(readlink "/proc/$pid/exe" 2>/dev/null) || return 0
    case $exe in "$program" | "$program (deleted)") echo "$pid" ;; esac
}

stop_server() {
    local pid
    pid=$(server_pid)
    if [ -z "$pid" ]; then
        echo "no server of this script is running"
        rm -f "$pid_file" "$port_file"
        return 0
    fi
    kill -TERM "$pid"
    for _ in $(seq 350); do                      # it answers what it has accepted first: up to 30 s
        if [ -z "$(server_pid)" ]; then
            rm -f "$pid_file" "$port_file"
            echo "stopped (process $pid)"
            return 0
        fi
        sleep 0.1
    done
    die "process $pid does not end; see $log_file"
}

build() {
    local generator=()
    [ -f build/CMakeCache.txt ] || generator=(-G Ninja)
    cmake -S . -B build "${generator[@]}" -DCMAKE_BUILD_TYPE=Release >build/configure.log 2>&1 ||
        { tail -n 20 build/configure.log >&2
            die "configuring failed; all of it in build/configure.log"; }
    cmake --build build --target inferd inferctl >build/build.log 2>&1 ||
        { tail -n 40 build/build.log >&2; die "building failed; all of it in build/build.log"; }
}

port_is_open() {
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null
}

start_server() {
    local pid
    if port_is_open; then
        die "port $port is in use by another program; choose one: deploy/quickstart.sh --port 8080"
    fi
    nohup "$program" serve models --http-port "$port" --metrics-port 0 \
        >"$log_file" 2>&1 </dev/null &
    pid=$!
    echo "$pid" >"$pid_file"
    echo "$port" >"$port_file"
    for _ in $(seq 300); do
        if curl -sf -o /dev/null "$url/v2/health/ready"; then
            return 0
        fi
        if ! kill -0 "$pid" 2>/dev/null; then
            rm -f "$pid_file" "$port_file"
            tail -n 20 "$log_file" >&2
            die "the server ended at once; all of it in $log_file"
        fi
        sleep 0.1
    done
    tail -n 20 "$log_file" >&2
    die "the server is not ready after 30 s; all of it in $log_file"
}

port=
case ${1-} in
    '') [ $# -eq 0 ] || die "usage: deploy/quickstart.sh [--port N | --stop]" ;;
    --stop) [ $# -eq 1 ] || die "usage: deploy/quickstart.sh --stop"; stop_server; exit 0 ;;
    --help) sed -n '2,5s/^# \{0,1\}//p' deploy/quickstart.sh; exit 0 ;;
    --port) port=${2-}; [ $# -eq 2 ] || die "usage: deploy/quickstart.sh --port N" ;;
    *) die "usage: deploy/quickstart.sh [--port N | --stop]" ;;
esac
case $port in *[!0-9]*) die "--port: \"$port\" is no number" ;; esac
[ ${#port} -le 5 ] && [ "${port:-0}" -le 65535 ] || die "--port: $port is beyond 65535"

mkdir -p "$run_dir"
echo "1/4 packages"
packages_install build
echo "2/4 build (Release, into build/)"
build

echo "3/4 server"
pid=$(server_pid)
if [ -n "$pid" ]; then
    running_port=$(cat "$port_file" 2>/dev/null || echo)
    port=${port:-$running_port}
    if [ "$port" != "$running_port" ] || [ "$(readlink "/proc/$pid/exe")" != "$program" ]; then
        # another port is asked for, or the program was built anew
        stop_server
        pid=
    fi
fi
port=${port:-8000}
url=http://127.0.0.1:$port
[ -n "$pid" ] || start_server

echo "4/4 one picture"
ask=(curl -sS --fail-with-body --data-binary "@$picture" -H 'Content-Type: image/png'
    "$url/v2/models/$model/infer")
echo "    curl --data-binary @$picture -H 'Content-Type: image/png' $url/v2/models/$model/infer"
answer=$("${ask[@]}") || die "the server refused the picture: $answer"
echo "    $answer"
# Classes come best first.
label=$(sed -n 's/.*"classes":[[]{"label":"\([^"]*\)".*/\1/p' <<<"$(tr -d ' \n' <<<"$answer")")
[ -n "$label" ] || die "the answer holds no label"
echo
echo "$picture shows: $label"
echo "the server runs at $url (log: build/run/inferd.log); deploy/quickstart.sh --stop ends it"
