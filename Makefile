# The project's tasks; `make` lists them. They need only Go, except where noted;
# other tools are built from tools/go.mod or installed when they are needed.
#
# A test is in exactly one of two sets, by its name: `make check` runs those called TestExtra…, `make test` all others,
# of which `make cases` plays more cases. Neither runs `make walk`, which takes minutes and ends with looking at pictures.

TOOL := go tool -modfile=tools/go.mod

# The time of each fuzz target, the number of histories, the first seed, the number of sequences of calls and of changed
# lines, the parts of make check, and flags of the benchmarks (see go -C bench run . -help), of the simulator and of the walks.
FUZZTIME   ?= 2s
HISTORIES  ?= 10000
SEED       ?= 1
INVARIANTS ?= 200
MUTANTS    ?= 60
CHECKS     ?= extra cases forge generators litestream oidc fuzz
BENCHFLAGS ?=
SIMFLAGS   ?= -for 1000h
WALKFLAGS  ?=

# Packages are tested two for each CPU at a time: half of the time their tests wait for databases, blocks, timeouts and
# other programs.
GOTEST = go test -p $$((2 * $$(getconf _NPROCESSORS_ONLN)))
# The packages that take longest, which begin first.
LONGEST = ./internal/ledger ./internal/txmgr ./internal/indexer
extra: LONGEST = ./internal/test/e2e ./internal/web/checkout/browsertest ./internal/web/dashboard ./internal/test/sim

# Lets tests install missing tools. Without make they only say what is missing.
export QUITTANCE_TEST_INSTALL ?= 1

# Build and test without cgo, as releases are built.
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the tasks
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/quittance
	go build -trimpath -ldflags='-s -w' -o bin/ ./cmd/quittance

.PHONY: man
man: build ## write man pages to bin/man, dated by the commit
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) bin/quittance man bin/man

.PHONY: test
test: ## run the tests that need only Go and PostgreSQL, which they install
	$(GOTEST) -timeout 20m -skip '^TestExtra' $(LONGEST) ./...
	go -C bench test ./...

.PHONY: short
short: ## run the part of make test that needs only Go
	$(GOTEST) -short -skip '^TestExtra' ./...

.PHONY: check
check: $(CHECKS) ## run all other tests: foreign tools, generated files, SDKs, browsers, anvil, upgrades, fuzzers, long runs

.PHONY: extra
extra: ## run the Go tests that make test leaves out; installs missing tools
	$(GOTEST) -timeout 20m -run '^TestExtra' $(LONGEST) $$(git grep -lE '^func TestExtra' -- '*_test.go' ':!tools' ':!internal/test/walk' | sed 's|[^/]*$$||; s|^|./|' | sort -u)

.PHONY: race
race: export CGO_ENABLED = 1
race: ## run the tests of make test under the race detector (needs a C compiler)
	go test -race -timeout 30m -skip '^TestExtra' ./...

.PHONY: properties
properties: ## run HISTORIES cases of each property, INVARIANTS of each model, and as many sequences of 100 calls of the contracts
	go test ./internal/ledger -run '^(TestWhoseMoneyIsWhose|TestTheSameChainSaysTheSame)$$' -v -timeout 120m -property.seed=$(SEED) -property.count=$(HISTORIES)
	go test ./internal/ledger -run '^TestDepositsKeepTheirMoney$$' -v -timeout 240m -property.seed=$(SEED) -property.stored=$(HISTORIES) -deposit.invoices=1000
	go test ./internal/ledger -run 'Model|Sums' -v -timeout 120m -rapid.checks=$(INVARIANTS)
	go test ./contracts -run '^TestExtra(Deposit)?Invariants$$' -v -timeout 120m -rapid.steps=100 -rapid.checks=$(INVARIANTS)

.PHONY: cases
cases: ## run the ledger's tests on both databases, and more cases of properties than make test
	go test ./internal/ledger -everywhere -timeout 60m -property.seed=251 -property.count=4000 -property.stored=10 -memory.seed=401 -memory.count=2000
	go test ./internal/txmgr -run '^Test(WriterProperties|MarketFeesKeepWithinTheCap|RaisedFeesReplaceEverywhere|ExclusiveKeyGivesNoFalseAlarm|RefusedCalls)$$' -timeout 60m -rapid.checks=300
	go test ./internal/web/api -run '^Test(FollowersOverRestores|PagesMakeTheWholeList)$$' -timeout 60m -rapid.checks=300
	go test ./contracts -run '^Test(IDIsTheContracts|DepositAddressIsTheContracts)$$' -timeout 60m -rapid.checks=300

.PHONY: sim
sim: ## run the service in simulated worlds until stopped; SIMFLAGS='-seeds 1..5000' runs these, '-seed 7 -trace run.log' replays one
	go run ./internal/test/sim $(SIMFLAGS)

