#!/usr/bin/env bash
# check_systemd.sh UNIT: systemd's own rating of what the service could do if it were taken over must be 1.5 or better, of 10.
set -euo pipefail
if ! command -v systemd-analyze >/dev/null; then
    echo "skipped: there is no systemd-analyze (Debian's package systemd)"
    exit 77
fi
# An exposure above the threshold, in tenths, is a failure.
systemd-analyze security --no-pager --offline=true --threshold=15 "$1"
