# Every step of CI is a target of this file.
BIN := $(CURDIR)/bin
TOOL := go tool -modfile=$(CURDIR)/go.tools.mod

.PHONY: generate
generate: ## regenerate deep copies, CRDs and the v1 API
	@hack/generate.sh
