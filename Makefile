# make test passes everything, and installs what it needs by itself (Debian).
SHELL := /bin/bash
GO    ?= go
BIN   := bin/nixie

.PHONY: build test unit race race-disk interop jms-reference check bench tools clean

build: $(BIN)

$(BIN): FORCE
	CGO_ENABLED=0 $(GO) build -o $@ ./cmd/nixie
FORCE:

# test is what has to pass: formatting and generated code, the Go tests, the same
# again under the race detector for the rooms with goroutines, and the Java clients.
test: tools check unit race interop

check:
	@test -z "$$(gofmt -l cmd internal bench jms)" || { echo "not gofmt-ed:"; gofmt -l cmd internal bench jms; exit 1; }
	CGO_ENABLED=0 $(GO) vet ./...

unit:
	CGO_ENABLED=0 $(GO) test -shuffle=on ./...

# The rooms in which goroutines meet. The core rooms have none. The engine on disk,
# whose disk tests are slow under the race detector, has a target of its own.
race:
	CGO_ENABLED=1 $(GO) test -race ./internal/broker/... ./internal/protocol/openwire ./internal/store/combiner ./internal/store/memstore ./internal/store/errstore ./internal/records ./internal/admin ./jms/...

race-disk:
	CGO_ENABLED=1 $(GO) test -race ./internal/store/pebblestore ./cmd/...

# Two modules at a time, since what they mostly do is wait.
interop: $(BIN)
	NIXIE_BIN=$(CURDIR)/$(BIN) mvn -q -B -T 2 -f interop/pom.xml test

# The Go client's tests against Debian's ActiveMQ; about five minutes.
jms-reference:
	NIXIE_JMS_URL=start $(GO) test -count=1 -timeout 20m ./jms

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./internal/...

tools:
	@./.ci/tools

clean:
	rm -rf bin interop/*/target
