#!/usr/bin/env bash
# root_folder.sh FOLDER: a clean Debian 12 with the libraries that the package inferd needs, and
# nothing else. Tests install the packages there. Done once for a list; needs the network and root.
set -euo pipefail
list=systemd-standalone-sysusers,systemd-standalone-tmpfiles,libcurl4,libjansson4
list+=,libjpeg62-turbo,libmicrohttpd12,libnettle8,libspeexdsp1,libspng0,libuv1,libwebp7
[ "$(cat "$1.complete" 2>/dev/null)" != "$list" ] || exit 0
rm -rf "$1" "$1.complete"
mmdebstrap --quiet --variant=essential --dpkgopt=force-unsafe-io --include="$list" bookworm "$1"
echo "$list" >"$1.complete"
