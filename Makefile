# make demo [SEED=n] [ORDERS=n]   the main job under fire, on the embedded default
# make test                       everything that must pass before a change lands
# make test-all                   the same, all of it under each sanitizer and clang, and the long tests
# make install [PREFIX=/usr/local] [DESTDIR=]   library, headers, CMake package, pkg-config file, programs
# make bench [BENCH=name]         each hot path beside the raw limit of the same work; build/bench.json. The long ones
#                                 run by name only: BENCH=consumer_soak, BENCH=rabbitmq_waiting and others
# make fuzz [SECONDS=60]          each parser of what strangers send under libFuzzer; ends with 1 and names the inputs
#                                 if one breaks. What it learns stays in build/fuzz for the next time
# make lint                       formatting, shell scripts and the rules of tools/rules
#
# With CI=true, test and test-all begin with lint, a warning of the compiler is an error, and what cannot be installed fails.
JOBS ?= $(shell nproc)
SEED ?=
ORDERS ?=
SECONDS ?= 60
PREFIX ?= /usr/local
DESTDIR ?=

# Nobody's build should stop at the warning of a compiler that we have not seen; ours must.
WERROR := $(if $(filter true,$(CI)),ON,OFF)

# Most tests wait for the kernel rather than compute, so twice as many run at once. Those with the label `long` are
# for test-all.
CTEST = ctest --output-on-failure -j $(shell expr 2 \* $(JOBS))

# Each target takes all cores for itself, and two must not install packages at once.
.NOTPARALLEL:
.PHONY: all build demo test test-all install bench fuzz lint format clean

all: build

build:
	@tools/setup build test
	@cmake --preset release -DSETTLE_WERROR=$(WERROR) >/dev/null
	@cmake --build --preset release -j $(JOBS)

demo:
	@tools/setup build
	@cmake --preset release -B build/demo -DSETTLE_TESTS=OFF >/dev/null
	@cmake --build build/demo -j $(JOBS)
	@build/demo/demo/order_storm $(if $(SEED),--seed $(SEED)) $(if $(ORDERS),--orders $(ORDERS))

# Private servers for as long as the tests run; see tools/servers. Kafka's tests are among the long ones so far.
SERVERS = postgres pgbouncer redis rabbitmq

LINT_FIRST = $(if $(filter true,$(CI)),lint)

test: $(LINT_FIRST) build
	@tools/setup servers || [ "$(CI)" != true ]
	@tools/setup node || [ "$(CI)" != true ]
	@tools/setup promtool || [ "$(CI)" != true ]
	@+tools/servers run $(SERVERS) -- $(MAKE) --no-print-directory test-required

test-all: $(LINT_FIRST) build
	@tools/setup servers || [ "$(CI)" != true ]
	@tools/setup node || [ "$(CI)" != true ]
	@tools/setup promtool || [ "$(CI)" != true ]
	@tools/setup kafka || [ "$(CI)" != true ]
	@+tools/servers run $(SERVERS) kafka -- $(MAKE) --no-print-directory test-more

.PHONY: test-required test-more test-preset
test-required:
	@$(CTEST) --test-dir build/release -LE long
	@cmake --preset asan -DSETTLE_WERROR=$(WERROR) >/dev/null
	@cmake --build --preset asan -j $(JOBS) --target memory_checked_tests
	@$(CTEST) --test-dir build/asan -L memory_checked

test-more:
	@$(CTEST) --test-dir build/release -LE long
	@$(MAKE) --no-print-directory test-preset PRESET=asan
	@$(MAKE) --no-print-directory test-preset PRESET=tsan
	@tools/setup clang
	@$(MAKE) --no-print-directory test-preset PRESET=clang
	@$(CTEST) --test-dir build/release -L long
	@build/release/tests/simulate --seed drawn --seeds 1000

test-preset:
	@cmake --preset $(PRESET) -DSETTLE_WERROR=$(WERROR) >/dev/null
	@cmake --build --preset $(PRESET) -j $(JOBS)
	@$(CTEST) --test-dir build/$(PRESET) -LE long

install:
	@tools/setup build
	@cmake --preset release -B build/install -DSETTLE_TESTS=OFF -DCMAKE_INSTALL_PREFIX="$(PREFIX)" >/dev/null
	@cmake --build build/install -j $(JOBS)
	@DESTDIR="$(DESTDIR)" cmake --install build/install

bench:
	@tools/setup build test
	@tools/setup servers bench kafka || [ "$(CI)" != true ]
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target bench_run
	@tools/servers run postgres redis rabbitmq kafka -- build/release/bench/bench_run --folder build/bench-data --json build/bench.json $(BENCH)

fuzz:
	@tools/setup build fuzz
	@cmake --preset fuzz >/dev/null
	@cmake --build --preset fuzz -j $(JOBS)
	@tools/fuzz build/fuzz $(SECONDS) $(JOBS)

lint:
	@tools/setup lint
	@tools/lint

format:
	@tools/setup lint
	@git ls-files -co --exclude-standard '*.cpp' '*.hpp' | xargs clang-format-19 -i

clean:
	@rm -rf build
