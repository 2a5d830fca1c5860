/* SPDX-License-Identifier: ISC */
#include "tests/unit/histories/history.h"

#include "base/clock.h"
#include "base/ident.h"
#include "base/mem.h"
#include "replica/format.h"
#include "spool/spool.h"
#include "spool/repair.h"
#include "spool/spool_look.h"
#include "tests/unit/histories/fibers.h"
#include "tests/unit/histories/jetstream.h"
#include "tests/unit/histories/machine.h"
#include "tests/unit/histories/nats_client.h"
#include "tests/unit/histories/seams.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	ADOPT_AFTER_MS = 4000,
	REPLICATE_TIMEOUT_MS = 1000,
	SLACK_US = 20000,
	LONG_SLACK_US = 150000,
	MEND_US = 15000000,
	ROWS_US = 10000000,
	FIRM_US = 4000000,
	AFTER_TROUBLE_US = 35000000, /* what was not acknowledged is sent again by then */
	BEAT_US = 2500000,
	GRACE_US = 60000000,
	REST_US = 240000000,
	LOOK_US = 2000000,
	OPERATOR_US = 30000000,
	LOOK_FOR_HALF_US = 20000,
	SENDS_US = 1500000,
	FULL_BYTES = 1000,
	STARTS = 6,
	BUSY = 40,
	FEW = 25,  /* per cent of histories in which a fault is about, */
	SOME = 70, /* and where only some may be */
};

enum fault {
	FAULT_KILL,
	FAULT_DIE,  /* at some call to the disk */
	FAULT_DOOM, /* in the midst of an adoption */
	FAULT_POWER,
	FAULT_PAUSE,
	FAULT_BACKUP,
	FAULT_EMPTY,
	FAULT_GONE,
	FAULT_TAIL,
	FAULT_BUCKET,
	FAULT_FULL,
	FAULT_CUT,
	FAULT_AWAY,
	FAULT_SLOW,
	FAULT_CLOCK,
	FAULT_ORDER,
	FAULT_DRAIN,
	FAULT_RETIRE,
	FAULT_REPAIR,
	FAULT_LIST,
	FAULT_UNCHECKED,
	FAULT_ROOM,
	FAULT_READ,
	FAULT_SYNC, /* writes, too */
	FAULT_HOLD,
	FAULT_ELECT,
	FAULTS,
	UNEVEN = FAULTS, /* not a fault: acts are more or less frequent than in other histories */
	FAULT_NONE = -1
};

static const char *const fault_names[FAULTS] = {
	"kill",	  "die",  "doom",      "power", "pause", "backup", "empty", "gone",  "tail",
	"bucket", "full", "cut",       "away",	"slow",	 "clock",  "order", "drain", "retire",
	"repair", "list", "unchecked", "room",	"read",	 "sync",   "hold",  "elect"};

bool history_loud;

static struct {
	struct chance chance;
	uint64_t salt;			  /* of the act that is played */
	int64_t room;			  /* of JetStream */
	bool limited;			  /* its streams take nothing */
	unsigned limits;		  /* how often that began */
	unsigned unread;		  /* reads that were to fail */
	unsigned backup_limits[MACHINES]; /* ... when the backup was made */
	int64_t tail_us
		[MACHINES]; /* when its stream fell short, unless that was made up since; 0: no */
	int64_t bucket_us; /* since when it has fallen short, and nobody has had time to look; 0: it has not */
	bool stream_lost; /* some stream lacks who has it, and the bucket has not synced that since */
	bool both_lost;	  /* the bucket and a stream have, at one time */
	bool restored[MACHINES]; /* and it has no epoch since: its folder is what it was once */
	bool resting;
	bool harmed;			      /* a disk may be */
	struct replica_epoch noted[MACHINES]; /* a row that was there */
	uint32_t listed[LEDGER_MESSAGES];     /* machines that have it, at the last look */
} now;

const char *history_fault_name(int bit)
{
	return bit < FAULTS ? fault_names[bit] : NULL;
}

uint32_t history_fault(const char *name)
{
	for (int i = 0; i < FAULTS; i++)
		if (strcmp(fault_names[i], name) == 0)
			return UINT32_C(1) << i;
	return strcmp(name, "uneven") == 0 ? UINT32_C(1) << UNEVEN : 0;
}

static struct machine *some(void)
{
	return &machine[now.salt % (uint64_t)machines];
}

static uint32_t below(uint32_t n)
{
	return chance_below(&now.chance, n);
}

/* More was lost than anybody promises to survive: what is not done is owed no more, what is may come again. */
static void excuse(void)
{
	for (int i = 0; i < ledger.n; i++) {
		struct sheet *s = &ledger.sheet[i];
		bool unanswered = !s->promised && !s->refused; /* the 250 may be on its way */
		s->excused |= !sheet_done(s) || unanswered || s->deleting > 0;
		s->apart |= !s->promised;
		s->firm = false;
		for (int k = 0; k < LEDGER_RCPT; k++)
			s->rcpt[k].doubted = true;
	}
}

/* Both places in which it stands who has a queue have lost some. */
static void excuse_both(void)
{
	if (!now.bucket_us || !now.stream_lost)
		return;
	now.both_lost = true;
	excuse();
	for (int i = 0; i < ledger.n; i++)
		ledger.sheet[i].untold = true;
}

static void pass(int64_t us, int64_t slack_us)
{
	fibers.slack_us = slack_us;
	fibers_run(fibers.now_us + us);
}

/* It can make up what its stream has lost. One whose epoch is another's by now, or whose disk was lost, has it no more. */
static bool has_its_queue(int of)
{
	return machine[of].state == MACHINE_SERVES && !fibers_paused(of) &&
	       nats_client_reaches(of) && machine_fence_open(&machine[of]);
}

