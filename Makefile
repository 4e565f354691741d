# stagger: everything that is run, by name. `make` lists it.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules --no-print-directory

# Each module is taken as its own go.mod says, as its users take it; and -modfile needs GOWORK=off.
# Only `make demo` and `make compare` go through go.work.
OFF     := GOWORK=off
TOOL    := $(OFF) go tool -modfile=$(CURDIR)/tools/versions/go.mod
LINTER  := $(TOOL) golangci-lint --config $(CURDIR)/.golangci.yml
# lab/clients has the dependencies of client libraries of others: `make clients` runs it.
MODULES := $(filter-out lab/clients,$(sort $(patsubst ./%/go.mod,%,$(patsubst ./go.mod,.,$(shell find . -name go.mod -not -path './tools/*/*' -not -path './.*/*' -not -path '*/testdata/*')))))

# Versions of grpc-go above that of go.mod to test with, if there are any. go.mod names 1.85.0 because 1.82.1 to 1.84.0 can deadlock
# (grpc-go#9330), and a client gets the lowest version that its modules ask for.
GRPC    ?=

FUZZTIME ?= 30s
COUNT    ?= 10
BENCH    ?= .
DEMO     ?=
STORM    ?=
GRID     ?= .
COMPARE  ?=
SEARCH   ?= -seed 1
INTEROP  ?=
REDIS    ?=
HANG     ?=
ALERTS   ?=
CLIENTS  ?=
MUTATION ?=
VULNDB   ?=
MANY     ?= 20
SEED     ?= 0

# Tests that judge figures of many calls, or allocations, or texts, or programs that they build, and nothing that happens at once in them:
# the race detector, which makes them ten times as long, has nothing to see. make test plays them without it, and all others with it.
FIGURES := SlowEnd|BudgetsOfManyTargets|BudgetCounts|BudgetsHeldByACall|AnHourOfCuts
FIGURES := $(FIGURES)|Outage_Inbound|ConnectionWait_Outage|UnaryAllocations|ParseManyErrors|EveryGoFile|TestPages_|TestExamples_
FIGURES := $(FIGURES)|NormalFigures|TestText$$|TestDay|TestHelps_|ShareBudget|BackoffPage
FIGURES := $(FIGURES)|PagesShowWhatCommandsPrint|SchemaAgreesWithParse|TestAction$$|PreCommitHook
FIGURES := $(FIGURES)|Allocat|TestCost_|Admission_Cost|TestModel|FuzzEvents|TestWith$$|DistributionMoments
FIGURES := $(FIGURES)|OverloadPage_|TestOutlast_|TestRollout|ReadmePolicy_|TestMetrics_ManyTargets|TestParseLimits

# Tests of lab that make check plays instead of make test, since they are long; those of the grid take its flag.
GRIDS  := TestGrid|TestAdmission$$
STORMS := $(GRIDS)|ManyProcesses|BesideItsPeers|ElsewhereInOtherStorms|StormsBite|ChainOfRetries|BesideFailsafe
STORMS := $(STORMS)|DocsAreCurrent|TestTables|TestSearch|TestWorst|TestDraw|TestReconnect|TestHandshakes
STORMS := $(STORMS)|TestCommand$$|MetricsAllocateLittle

# The API of the example, whose descriptor set is next to it.
ORDERS := {"version":"v2","modules":[{"path":"examples/orders"}]}

# In every module, whatever failed before, so that one run shows all; $(1) is one && chain.
define each
failed=; for module in $(MODULES); do \
  echo "== $$(cd $$module && $(OFF) go list -m)"; (cd "$$module" && $(1)) || failed="$$failed $$module"; \
done; if [ -n "$$failed" ]; then echo "$@: failed in:$$failed" >&2; exit 1; fi
endef

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Show a bad day of five kinds of clients (DEMO=--all shows its plots and more)
	@mkdir -p .tmp; [ -x .tmp/stagger ] || echo "building the command, which takes up to a minute the first time …"
	@go build -o .tmp/stagger ./cmd/stagger
	@.tmp/stagger demo $(DEMO)

.PHONY: shop
shop: ## Start four services that call each other, send users, and break one service after the other
	@go run ./examples/shop