.PHONY: requests
requests: ## send many requests that are generated from openapi.yaml (10 minutes)
	go test ./internal/test/e2e -run '^TestExtraGeneratedRequests$$' -v -timeout 60m -combinations 100

.PHONY: lint
lint: ## check style, common faults and import directions
	$(TOOL) golangci-lint run ./...
	cd bench && go tool -modfile=../tools/go.mod golangci-lint run ./...
	cd tools/generators && go tool -modfile=../go.mod golangci-lint run .
	cd tools/oidc && go tool -modfile=../go.mod golangci-lint run .
	cd tools && go tool golangci-lint run ./mutants

.PHONY: verify
verify: lint test check race ## run all checks that a change must pass

.PHONY: generate
generate: ## regenerate generated files (needs npm)
	go generate ./...

.PHONY: browser
browser: ## test in a browser: each fault of wallets in each way to pay, each page of the checkout and the dashboard in each size and theme
	go test ./internal/web/checkout/browsertest -count 1 -timeout 30m -every
	go test ./internal/web/checkout -run '^TestExtraLooks$$' -count 1 -timeout 60m -every
	go test ./internal/web/dashboard -run '^TestExtraLooks$$' -count 1 -timeout 60m -every

.PHONY: screenshots
screenshots: ## write screenshots of the checkout's and the dashboard's pages to bin/screenshots; needs chromium-headless-shell
	mkdir -p bin/screenshots docs/screenshots
	go test ./internal/web/checkout -run '^TestExtraLooks$$' -count 1 -timeout 60m -screenshots $(CURDIR)/bin/screenshots
	go test ./internal/web/dashboard -run '^TestExtraLooks$$' -count 1 -timeout 60m -screenshots $(CURDIR)/bin/screenshots
	cd bin/screenshots && cp state-waiting-en-1200-light.png wallet-review-de-390-light.png state-paid-en-390-dark.png state-waiting-ar-390-light.png \
		receipt-paid-en-1200-light.png link-free-en-390-light.png refund-confirm-en-390-light.png \
		dashboard-merchant-home-1200-light.png dashboard-merchant-inbox-kind-1200-light.png dashboard-merchant-home-390-dark.png $(CURDIR)/docs/screenshots/

.PHONY: walk
walk: ## walk through the product as four kinds of people; print steps, guesses and dead ends; write pictures to bin/walk (minutes)
	mkdir -p bin/walk
	go test ./internal/test/walk -count 1 -timeout 60m -v -pictures $(CURDIR)/bin/walk $(WALKFLAGS)

.PHONY: gas
gas: ## update contracts/.gas-snapshot, the gas cost of the contracts' calls
	go test ./contracts -run '^TestGas$$' -update

.PHONY: forge
forge: ## run Foundry's fuzz and invariant tests of the contracts (needs npm)
	cd contracts && npm ci --silent --no-fund --no-audit && cd forge && npm ci --silent --no-fund --no-audit
	cd contracts && FOUNDRY_SOLC=./forge/solc.mjs FOUNDRY_OFFLINE=true forge/node_modules/.bin/forge test

.PHONY: generators
generators: ## make clients from openapi.yaml with public generators, and create an invoice with each (needs npm)
	go -C tools/generators test -count 1 -timeout 20m .

.PHONY: oidc
oidc: ## sign in by an OpenID Connect provider that others wrote
	go -C tools/oidc test -count 1 .

.PHONY: litestream
litestream: ## lose machines with SQLite and Litestream
	go -C deploy/litestream test -count 1 -timeout 20m .

.PHONY: mutants
mutants: ## change MUTANTS lines of the ledger, the tracker, the delivery and the sender, and see that make test notices 90 % (hours)
	go -C tools build -o ../bin/mutants ./mutants
	bin/mutants -seed $(SEED) -count $(MUTANTS)

.PHONY: contractmutants
contractmutants: forge ## change the contracts in 32 ways, and see that Foundry's tests notice all but the 2 that change nothing
	cd contracts && node mutants.mjs

.PHONY: bench
bench: ## run the benchmarks on SQLite and PostgreSQL; write a file in bench/results
	go -C bench run . $(BENCHFLAGS)

# What bench-check measures, and how much of it: minutes, not hours.
BENCHCHECK = go -C bench run . -creates 3s -events 5000 -blocks 200 -bursts 20 -open 50000 $(BENCHFLAGS)

.PHONY: bench-check
bench-check: ## compare a small part of the benchmarks with the committed ratios
	$(BENCHCHECK) -check

.PHONY: bench-ratios
bench-ratios: ## measure the ratios that bench-check compares with
	$(BENCHCHECK) -update

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME
	@grep -rnoE --include='*_test.go' --exclude-dir=node_modules '^func Fuzz[[:alnum:]_]*' . | \
	while IFS=: read -r file _ match; do \
		name=$${match#func }; echo "==> $$name in $$(dirname "$$file")"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" </dev/null || exit; \
	done