/* It sends and finishes what nobody else hears of. */
static bool goes_on(int of)
{
	return machine[of].state == MACHINE_SERVES && machine_fence_open(&machine[of]);
}

static bool is_mended(int of)
{
	return fibers.now_us - now.tail_us[of] > MEND_US && machine_whole(&machine[of]);
}

static void look_at_tails(void)
{
	for (int i = 0; i < machines; i++) {
		if (!now.tail_us[i])
			continue;
		bool there = has_its_queue(i);
		if (!there)
			excuse();
		if (there ? is_mended(i) : !goes_on(i))
			now.tail_us[i] = 0;
	}
}

/* What its stream has lost it can't make up from another disk, however soon it is back. */
static void change_disk(struct machine *m, struct memdisk *disk)
{
	machine_kill(m);
	look_at_tails();
	machine_disk(m, disk);
	m->wanted = true;
}

/* Acts. */

static void act_store(void)
{
	for (uint64_t i = 0; i <= now.salt / 16 % 4; i++)
		machine_store(some(), chance_next(&now.chance));
}

static void act_work(void)
{
	for (int i = 0; i < 3; i++)
		machine_work(&machine[below((uint32_t)machines)]);
}

static void act_pass(void)
{
	pass(100000 + below(1500000), SLACK_US);
}

static void act_long(void)
{
	pass(3000000 + below(9000000), LONG_SLACK_US);
}

static void act_start(void)
{
	struct machine *m = some();
	if (!m->gone)
		machine_start(m);
}

static void act_stop(void)
{
	machine_stop(some());
}

static void act_flush(void)
{
	machine_ask(some(), now.salt % 3 ? SPOOL_FLUSH : SPOOL_RESUME, 0);
}

static void act_hold(void)
{
	static const int order[] = {SPOOL_SUSPEND, SPOOL_SUSPEND, SPOOL_RESUME, SPOOL_REQUEUE};
	bool one = ledger.n > 0 && below(4) > 0;
	uint64_t id = one ? ledger.sheet[below((uint32_t)ledger.n)].id : 0;
	machine_ask(some(), order[now.salt / 16 % 4], id);
}

static void act_delete(void)
{
	if (ledger.n > 0)
		machine_ask(some(), SPOOL_DELETE, ledger.sheet[below((uint32_t)ledger.n)].id);
}

static void act_kill(void)
{
	struct machine *m = some();
	m->wanted = now.salt / 16 % 2;
	machine_kill(m);
}

static void act_die(void)
{
	some()->kill_in = 1 + (int)below(below(2) ? 30 : 400);
}

/* In the midst of an adoption, from its first step to what follows the last. */
static void act_doom(void)
{
	struct machine *m = some();
	m->doomed_at = now.salt / 16 % 3 == 0 ? "adopting" : "adopted";
	m->wanted = true;
}

/* Likewise, and nobody starts it again. */
static void act_fall(void)
{
	struct machine *m = some();
	m->doomed_at = "adopting";
	m->wanted = false;
}

/* Likewise, before anything of what it has adopted then is released. */
static void act_drop(void)
{
	struct machine *m = some();
	m->doomed_at = "adopted";
	m->doomed_in = 1;
	m->wanted = false;
}

static void act_power(void)
{
	struct machine *m = some();
	m->wanted = now.salt / 16 % 2;
	machine_power_cut(m);
}

static void act_pause(void)
{
	fibers_pause(some()->number, true);
}

/* Nobody ends while he does not run: the time for that begins anew. */
static void act_resume(void)
{
	for (int i = 0; i < machines; i++) {
		if (fibers_paused(i))
			machine[i].since_us = fibers.now_us;
		fibers_pause(i, false);
	}
}

/* One of the same moment as what is sent next is not told apart, and the manual says so. */
static void act_backup(void)
{
	struct machine *m = some();
	pass(BEAT_US, SLACK_US);
	memdisk_free(&m->backup);
	m->backup = memdisk_copy(m->disk);
	now.backup_limits[m->number] = now.limited ? UINT_MAX : now.limits;
	pass(BEAT_US, SLACK_US);
}

static bool row_of(const char *node, struct replica_epoch *e)
{
	char token[REPLICA_TOKEN];
	const struct jetstream_stream *s = jetstream_find("KV_" REPLICA_BUCKET);
	char *subject = mem_printf("$KV." REPLICA_BUCKET ".%s", replica_token(node, token));
	const struct jetstream_message *m = s ? jetstream_last(s, subject) : NULL;
	free(subject);
	return m && replica_epoch_get(m->blob->bytes, m->blob->len, e);
}

/* And nobody has taken that since, which it has not seen yet. */
static bool has_epoch(struct machine *m)
{
	struct replica_epoch e;
	return m->state == MACHINE_SERVES && machine_fence_open(m) && row_of(m->name, &e) &&
	       e.state == REPLICA_UP;
}

/* Where no other node has an epoch, nobody may take what this one leaves. */
static bool may_leave(const struct machine *m)
{
	for (int i = 0; i < machines; i++)
		if (&machine[i] != m && !machine[i].gone && !machine[i].full && !fibers_paused(i) &&
		    has_epoch(&machine[i]))
			return !m->gone;
	return false;
}

/* What was sent while its stream could not be told is not told by the stream. */
static void act_restore(void)
{
	struct machine *m = some();
	bool told = now.backup_limits[m->number] == now.limits;
	if (!m->backup || !told || !may_leave(m))
		return;
	change_disk(m, memdisk_copy(m->backup));
	now.restored[m->number] = true;
	if (now.salt / 16 % 2)
		machine_start(m);
}

static void act_empty(void)
{
	struct machine *m = some();
	if (!may_leave(m))
		return;
	change_disk(m, NULL);
}

