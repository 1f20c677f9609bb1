# Needs Python 3.11 or newer and make; everything else comes from the lock files into .venv.

PORT ?= 8080
HOST ?= 127.0.0.1
ARGS ?=
GAME ?= night_clan
URL ?= http://127.0.0.1:$(PORT)
PLIES ?= 1000000

# The first that can run a private redis-server from its wheel (Python 3.11 to 3.13), else any that is new enough, else python3, to say so.
PYTHON ?= $(shell \
	for try in 'python3 13' 'python3.13 13' 'python3.12 13' 'python3.11 13' 'python3 99' 'python3.14 99'; do set -- $$try; \
	  $$1 -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, $$2))" >/dev/null 2>&1 && echo $$1 && exit; \
	done; echo python3)

BIN := .venv/bin
RUN := .venv/.run-stamp
DEV := .venv/.dev-stamp
PROTOS := $(shell find proto/gloaming -name '*.proto' | LC_ALL=C sort)
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command 'make lock' pyproject.toml

COMPOSE ?= $(shell docker compose version >/dev/null 2>&1 && echo docker compose || echo docker-compose) --project-name gloaming --file deploy/compose.yaml

.PHONY: help run play demo dist up down test check bench bench-peers soak chaos proto baseline lock format clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s%s\n", $$1, $$2}' Makefile

run: $(RUN) ## serve everything on this machine: PORT=8080 HOST=127.0.0.1 MONITORING=1 ARGS="--replicas 2 --verbose"
	@exec $(BIN)/python -m deploy.local --port $(PORT) --host $(HOST) --data .gloaming/$(PORT) $(if $(MONITORING),--monitoring) $(ARGS)

play: $(RUN) ## play in this terminal, on URL or a server of its own: GAME=night_clan URL=http://127.0.0.1:8080 ARGS="--seats 3"
	@exec $(BIN)/python -m deploy.play $(GAME) --url $(URL) $(ARGS)

demo: $(RUN) ## let bots play a match of each game in this terminal, told in words and verified, in under a minute
	@exec $(BIN)/python -m deploy.demo

up: ## build the image and serve everything in containers: GLOAMING_PORT=8080; needs Docker with compose
	$(COMPOSE) up --build --detach
	@echo "Gloaming is at http://127.0.0.1:$${GLOAMING_PORT:-8080} as soon as it is healthy: $(COMPOSE) ps"

down: ## stop it; its matches are kept in a volume: ARGS=--volumes forgets them
	$(COMPOSE) down $(ARGS)

test: $(DEV) ## run the tests: ARGS="-k night_clan", ARGS="-n 0" for all in one process
	$(BIN)/python -m pytest -n auto --dist loadgroup --max-worker-restart 1 $(ARGS)

check: $(DEV) ## lint, types, arrows between modules, protos, Kubernetes overlays, and whether generated code is up to date
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --cache-dir .cache/import_linter
	$(BIN)/buf lint proto
	$(BIN)/buf breaking proto --against proto/baseline.binpb
	$(BIN)/python -m tests.deploy.manifests
	@$(MAKE) --no-print-directory generated OUT=.cache/gen
	@diff -r -x __pycache__ .cache/gen/gloaming proto/gen/gloaming || { echo 'proto/gen is not what the protos give: make proto'; exit 1; }
	$(BIN)/python -m gateway.generated --check

bench: $(DEV) ## measure rules, moves over REST, the pillow path, a crowd and memory, as JSON, in some 5 minutes: ARGS=pillow
	$(BIN)/python -m tests.bench $(ARGS)

bench-peers: $(DEV) ## measure our pillow path and other game servers in turn, as JSON, with Node.js 22 or newer: NODE=/path/to/node ARGS="--turns 3"
	$(BIN)/python -m tests.bench.peers $(ARGS)

soak: $(DEV) ## play all games at random, PLIES=1000000 by their rules alone, and count what breaks, as JSON
	$(BIN)/python -m tests.soak $(PLIES) $(ARGS)

chaos: $(DEV) ## break one thing after the other under 200 live matches, and check every move: ARGS="--redis cluster", ARGS="--churn 100000"
	$(BIN)/python -m tests.chaos $(ARGS)

proto: $(DEV) ## generate proto/gen and what pages repeat of the protos and the code
	@$(MAKE) --no-print-directory generated OUT=.cache/gen
	rm -rf proto/gen/gloaming
	mkdir -p proto/gen
	mv .cache/gen/gloaming proto/gen/
	$(BIN)/python -m gateway.comments
	$(BIN)/python -m gateway.generated

baseline: $(DEV) ## take today's protos as what `make check` compares later ones with
	$(BIN)/buf build proto -o proto/baseline.binpb

dist: $(DEV) ## build what others install into dist: the client's wheel, the protos, and with Docker the image: ARGS=--no-image
	$(BIN)/python -m deploy.dist $(ARGS)

lock: $(DEV) ## lock dependencies again: ARGS=--upgrade for newer ones
	$(LOCK) $(ARGS) --extra local --extra tracing -o requirements.lock
	$(LOCK) $(ARGS) --extra local --extra tracing --extra dev -c requirements.lock -o requirements-dev.lock

format: $(DEV) ## put the code into its form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean: ## remove .venv and caches; .gloaming, the data of `make run`, stays
	rm -rf .venv .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN): requirements.lock
	@$(PYTHON) deploy/setup_venv.py $< $@

$(DEV): requirements-dev.lock
	@$(PYTHON) deploy/setup_venv.py $< $@

# Stubs of services only for protos that have one. Types for those who import them: py.typed in each package (PEP 561).
.PHONY: generated
generated:
	@rm -rf $(OUT) && mkdir -p $(OUT)
	@$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=$(OUT) --pyi_out=$(OUT) $(PROTOS)
	@$(BIN)/python -m grpc_tools.protoc -Iproto --grpc_python_out=$(OUT) $$(grep -l '^service ' $(PROTOS))
	@for package in $(OUT)/gloaming/*/v*; do touch $$package/py.typed; done
