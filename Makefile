# Rondo: what a developer needs in one word each. `make` alone prints the list.

SWIFT ?= swift
FORMATTED = Sources Tests Examples Benchmarks Fuzz/Fuzzer Fuzz/Package.swift Package.swift

.DEFAULT_GOAL := help
.PHONY: help install demo lab docs build test interface rules sanitize stress-children stress-tasks stress-sockets fuzz bench bench-guard examples format format-check clean

help: ## print this list
	@echo 'Rondo: make …'
	@sed -n 's/^\([a-z-]*\):[^#]*## /    \1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: ## two connections on one run loop, seen in the terminal; ARGS=--json for figures alone
	@Scripts/prepare
	@$(SWIFT) build --product rondo >&2
	@"$$($(SWIFT) build --show-bin-path)/rondo" demo $(ARGS)

lab: ## run all experiments with run loops and write rondo-lab.html
	@Scripts/prepare
	@$(SWIFT) build --product rondo >&2
	@"$$($(SWIFT) build --show-bin-path)/rondo" lab report --output rondo-lab.html

docs: ## build the documentation as a site, .build/site; BASE_PATH=NAME where it is to lie in a folder
	@Scripts/prepare
	@SWIFT='$(SWIFT)' Scripts/docs

build: ## build the library and the command
	@Scripts/prepare
	$(SWIFT) build

PREFIX ?= /usr/local
# With Swift's own libraries inside it starts a third sooner, and runs where no Swift is installed.
RELEASE = -c release --product rondo $(if $(DYNAMIC),,--static-swift-stdlib --scratch-path .build-static)
INSTALLED = $(DESTDIR)$(PREFIX)

install: ## install the command, its completions and its manual page; PREFIX=/usr/local, DESTDIR=, DYNAMIC=1 without Swift's libraries in it
	@Scripts/prepare
	$(SWIFT) build $(RELEASE)
	install -s -D "$$($(SWIFT) build $(RELEASE) --show-bin-path)/rondo" '$(INSTALLED)/bin/rondo'
	install -d '$(INSTALLED)/share/bash-completion/completions' '$(INSTALLED)/share/zsh/site-functions' \
		'$(INSTALLED)/share/fish/vendor_completions.d' '$(INSTALLED)/share/man/man1'
	'$(INSTALLED)/bin/rondo' --generate-completion-script bash > '$(INSTALLED)/share/bash-completion/completions/rondo'
	'$(INSTALLED)/bin/rondo' --generate-completion-script zsh > '$(INSTALLED)/share/zsh/site-functions/_rondo'
	'$(INSTALLED)/bin/rondo' --generate-completion-script fish > '$(INSTALLED)/share/fish/vendor_completions.d/rondo.fish'
	'$(INSTALLED)/bin/rondo' --experimental-dump-help \
		| Scripts/manual "$$(sed -n 's/.*rondoVersion = "\(.*\)".*/\1/p' Sources/Rondo/Version.swift)" \
		> '$(INSTALLED)/share/man/man1/rondo.1'

# A home of their own: the tests use what programs use that set nothing, the shared cookies and the shared cache, and
# these outlive a process.
TEST_HOME = XDG_CACHE_HOME='$(CURDIR)/.build/test-home/cache' XDG_DATA_HOME='$(CURDIR)/.build/test-home/data'

TEST_ENVIRONMENT = SWIFT='$(SWIFT)' $(TEST_HOME)

# One suite after the other, so that what each leaves behind can be counted.
test: ## build and run the tests; FILTER='UC-7' runs those whose name matches
	@Scripts/prepare --tests
	$(SWIFT) build --build-tests
	rm -rf .build/test-home
	$(TEST_ENVIRONMENT) Scripts/failures $(SWIFT) test --skip-build --no-parallel $(if $(FILTER),--filter '$(FILTER)')

interface: ## write the public interface into Documentation/Interface.txt, to which a test compares it
	@Scripts/prepare
	$(SWIFT) build
	@SWIFT='$(SWIFT)' Scripts/interface --modules "$$($(SWIFT) build --show-bin-path)/Modules"

rules: ## print the rules of behaviour that no test carries in its name; SECTIONS='RL TM' fails for those
	@Scripts/rules $(SECTIONS)

sanitize: ## run the core's tests under the thread and the address sanitizer; FILTER='.' runs all tests
	@Scripts/prepare --tests
	$(SWIFT) build --build-tests --sanitize=thread -Xswiftc -DRONDO_THREAD_SANITIZER --scratch-path .build-tsan
	$(SWIFT) test --skip-build --sanitize=thread -Xswiftc -DRONDO_THREAD_SANITIZER --scratch-path .build-tsan \
		--disable-xctest --no-parallel --filter '$(or $(FILTER),RondoCoreTests)'
	$(SWIFT) build --build-tests --sanitize=address --scratch-path .build-asan
	LSAN_OPTIONS=suppressions='$(CURDIR)/Scripts/leaks.supp':print_suppressions=0 $(SWIFT) test --skip-build --sanitize=address \
		--scratch-path .build-asan --disable-xctest --no-parallel --filter '$(or $(FILTER),RondoCoreTests)'