static int there(void)
{
	int n = 0;
	for (int i = 0; i < machines; i++)
		n += !machine[i].gone && !machine[i].full;
	return n;
}

static void act_gone(void)
{
	struct machine *m = some();
	if (!may_leave(m))
		return;
	m->gone = true;
	m->wanted = false;
	machine_kill(m);
}

static void note_tails(void)
{
	for (int i = 0; i < machines; i++) {
		char *stream = replica_stream(machine[i].name);
		if (jetstream_lost(stream))
			now.tail_us[i] = fibers.now_us;
		free(stream);
	}
}

static void act_tail(void)
{
	nats_client_servers(false);
	now.stream_lost |= jetstream_crash(&now.chance, "sluice-");
	note_tails();
	excuse_both();
	pass(200000 + below(1000000), SLACK_US);
	nats_client_servers(true);
}

static void act_bucket(void)
{
	nats_client_servers(false);
	if (jetstream_crash(&now.chance, "KV_"))
		now.bucket_us = fibers.now_us;
	excuse_both();
	now.stream_lost = false;
	pass(200000 + below(1000000), SLACK_US);
	nats_client_servers(true);
}

static void act_sync(void)
{
	jetstream_sync();
	now.stream_lost = false;
}

static void act_full(void)
{
	now.room = 0; /* what is published from now on may come to nothing */
	jetstream_room(jetstream_bytes() + below(3000));
}

static void act_limit(void)
{
	now.limited = true;
	now.limits++;
	jetstream_limit(below(3000));
}

static void act_unfull(void)
{
	now.room = INT64_MAX;
	now.limited = false;
	jetstream_room(INT64_MAX);
	jetstream_limit(INT64_MAX);
}

static void act_cut(void)
{
	nats_client_cut(some()->number, true);
}

static void act_uncut(void)
{
	for (int i = 0; i < machines; i++)
		nats_client_cut(i, false);
}

static void act_away(void)
{
	if (now.salt / 16 % 2)
		nats_client_servers(false);
	else
		nats_client_leader(false);
}

static void act_back(void)
{
	nats_client_servers(true);
	nats_client_leader(true);
}

static void act_elect(void)
{
	nats_client_elections(true);
}

static void act_settle(void)
{
	nats_client_elections(false);
}

static void act_slow(void)
{
	nats_client_slow(now.salt / 16 % 2 ? 900000 : 200000);
}

static void act_fast(void)
{
	nats_client_slow(0);
}

static void act_clock(void)
{
	static const int64_t jump_ms[] = {3600000, -3600000, 30000, -30000, 86400000};
	seams_wall_jump(some()->number, jump_ms[below(5)]);
}

/* Not in doubt of its own folder, of which an order says that it holds, whatever else there is. */
static void act_adopt(void)
{
	struct machine *m = some();
	const struct machine *of = &machine[below((uint32_t)machines)];
	if (m != of || machine_fence_open(m))
		machine_order(m, NODE_ADOPT, of->name);
}

static void act_drain(void)
{
	machine_drain(some());
}

static void act_retire(void)
{
	machine_order(some(), NODE_RETIRE, machine[below((uint32_t)machines)].name);
}

/* Nobody survives this: it shows that a loss is seen. */
static void act_vanish(void)
{
	for (int i = 0; i < machines; i++) {
		machine_kill(&machine[i]);
		machine_disk(&machine[i], NULL);
		machine_start(&machine[i]);
	}
	jetstream_begin();
}

static void write_row(const char *node, const struct replica_epoch *e)
{
	char token[REPLICA_TOKEN];
	struct buf text = {0};
	uint64_t sequence;
	char *subject = mem_printf("$KV." REPLICA_BUCKET ".%s", replica_token(node, token));
	replica_epoch_put(&text, e);
	jetstream_publish(jetstream_blob(subject, buf_data(&text), buf_len(&text)), NULL,
			  &sequence);
	buf_fini(&text);
	free(subject);
}

static const struct machine *one_before(const struct machine *m)
{
	return &machine[(m->number + machines - 1) % machines];
}

/* As it was before its queue was taken. */
static void go_back(struct replica_epoch *e, const struct machine *m)
{
	e->state = REPLICA_UP;
	e->epoch--;
	memset(e->by, 0, sizeof e->by);
	memcpy(e->by, m->name, strlen(m->name));
}

static void lose_state(const struct machine *m, enum replica_state state)
{
	struct replica_epoch e;
	if (!row_of(m->name, &e) || e.state != state)
		return;
	go_back(&e, m);
	write_row(m->name, &e);
}

/* The bucket has lost that the queue of this one is being taken: it says what it said before. */
static void act_forget(void)
{
	lose_state(some(), REPLICA_ADOPTING);
}

/* Or that it has been. */
static void act_undo(void)
{
	lose_state(some(), REPLICA_ADOPTED);
}

/* Its stream has lost that it has been. */
static void act_unsay(void)
{
	struct replica_epoch e;
	const struct machine *m = some();
	char *name = replica_stream(m->name);
	const struct jetstream_stream *s = jetstream_find(name);
	if (s && replica_claim_get(s->now.description, &e) && e.state == REPLICA_ADOPTED) {
		go_back(&e, m);
		char *text = replica_claim(&e), *subjects = replica_subjects(m->name, e.epoch);
		jetstream_update(name, subjects, text);
		free(subjects);
		free(text);
	}
	free(name);
}

static void die(void *what)
{
	struct machine *m = what;
	m->wanted = false;
	machine_kill(m);
}

/* Who has said that it has the queue of the one before this, and is still taking this one's. */
static struct machine *half_taker(const struct machine *m)
{
	struct replica_epoch e, before;
	if (!row_of(m->name, &e) || e.state != REPLICA_ADOPTING ||
	    !row_of(one_before(m)->name, &before) || before.state != REPLICA_ADOPTED ||
	    strcmp(before.by, e.by) != 0)
		return NULL;
	int i = 0;
	while (i < machines && strcmp(machine[i].name, e.by) != 0)
		i++;
	return i < machines ? &machine[i] : NULL;
}

