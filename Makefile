# The project's tasks. `make` alone lists them. Go is all that they need, save
# where it says otherwise; other tools are built from tools/go.mod or are
# installed by what needs them.

TOOL := go tool -modfile=tools/go.mod

# How long each fuzz target runs, how many histories are played and from which seed on, and flags of the bench (see go run
# ./internal/bench -help).
FUZZTIME   ?= 10s
HISTORIES  ?= 10000
SEED       ?= 1
BENCHFLAGS ?=

# Tests install what they need and cannot find. Without make they install
# nothing and say what is missing.
export QUITTANCE_TEST_INSTALL ?= 1

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the tasks
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/quittance
	go build -trimpath -o bin/ ./cmd/quittance

.PHONY: man
man: build ## write man pages to bin/man, dated by the commit
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) bin/quittance man bin/man

.PHONY: test
test: ## run all tests, and install what they need
	go test -timeout 12m ./...

.PHONY: short
short: ## run the tests that need nothing but Go
	go test -short ./...

.PHONY: race
race: ## run all tests under the race detector (needs a C compiler)
	go test -race -timeout 30m ./...

.PHONY: histories
histories: ## play HISTORIES seeded histories against the ledger
	go test ./internal/indexer -run '^TestHistories$$' -v -timeout 60m -history.seed=$(SEED) -history.count=$(HISTORIES)

.PHONY: properties
properties: ## play HISTORIES seeded cases of each property of attribution
	go test ./internal/settle -run '^(TestWhoseMoneyIsWhose|TestTheSameChainSaysTheSame)$$' -v -timeout 120m -property.seed=$(SEED) -property.count=$(HISTORIES)

.PHONY: lint
lint: ## check style, common faults and the directions of imports
	$(TOOL) golangci-lint run ./...

.PHONY: verify
verify: lint test race ## all that must hold before a change goes in

.PHONY: generate
generate: ## make generated files anew (needs npm)
	go generate ./...

.PHONY: gas
gas: ## write what the contracts' calls cost to contracts/.gas-snapshot
	go test ./contracts -run '^TestGas$$' -update

.PHONY: bench
bench: ## measure on SQLite and PostgreSQL
	go run ./internal/bench $(BENCHFLAGS)

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME
	@grep -rnoE --include='*_test.go' --exclude-dir=node_modules '^func Fuzz[[:alnum:]_]*' . | \
	while IFS=: read -r file _ match; do \
		name=$${match#func }; echo "==> $$name in $$(dirname "$$file")"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" </dev/null || exit; \
	done