.PHONY: storm
storm: ## Play outages against stagger and all its peers, in virtual time, and show the tables: 3 minutes (STORM='-storms ^pulse$$' plays one, -write writes the pages)
	@cd lab && $(OFF) go test -count=1 -timeout 30m -v -run 'BesideItsPeers|DocsAreCurrent' ./storm -args -all $(STORM)

.PHONY: grid
grid: ## Play every storm from many connections and processes, in virtual time: 5 minutes (GRID='^pulse$$' plays one, STORM=-write writes the pages)
	@cd lab && $(OFF) go test -count=1 -timeout 60m -run '$(GRIDS)' ./storm -args -grid '$(GRID)' $(STORM)

.PHONY: overload
overload: ## Play every storm in the simulator, and write its table, and the plot of docs/evidence/storms.md
	@cd lab && $(OFF) go test -count=1 -run 'TestDocsAreCurrent$$' ./overload -args -write

.PHONY: outages
outages: ## Kill, hang and restart servers, in virtual time, and write the tables of docs/evidence/outages.md: 1 minute
	@cd lab && $(OFF) go test -count=1 -run 'DocsAreCurrent|TestReconnect$$|TestReconnect_Waits|TestHandshakes' ./outages ./fleet -args -write

.PHONY: backoff
backoff: ## Draw the delays of 100 clients with each jitter, play a herd and writers of one row, and write the tables and plots of docs/backoff.md and docs/evidence/backoff.md
	@cd lab && $(OFF) go test -count=1 ./backoff -args -write

.PHONY: hedge
hedge: ## Hedge slow calls with stagger and failsafe-go, in virtual time, and write lab/hedge/results.md
	@cd lab && $(OFF) go test -count=1 ./hedge -args -write

.PHONY: vanish
vanish: ## Let a machine vanish from the network, with keepalives of several lengths, and write lab/vanish/results.md: 1 minute (Linux, iproute2, root or user namespaces)
	@cd lab && $(OFF) go run ./vanish -write

.PHONY: search
search: ## Draw scenarios in which retries may do harm, or can help, and judge both (SEARCH='-seed 7 -n 1000 -help-set 300'; '-help' lists flags)
	@cd lab && $(OFF) go run ./search $(SEARCH)

.PHONY: compare
compare: ## Measure the costs of stagger and its peers: 3 minutes (COMPARE='-write .' writes the pages; '-help' lists flags)
	@go run ./lab/compare $(COMPARE)

.PHONY: test
test: ## Run every module's tests, each once: with the race detector, but those that judge figures without: 3 minutes
	@tools/ci/cc
	@tools/ci/test '$(FIGURES)' '$(STORMS)' $(MODULES)

.PHONY: check
check: ## What takes longer than make test: long tests, storms, searches; and what needs a browser, servers and proxies, which it installs: 13 minutes
	@echo "make check: installs Chromium, Prometheus, Redis, etcd, nginx, HAProxy, and Node's and Python's gRPC, where they are missing"
	@tools/ci/steps long examples browser storms grid search random ops interop redis

.PHONY: browser
browser: ## Open the debug page in Chromium
	@tools/ci/chromium
	@cd lab && $(OFF) STAGGER_CHROMIUM=required go test -count=1 -timeout 10m ./debugpage

.PHONY: long
long: ## Run all tests of the root module, also those that take seconds and that a plain "go test" skips
	@STAGGER_TESTS=all $(OFF) go test -shuffle=on -count=1 -timeout 30m ./...

.PHONY: examples
examples: ## Run each example of the public packages as the program that pkg.go.dev shows, and compare what it prints: 1 minute
	@cd tools && STAGGER_TESTS=all $(OFF) go test -count=1 -timeout 10m -run 'TestExamples_' ./pages

.PHONY: storms
storms: ## Play storms and hedges for stagger and its peers, and compare the fleet's and the overload's pages with new runs, in virtual time
	@cd lab && $(OFF) go test -shuffle=on -count=1 -timeout 30m -run '$(STORMS)' -skip '$(GRIDS)' ./...

