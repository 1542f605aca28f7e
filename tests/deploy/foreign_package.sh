#!/usr/bin/env bash
# foreign_package.sh ARCH: the package of another processor, unpacked beside the libraries that it
# was linked with, serves and asks under QEMU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
case $1 in arm64) emulator=qemu-aarch64 ;; armhf) emulator=qemu-arm ;; esac
folder=$(mktemp -d)
trap 'kill "${server-}" 2>/dev/null || true; rm -r "$folder"' EXIT
dpkg -x build/packages/inferd_*_"$1".deb "$folder/package"
inside=("$emulator" -L "build/sysroot-package-$1")
models=$folder/package/usr/share/inferd/models
"${inside[@]}" "$folder/package/usr/bin/inferd" serve "$models" --http-port 0 --metrics-port 0 \
    >"$folder/out" 2>"$folder/log" &
server=$!
for _ in $(seq 300); do
    ! grep -q ' ready at ' "$folder/out" || break
    kill -0 $server || { cat "$folder/log"; exit 1; }
    sleep 0.1
done
url=$(sed -n 's/.* ready at \([^ ]*\) .*/\1/p' "$folder/out")
answer=$("${inside[@]}" "$folder/package/usr/bin/inferctl" --url "$url" infer digits \
    --input "$models/digits/examples/three.png")
echo "$answer"
grep -q three <<<"$answer"
kill -TERM $server
wait $server
