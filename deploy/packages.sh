#!/usr/bin/env bash
# Sourced by the scripts, which say `set -euo pipefail` and stand in the top folder: installs groups
# of packages.txt.

# packages_missing GROUP …: prints the packages of these groups that are not installed.
packages_missing() {
    local group name status
    while read -r group name; do
        case " $* " in *" $group "*) ;; *) continue ;; esac
        status=$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null || true)
        [ "$status" = installed ] || echo "$name"
    done < <(grep -v -e '^#' -e '^$' deploy/packages.txt)
}

# packages_install GROUP …: installs those that are missing, or says how.
packages_install() {
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        echo "note: there is no apt; the libraries and tools of deploy/packages.txt must be" \
            "installed under the names of this system"
        return 0
    fi
    local missing as_root=()
    mapfile -t missing < <(packages_missing "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "error: packages are missing, and there is neither root nor sudo:" >&2
            echo "    apt-get install ${missing[*]}" >&2
            return 1
        fi
        as_root=(sudo)
    fi
    echo "installing: ${missing[*]}"
    "${as_root[@]}" apt-get update -q >/dev/null ||
        echo "note: apt-get update failed; installing from the lists that are here" >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends "${missing[@]}" >/dev/null || true
    mapfile -t missing < <(packages_missing "$@")
    if [ ${#missing[@]} -gt 0 ]; then
        echo "error: apt could not install: ${missing[*]}" >&2
        return 1
    fi
}

# packages_unpack ARCH FOLDER PACKAGE …: unpacks Debian packages of another processor, and all that
# they need, into FOLDER. Touches nothing of this system and needs no root: its package lists are
# kept in FOLDER too.
packages_unpack() {
    local arch=$1 folder=$2
    shift 2
    [ "$(cat "$folder/complete" 2>/dev/null)" != "$*" ] || return 0
    mkdir -p "$folder/apt/lists/partial" "$folder/deb/partial"
    : >"$folder/apt/status"
    local options=(-q -o "APT::Architecture=$arch" -o "APT::Architectures=$arch"
        -o "Dir::State::Lists=$PWD/$folder/apt/lists" -o "Dir::Cache::pkgcache="
        -o "Dir::Cache::srcpkgcache=" -o "APT::Sandbox::User=$(id -un)"
        -o "Dir::State::status=$PWD/$folder/apt/status" -o "Dir::Cache::archives=$PWD/$folder/deb"
        -o "Debug::NoLocking=1")
    apt-get "${options[@]}" update || true # an old list may do: the download tells
    apt-get "${options[@]}" install -y --no-install-recommends --download-only "$@"
    local package
    for package in "$folder"/deb/*.deb; do
        dpkg -x "$package" "$folder"
    done
    local link # from the root, which is FOLDER: libz.so of zlib1g-dev
    while IFS= read -r link; do
        ln -sfnr "$folder$(readlink "$link")" "$link"
    done < <(find "$folder" -type l -lname '/*')
    echo "$*" >"$folder/complete"
}
