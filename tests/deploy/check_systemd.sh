#!/usr/bin/env bash
# check_systemd.sh UNIT PROGRAM: systemd must have nothing to say about the unit, nor about it with
# the lines for tokens that wait in comments; and its own rating of what the service could do if it
# were taken over must be 1.5 or better, of 10. PROGRAM: stands in for the one that would be
# installed.
set -euo pipefail
if ! command -v systemd-analyze >/dev/null; then
    echo "skipped: there is no systemd-analyze (Debian's package systemd)"
    [ -z "${INFERD_TEST_NO_SKIPS-}" ] || exit 1
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
for lines in none LoadCredential; do
    sed -e "s#^ExecStart=/usr/bin/inferd #ExecStart=$2 #" -e "s/^#\($lines=\)/\1/" "$1" \
        >"$folder/inferd.service"
    if [ $lines != none ] && ! grep -q "^$lines=" "$folder/inferd.service"; then
        echo "the unit has no $lines="
        exit 1
    fi
    # systemd-analyze says what it ignores, with status 0.
    said=$(systemd-analyze verify --man=no "$folder/inferd.service" 2>&1) || {
        echo "$said"
        exit 1
    }
    if [ -n "$said" ]; then
        echo "$said"
        exit 1
    fi
    # An exposure above the threshold, in tenths, is a failure.
    systemd-analyze security --no-pager --offline=true --threshold=15 "$folder/inferd.service"
done