static void slip(void *what)
{
	const struct machine *m = what;
	struct machine *taker = half_taker(m);
	if (now.resting)
		return;
	if (!taker) {
		fibers_after(LOOK_FOR_HALF_US, FIBER_NOBODY, slip, what);
		return;
	}
	lose_state(m, REPLICA_ADOPTING);
	taker->eager = true;
	fibers_after(SENDS_US, FIBER_NOBODY, die, taker);
}

/* As soon as its taker has said of the one before it that it has that one, the bucket forgets that this one is being taken; and the taker sends
 * what it has, and ends for good. */
static void act_slip(void)
{
	slip(some());
}

/* The bucket has synced what it says of this one's queue now. */
static void act_note(void)
{
	row_of(some()->name, &now.noted[some()->number]);
}

static void lapse(void *what)
{
	struct replica_epoch e;
	const struct machine *m = what;
	const struct machine *taker = half_taker(m);
	if (now.resting)
		return;
	if (!taker) {
		fibers_after(LOOK_FOR_HALF_US, FIBER_NOBODY, lapse, what);
		return;
	}
	write_row(taker->name, &now.noted[taker->number]);
	if (row_of(m->name, &e))
		write_row(m->name, &e);
}

/* As soon as its taker has said of the one before it that it has that one, the bucket loses all of that taker since its row was noted, and the
 * last word of the claim to this one. */
static void act_lapse(void)
{
	lapse(some());
}

static void claim_for(const struct machine *m, const struct machine *taker)
{
	struct replica_epoch e;
	if (!row_of(m->name, &e) || e.state != REPLICA_UP)
		return;
	e.state = REPLICA_ADOPTING;
	e.epoch++;
	memset(e.by, 0, sizeof e.by);
	memcpy(e.by, taker->name, strlen(taker->name));
	write_row(m->name, &e);
}

/* The one before it was told to take its queue, and its claim has got through, whatever has become of it since. */
static void act_claim(void)
{
	const struct machine *m = some();
	claim_for(m, one_before(m));
}

/* Each of the two has claimed the other's queue: one of them stood still between its last look and its claim. */
static void act_cross(void)
{
	const struct machine *m = some();
	claim_for(m, one_before(m));
	claim_for(one_before(m), m);
}

/* It has lost that there is such a node. */
static void act_lose(void)
{
	char token[REPLICA_TOKEN];
	char *subject = mem_printf("$KV." REPLICA_BUCKET ".%s", replica_token(some()->name, token));
	jetstream_purge("KV_" REPLICA_BUCKET, subject, 0, 0);
	free(subject);
}

/* Its taker's word that it has the queue gets through to the stream, unanswered; then the node comes back. */
static void act_word(void)
{
	struct replica_epoch e;
	struct machine *m = some();
	char *name = replica_stream(m->name);
	const struct jetstream_stream *s = jetstream_find(name);
	if (s && replica_claim_get(s->now.description, &e) && e.state == REPLICA_ADOPTING) {
		e.state = REPLICA_ADOPTED;
		char *text = replica_claim(&e), *subjects = mem_strdup(s->now.subjects);
		jetstream_update(name, subjects, text);
		free(subjects);
		free(text);
		machine_start(m);
	}
	free(name);
}

/* What an operator does beside a relay that is off. */
struct beside {
	struct machine *machine;
	enum { BESIDE_REPAIR, BESIDE_LIST } what;
	bool done;
};

static void found(void *owner, const struct check_finding *f)
{
	(void)owner;
	(void)f;
}

static void repair(struct machine *m)
{
	struct check c = {.found = found};
	struct buf error = {0};
	spool_repair(m->conf, &c, &error);
	buf_fini(&error);
}

static void list(struct machine *m)
{
	struct buf error = {0};
	uint64_t id[LEDGER_MESSAGES];
	struct spool_look *l = spool_look_new(m->conf, m->conf->spool, &error);
	size_t n = l ? spool_look_ids(l, 0, id, LEDGER_MESSAGES) : 0;
	for (size_t i = 0; i < n; i++) {
		const struct sheet *s = ledger_find(id[i]);
		char text[IDENT_TEXT];
		if (!s)
			ledger_broken(BROKEN_STRANGER, "the list of %s", m->name);
		else if (s->firm && s->finisher == m->number && !now.restored[m->number])
			ledger_broken(BROKEN_REVIVED, "%s is in the list of %s",
				      ident_text(id[i], text), m->name);
	}
	spool_look_free(&l);
	buf_fini(&error);
}

static void *work_beside(void *what)
{
	struct beside *b = what;
	if (b->what == BESIDE_REPAIR)
		repair(b->machine);
	else
		list(b->machine);
	b->done = true;
	fiber_wait(NULL, NULL, INT64_MAX);
	return NULL;
}

static bool is_done(void *beside)
{
	return ((const struct beside *)beside)->done;
}

static void beside(int what)
{
	struct machine *m = some();
	struct beside b = {.machine = m, .what = what};
	bool wanted = m->wanted;
	m->wanted = false;
	machine_stop(m);
	pass(8000000, LONG_SLACK_US);
	if (m->state == MACHINE_OFF && !fibers_paused(m->number)) {
		seams_process_begins(m->number);
		fiber_new(m->number, "beside", work_beside, &b);
		fibers_run_for(is_done, &b, fibers.now_us + GRACE_US);
		fibers_kill(m->number);
		memdisk_abandon(m->disk);
	}
	m->wanted = wanted;
	if (wanted && !m->gone)
		machine_start(m);
}

static void act_repair(void)
{
	beside(BESIDE_REPAIR);
}

