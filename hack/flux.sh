#!/usr/bin/env bash
# Builds Flux's kustomize-controller into a directory, beside the definitions of Flux's kinds. Its modules are large, so make test does without it.
set -euo pipefail
into=$(realpath "${1:?usage: hack/flux.sh DIRECTORY}")
cd "$(dirname "$0")/.."
export GOFLAGS=-modfile=go.flux.mod

definitions() { # module version
  install -m 600 "$(go mod download -json "$1@$2" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')"/config/crd/bases/*.yaml "$into"
}

version() { go list -m -f '{{.Version}}' "$1"; }

definitions github.com/fluxcd/kustomize-controller "$(version github.com/fluxcd/kustomize-controller)"
definitions github.com/fluxcd/source-controller "$(version github.com/fluxcd/source-controller/api)"
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$into" github.com/fluxcd/kustomize-controller
