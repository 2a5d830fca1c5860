# sluice - build, test, measure, install.
#
#	make            the binary ./sluice; WERROR=1: warnings are errors
#	make demo       install what is missing, build, and show a message on its way
#	make check      install what is missing, build, and run every test; ONLY=spool, ONLY=spool/test_record,
#			ONLY=test_flow.py, ONLY=test_flow.py::test_name: these and no others
#	make check-long what looks longer: lint, sanitizers, fuzzers, long histories
#	make check-on trixie (or bookworm)   make demo and make check, in a bare Debian that is made for it
#	make steady     every test many times, also beside compilers, or with threads that stand still: RUNS=30, BESIDE=4, STALLS=7
#	make mutations  break the code on purpose, a hundred times, and see that a test turns red each time; ONLY=fence
#	make lint       floors, format, warnings of a second compiler
#	make bench      speed, side by side with others in one run
#	make fuzz       the parsers, under libFuzzer, for a minute each
#	make install    DESTDIR= PREFIX=/usr/local SYSCONFDIR=/etc; LINKS=force: sendmail, mailq and newaliases too
#			where another program has these names
#	make deb        a Debian package, in build/deb
#	make image      the image of a container, in build/image.tar; no daemon is asked
#	make check-deb  install, use, upgrade and purge the package in a bare Debian
#	make check-arm64
#			the unit tests, built for arm64, under an emulator; a queue written on one kind of machine and read on the other
#
#	make generated  write etc/sluice.conf and etc/sluice.conf.5 anew from base/conf_table.h
#
# SAN=address or SAN=thread builds with that sanitizer into a tree of its own, build/SAN.
# CLUSTER=no builds without cluster/ and replica/, so without libhiredis and libnats, into a tree that ends in -alone, and is for
# `make install CLUSTER=no` too.
# ARCH=arm64 builds for that kind of machine into build/arm64, once tests/arm64/root has laid out its libraries.
# CFLAGS, CPPFLAGS and LDFLAGS are whoever builds a package's; they come on top of what is needed.

FOLDERS = base spool replica stages dkim dns sts tlsrpt smtpd qmgr smtpc events cluster sim cmd
PREFIX = /usr/local
SYSCONFDIR = /etc

CORES := $(shell nproc)

SAN =
WERROR =
ARCH =
CLUSTER = yes
ALONE = $(if $(filter no,$(CLUSTER)),-alone)
# Objects, and what is linked of them: with and without the cluster they are the same objects.
O = build/$(or $(ARCH),$(SAN),plain)
B = $(O)$(ALONE)
BIN = $(if $(ARCH)$(SAN)$(ALONE),$(B)/sluice,sluice)
PKG_CONFIG = pkg-config

ifeq ($(ARCH),arm64)
ROOT = $(CURDIR)/build/arm64.root
override CC := $(filter ccache,$(CC)) aarch64-linux-gnu-gcc --sysroot=$(ROOT)
PKG_CONFIG = PKG_CONFIG_SYSROOT_DIR=$(ROOT) PKG_CONFIG_LIBDIR=$(ROOT)/usr/lib/aarch64-linux-gnu/pkgconfig pkg-config
endif