.PHONY: random
random: ## Play random calls MANY times (20) as often as make test does (SEED=7 plays others), and random delays
	@$(OFF) go test -count=1 -timeout 30m -run 'TestModel$$' ./internal/attempts -args -many $(MANY)
	@cd lab && STAGGER_TESTS=all $(OFF) go test -count=1 -timeout 30m -run 'TestDifferential|TestStorm$$' ./proof -args -many $(MANY) -seed $(SEED)
	@tools/ci/cc
	@cd lab && CGO_ENABLED=1 $(OFF) go test -race -tags delays -count=1 -timeout 30m -run 'TestStorm$$|TestLone' ./proof -args -many 4 -seed $(SEED)
	@STAGGER_TESTS=all CGO_ENABLED=1 $(OFF) go test -race -tags delays -count=1 -timeout 30m -skip '$(FIGURES)|Allocations|Cost' ./interceptor

.PHONY: count
count: ## Count the lines of Go written by hand: code and tests of each folder
	@tools/ci/count

.PHONY: growth
growth: ## Report what a client grows by, and what it links
	@tools/ci/growth

.PHONY: ops
ops: ## Have a real Prometheus scrape examples/shop in its outages, test dashboard and alerts, and stop one of three backends (HANG='-args -write' and ALERTS=-write write their figures)
	@tools/ci/prometheus >/dev/null
	@PATH="$$PATH:$$(tools/ci/prometheus)" && cd examples/shop && $(OFF) STAGGER_PROMETHEUS=required go test -run 'Prometheus|Alert' -count=1 -timeout 5m . $(ALERTS)
	@PATH="$$PATH:$$(tools/ci/prometheus)" && cd lab && $(OFF) STAGGER_PROMETHEUS=required go test -run 'TestHang|TestEject' -count=1 -timeout 4m ./hang $(HANG)

.PHONY: interop
interop: ## Meet nginx, HAProxy, Python and Node in 3 minutes (INTEROP='-args -write ../../docs/evidence/interop.md' writes the page)
	@tools/ci/interop
	@cd lab/interop && PATH="$$PATH:/usr/sbin" $(OFF) STAGGER_INTEROP=required go test -count=1 -timeout 10m . $(INTEROP)

.PHONY: pings
pings: ## Send twenty keepalive pings to servers in Go and Python that allow them: 4 minutes
	@tools/ci/interop
	@cd lab/interop && $(OFF) STAGGER_PINGS=required go test -count=1 -timeout 10m -parallel 6 -run TestKeepalive .

.PHONY: clients
clients: ## Put stagger into etcd's, Google's and others' client libraries: 1 minute (CLIENTS='-args -write results.md' writes the table)
	@etcd --version >/dev/null 2>&1 || tools/ci/interop
	@cd lab/clients && $(OFF) go vet ./... && STAGGER_CLIENTS=required $(OFF) go test -count=1 -timeout 5m . $(CLIENTS)

.PHONY: histories
histories: ## Have Porcupine judge what clients of a real etcd see in its outages: 15 minutes (HISTORIES='-history-page ../../docs/evidence/histories.md' writes the page)
	@etcd --version >/dev/null 2>&1 || tools/ci/interop
	@cd lab/clients && STAGGER_CLIENTS=required $(OFF) go test -run TestHistories -count=1 -timeout 60m . -args -histories 200 $(HISTORIES)

.PHONY: redis
redis: ## Share pools on a real Redis among 200 clients, and end, freeze and slow it: 2 minutes (REDIS='-args -write' writes lab/redisfleet/results.md)
	@tools/ci/redis
	@cd lab/redisfleet && $(OFF) STAGGER_REDIS=required go test -run TestRedis -count=1 -timeout 4m . $(REDIS)

.PHONY: fleet
fleet: ## Play 10 to 100,000 clients whose reserve is local or a pool's, in virtual time, and write docs/evidence/fleet.md: 5 minutes
	@cd lab && $(OFF) go test -count=1 -timeout 30m -run 'TestTables$$' ./fleet -args -write

.PHONY: newuser
newuser: ## Do in an empty folder what docs/set-up.md tells a new user
	@tools/ci/newuser docs/set-up.md

.PHONY: grpc-versions
grpc-versions: ## Run the library's tests with grpc-go's newest development version, as a report (GRPC=v1.86.0 also tests with that one)
	@tools/ci/grpc-versions $(GRPC)

.PHONY: release
release: ## Make a release of all modules, files and image in a clone, and do with it what docs/set-up.md tells a new user
	@tools/ci/release

