# blobtail. `make demo` shows it, `make test` holds it to its word.
#
# Go and Node are all that must be there: Node for Azurite, the emulator of
# Azure Storage that the tests of storage/azure talk to.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build

# After how long a package's tests are taken for stuck, on a machine however busy, and
# how long each fuzz target runs.
TEST_TIMEOUT ?= 30m
TEST_FLAGS   := -vet=off -count=1 -timeout $(TEST_TIMEOUT) '-ldflags=-s -w'
FUZZTIME     ?= 30s
# About how long `make torture` takes, and which of its parts (all if none).
TORTURE_MINUTES ?= 70
PARTS           ?=
# Goroutines meet in these packages, so their tests run once more, with the race detector and few
# cases (`-short`). A package that starts goroutines belongs here.
RACED        := ./blobwriter ./buffer ./buffer/wal ./catalog ./catalog/horizon ./cmd/ingest ./cmd/query ./integration/closing \
	./integration/complete ./integration/repeats ./integration/sim ./internal/access ./internal/azurelogs ./internal/azurelogs/asblobs \
	./internal/azurelogs/imports ./internal/count ./internal/dev/testenv ./internal/dev/testkit ./internal/door ./internal/lease ./internal/storeid \
	./internal/storeid/premises ./internal/tally ./reading ./reading/blobs ./reading/blobs/indexcache ./reading/fan ./reading/remote \
	./reading/unflushed ./reading/unflushed/live ./reading/unflushed/live/peers ./retention ./retention/compact ./serve/api \
	./serve/loki ./source/dryrun ./source/httpsource ./source/natssource ./source/syslog ./storage/azure ./storage/dir \
	./storage/dir/tables ./storage/fanout ./storage/mem ./storage/together ./tailindex
BENCHTIME    ?= 1s
# Flags of the end-to-end benchmark (-quick, -against DIR and others), and where to keep a CPU
# profile of an ingester.
BENCH_FLAGS  ?=
# The logs of the second corpus of `make compare`, which is left out without them, and its flags
# (-quick, -rows GLOBS, -out FILE).
LOGHUB        ?= ../shared/data/loghub
COMPARE_FLAGS ?=
PROFILE      ?=

# Tests take the commands of `make build`. A process with the race detector would sleep a second
# when it ends.
TEST := go test $(TEST_FLAGS)
test-%: export BLOBTAIL_BIN = $(CURDIR)/bin
export GORACE = atexit_sleep_ms=0

# The race detector needs a C compiler; the product does not.
CC_FOUND := $(shell command -v gcc cc clang 2>/dev/null | head -n 1)
RACE     := $(if $(CC_FOUND),-race)

# Tests and checks beside the processes leave these the processor. They take a seventh less
# CPU if they collect garbage less often.
BESIDE := GOGC=400 nice -n 5

# All is compiled in one way, and so once; only the race detector needs another.
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath
test-raced: export CGO_ENABLED = 1

# What --version prints: the constant, and the commit.
VERSION := $(shell sed -n 's/^const number = "\(.*\)"/\1/p' internal/cli/version.go)
COMMIT  := $(shell git describe --always --dirty=-changed --abbrev=12 --exclude='*' 2>/dev/null)
STAMP   := -X blobtail/internal/cli.stampedCommit=$(COMMIT)

# The same for every binary: static, and the same bytes wherever it is built.
GO_BUILD := go build -ldflags "$(STAMP)"

# The Go that releases are built with, fetched as a module where another one is installed;
# `local` takes the one that is. The Dockerfile and the toolchain of go.mod are the same. A newer
# patch of it when `make vuln` asks for one.
RELEASE_GO ?= go1.26.11
# Nothing of the builder gets into a binary: not its folder, its clock, its user, its git,
# its GOFLAGS, its kind of processor.
RELEASE_ENV   := GOTOOLCHAIN=$(RELEASE_GO) GOFLAGS= GOEXPERIMENT= GOAMD64=v1 GOARM64=v8.0 CGO_ENABLED=0
RELEASE_BUILD := $(RELEASE_ENV) go build -trimpath -buildvcs=false -ldflags "$(STAMP)"
# Checks of deploy/ and programs for releases, in a module of their own.
LINT := deploy/lint
# A URL of the database of vulnerabilities. Without it, it is the Go module of the same.
VULNDB ?=