PACKAGES = $(if $(ALONE),,libnats hiredis) libcdb openssl libcares ldns libgsasl libcurl jansson libidn2 libmicrohttpd libconfuse libisal libsystemd libseccomp
WARN = -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes $(if $(WERROR),-Werror)
SANFLAGS_address = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SANFLAGS_thread = -fsanitize=thread -fno-omit-frame-pointer
# Of a null pointer and nothing added to it only clang thinks ill.
SANFLAGS_fuzz = -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=pointer-overflow -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SANFLAGS = $(SANFLAGS_$(SAN))
# With a sanitizer most of the time goes into compiling: less is optimised, lines are kept.
CFLAGS ?= $(if $(SAN),-O1 -g1,-O2 -g)
# What makes a fault of ours harder to use. Sanitizers have their own; FORTIFY_SOURCE needs an optimiser.
MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null)
BRANCHES = $(if $(filter x86_64%,$(MACHINE)),-fcf-protection)$(if $(filter aarch64%,$(MACHINE)),-mbranch-protection=standard)
OPTIMISED = $(filter -O -O1 -O2 -O3 -Os -Ofast,$(CFLAGS))
FORTIFY = $(if $(findstring _FORTIFY_SOURCE,$(CFLAGS) $(CPPFLAGS)),,$(if $(OPTIMISED),-D_FORTIFY_SOURCE=3))
HARDEN = $(if $(SAN),,$(FORTIFY) -fstack-protector-strong -fstack-clash-protection $(BRANCHES)) -fPIE
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now,-z,noexecstack $(LDFLAGS)
# Unit tests are many: little is optimised, and they are linked by the quicker linker, where there is one, to the libraries that they need.
QUICK = -O1 -g1
QUICK_LD := -Wl,--as-needed $(if $(ARCH),,$(if $(shell command -v ld.gold),-fuse-ld=gold))
# Asked once, and only when something is compiled: the packages may be missing until `make deps`.
PKG_CFLAGS = $(eval PKG_CFLAGS := $$(shell $(PKG_CONFIG) --cflags $(PACKAGES)))$(PKG_CFLAGS)
PKG_LIBRARIES = $(eval PKG_LIBRARIES := $$(shell $(PKG_CONFIG) --libs $(PACKAGES)))$(PKG_LIBRARIES)
PKG_LIBS = $(PKG_LIBRARIES) -lunbound -lev -lcrypt -lpthread -lm
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. $(WARN) $(HARDEN) $(CPPFLAGS) $(CFLAGS) $(SANFLAGS) $(PKG_CFLAGS)

# What needs other machines, and what stands for it where there is none: that has the same functions, and no more.
STANDS_IN = base/conf_absent.c cluster/cluster_absent.c replica/replica_absent.c sim/nodes_absent.c
STAYS = cluster/node_text.c $(patsubst %,replica/%.c,format life membership node_view)
GOES = base/conf_cluster.c base/conf_nats.c sim/model_redis.c sim/redis_keys.c sim/redis_server.c sim/scenario_nodes.c \
	$(filter-out $(STANDS_IN) $(STAYS),$(wildcard cluster/*.c replica/*.c))

# A folder may have rooms.
sources = $(filter-out $(if $(ALONE),$(GOES),$(STANDS_IN)),$(wildcard $(1)/*.c $(1)/*/*.c))
SRC = $(foreach f,$(FOLDERS),$(call sources,$(f)))
LIBS = $(foreach f,$(FOLDERS),$(B)/lib$(f).a)
# Static libraries in the order of the floors, highest first, for the linker.
LINK = $(B)/libsim.a $(B)/libsmtpd.a $(B)/libqmgr.a $(B)/libsmtpc.a $(B)/libevents.a $(B)/libcluster.a $(B)/libsts.a $(B)/libtlsrpt.a $(B)/libdns.a $(B)/libdkim.a $(B)/libstages.a $(B)/libreplica.a $(B)/libspool.a $(B)/libbase.a

all: $(BIN)

$(BIN): $(B)/libcmd.a $(LINK)
	$(CC) $(CFLAGS) $(SANFLAGS) $(ALL_LDFLAGS) -o $@ -Wl,--whole-archive $(B)/libcmd.a -Wl,--no-whole-archive $(LINK) $(PKG_LIBS)

define folder
$(B)/lib$(1).a: $(patsubst %.c,$(O)/%.o,$(call sources,$(1)))
	@mkdir -p $$(@D)
	@rm -f $$@
	@ar rcs $$@ $$^
endef
$(foreach f,$(FOLDERS),$(eval $(call folder,$(f))))

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The status page's files lie in the program.
$(O)/cmd/http/page_files.o: $(wildcard cmd/http/page/*)

# Unit tests: tests/unit/FOLDER/test_X.c becomes build/plain/tests/unit/FOLDER/test_X.
UNIT_OF_NODES = $(wildcard $(patsubst %,tests/unit/%/test_*.c,cluster replica histories)) tests/unit/sim/test_nodes.c tests/unit/sim/test_fair_nodes.c tests/unit/qmgr/test_pooling.c tests/unit/cmd/test_late_notes.c
UNIT = $(patsubst %.c,$(B)/%,$(filter-out $(if $(ALONE),$(UNIT_OF_NODES)),$(wildcard tests/unit/*/test_*.c)))

