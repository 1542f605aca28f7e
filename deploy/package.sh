#!/usr/bin/env bash
# Makes the Debian packages below build/packages/, from a Release build in build/package-ARCH/.
#
#   deploy/package.sh [amd64 | arm64 | armhf [CMAKE-ARGUMENT …]]    default: this processor
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/packages.sh

here=$(dpkg --print-architecture)
arch=${1:-$here}
options=("${@:2}")
case $arch in
    amd64) library=x86_64-linux-gnu toolchain= ;;
    arm64) library=aarch64-linux-gnu toolchain=aarch64 ;;
    armhf) library=arm-linux-gnueabihf toolchain=armv7 ;;
    *) sed -n '4s/^# \{0,1\}//p' deploy/package.sh >&2; exit 2 ;;
esac
if [ "$arch" != "$here" ]; then
    mapfile -t needed < <(sed -n 's/^cross //p' deploy/packages.txt)
    packages_unpack "$arch" "build/sysroot-package-$arch" "${needed[@]}"
    options+=(-DCMAKE_TOOLCHAIN_FILE="$PWD/deploy/cmake/toolchain-$toolchain.cmake"
        -DIFD_SYSROOT="$PWD/build/sysroot-package-$arch")
fi
if command -v ccache >/dev/null; then
    options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
# The date of the newest change: two builds of one state give the same bytes.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null ||
    stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH
build=build/package-$arch
[ -f "$build/CMakeCache.txt" ] || options+=(-G Ninja)
cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DIFD_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr \
    -DCMAKE_INSTALL_LIBDIR="lib/$library" "${options[@]}"
cmake --build "$build" -j "$(nproc)"
echo "SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH" >"$build/epoch"
mkdir -p build/packages
(umask 022 && cd "$build" && cpack -B "$OLDPWD/build/packages")
rm -r build/packages/_CPack_Packages
ls -l build/packages/*_"$arch".deb