# Where `make release` writes, and what: OS/architecture/command. Only logquery runs
# elsewhere than on Linux.
DIST    ?= dist
RELEASE ?= $(foreach arch,amd64 arm64,linux/$(arch)/ingest linux/$(arch)/retention $(foreach os,linux darwin windows,$(os)/$(arch)/logquery))

.PHONY: azure-try build cost release dist sbom reproducible reproducible-host vuln vuln-told demo try picture pages golden test test-processes test-page test-raced test-plain help interop interop-quick alerting torture lint deploy-lint engines promcheck bench bench-micro bench-table compare compare-agree scale fuzz clean

help: ## the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "%-14s %s\n", $$1, $$2}' Makefile

# The linker maps its output, and the kernel's cache holds such a file in smaller pieces than a copy:
# each start of it takes 1.2 to 1.5 times the CPU.
build: ## bin/ingest, bin/logquery and bin/retention
	$(GO_BUILD) -o bin/ingest ./cmd/ingest
	$(GO_BUILD) -o bin/logquery ./cmd/query
	$(GO_BUILD) -o bin/retention ./cmd/retention
	@set -e; for name in ingest logquery retention; do cp bin/$$name bin/.$$name; mv -f bin/.$$name bin/$$name; done

release: vuln ## make dist, unless a vulnerability is known
	@$(MAKE) --no-print-directory dist

dist: ## dist/: static binaries for all systems, their SBOMs, and SHA256SUMS
	@mkdir -p "$(DIST)" && rm -f "$(DIST)"/{ingest,logquery,retention}-* "$(DIST)"/SHA256SUMS
	@set -e; for target in $(RELEASE); do \
		IFS=/ read -r os arch name <<<"$$target"; \
		file="$$name-$$os-$$arch$$([ "$$os" != windows ] || echo .exe)"; \
		echo "$$file $(VERSION)"; \
		GOOS=$$os GOARCH=$$arch $(RELEASE_BUILD) -o "$(DIST)/$$file" "./cmd/$${name/#logquery/query}"; \
	done
	@$(MAKE) --no-print-directory sbom
	cd "$(DIST)" && sha256sum -- *-*-* >SHA256SUMS

