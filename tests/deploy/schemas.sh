#!/usr/bin/env bash
# schemas.sh FOLDER: the schemas of Kubernetes, the Prometheus operator and KServe, out of their
# sources, which are Go modules. Done once for a list; needs the network and go.
set -euo pipefail
modules="k8s.io/kubernetes@v1.32.0 github.com/prometheus-operator/prometheus-operator@v0.82.0
    github.com/kserve/kserve@v0.15.0"
files="api/openapi-spec/swagger.json
    example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml
    config/crd/full/serving.kserve.io_servingruntimes.yaml
    config/crd/full/serving.kserve.io_inferenceservices.yaml"
[ "$(cat "$1/complete" 2>/dev/null)" != "$modules $files" ] || exit 0
rm -rf "$1"
mkdir -p "$1"
export GOMODCACHE=$PWD/$1/modules GOFLAGS=-modcacherw
for module in $modules; do
    go mod download "$module"
    for file in $files; do
        found=$GOMODCACHE/$module/$file
        [ ! -f "$found" ] || cp "$found" "$1"
    done
done
rm -rf "$GOMODCACHE"
for file in $files; do
    [ -f "$1/${file##*/}" ] || { echo "error: no module has $file" >&2; exit 1; }
done
echo "$modules $files" >"$1/complete"