static void act_list(void)
{
	beside(BESIDE_LIST);
}

/* Without it all is read. */
static void act_unchecked(void)
{
	struct machine *m = some();
	machine_kill(m);
	fibers_enter(m->number);
	int log = disk_open(AT_FDCWD, "/queue/log", O_RDONLY | O_DIRECTORY);
	if (log >= 0) {
		disk_unlink(log, "checkpoint");
		disk_sync(log);
		disk_close(log);
	}
	m->wanted = true;
}

static void act_room(void)
{
	struct machine *m = some();
	memdisk_room(m->disk, FULL_BYTES);
	m->full = now.salt / 16 % 2 && there() > 2;
}

/* For good. */
static void act_fill(void)
{
	struct machine *m = some();
	memdisk_room(m->disk, FULL_BYTES);
	m->full = true;
}

static void act_read(void)
{
	static const enum memdisk_call call[] = {CALL_OPEN, CALL_READ, CALL_SIZE};
	uint32_t which = below(3);
	now.unread++;
	memdisk_fail(some()->disk, call[which], 1 + (int)below(30), which == 0 ? EMFILE : EIO,
		     false);
}

/* A batch can't be written, or not be synced, or what is left of it not be cut off. */
static void act_fail(void)
{
	static const enum memdisk_call call[] = {CALL_WRITE, CALL_DATASYNC, CALL_DATASYNC,
						 CALL_SYNC, CALL_TRUNCATE};
	enum { CALLS = sizeof call / sizeof call[0] };
	memdisk_fail(some()->disk, call[below(CALLS)], 1 + (int)below(12), EIO, false);
}

static const struct {
	const char *name;
	void (*act)(void);
	uint32_t weight;
	int fault;
} acts[] = {
	{"store", act_store, 30, FAULT_NONE},	 {"work", act_work, 40, FAULT_NONE},
	{"pass", act_pass, 14, FAULT_NONE},	 {"long", act_long, 6, FAULT_NONE},
	{"start", act_start, 4, FAULT_KILL},	 {"stop", act_stop, 1, FAULT_KILL},
	{"flush", act_flush, 2, FAULT_NONE},	 {"delete", act_delete, 1, FAULT_NONE},
	{"kill", act_kill, 5, FAULT_KILL},	 {"die", act_die, 6, FAULT_DIE},
	{"doom", act_doom, 5, FAULT_DOOM},	 {"power", act_power, 4, FAULT_POWER},
	{"pause", act_pause, 4, FAULT_PAUSE},	 {"resume", act_resume, 4, FAULT_PAUSE},
	{"backup", act_backup, 3, FAULT_BACKUP}, {"restore", act_restore, 3, FAULT_BACKUP},
	{"empty", act_empty, 2, FAULT_EMPTY},	 {"gone", act_gone, 2, FAULT_GONE},
	{"tail", act_tail, 3, FAULT_TAIL},	 {"bucket", act_bucket, 3, FAULT_BUCKET},
	{"sync", act_sync, 3, FAULT_TAIL},	 {"sync", act_sync, 3, FAULT_BUCKET},
	{"full", act_full, 3, FAULT_FULL},	 {"limit", act_limit, 3, FAULT_FULL},
	{"unfull", act_unfull, 2, FAULT_FULL},	 {"cut", act_cut, 4, FAULT_CUT},
	{"uncut", act_uncut, 4, FAULT_CUT},	 {"away", act_away, 3, FAULT_AWAY},
	{"back", act_back, 4, FAULT_AWAY},	 {"slow", act_slow, 3, FAULT_SLOW},
	{"fast", act_fast, 2, FAULT_SLOW},	 {"clock", act_clock, 3, FAULT_CLOCK},
	{"adopt", act_adopt, 4, FAULT_ORDER},	 {"drain", act_drain, 3, FAULT_DRAIN},
	{"retire", act_retire, 3, FAULT_RETIRE}, {"repair", act_repair, 3, FAULT_REPAIR},
	{"list", act_list, 3, FAULT_LIST},	 {"unchecked", act_unchecked, 3, FAULT_UNCHECKED},
	{"vanish", act_vanish, 0, FAULT_NONE},	 {"forget", act_forget, 0, FAULT_NONE},
	{"fall", act_fall, 0, FAULT_NONE},	 {"word", act_word, 0, FAULT_NONE},
	{"lose", act_lose, 0, FAULT_NONE},	 {"room", act_room, 3, FAULT_ROOM},
	{"read", act_read, 4, FAULT_READ},	 {"fail", act_fail, 6, FAULT_SYNC},
	{"undo", act_undo, 0, FAULT_NONE},	 {"unsay", act_unsay, 0, FAULT_NONE},
	{"drop", act_drop, 0, FAULT_NONE},	 {"claim", act_claim, 0, FAULT_NONE},
	{"fill", act_fill, 0, FAULT_NONE},	 {"slip", act_slip, 0, FAULT_NONE},
	{"note", act_note, 0, FAULT_NONE},	 {"lapse", act_lapse, 0, FAULT_NONE},
	{"cross", act_cross, 0, FAULT_NONE},	 {"hold", act_hold, 4, FAULT_HOLD},
	{"elect", act_elect, 3, FAULT_ELECT},	 {"settle", act_settle, 2, FAULT_ELECT},
};

enum { KINDS = sizeof acts / sizeof acts[0] };

static bool about(const struct story *h, int kind)
{
	return acts[kind].fault == FAULT_NONE || h->faults >> acts[kind].fault & 1;
}

/* How frequent each kind of act is, where it is about. */
static void weigh_acts(const struct story *h, bool uneven, uint32_t weight[KINDS])
{
	enum { DOUBLINGS = 5 };
	struct chance c = {.state = ~h->seed << 8};
	for (int k = 0; k < KINDS; k++) {
		uint32_t doublings = uneven ? chance_below(&c, DOUBLINGS) : 0;
		weight[k] = about(h, k) ? acts[k].weight << doublings : 0;
	}
}

