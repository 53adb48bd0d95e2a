# SPDX-License-Identifier: Apache-2.0
# The front door. CMake does the work; see README.md.
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)

.PHONY: all build demo test test-all install docs format golden clean

all: build

build:
	@scripts/setup
	@cmake --preset release -DCMAKE_INSTALL_PREFIX="$(PREFIX)" >build.log 2>&1 || { cat build.log; exit 1; }
	@rm -f build.log
	@echo "building; the first time takes about a minute"
	@cmake --build build -j $(JOBS)

demo: build
	@scripts/demo

test:
	@scripts/test

test-all:
	@scripts/test --all

install: build
	@cmake --install build --prefix "$(PREFIX)"

# Rewrites the golden files from what the tests find now; look at the difference before a commit.
golden: build
	@MTF_UPDATE_GOLDEN=1 ctest --test-dir build -j2 -LE mpi >/dev/null; git status --short tests/golden

# Rewrites docs/ops.md from the rows.
docs: build
	@build/tools/ops_doc . >docs/ops.md

format:
	@scripts/check-format --fix

clean:
	rm -rf build build-*