.PHONY: lint
lint: vet golangci arrows buf-lint kubernetes workflows portable ## Check Go code, the import arrows, the schema, the example's manifests, workflows, and builds for macOS, Windows and 32 bits

.PHONY: vet
vet:
	@$(call each,$(OFF) go vet ./... && $(OFF) go fix -diff ./... && $(OFF) go mod tidy -diff)

.PHONY: golangci
golangci:
	@$(call each,$(LINTER) run ./... && $(LINTER) fmt --diff)

.PHONY: arrows
arrows:
	@tools/ci/arrows env $(TOOL) golangci-lint

.PHONY: buf-lint
buf-lint:
	@$(TOOL) buf lint
	@$(TOOL) buf format -d --exit-code
	@tools/ci/breaking env $(TOOL) buf

.PHONY: kubernetes
kubernetes:
	@cd examples/shop && $(OFF) go run . kubernetes | $(TOOL) kube-score score --output-format ci - | { ! grep -v -e '^\[OK\]' -e '^\[SKIPPED\]'; }

.PHONY: workflows
workflows:
	@$(OFF) go tool -modfile=tools/versions/actionlint/go.mod actionlint

.PHONY: portable
portable:
	@tools/ci/portable --vet

.PHONY: vuln
vuln: ## Look for known vulnerabilities in what users install (VULNDB=file:///folder has a copy of the database, for use offline)
	@$(OFF) go build -modfile=tools/versions/go.mod -o .tmp/ golang.org/x/vuln/cmd/govulncheck
	@for module in . internal/report observe/otelstagger budget/redisbudget cmd/stagger; do \
	  echo "== $$module"; $(OFF) .tmp/govulncheck $(if $(VULNDB),-db $(VULNDB)) -C $$module ./...; \
	done

.PHONY: fmt
fmt: ## Format Go and proto files
	@$(call each,$(LINTER) fmt)
	@$(TOOL) buf format -w

.PHONY: api
api: ## List the exported names of all public packages in tools/api.txt, and count them
	@tools/ci/api write
	@tools/ci/api count

.PHONY: generate
generate: ## Generate Go code and the JSON Schema from proto/, the descriptor set of the example, and the pages' keys, reasons and differences from peers
	@cd tools && $(OFF) go test -count=1 -run 'TestReasonPages|TestKeysPage' ./pages -args -write >/dev/null
	@cd lab && $(OFF) go test -count=1 -run TestPeers ./proof -args -write >/dev/null
	@$(TOOL) buf generate
	@$(TOOL) buf build --as-file-descriptor-set --exclude-source-info -o examples/orders/orders.binpb --config '$(ORDERS)'

.PHONY: generated
generated: ## Check that the generated code, tools/api.txt and go.work.sum are up to date
	@tools/ci/work-sum
	@tools/ci/api check
	@fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	$(TOOL) buf generate -o "$$fresh"; \
	$(TOOL) buf build --as-file-descriptor-set --exclude-source-info -o "$$fresh/orders.binpb" --config '$(ORDERS)'; \
	{ diff -ru -x '*.proto' -x '*_test.go' -x README.md proto "$$fresh/proto" && cmp "$$fresh/orders.binpb" examples/orders/orders.binpb; } || { echo "generated: run make generate and commit" >&2; exit 1; }

.PHONY: unchanged
unchanged: ## Check that all files are as committed: no step has written others
	@tools/ci/unchanged

.PHONY: bench
bench: ## Run the benchmarks COUNT times (10), summed up by benchstat
	@mkdir -p .tmp
	@$(OFF) go test -run '^$$' -bench '$(BENCH)' -benchmem -count=$(COUNT) ./interceptor/ | tee .tmp/bench.txt
	@$(TOOL) benchstat .tmp/bench.txt

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s)
	@$(OFF) FUZZTIME=$(FUZZTIME) tools/ci/fuzz

.PHONY: mutation
mutation: ## Change the code that decides in one place at a time, and see a test fail: about an hour (MUTATION='budget policy')
	@cd tools/mutation && $(OFF) go build -o $(CURDIR)/.tmp/mutation/ . github.com/go-gremlins/gremlins/cmd/gremlins
	@STAGGER_TESTS=all $(OFF) .tmp/mutation/mutation $(MUTATION)