# Without a serial number and a time, which would differ each time. A document has the hash
# of the program that wrote it, so that is built like a release; `go tool` would not.
sbom: ## dist/*.cdx.json: the modules in each binary of dist/, for CycloneDX
	@set -e; dist=$$(cd "$(DIST)" && pwd); rm -f "$$dist"/*.cdx.json; tmp=$$(mktemp -d); trap 'rm -r "$$tmp"' EXIT; \
	$(RELEASE_ENV) go -C $(LINT) build -trimpath -buildvcs=false -o "$$tmp" github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod; \
	for file in "$$dist"/*-*-*; do \
		"$$tmp/cyclonedx-gomod" bin -json -std -noserial -notimestamp -version "$(VERSION)" -output "$$file.cdx.json" "$$file"; \
	done

reproducible: ## make dist twice, in two folders that have nothing in common; the sums are equal
	RELEASE_GO="$(RELEASE_GO)" RELEASE="$(RELEASE)" VERSION="$(VERSION)" COMMIT="$(COMMIT)" ./deploy/reproducible.sh

# With another Go and for all systems it takes a quarter of an hour. Tests beside it come first.
reproducible-host: ## make reproducible, of the commands of this host and with its Go
	@nice -n 15 $(MAKE) --no-print-directory reproducible RELEASE_GO=local \
		RELEASE="$(foreach name,ingest logquery retention,linux/$(shell go env GOARCH)/$(name))"

vuln: build ## known vulnerabilities in what is linked into the three commands
	go -C $(LINT) run ./vuln -release-go "$(filter-out local,$(RELEASE_GO))" $(if $(VULNDB),-db "$(VULNDB)") $(CURDIR)/bin/{ingest,logquery,retention}

# What was published overnight is no fault of a change.
vuln-told:
	@$(MAKE) --no-print-directory vuln || echo "vuln: make release would fail" >&2

demo: build ## ship, read back, stop; 10 s or so, leaves nothing behind
	./internal/dev/demo/demo.sh

# TRY_FLAGS has further flags (bin/try -help), such as -records 1000000 -rate 500.
try: build ## a look round: keeps it running with a shop that logs, at http://127.0.0.1:8516/; DIR=FOLDER keeps the logs
	@go build -o bin/try ./internal/dev/try
	@exec bin/try $(if $(DIR),-dir "$(DIR)") $(TRY_FLAGS)

picture: build ## docs/read/page-*.png, from real sessions; a minute
	BLOBTAIL_BIN=$(CURDIR)/bin go test $(TEST_FLAGS) ./integration/page -run TestPictures -update </dev/null

pages: build ## the pages that are printed from the code, and the table of ingest loggers
	BLOBTAIL_BIN=$(CURDIR)/bin go test -count=1 ./docs -run '^TestPrinted' -update
	go test -count=1 ./internal/dev/layers -run '^TestPackagesPage$$' -update

# The processes wait most of the time, and time out if they starve: only lint runs beside them.
# What fails most often is first. CI has `make vuln-told` and `make reproducible` beside the raced
# packages, which wait for disks and clocks now and then.
BESIDE_RACED ?=

# A commit that has the test runs its own, over the inputs of this one. Each side writes 2 GB.
golden: ## the meaning of five million records; AGAINST=COMMIT prints what is another there, UPDATE=1 freezes it
ifdef AGAINST
	@set -e; rm -rf bin/golden; mkdir -p bin/golden; git worktree prune; git worktree add -q --detach bin/golden/tree "$(AGAINST)"; \
	trap 'git worktree remove -f bin/golden/tree' EXIT; \
	[ -d bin/golden/tree/integration/meaning ] || cp -r integration/meaning bin/golden/tree/integration/; \
	for side in .:is bin/golden/tree:was; do \
		(cd "$${side%:*}" && LOGHUB="$(abspath $(LOGHUB))" $(BESIDE) $(TEST) ./integration/meaning -run '^TestGolden$$' -from $(CURDIR) -into "$(CURDIR)/bin/golden/$${side#*:}"); \
	done; cd bin/golden && if diff -r was is >diff; then echo "all records are the same"; else \
		head -n 200 diff | cut -c 1-600; echo "$$(grep -c '^>' diff) records are others: bin/golden/diff"; exit 1; fi
else
	LOGHUB="$(abspath $(LOGHUB))" $(BESIDE) $(TEST) ./integration/meaning -run '^TestGolden$$' $(if $(UPDATE),-update,-all)
endif

test: ## everything, and once more with the race detector where goroutines meet
	@[ -n "$(RACE)" ] || echo "make test: no C compiler, so the race detector is left out" >&2
	@$(MAKE) --no-print-directory -j 2 node_modules/.package-lock.json build
	@$(MAKE) --no-print-directory -j 2 lint test-processes
	@[ -z "$$CI" ] || $(MAKE) --no-print-directory interop-quick alerting
	@$(MAKE) --no-print-directory -j 3 test-raced $(BESIDE_RACED)
	@$(MAKE) --no-print-directory test-plain
	@$(MAKE) --no-print-directory test-page
	@$(MAKE) --no-print-directory deploy-lint
	@echo "make test: all passed"

test-processes:
	$(TEST) ./integration </dev/null

# A browser measures how long it works, so nothing runs beside it. Skipped without Chromium.
test-page:
	$(TEST) ./integration/page </dev/null

test-raced:
	$(BESIDE) $(TEST) $(RACE) -short $(RACED) </dev/null

# `make lint` has run the layers.
test-plain:
	$(BESIDE) $(TEST) $$(go list ./... | grep -vxF -e "$$(go list ./integration ./integration/page ./internal/dev/layers)") </dev/null

# The commands of the shippers are kept in bin/interop.
interop: ## real shippers send to a real ingester, also through faults; installs them; a table
	./integration/interop/setup.sh npm-all debian collector
	@mkdir -p bin/interop && rm -f bin/interop/table.md
	BLOBTAIL_INTEROP=all go test $(TEST_FLAGS) -timeout 60m -parallel 3 ./integration/interop </dev/null; \
	status=$$?; cat bin/interop/table.md; exit $$status

interop-quick: ## the shippers of npm and Debian only, without faults; CI installs them
	@[ -z "$$CI" ] || ./integration/interop/setup.sh npm debian
	@mkdir -p bin/interop && rm -f bin/interop/table.md
	BLOBTAIL_INTEROP=quick go test $(TEST_FLAGS) -parallel 3 ./integration/interop </dev/null; \
	status=$$?; cat bin/interop/table.md; exit $$status

# A module of its own. It takes half a minute to build.
alerting: build ## rules over logs by a real vmalert, docs/read/alerts.md; fetches its modules
	@cd integration/vmalert && if ! go mod download; then \
		[ -z "$$CI" ] || exit 1; echo "make alerting: skipped, because the modules of vmalert cannot be fetched" >&2; exit 0; fi; \
	export BLOBTAIL_BIN=$(CURDIR)/bin; $(BESIDE) go vet ./... && $(BESIDE) go test $(TEST_FLAGS) ./... </dev/null

torture: node_modules/.package-lock.json ## an hour of kills, faults and simulated crashes; figures at the end
	TORTURE_MINUTES=$(TORTURE_MINUTES) ./integration/torture.sh $(PARTS)

# npm's own note of what it installed: newer than the lockfile, or installed again.
node_modules/.package-lock.json: package-lock.json package.json
	npm ci --ignore-scripts --no-audit --no-fund </dev/null
	touch $@

lint: ## gofmt, prettier, vet, staticcheck, ruff, the layers, the types of the page
	@unformatted=$$(gofmt -l $$(go list -f '{{.Dir}}' ./...)) && \
	if [ -n "$$unformatted" ]; then echo "not formatted: gofmt -w" $$unformatted >&2; exit 1; fi
	$(BESIDE) go vet ./...
	$(BESIDE) go tool staticcheck ./...
	go test ./internal/dev/layers
	@if [ -x node_modules/.bin/tsc ]; then $(BESIDE) node_modules/.bin/tsc -p serve/page && $(BESIDE) node_modules/.bin/prettier --log-level warn --check .; \
	elif [ -n "$$CI" ]; then echo "make lint: no node_modules/.bin/tsc" >&2; exit 1; \
	else echo "make lint: types and format of the page are not checked without npm ci" >&2; fi
	@if command -v ruff >/dev/null; then ruff check -q integration/attack integration/engines && ruff format -q --check integration/attack integration/engines; \
	else echo "make lint: integration/attack and integration/engines are not checked without ruff" >&2; fi

# Python and Java must be there; the packages are kept in bin/engines. RECORDS=60000 is a quick run.
engines: build ## Spark, ClickHouse and DuckDB on an export and on blobs: answers are logquery's; ten minutes, 1.6 GB
	python3 -m venv bin/engines && bin/engines/bin/pip install -q -r internal/dev/tools/engines/requirements.txt
	export BLOBTAIL_BIN=$(CURDIR)/bin ENGINES_PYTHON=$(CURDIR)/bin/engines/bin/python BLOBTAIL_RECORDS=$(RECORDS); \
	go test -count=1 -run 'TestClickHouse|TestPages/docs/read/other-tools.md' ./cmd/query ./docs </dev/null && \
	go test -count=1 -v -timeout 60m ./integration/engines </dev/null

promcheck: ## alerts and dashboard, by Prometheus' own packages; a module of its own, and a minute to build
	cd internal/dev/tools/promcheck && go vet ./... && go test -count=1 ./...

# Without an account it says what it needs. CLEAN=1 deletes what killed runs left. After Ctrl-C the tests
# still delete and report, so what writes the report goes on.
azure-try: ## all of it on a real account of Azure Storage, a few cents; bin/azure-try.md
	@if [ -z "$$AZURE_STORAGE_ACCOUNT" ]; then echo "azure-try needs an account of Azure Storage: AZURE_STORAGE_ACCOUNT=NAME, and" \
		"az login, AZURE_STORAGE_KEY=KEY or AZURE_STORAGE_SAS_TOKEN=SAS (docs/start/azure.md)"; exit 0; fi; \
	mkdir -p bin && set -o pipefail && (echo "blobtail $(VERSION), commit $(COMMIT)" && BLOBTAIL_AZURE_TRY=1 go test -count=1 -timeout 60m -v -run '^$(if $(CLEAN),TestClean,TestTry)$$' \
		./internal/dev/azuretry) 2>&1 | (trap '' INT; sed -u -e "s/\b$$AZURE_STORAGE_ACCOUNT\b/ACCOUNT/g" -e "s/sig=[^&\" ]*/sig=SECRET/g" | tee bin/azure-try.md)

