#!/usr/bin/env bash
# What needs hours: all tests with the race detector, random bytes, Flux, random faults, and every crash point.
set -euo pipefail
cd "$(dirname "$0")/.."
go run ./hack/testrun -race=all
hack/fuzz.sh 10m
flux=$(mktemp -d)
trap 'rm -rf "$flux"' EXIT
hack/flux.sh "$flux"
go test ./internal/hub/test -run TestFlux -v -args -flux "$flux"
go test ./internal/hub/test -run TestNothingGoes -v -timeout 1h -args -faults 20m
go test ./crash -run TestPoints -v -timeout 24h -args -all