/* Where they are named, and by chances of their own: without them a seed means what it did. */
static uint32_t later_faults(uint64_t seed, uint32_t per_cent, uint32_t allowed)
{
	uint32_t about = 0;
	for (int i = FAULT_SYNC; i < FAULTS; i++) {
		struct chance c = {.state = ~seed << (16 + i - FAULT_SYNC)};
		bool named = ~allowed && allowed >> i & 1;
		about |= (uint32_t)(named && chance_percent(&c, per_cent)) << i;
	}
	return about;
}

void history_make(struct story *h, uint64_t seed, uint32_t allowed)
{
	const bool uneven = ~allowed && allowed >> UNEVEN & 1;
	struct chance c = {.state = seed << 8};
	uint32_t per_cent = ~allowed ? SOME : FEW;
	*h = (struct story){.seed = seed, .machines = chance_percent(&c, 40) ? 2 : 3};
	if (uneven && chance_percent(&c, 50))
		per_cent = FEW;
	if (uneven && chance_percent(&c, 20))
		h->machines = MACHINES;
	for (int i = 0; i < FAULT_SYNC; i++)
		h->faults |= (uint32_t)chance_percent(&c, per_cent) << i;
	h->faults &= allowed;
	h->faults |= later_faults(seed, per_cent, allowed);
	uint32_t weight[KINDS];
	weigh_acts(h, uneven, weight);
	h->n = 20 + (int)chance_below(&c, HISTORY_ACTS - 20);
	for (int i = 0; i < h->n; i++)
		h->act[i] = (struct act){.what = chance_draw(&c, weight, KINDS),
					 .salt = chance_next(&c) >> 1};
}

void history_add(struct story *h, const char *name)
{
	int what = 0;
	while (strcmp(acts[what].name, name) != 0)
		what++;
	h->act[h->n] = (struct act){.what = what, .salt = (uint64_t)h->n * 16};
	h->n++;
}

void history_add_at(struct story *h, const char *name, int of, uint64_t salt)
{
	history_add(h, name);
	h->act[h->n - 1].salt = (uint64_t)h->machines * 32 * salt + (uint64_t)of;
}

void history_print(const struct story *h, FILE *to)
{
	fprintf(to, "%d machines:", h->machines);
	for (int i = 0; i < h->n; i++)
		fprintf(to, " %s(%d)", acts[h->act[i].what].name,
			(int)(h->act[i].salt % (uint64_t)h->machines));
	fputc('\n', to);
}

/* What is looked at between two acts. */

/* Nothing keeps what this one says from being heard. */
static bool is_heard(int of)
{
	return nats_client_answers(of) && !fibers_paused(of) && jetstream_bytes() < now.room &&
	       !now.limited;
}

static void look_at_finished(void)
{
	for (int i = 0; i < ledger.n; i++) {
		struct sheet *s = &ledger.sheet[i];
		if (s->finishing && !is_heard(s->finisher))
			s->finish_us = fibers.now_us + AFTER_TROUBLE_US;
		if (!s->finishing || s->firm || fibers.now_us - s->finish_us < FIRM_US)
			continue;
		s->firm = s->life == fibers_life(s->finisher) && !now.tail_us[s->finisher] &&
			  machine_whole(&machine[s->finisher]);
		s->finishing = s->firm;
	}
}

static void look_at_ends(void)
{
	for (int i = 0; i < machines; i++) {
		const struct machine *m = &machine[i];
		if (m->state == MACHINE_ENDS && !fibers_paused(i) &&
		    fibers.now_us - m->since_us > GRACE_US)
			ledger_broken(BROKEN_ENDLESS, "%s", m->name);
		if (m->starts_failed >= STARTS)
			ledger_broken(BROKEN_DEAD, "%s: %s", m->name, m->error);
	}
}

/* By then somebody has written anew what the bucket has lost. */
static void look_at_bucket(void)
{
	bool any = false;
	for (int i = 0; i < machines; i++)
		any |= has_its_queue(i) && nats_client_answers(i);
	if (now.bucket_us && !any)
		now.bucket_us = fibers.now_us;
	if (fibers.now_us - now.bucket_us > ROWS_US)
		now.bucket_us = 0;
}

static void look_at_restored(void)
{
	for (int i = 0; i < machines; i++)
		if (machine[i].state == MACHINE_SERVES && machine_fence_open(&machine[i]))
			now.restored[i] = false;
}

static void look(void)
{
	look_at_restored();
	look_at_bucket();
	look_at_tails();
	look_at_finished();
	look_at_ends();
}

/* Rest. */

static bool retired(const struct machine *m)
{
	struct replica_epoch e;
	return row_of(m->name, &e) && e.state == REPLICA_RETIRED;
}

/* Twice what is owed, and what each stream has beside that, room that it keeps among it. */
static int64_t needed_bytes(void)
{
	int64_t bytes = 0;
	for (int i = 0; i < ledger.n; i++)
		if (!sheet_done(&ledger.sheet[i]))
			bytes += (int64_t)sheet_size(&ledger.sheet[i]) + 500;
	return 2 * bytes + machines * (5 << 20);
}

static void heal_machine(struct machine *m)
{
	for (int call = 0; call < CALL_KINDS; call++)
		memdisk_fail(m->disk, call, 0, 0, false);
	if (!m->full)
		memdisk_room(m->disk, INT64_C(1) << 40);
	m->kill_in = 0;
	m->doomed_at = NULL;
	m->eager = true;
	if (!m->gone)
		machine_start(m);
	m->wanted = !m->gone;
}