# The files of deploy/ as Kubernetes, Compose and BuildKit read them.
deploy-lint: build ## validates the manifests, the compose file, the Dockerfile and the metrics
	cd $(LINT) && export BLOBTAIL_BIN=$(CURDIR)/bin && $(BESIDE) go vet ./... && $(BESIDE) go test -vet=off -count=1 ./...

bench: bench-micro bench-table ## micro-benchmarks, then the table of docs/measured/performance.md

bench-micro:
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

bench-table: build ## from HTTP to blobs and back, every answer checked; docs/measured/bench/DATE-COMMIT.json
	go build -o bin/bench ./internal/dev/bench
	bin/bench table -bin bin -docs docs/measured $(if $(PROFILE),-profile "$(PROFILE)") $(BENCH_FLAGS)

# It installs VictoriaLogs, which no program here is linked with. COMPARE_FLAGS=-quick takes 4 minutes and
# COMPARE_FLAGS="-rows 'read.*'" some rows: both print tables and write nothing.
compare: build ## beside VictoriaLogs: the same records, checked, in turn; docs/measured/compare, tables and plot; 16 minutes
	go build -o bin/bench ./internal/dev/bench
	bin/bench compare -bin bin -loghub "$(LOGHUB)" -docs docs/measured $(COMPARE_FLAGS)

