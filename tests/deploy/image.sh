#!/usr/bin/env bash
# Builds the image of deploy/Containerfile on a Debian that mmdebstrap makes, and runs its command
# in its files as deploy/compose.yaml says: as its user, without capabilities, on a root folder that
# is read-only, and a network of its own. By unshare and chroot, because container runtimes want
# more of the machine than a test may ask for. Needs root, the network, podman and mmdebstrap.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
work=$PWD/build/image
mkdir -p "$work"
printf '{"default": [{"type": "insecureAcceptAnything"}]}\n' >"$work/policy.json"
podman=(podman --root "$work/store" --runroot "$work/run" --storage-driver vfs
    --cgroup-manager cgroupfs --events-backend none)

if ! "${podman[@]}" image exists localhost/debian:12; then
    mmdebstrap --quiet --variant=apt --dpkgopt=force-unsafe-io bookworm "$work/debian.tar"
    "${podman[@]}" import --quiet "$work/debian.tar" localhost/debian:12
    rm "$work/debian.tar"
fi
"${podman[@]}" build --quiet --format docker --isolation chroot --network host \
    --signature-policy "$work/policy.json" --build-arg BASE=localhost/debian:12 \
    --build-arg SOURCE_DATE_EPOCH="$(stat -c %Y CHANGELOG.md)" \
    -f deploy/Containerfile -t localhost/inferd .

config() { # a list of the image's settings, as words
    "${podman[@]}" image inspect --format "{{range .Config.$1}}{{.}} {{end}}" localhost/inferd
}
user=$("${podman[@]}" image inspect --format '{{.Config.User}}' localhost/inferd)
[ "$user" = 10001:10001 ] || { echo "FAILED: the image's user is \"$user\""; exit 1; }
check=$(config Healthcheck.Test)
[ "$check" = "CMD inferctl ready " ] || { echo "FAILED: the health check is \"$check\""; exit 1; }
command="$(config Entrypoint)$(config Cmd)"
root=$("${podman[@]}" image mount localhost/inferd)
# The image and its layers are gigabytes.
trap '"${podman[@]}" image unmount localhost/inferd >/dev/null; rm -rf "$work"' EXIT

# shellcheck disable=SC2016 # the inner shell's variables
unshare --mount --net --pid --fork --kill-child sh -euc '
    root=$1 models=$2 command=$3 check=$4
    fail() { echo "FAILED: $*"; exit 1; }
    ip link set lo up
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --bind -o ro "$models" "$root/models"
    mount -o remount,bind,ro "$root"
    # chroot needs what the user has not: it comes first
    run="chroot $root setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs"
    run="$run --bounding-set -all --inh-caps -all"
    $run $command &
    server=$!
    for _ in $(seq 600); do
        ! $run $check 2>/dev/null || break
        sleep 0.1
    done
    $run $check || fail "it is not ready"
    ! $run sh -c "echo x >/x || echo x >/models/x || echo x >/var/cache/inferd/x" 2>/dev/null ||
        fail "a folder can be written"
    $run inferctl infer digits --input /usr/share/inferd/models/digits/examples/three.png |
        grep -q three || fail "it does not know a three"
    ! $run sh -c "command -v gcc || command -v cmake" || fail "the image has a compiler"
    kill -TERM "$server"
    wait "$server" || fail "it ended with status $?"
' sh "$root" "$PWD/models" "$command" "${check#CMD }"
echo "ok: $("${podman[@]}" image inspect --format '{{.Size}}' localhost/inferd) bytes"