CHILDREN_FAULTS = RONDO_FAULTS=all@$(or $(RATE),0.02) RONDO_FAULT_SEED=$(or $(SEED),1) RONDO_FAULT_ARMED=0 \
	RONDO_FAULT_CALLERS=RondoChildProbe,libev.so

stress-children: ## ten thousand children with random deaths, under both sanitizers, with and without failing calls; COUNT=10000, SEED=1, RATE=0.02
	@Scripts/prepare
	$(SWIFT) build --product RondoChildProbe --sanitize=thread -Xswiftc -DRONDO_THREAD_SANITIZER --scratch-path .build-tsan
	cc -shared -fPIC -O1 -o .build-tsan/faults.so Tests/RondoFaults/faults.c -ldl
	for faults in '' $$PWD/.build-tsan/faults.so; do \
		env $(CHILDREN_FAULTS) LD_PRELOAD=$$faults .build-tsan/debug/RondoChildProbe \
		stress $(or $(COUNT),10000) 4 $(or $(SEED),1) || exit 1; done
	$(SWIFT) build --product RondoChildProbe --sanitize=address --scratch-path .build-asan
	cc -shared -fPIC -O1 -o .build-asan/faults.so Tests/RondoFaults/faults.c -ldl
	for faults in '' $$PWD/.build-asan/faults.so; do \
		env $(CHILDREN_FAULTS) LSAN_OPTIONS=suppressions='$(CURDIR)/Scripts/leaks.supp':print_suppressions=0 ASAN_OPTIONS=verify_asan_link_order=0 \
		LD_PRELOAD=$$faults .build-asan/debug/RondoChildProbe \
		stress $(or $(COUNT),10000) 4 $(or $(SEED),1) || exit 1; done

stress-tasks: ## ten thousand tasks of one session, resumed, suspended and cancelled at random, under the thread sanitizer; COUNT=10000, SEED=1
	@Scripts/prepare
	$(SWIFT) build --product RondoTaskProbe --sanitize=thread -Xswiftc -DRONDO_THREAD_SANITIZER --scratch-path .build-tsan
	.build-tsan/debug/RondoTaskProbe stress $(or $(COUNT),10000) 4 $(or $(SEED),1)

stress-sockets: ## sockets, ports, descriptors and streams of handles, used and invalidated at random by several threads, under both sanitizers; COUNT=5000, SEED=1
	@Scripts/prepare
	$(SWIFT) build --product RondoSocketProbe --sanitize=thread -Xswiftc -DRONDO_THREAD_SANITIZER --scratch-path .build-tsan
	.build-tsan/debug/RondoSocketProbe stress $(or $(COUNT),5000) 4 $(or $(SEED),1)
	$(SWIFT) build --product RondoSocketProbe --sanitize=address --scratch-path .build-asan
	LSAN_OPTIONS=suppressions='$(CURDIR)/Scripts/leaks.supp':print_suppressions=0 \
		.build-asan/debug/RondoSocketProbe stress $(or $(COUNT),5000) 4 $(or $(SEED),1)

fuzz: ## feed a parser what libFuzzer makes, for SECONDS=60; SUBJECT=response, multipart, content, cookies, challenges, cache, redirects, parameters, proxies, trace, tls, stored, websocket or port
	@Scripts/prepare
	$(SWIFT) build --package-path Fuzz -c release
	@mkdir -p Fuzz/.build/corpus-$(or $(SUBJECT),response)
	RONDO_FUZZ=$(or $(SUBJECT),response) Fuzz/.build/release/Fuzzer -dict=Fuzz/dictionary -timeout=10 \
		-max_total_time=$(or $(SECONDS),60) -artifact_prefix=Fuzz/.build/ Fuzz/.build/corpus-$(or $(SUBJECT),response)

bench: ## Rondo and its peers side by side; W='W1 W5 curves' for some of it, REPS=3, PEERS=few without NIO
	@Scripts/prepare --bench
	@Benchmarks/run $(W) --reps $(or $(REPS),5) --peers $(or $(PEERS),all)

bench-guard: ## instructions and allocations an act, against Benchmarks/guard.json; ACCEPT=1 records them
	@Scripts/prepare --guard
	@Benchmarks/guard $(if $(ACCEPT),--accept)

examples: ## build the programs of Examples/
	@Scripts/prepare
	$(SWIFT) build --package-path Examples

format: ## bring the sources into the common form
	$(SWIFT) format format --in-place --parallel --recursive $(FORMATTED)

format-check: ## fail if a source is not in the common form
	$(SWIFT) format lint --strict --parallel --recursive $(FORMATTED)

clean: ## remove what was built
	rm -rf .build .build-tsan .build-asan .build-static Examples/.build Fuzz/.build Benchmarks/.build
