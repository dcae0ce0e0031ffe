# A few targets; everything of substance is in Cargo and in tests/.

CARGO ?= cargo
CAPTF_COMMIT ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
export CAPTF_COMMIT

.PHONY: build test quick demo bench record fmt clean

# The plugin, optimised: target/release/kubectl-captf
build:
	$(CARGO) build --release

# Everything: format, lints, rustdoc, units, golden output, a real API server, real locks.
# Finds or builds what it needs (the first time compiles Kubernetes) and fails where something is missing.
test:
	tests/run.sh

# What needs nothing but Rust.
quick:
	$(CARGO) test

# One stale, one live and one foreign lock, judged from a snapshot. Exits 11 by design: the foreign lock is an error.
demo:
	@$(CARGO) run --quiet -- lock list --all --from testdata/lock/fleet || test $$? -eq 11
	@echo
	@$(CARGO) run --quiet -- lock inspect --from testdata/lock/fleet || test $$? -eq 11

# Requests, bytes and time of `lock inspect` beside the equivalent kubectl commands, on a real API server.
bench: build
	env=$$(tests/setup.sh --only controlplane) && eval "$$env" && python3 tests/bench.py target/release/kubectl-captf

# Records testdata/ anew on the test ground.
record:
	env=$$(tests/setup.sh --only controlplane) && eval "$$env" && python3 tests/record/record.py

fmt:
	$(CARGO) fmt

clean:
	$(CARGO) clean

include release/release.mk
