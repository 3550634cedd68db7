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
	@awk -F':.*## ' '/^[a-z%-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## flights in, an exactly-once result out, killed twice in the middle
	@$(GO) run ./examples/flights

.PHONY: test
# The simulator has one goroutine. The race detector only makes it slow, so it runs at full length without.
test: ## all tests (under the race detector where a C compiler exists)
	$(GO) test $(RACE) $(TESTFLAGS) ./...
	$(if $(RACE),$(GO) test $(TESTFLAGS) ./broker/internal/sim)

.PHONY: build
build: ## bin/millrace
	$(GO) build -trimpath -o bin/millrace ./cmd/millrace

# Data folders of benchmarks go to a real disk: a folder for temporary files may be in memory.
BENCHDIR ?= bin/bench
BENCHFLAGS ?=

.PHONY: bench
bench: ## the figures of the README on our server alone, printed (two minutes)
	$(GO) run ./benchmarks -dir $(BENCHDIR) $(BENCHFLAGS)

KAFKA_JARS ?= bin/kafka

.PHONY: bench-peers
bench-peers: ## ours, Apache Kafka and the client's ceiling in turn, into benchmarks/RESULTS.md (Java 17, Maven; at most 15 minutes)
	@[ -d $(KAFKA_JARS) ] || mvn -q -B -f benchmarks/kafka/pom.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $(KAFKA_JARS))
	$(GO) build -trimpath -o bin/benchmarks ./benchmarks
	bin/benchmarks -kafka $(KAFKA_JARS) -results benchmarks/RESULTS.md -dir $(BENCHDIR) $(BENCHFLAGS)

.PHONY: bench-alone
bench-alone: ## what has to stay flat or bounded on our server, into benchmarks/ALONE.md (10 minutes)
	$(GO) run ./benchmarks -alone -results benchmarks/ALONE.md -dir $(BENCHDIR) $(BENCHFLAGS)

.PHONY: bench-streams
bench-streams: ## stream jobs beside Kafka Streams and goka, into benchmarks/STREAMS.md (Java 17 with javac, Maven; at most 15 minutes)
	@[ -d $(KAFKA_JARS) ] || mvn -q -B -f benchmarks/kafka/pom.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $(KAFKA_JARS))
	$(GO) build -trimpath -o bin/bench-streams ./benchmarks/streams
	bin/bench-streams -kafka $(KAFKA_JARS) -results benchmarks/STREAMS.md -dir $(BENCHDIR) $(BENCHFLAGS)

.PHONY: bench-nexmark
bench-nexmark: ## Nexmark q0 to q8 beside Kafka Streams, into benchmarks/NEXMARK.md (Java 17 with javac, Maven; at most 15 minutes)
	@[ -d $(KAFKA_JARS) ] || mvn -q -B -f benchmarks/kafka/pom.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $(KAFKA_JARS))
	$(GO) build -trimpath -o bin/bench-streams ./benchmarks/streams
	bin/bench-streams -nexmark -kafka $(KAFKA_JARS) -results benchmarks/NEXMARK.md -dir $(BENCHDIR) $(BENCHFLAGS)

# profile-start is a Go benchmark: one start is too short to be sampled.
.PHONY: profile-start
profile-start:
	@mkdir -p bin/profiles/start
	$(GO) test -run '^$$' -bench Start -benchtime 100x -o bin/profiles/start/broker.test -outputdir bin/profiles/start \
		-cpuprofile cpu.pprof -memprofile heap.pprof -mutexprofile mutex.pprof -blockprofile block.pprof ./broker

profile-%: ## pprof files of our server at one workload (produce, acks, paced, transactions, pipeline, topics, start), into bin/profiles
	$(GO) run ./benchmarks -only $* -profile bin/profiles/$* -dir $(BENCHDIR) $(BENCHFLAGS)

.PHONY: sim
sim: ## the simulator, seed after seed from SEED on, until one fails or you stop it
	$(GO) run ./broker/internal/sim/cmd -seed $(or $(SEED),$(shell date +%s)) -count 0

.PHONY: sim-mutations
sim-mutations: ## each fault of broker/internal/sim/mutations is built in, and must be caught (about half an hour; MUTATION=pattern)
	MILLRACE_MUTATION='$(or $(MUTATION),.)' $(GO) test -count=1 -v -timeout 180m -run TestCaught ./broker/internal/sim/mutations

.PHONY: soak-streams
soak-streams: ## stream jobs of several processes that crash, freeze and come back: 200 seeds (about half an hour)
	MILLRACE_SOAK=1 $(GO) test -count=1 -timeout 120m -run FailOver ./streams/internal/runtime

.PHONY: soak
soak: ## the long forms of the kill and power-cut tests (about 20 minutes)
	MILLRACE_SOAK=1 $(GO) test $(RACE) -count=1 -timeout 60m ./broker/... ./streams/... ./connectors/... ./txn/...

COPIER_JARS ?= bin/copier

$(COPIER_JARS):
	mvn -q -B -f broker/brokertest/fire/testdata/pom.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $@)

.PHONY: test-fire
test-fire: $(COPIER_JARS) ## exactly-once copies under fire, 20 rounds with Apache Kafka's own copier and 20 with ours (about an hour; needs Java and Maven)
	MILLRACE_FIRE=20 MILLRACE_KAFKA_JARS=$(abspath $(COPIER_JARS)) $(GO) test -count=1 -v -timeout 120m ./broker/brokertest/fire

.PHONY: test-postgres
test-postgres: ## two-phase commit with a real PostgreSQL, which is installed where it is missing; all the kills (two minutes)
	.ci/postgres.sh

.PHONY: test-java
test-java: ## two-phase commit with Apache Kafka's Java client 4.4 (needs a JDK and Maven)
	@[ -d $(KAFKA_JARS) ] || mvn -q -B -f benchmarks/kafka/pom.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $(KAFKA_JARS))
	MILLRACE_KAFKA_JARS=$(abspath $(KAFKA_JARS)) $(GO) test -count=1 -v -run TestJava ./broker/brokertest/twophase

CRASH_TIME ?= 10m

.PHONY: test-crash
test-crash: ## power cuts at thousands of places of new random stories (CRASH_TIME=10m)
	MILLRACE_CRASH=$(CRASH_TIME) $(GO) test -count=1 -v -timeout 0 -run 'TestCrashMatrix$$|TestFaultAtEveryCallSite$$' ./broker/brokertest/crash | grep -v '^=== RUN\|--- PASS'

.PHONY: check
check: ## gofmt, vet, staticcheck
	@out=$$($$($(GO) env GOROOT)/bin/gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "not gofmt'ed:"; echo "$$out"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