static void heal(bool full, bool limited)
{
	act_resume();
	act_uncut();
	act_back();
	act_settle();
	act_fast();
	if (!limited)
		act_unfull();
	jetstream_room(full ? jetstream_bytes() + needed_bytes() : INT64_MAX);
	for (int i = 0; i < machines; i++)
		heal_machine(&machine[i]);
}

static const struct machine *unfenced(void)
{
	for (int i = 0; i < machines; i++) {
		struct machine *m = &machine[i];
		if (!machine[i].gone && !retired(m) &&
		    (m->state != MACHINE_SERVES || !machine_fence_open(m) ||
		     (!m->full && !now.limited && !spool_accepting(m->spool))))
			return m;
	}
	return NULL;
}

static const struct machine *claimed(void)
{
	struct replica_epoch e;
	for (int i = 0; i < machines; i++)
		if (row_of(machine[i].name, &e) &&
		    (e.state == REPLICA_ADOPTING || (e.state == REPLICA_UP && machine[i].gone)))
			return &machine[i];
	return NULL;
}

static const struct sheet *owed(void)
{
	for (int i = 0; i < ledger.n; i++)
		if (!sheet_done(&ledger.sheet[i]))
			return &ledger.sheet[i];
	return NULL;
}

static bool at_rest(void)
{
	return !unfenced() && !claimed() && !owed();
}

static bool any_takes_queues(void)
{
	bool any = false;
	for (int i = 0; i < machines; i++)
		any |= !machine[i].gone && !machine[i].full && machine[i].state == MACHINE_SERVES &&
		       machine_fence_open(&machine[i]);
	return any;
}

/* Where the only node that is up says that it has no room for the queues of the others, it is given some. */
static void make_room(void)
{
	for (int i = 0; i < machines && !any_takes_queues(); i++) {
		machine[i].full = false;
		memdisk_room(machine[i].disk, INT64_C(1) << 40);
	}
}

/* Nobody can take the queue of one in doubt, or no order to do so has helped: the operator says that its folder is right, as only he can know. */
static void insist_on_folders(int64_t since_us)
{
	if (!now.both_lost || (any_takes_queues() && fibers.now_us - since_us < 2 * OPERATOR_US))
		return;
	for (int i = 0; i < machines; i++)
		machine_order(&machine[i], NODE_ADOPT, machine[i].name);
}

/* As the condition that it shows says: what such a start could not read waits for the next. */
static void restart_incomplete(void)
{
	for (int i = 0; i < machines; i++)
		if (machine[i].incomplete && machine[i].state == MACHINE_SERVES) {
			machine[i].incomplete = false;
			machine_stop(&machine[i]);
		}
}

/* Whoever waits for an order gets it. */
static void operate(int64_t since_us)
{
	restart_incomplete();
	if (fibers.now_us - since_us > OPERATOR_US) {
		make_room();
		insist_on_folders(since_us);
	}
	const struct machine *m = unfenced();
	for (int i = 0; i < machines; i++) {
		if (!machine[i].gone)
			machine_start(&machine[i]); /* an order to drain may have come late */
		machine_ask(&machine[i], SPOOL_RESUME, 0);
		machine_ask(&machine[i], SPOOL_FLUSH, 0);
		if (m && &machine[i] != m && fibers.now_us - since_us > OPERATOR_US)
			machine_order(&machine[i], NODE_ADOPT, m->name);
	}
}

static void judge_rest(void)
{
	char id[IDENT_TEXT];
	const struct sheet *s = owed();
	const struct machine *m = unfenced(), *claim = claimed();
	if (m)
		ledger_broken(BROKEN_UNFENCED, "%s", m->name);
	if (claim)
		ledger_broken(BROKEN_CLAIM, "%s", claim->name);
	bool listed = false;
	for (int i = 0; i < machines; i++)
		listed |= machine[i].listed > 0;
	if (s)
		ledger_broken(listed ? BROKEN_STUCK : BROKEN_LOST, "%s, stored at n%d%s",
			      ident_text(s->id, id), s->at, sheet_large(s) ? ", large" : "");
}

static void list_all(void)
{
	for (int i = 0; i < machines; i++) {
		machine[i].listed = -1;
		machine_ask(&machine[i], SPOOL_LIST, 0);
	}
	pass(1000000, SLACK_US);
}

/* Half a pair is none. While its stream is full, or content can't be read, a node sends what nobody had a 250 for, or begins its envelope anew in the
 * copy, and may lose the other one with its folder: whoever has brought them brings both again. */
static void judge_pairs(void)
{
	for (int i = 0; i < ledger.n; i++) {
		const struct sheet *s = &ledger.sheet[i];
		const struct sheet *with = s->with ? ledger_find(s->with) : NULL;
		char id[IDENT_TEXT];
		bool let_go = with && (with->excused || with->apart || with->deleted ||
				       with->deleting > 0 ||
				       (now.limits + now.unread > 0 && !with->promised));
		if (with && s->rcpt[0].sent && !with->rcpt[0].sent && !let_go)
			ledger_broken(BROKEN_HALF, "%s", ident_text(s->id, id));
	}
}

static void judge_refused(void)
{
	char id[IDENT_TEXT];
	for (int i = 0; i < ledger.n; i++)
		if (ledger.sheet[i].refused && ledger.sheet[i].rcpt[0].sent)
			ledger_broken(BROKEN_REFUSED, "%s", ident_text(ledger.sheet[i].id, id));
}

static bool all_off(void *nothing)
{
	(void)nothing;
	for (int i = 0; i < machines; i++)
		if (machine[i].state != MACHINE_OFF)
			return false;
	return true;
}

