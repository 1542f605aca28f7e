#!/usr/bin/env bash
# Builds the packages of this processor once more: from a copy of the sources in another folder, at
# another time, with every object compiled. They are the same bytes as those of build/packages/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
arch=$(dpkg --print-architecture)
. "build/package-$arch/epoch"
export SOURCE_DATE_EPOCH CCACHE_DISABLE=1
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -c --exclude=./build --exclude=./.git --exclude=./.venv . | tar -x --touch -C "$copy"
"$copy/deploy/package.sh" "$arch"
for package in build/packages/*_"$arch".deb; do
    cmp "$package" "$copy/$package"
done
