# Everything a newcomer runs. The toolchain is fetched by any Go >= 1.21, whatever GOTOOLCHAIN says outside.
export GOTOOLCHAIN := go1.27.3
GO ?= go

# The race detector needs a C compiler. Where there is one, tests run under it; CI always does.
CC_FOUND := $(shell command -v $$($(GO) env CC 2>/dev/null || echo cc) 2>/dev/null)
RACE := $(if $(CC_FOUND),-race,)
TESTFLAGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## flights in, an exactly-once result out, killed twice in the middle
	@$(GO) run ./examples/flights

.PHONY: test
test: ## all tests (under the race detector where a C compiler exists)
	$(GO) test $(RACE) $(TESTFLAGS) ./...

.PHONY: build
build: ## bin/millrace
	$(GO) build -trimpath -o bin/millrace ./cmd/millrace

.PHONY: bench
bench: ## the figures of the README, printed as a table (a few minutes)
	$(GO) run ./benchmarks

KAFKA_JARS ?= bin/kafka

.PHONY: bench-peers
bench-peers: ## the same work on our server and on Apache Kafka in turn, into benchmarks/RESULTS.md (needs Java 17 and Maven)
	@[ -d $(KAFKA_JARS) ] || mvn -q -B -f benchmarks/kafka/pom.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $(KAFKA_JARS))
	$(GO) run ./benchmarks -kafka $(KAFKA_JARS) -results benchmarks/RESULTS.md

.PHONY: soak
soak: ## the long forms of the kill and power-cut tests (about 20 minutes)
	MILLRACE_SOAK=1 $(GO) test $(RACE) -count=1 -timeout 60m ./broker/... ./streams/... ./connectors/... ./txn/...

COPIER_JARS ?= bin/copier

$(COPIER_JARS):
	mvn -q -B -f broker/brokertest/fire/testdata/pom.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $@)

.PHONY: test-fire
test-fire: $(COPIER_JARS) ## exactly-once copies under fire, 20 rounds with Apache Kafka's own copier and 20 with ours (about an hour; needs Java and Maven)
	MILLRACE_FIRE=20 MILLRACE_KAFKA_JARS=$(abspath $(COPIER_JARS)) $(GO) test -count=1 -v -timeout 120m ./broker/brokertest/fire

.PHONY: check
check: ## gofmt, vet, staticcheck
	@out=$$($$($(GO) env GOROOT)/bin/gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "not gofmt'ed:"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