static void end_all(bool away)
{
	if (away) {
		nats_client_servers(false);
		for (int i = 0; i < machines; i++)
			machine_store(&machine[i], UINT64_MAX >> 1);
		pass(500000 + below(4000000), SLACK_US);
	}
	for (int i = 0; i < machines; i++)
		machine_stop(&machine[i]);
	fibers.slack_us = LONG_SLACK_US;
	if (fibers_run_for(all_off, NULL, fibers.now_us + GRACE_US))
		return;
	for (int i = 0; i < machines; i++)
		if (machine[i].state != MACHINE_OFF)
			ledger_broken(BROKEN_ENDLESS, "%s, at the end", machine[i].name);
}

static bool still_comes_to_rest(int64_t since_us)
{
	return !ledger.broken && !at_rest() && fibers.now_us - since_us < REST_US;
}

/* What a client sent just before may have its 250 yet, and then it is owed: a look at rest alone says nothing. */
static void come_to_rest(int64_t since_us)
{
	do {
		do {
			pass(LOOK_US, LONG_SLACK_US);
			look();
			operate(since_us);
		} while (still_comes_to_rest(since_us));
		list_all();
	} while (still_comes_to_rest(since_us));
}

static void rest(const struct story *h)
{
	now.resting = true;
	heal(h->faults >> FAULT_FULL & 1, h->stays_full);
	come_to_rest(fibers.now_us);
	judge_rest();
	judge_pairs();
	if (h->strict)
		judge_refused();
	if (!ledger.broken)
		end_all(h->faults >> FAULT_AWAY & 1);
	if (fibers.busy > BUSY)
		ledger_broken(BROKEN_BUSY, "%s, %d moments", fibers.busiest, fibers.busy);
}

static int calls_to_live(const struct machine *m)
{
	uint32_t most = !m->wanted ? 400 : chance_percent(&fibers.chance, 50) ? 8 : 120;
	return 1 + (int)chance_below(&fibers.chance, most);
}

static void doom(struct machine *m, const char *state)
{
	if (!m->doomed_at || !state || strcmp(m->doomed_at, state) != 0)
		return;
	m->doomed_at = NULL;
	m->kill_in = m->doomed_in > 0 ? m->doomed_in : calls_to_live(m);
	m->doomed_in = 0;
}

/* What this one has finished since it was heard last is not known by who takes its queue, and will not be. */
static void forget_finishes(const char *node)
{
	for (int i = 0; i < ledger.n; i++) {
		struct sheet *s = &ledger.sheet[i];
		s->finishing &= s->firm || strcmp(machine[s->finisher].name, node) != 0;
	}
}

static void heard(int process, const struct seams_line *line)
{
	uint64_t id;
	const char *text = seams_value(line, "id"), *node = seams_value(line, "node");
	const char *state = seams_value(line, "state");
	if (history_loud) {
		fprintf(stderr, "%8.3f n%d: %s", (double)(fibers.now_us - 1000000000) / 1e6,
			process, line->event);
		for (int i = 0; i < line->n; i++)
			fprintf(stderr, " %s=%s", line->key[i], line->value[i]);
		fputc('\n', stderr);
	}
	if (process >= 0 && strcmp(line->event, "recover_failed") == 0)
		machine[process].incomplete = true;
	if (process >= 0 && strcmp(line->event, "node") == 0)
		doom(&machine[process], state);
	if (state && node && strcmp(state, "adopting") == 0)
		forget_finishes(node);
	if (strcmp(line->event, "quarantined") == 0 && !now.harmed)
		ledger_broken(BROKEN_DAMAGED, "%s", text);
	if (strcmp(line->event, "recovered") == 0 && text && ident_parse(text, &id))
		ledger_doubted(id);
}

/* A node's own, or what another reads in a stream. */
static bool harms_disk(int fault)
{
	static const int harmful[] = {FAULT_POWER, FAULT_BACKUP, FAULT_TAIL, FAULT_FULL,
				      FAULT_ROOM,  FAULT_READ,	 FAULT_SYNC, FAULT_ELECT};
	for (size_t i = 0; i < sizeof harmful / sizeof *harmful; i++)
		if (harmful[i] == fault)
			return true;
	return false;
}

static void begin(const struct story *h)
{
	struct conf_cluster like = {.replicate = h->async ? REPLICATE_ASYNC : REPLICATE_SYNC,
				    .adopt_after = ADOPT_AFTER_MS,
				    .replicate_timeout = REPLICATE_TIMEOUT_MS};
	uint64_t seed = h->seed << 16;
	memset(&now, 0, sizeof now);
	now.room = INT64_MAX;
	for (int i = 0; i < h->n; i++)
		now.harmed |= harms_disk(acts[h->act[i].what].fault);
	seams_begin();
	fibers_begin(seed + 1, machine_enter);
	seams_listen(heard);
	ledger_begin(history_loud);
	jetstream_begin();
	nats_client_begin(seed + 2);
	machines_begin(h->machines, seed + 3, &like, h->seed % 2 ? 24 << 10 : 18 << 10);
	for (int i = 0; i < h->machines; i++) {
		int64_t ahead_ms = h->faults >> FAULT_CLOCK & 1 ? 1800000 * (i - 1) : 7 * i;
		seams_clock(i, 5000000 + 777777 * i, ahead_ms);
		machine_start(&machine[i]);
	}
}

void history_play(const struct story *h)
{
	begin(h);
	pass(1500000, SLACK_US);
	for (int i = 0; i < h->n && !ledger.broken; i++) {
		const struct act *a = &h->act[i];
		now.salt = a->salt;
		now.chance.state = a->salt;
		fibers.chance.state = a->salt + 1;
		if (history_loud)
			fprintf(stderr, "-- %s(%d)\n", acts[a->what].name,
				(int)(a->salt % (uint64_t)machines));
		acts[a->what].act();
		pass(1000 + below(120000), SLACK_US);
		look();
	}
	if (!ledger.broken)
		rest(h);
}
