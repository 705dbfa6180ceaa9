SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X github.com/muster-fleet/muster/internal/version.Version=$(VERSION)
TOOL := go tool -modfile=$(CURDIR)/go.tools.mod
GENERATED := api docs/promises.md docs/troubleshooting.md docs/reference charts/fleet-crd charts/fleet-agent/templates/appliedworks.yaml charts/member-agent/templates/appliedworks.yaml
export LOCALKUBE_BIN := $(CURDIR)/bin/localkube
# Programs, tests and tools are compiled alike, each package once. A version control stamp needs a git that trusts the directory.
export GOFLAGS ?= -buildvcs=false -trimpath
export CGO_ENABLED := 0

.PHONY: help demo build programs check test soak proof e2e images release bench fleet docs lint generate verify vuln ci clean
help: ## show this
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' Makefile

demo: ## four real clusters on this machine: a hub and three members
	@hack/demo.sh

build: bin/localkube bin/kubectl bin/helm programs ## build everything into bin/

programs: # the go command knows best what is up to date
	@mkdir -p bin
	@for program in cmd/*/; do \
	  go build -ldflags "$(LDFLAGS)" -o bin/ ./$$program; \
	done
	@ln -sf muster bin/kubectl-muster

# A Kubernetes in one binary. The first build takes about five minutes on two cores.
bin/localkube: $(shell find localkube -name '*.go' -not -name '*_test.go') localkube/go.mod localkube/go.sum localkube/ldflags
	@mkdir -p bin
	cd localkube && go build -ldflags "$$(cat ldflags)" -o ../bin/localkube .
	@touch $@

bin/kubectl: bin/localkube; @ln -sf localkube $@

bin/helm: go.tools.mod go.tools.sum
	@mkdir -p bin
	go build -modfile=go.tools.mod -ldflags "-s -w" -o $@ helm.sh/helm/v4/cmd/helm
	@touch $@

check: lint bin/localkube ## what differs from main: style, unit tests of those packages, changed tests on clusters
	@go run ./hack/testrun -changed

# Flags of the test run, such as TEST='-race=all -p 2'.
test: bin/localkube bin/kubectl bin/helm ## run all tests against real clusters, with the race detector where it tells most
	@go run ./hack/testrun $(TEST)
	@bin/localkube check || echo "the tests of nodes with containers will be skipped"
	for module in localkube hack/images; do (cd $$module && go test ./...); done

soak: bin/localkube bin/kubectl bin/helm ## what needs hours: all tests with the race detector, random bytes, and every crash point
	@hack/soak.sh
proof: bin/localkube bin/kubectl bin/helm ## run the tests of docs/promises.md, and write it with their results: less than an hour
	@go run ./hack/promises -run

# Flags of the end-to-end test, such as E2E='-run bundle -keep' or E2E='-table results.md'.
e2e: bin/localkube ## the charts on real nodes, a hub and two members, and what can happen to them; as root
	@bin/localkube check
	@$(MAKE) bin/kubectl bin/helm images
	go run ./e2e $(E2E)

images: ## OCI archives of the hub's and the agent's images in images/, for amd64 and arm64
	@go run ./hack/release -images -out . -version $(VERSION)

# Flags of the release, such as RELEASE='-key cosign.key -url https://charts.example.com'.
release: ## what a version is delivered as, in dist/: commands, images, charts, checksums
	@rm -rf dist && go run ./hack/release -version $(VERSION) $(RELEASE)

bench: bin/localkube bin/helm ## measure the budgets, each on a control plane of its own; about half an hour
	@for name in Token Agent BurstNative BurstLegacy Members Bundle Import Deliver Placement Leave Works Repositories CommandLine CommandJoin Dashboard Backup; do go test ./bench -run '^$$' -bench "^Benchmark$$name$$" -benchtime 1x -timeout 15m; done
	@go test ./internal/hub/placement/scheduling ./internal/hub/bundles/agentbundle ./internal/repository/scan -run '^$$' -bench .

# Flags of the simulated fleets, such as FLEET='-members 100,1000 -out docs/fleets'.
fleet: bin/localkube ## measure simulated fleets against a real hub; minutes for 100 members, hours for 10,000
	@go run ./bench/fleet $(FLEET)

docs: ## the documentation as a site in site/, which opens from the folder
	@go run ./hack/docs

lint: ## check format and style of all modules
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not formatted; run gofmt -w on:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	@for script in $$(git ls-files '*.sh' .ci/run); do bash -n $$script; done
	@for at in . localkube hack/images; do (cd $$at && $(TOOL) golangci-lint run --config $(CURDIR)/.golangci.yml ./...); done

generate: ## regenerate deep copies, CRDs, the v1 API, docs/troubleshooting.md, docs/reference
	@hack/generate.sh

verify: generate ## check that what is generated is up to date
	@git diff --exit-code --stat -- $(GENERATED) || { echo "generated files are out of date; run make generate and commit"; exit 1; }
	@test -z "$$(git status --porcelain -- $(GENERATED))" || { git status --short -- $(GENERATED); echo "generated files are not committed"; exit 1; }

vuln: ## look for known vulnerabilities (needs vuln.go.dev)
	@$(TOOL) govulncheck ./...

ci: verify lint test ## what CI runs before the end-to-end test: cheap things first

clean: ## remove what was built
	@rm -rf bin images dist site
