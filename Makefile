# make demo [SEED=n] [ORDERS=n]   the main job under fire, on the embedded default
# make test                       everything that must pass before a change lands
# make test-all                   the same, and the thread sanitizer
# make lint                       formatting and shell scripts
JOBS ?= $(shell nproc)
SEED ?=
ORDERS ?=

.PHONY: all build demo test test-all lint format clean

all: build

build:
	@tools/setup build test
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS)

demo:
	@tools/setup build
	@cmake --preset release -B build/demo -DSETTLE_TESTS=OFF >/dev/null
	@cmake --build build/demo -j $(JOBS)
	@build/demo/demo/order_storm $(if $(SEED),--seed $(SEED)) $(if $(ORDERS),--orders $(ORDERS))

test: build
	@ctest --test-dir build/release --output-on-failure -j $(JOBS)
	@$(MAKE) --no-print-directory sanitize PRESET=asan

test-all: test
	@$(MAKE) --no-print-directory sanitize PRESET=tsan

.PHONY: sanitize
sanitize:
	@cmake --preset $(PRESET) >/dev/null
	@cmake --build --preset $(PRESET) -j $(JOBS)
	@ctest --test-dir build/$(PRESET) --output-on-failure -j $(JOBS)

lint:
	@tools/setup lint
	@tools/lint

format:
	@tools/setup lint
	@git ls-files -co --exclude-standard '*.cpp' '*.hpp' | xargs clang-format-19 -i

clean:
	@rm -rf build
