#!/usr/bin/env bash
# Feeds random bytes to the parsers: bash hack/fuzz.sh [TIME] [PACKAGE...]. Each target gets the
# time, 10m by default. A failing input lands in the package's testdata/fuzz, where every test run
# tries it again.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10m}
shift || true
mapfile -t files < <(grep -rlE --include=fuzz_test.go '^func Fuzz' "${@:-internal}")
failed=()
for file in "${files[@]}"; do
  package=./$(dirname "$file")
  for target in $(sed -n 's/^func \(Fuzz[A-Za-z]*\)(.*/\1/p' "$file"); do
    echo "== $package $target"
    go test -vet=off -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package" | tail -20 || failed+=("$package $target")
  done
done
[ ${#failed[@]} -eq 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