compare-agree: ## whether two results of make compare on one machine agree: A=FILE.json B=FILE.json
	@go run ./internal/dev/bench agree "$(A)" "$(B)"

scale: ## a terabyte a day on a simulated account of Azure, in virtual time; docs/measured/scale/DATE.json
	BLOBTAIL_SCALE="$(CURDIR)/docs/measured/scale" go test -count 1 -timeout 60m -run '^TestScaleIngest$$' -v ./cmd/ingest </dev/null
	BLOBTAIL_SCALE="$(CURDIR)/docs/measured/scale" go test -count 1 -timeout 60m -run '^TestScale(Services|ManyServices|Start)$$' -v ./internal/dev/scale </dev/null
	mkdir -p docs/measured/scale/workers
	BLOBTAIL_SCALE="$(CURDIR)/docs/measured/scale/workers" go test -count 1 -timeout 60m -run '^TestScaleWorkers$$' -v ./internal/dev/scale </dev/null

cost: ## the tables of docs/measured/cost.md and docs/measured/cost.svg, from the result of the scale test and the prices
	go test ./docs -run TestCostPage -update

fuzz: ## each fuzz target for FUZZTIME, one after another
	@grep -rn --include='*_test.go' --exclude-dir=node_modules -o '^func Fuzz[A-Za-z0-9_]*' . | sort | \
	while IFS=: read -r file _ name; do \
		echo "== $$(dirname "$$file") $${name#func }"; \
		go test -run '^$$' -fuzz "^$${name#func }\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "$$(dirname "$$file")" </dev/null || exit 1; \
	done

clean: ## what was built and installed; no data
	rm -rf bin dist node_modules