unit: $(UNIT)

# A test of cmd/ includes what it tests: main() is in that folder's library.
$(B)/tests/unit/%: tests/unit/%.c $(LINK)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(QUICK) -Wno-missing-prototypes $(ALL_LDFLAGS) $(QUICK_LD) -MMD -MP -o $@ $< $(filter %.o,$^) $(LINK) $(PKG_LIBS) $(EDGES) -lcmocka

# The spool on a real disk, with its real thread.
HARNESS = $(O)/tests/unit/spool/harness.o
$(patsubst %,$(B)/tests/unit/spool/test_%,adoption check compact failure format_1 history listing older_copy operator pair parked quarantine record recover replace replicate runner sample scheduled shape small_disk spare spent spool taken): $(HARNESS)
$(B)/tests/unit/replica/test_adopted_log $(B)/tests/unit/replica/test_transfer: $(HARNESS)

# The spool on a disk in memory, driven by one thread: its edges are replaced.
MEMDISK = $(patsubst %,$(O)/tests/unit/spool/%.o,blocks memdisk memdisk_cut memdisk_names memdisk_node edges promise promises world world_acts)
ON_MEMDISK = $(patsubst %,$(B)/tests/unit/spool/%,test_order test_power_cut test_disk_faults test_disk_lessons test_weeks) $(B)/tests/unit/replica/test_power_cut
$(ON_MEMDISK): $(MEMDISK)
WRAP = -Wl,--wrap=pthread_create,--wrap=pthread_join,--wrap=sem_wait,--wrap=usleep
$(ON_MEMDISK): EDGES = $(WRAP)

# Several relays, NATS and their disks in one program: its edges are replaced, threads take turns.
HISTORY = $(patsubst %,$(O)/tests/unit/histories/%.o,fibers history jetstream ledger machine nats_client seams) \
	$(patsubst %,$(O)/tests/unit/spool/%.o,blocks memdisk memdisk_cut memdisk_names memdisk_node)
HISTORY_WRAP = -Wl,--wrap=close,--wrap=access,--wrap=unlinkat,--wrap=usleep,--wrap=sem_wait,--wrap=sem_timedwait,--wrap=pthread_join
$(B)/tests/unit/histories/test_histories: $(HISTORY)
$(B)/tests/unit/histories/test_histories: EDGES = $(HISTORY_WRAP)

# Fuzzers: tests/fuzz/fuzz_X.c becomes build/fuzz/fuzz_X, with libFuzzer and a tree of objects of its own;
# and build/plain/tests/fuzz/fuzz_X, which plays the corpus and variations of it (tests/fuzz/drive.c).
FUZZERS = $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ = $(addprefix build/fuzz/,$(FUZZERS))
FUZZ_SECONDS = 60

fuzzers: $(addprefix $(B)/tests/fuzz/,$(FUZZERS))

