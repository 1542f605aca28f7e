#!/usr/bin/env bash
# root_folder.sh FOLDER: a clean Debian 12 with the libraries that the package inferd needs, and
# nothing else. Tests install the packages there. Done once; needs the network and root.
set -euo pipefail
[ ! -e "$1.complete" ] || exit 0
rm -rf "$1"
mmdebstrap --quiet --variant=essential --dpkgopt=force-unsafe-io --include="$(echo \
    systemd-standalone-sysusers systemd-standalone-tmpfiles libcurl4 libjansson4 libjpeg62-turbo \
    libmicrohttpd12 libnettle8 libspeexdsp1 libspng0 libuv1 libwebp7 | tr ' ' ,)" bookworm "$1"
touch "$1.complete"