# What is found is kept in build/fuzz/TARGET.corpus, and what fails in the folder where make runs.
fuzz:
	@etc/install-deps build tests lint
	$(MAKE) CC=clang SAN=fuzz WARN=-Wall $(FUZZ)
	for f in $(FUZZERS); do mkdir -p build/fuzz/$$f.corpus; \
		build/fuzz/$$f -max_total_time=$(FUZZ_SECONDS) build/fuzz/$$f.corpus tests/fuzz/corpus/$${f#fuzz_} || exit 1; done

build/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(B)/libcmd.a $(LINK)
	$(CC) $(filter-out -Wmissing-prototypes,$(ALL_CFLAGS)) -fsanitize=fuzzer $(ALL_LDFLAGS) -MMD -MP -o $@ $< $(filter %.o,$^) $(B)/libcmd.a $(LINK) $(PKG_LIBS) $(EDGES)

build/fuzz/fuzz_spool_recover $(B)/tests/fuzz/fuzz_spool_recover: $(MEMDISK)
build/fuzz/fuzz_spool_recover $(B)/tests/fuzz/fuzz_spool_recover: EDGES = $(WRAP)
build/fuzz/fuzz_http $(B)/tests/fuzz/fuzz_http: EDGES = -Wl,--wrap=qmgr_loop,--wrap=spool_loop,--wrap=spool_accepting

$(B)/tests/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(O)/tests/fuzz/drive.o $(B)/libcmd.a $(LINK)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(QUICK_LD) -MMD -MP -o $@ $< $(filter %.o,$^) $(B)/libcmd.a $(LINK) $(PKG_LIBS) $(EDGES)

# The program with orders of a test's: to try its sandbox, to let an allocation fail, to set its clock. Nothing of them is
# in the one that is installed.
WITH_ORDERS = $(patsubst %,$(B)/tests/system/%,breakout failing jumping)

$(WITH_ORDERS): $(B)/tests/system/%: tests/system/%.c $(B)/libcmd.a $(LINK)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -Wno-missing-prototypes $(ALL_LDFLAGS) -MMD -MP -o $@ $< -Wl,--whole-archive $(B)/libcmd.a -Wl,--no-whole-archive $(LINK) $(PKG_LIBS) -Wl,--wrap=requests_handle

# What fills a queue for the measurements.
GENERATOR = build/plain/tests/bench/generate_queue

$(GENERATOR): tests/bench/generate_queue.c $(B)/libspool.a $(B)/libbase.a
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -MMD -MP -o $@ $< $(B)/libspool.a $(B)/libbase.a $(PKG_LIBS)

# A long way between two ports.
DELAY_LINE = build/plain/tests/bench/delay_line

# A filter that does nothing.
NULL_MILTER = build/plain/tests/bench/null_milter

# What is made from base/conf_table.h and kept in the tree; lint sees that it is up to date.
generated: $(BIN)
	./sluice config --sample > etc/sluice.conf
	./sluice config --manual > build/settings.mdoc
	sed -e '/^@SETTINGS@$$/{r build/settings.mdoc' -e 'd}' etc/sluice.conf.5.in > etc/sluice.conf.5

deps:
	@etc/install-deps

# What installing and building say would hide what the demonstration does.
demo:
	@mkdir -p build
	@echo "demo: installs what is missing, and builds; what that says is in build/demo.build"
	@{ etc/install-deps build run && $(MAKE) --no-print-directory -j$(CORES); } >build/demo.build 2>&1 || \
		{ tail -n 40 build/demo.build >&2; exit 1; }
	@tests/demo

lint:
	@etc/install-deps build lint
	@$(MAKE) --no-print-directory -j$(CORES) WERROR=1
	@tests/lint

check: deps
	@tests/run $(ONLY)

check-long:
	@etc/install-deps build run tests lint
	@$(MAKE) --no-print-directory lint
	@tests/run --long $(ONLY)

steady: deps
	@tests/steady $(RUNS) $(if $(BESIDE),--beside $(BESIDE)) $(if $(STALLS),--stalls $(STALLS)) $(ONLY)

mutations: deps
	@tests/mutations $(ONLY)

# make check-on trixie: the second word is no target of its own.
SUITE = $(filter-out check-on,$(MAKECMDGOALS))
check-on:
	@tests/on $(SUITE)
ifeq ($(firstword $(MAKECMDGOALS)),check-on)
$(SUITE):
	@:
.PHONY: $(SUITE)
endif

deb:
	@etc/install-deps build run tests package
	@etc/make-deb

check-deb: deb
	@/usr/bin/python3 -m pytest -q -p no:cacheprovider tests/package

check-arm64:
	@etc/install-deps build run tests arm64
	@tests/peers
	@tests/arm64/root
	@tests/arm64/run

image:
	@etc/install-deps build run
	@$(MAKE) --no-print-directory
	@etc/make-image build/image.tar

# Measurements of one part: tests/bench/bench_X.c becomes build/plain/tests/bench/bench_X.
BENCH = $(patsubst %.c,$(B)/%,$(wildcard tests/bench/bench_*.c))

$(B)/tests/bench/%: tests/bench/%.c $(LINK)
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -MMD -MP -o $@ $< $(LINK) $(PKG_LIBS)

bench: deps
	@tests/peers
	@tests/bench/run

measured: all $(BENCH) $(GENERATOR) $(DELAY_LINE) $(NULL_MILTER)

# Files that hold the place of the program, or of the configuration, are made to hold ours.
PLACES = sed -e 's|/usr/local/sbin|$(PREFIX)/sbin|g' -e 's|/etc/sluice|$(SYSCONFDIR)/sluice|g'
UNITS = $(DESTDIR)$(or $(UNITDIR),/lib/systemd/system)
SHARE = $(DESTDIR)$(PREFIX)/share

install: $(BIN)
	install -D -m 755 $(BIN) $(DESTDIR)$(PREFIX)/sbin/sluice.new
	mv -f $(DESTDIR)$(PREFIX)/sbin/sluice.new $(DESTDIR)$(PREFIX)/sbin/sluice
	install -D -m 644 etc/sluice.8 $(SHARE)/man/man8/sluice.8
	install -D -m 644 etc/sluice.conf.5 $(SHARE)/man/man5/sluice.conf.5
	install -D -m 644 etc/sluice-sim.5 $(SHARE)/man/man5/sluice-sim.5
	install -D -m 644 etc/sluice-postfix.7 $(SHARE)/man/man7/sluice-postfix.7
	install -D -m 644 etc/sluice-congestion.7 $(SHARE)/man/man7/sluice-congestion.7
	install -D -m 644 etc/completion/sluice.bash $(SHARE)/bash-completion/completions/sluice
	install -D -m 644 etc/completion/_sluice $(SHARE)/zsh/site-functions/_sluice
	install -D -m 644 etc/fail2ban/sluice.conf $(SHARE)/sluice/fail2ban.conf
	install -D -m 644 etc/fail2ban/sluice-auth.conf $(SHARE)/sluice/fail2ban-auth.conf
	install -D -m 644 etc/grafana/sluice.json $(SHARE)/sluice/grafana/sluice.json
	install -D -m 644 etc/prometheus/sluice.rules.yml $(SHARE)/sluice/prometheus/sluice.rules.yml
	install -d $(UNITS) $(DESTDIR)/usr/lib/sysusers.d $(DESTDIR)/usr/lib/tmpfiles.d $(DESTDIR)$(SYSCONFDIR)/logrotate.d
	$(PLACES) etc/sluice.service > $(UNITS)/sluice.service
	install -m 644 etc/sluice.socket $(UNITS)/sluice.socket
	install -m 644 etc/sluice.sysusers $(DESTDIR)/usr/lib/sysusers.d/sluice.conf
	install -m 644 etc/sluice.tmpfiles $(DESTDIR)/usr/lib/tmpfiles.d/sluice.conf
	test -e $(DESTDIR)$(SYSCONFDIR)/logrotate.d/sluice || \
		$(PLACES) etc/sluice.logrotate > $(DESTDIR)$(SYSCONFDIR)/logrotate.d/sluice
	install -d $(DESTDIR)$(SYSCONFDIR)/sluice
	test -e $(DESTDIR)$(SYSCONFDIR)/sluice/sluice.conf || \
		install -m 644 etc/sluice.conf $(DESTDIR)$(SYSCONFDIR)/sluice/sluice.conf
	test -e $(DESTDIR)$(SYSCONFDIR)/sluice/providers.conf || \
		install -m 644 etc/providers.conf $(DESTDIR)$(SYSCONFDIR)/sluice/providers.conf
	etc/install-links "$(DESTDIR)" "$(PREFIX)" "$(LINKS)"

-include $(patsubst %.c,$(O)/%.d,$(SRC)) $(addsuffix .d,$(UNIT) $(FUZZ) $(addprefix $(B)/tests/fuzz/,$(FUZZERS)) $(BENCH) $(GENERATOR) $(DELAY_LINE) $(WITH_ORDERS)) $(MEMDISK:.o=.d) $(HISTORY:.o=.d) $(HARNESS:.o=.d)

clean:
	rm -rf build/pycache build/plain build/address build/thread build/fuzz build/arm64 build/*-alone sluice

.PHONY: all unit clean fuzz fuzzers generated deps demo lint check check-long check-on mutations steady bench measured install deb check-deb check-arm64 image
.SECONDARY:
