/* SPDX-License-Identifier: ISC */
/* What is sent to NATS and why, with a NATS that takes, refuses and loses as it is told. */
#include "tests/unit/base/unit.h"

#include "base/conf.h"
#include "base/ident.h"
#include "base/mem.h"
#include "replica/nats_link.h"
#include "replica/replica_core.h"
#include "spool/checkpoint.h"
#include "spool/replicate.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ID = 7, SIZE = 1000 };

static struct {
	int published, purged, set_up, noted, looks;
	uint64_t number, kept;
	size_t len; /* of the message that was published last */
	char subject[100];
} nats;

struct nats_link *nats_link_new(const struct conf *c, const char *node, struct loop *to)
{
	(void)c, (void)node, (void)to;
	return NULL;
}

void nats_link_start(struct nats_link *l)
{
	(void)l;
}

void nats_link_stop(struct nats_link *l)
{
	(void)l;
}

void nats_link_free(struct nats_link **l)
{
	(void)l;
}

void nats_link_set_up(struct nats_link *l, const struct replica_epoch *row, bool anew)
{
	(void)l, (void)row, (void)anew;
	nats.set_up++;
}

const char *nats_link_publish(struct nats_link *l, const char *subject, uint64_t number,
			      const void *message, size_t len)
{
	(void)l, (void)subject, (void)message;
	nats.published++;
	nats.len = len;
	nats.number = number;
	return NULL;
}

void nats_link_purge(struct nats_link *l, const char *subject, uint64_t before, uint64_t keep)
{
	(void)l, (void)before;
	nats.kept = keep;
	nats.purged++;
	snprintf(nats.subject, sizeof nats.subject, "%s", subject);
}

void nats_link_look(struct nats_link *l, uint64_t acked)
{
	(void)l, (void)acked;
	nats.looks++;
}

void nats_link_note_beat(struct nats_link *l, const char *spool, const struct epoch_own *own)
{
	(void)l, (void)spool, (void)own;
	nats.noted++;
}

static struct replica r;
static char folder[] = "/tmp/test_pump.XXXXXX";
static int large; /* the folder in it */

static void drop_note(void *owner, struct note *note)
{
	(void)owner;
	free(note);
}

static void ignore_timer(void *unused)
{
	(void)unused;
}

static int set_up(void **state)
{
	char name[IDENT_TEXT];
	(void)state;
	memset(&nats, 0, sizeof nats);
	strcpy(folder, "/tmp/test_pump.XXXXXX");
	assert_non_null(mkdtemp(folder));
	r = (struct replica){.node = mem_strdup("n"),
			     .phase = PHASE_RUNNING,
			     .epoch = 3,
			     .begun = 1,
			     .beat_ms = INT64_MAX};
	r.conf = conf_defaults();
	r.loop = loop_new("replica", drop_note, NULL, &r);
	timer_init(&r.again, ignore_timer, NULL);
	free(r.conf->spool);
	r.conf->spool = mem_strdup(folder);
	char *path = mem_printf("%s/large", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	large = open(path, O_RDONLY | O_DIRECTORY);
	free(path);
	r.message = mem_alloc(REPLICA_MESSAGE_MAX);
	copies_init(&r.copies);
	flight_init(&r.flight);
	orders_init(&r.orders);
	list_init(&r.barriers);
	int fd = openat(large, ident_text(ID, name), O_WRONLY | O_CREAT, 0600);
	assert_int_equal(ftruncate(fd, SIZE), 0);
	close(fd);
	return 0;
}

static int tear_down(void **state)
{
	char name[IDENT_TEXT];
	(void)state;
	unlinkat(large, ident_text(ID, name), 0);
	close(large);
	char *path = mem_printf("%s/large", folder);
	assert_int_equal(rmdir(path), 0);
	free(path);
	assert_int_equal(rmdir(folder), 0);
	orders_fini(&r.orders);
	goals_fini(&r.named);
	flight_drop(&r.flight);
	copies_fini(&r.copies);
	timer_stop(&r.loop->timers, &r.again);
	loop_free(&r.loop);
	conf_unref(r.conf);
	free(r.message);
	trouble_fini(&r.trouble);
	free(r.node);
	return 0;
}

static void name_large(bool older)
{
	struct replicate *n = mem_zalloc(sizeof *n);
	n->note.type = REPLICATE_LARGE;
	n->of = ID;
	n->end = older ? 0 : SIZE;
	n->older = older;
	replica_notes_receive(&r, &n->note);
}

static void acknowledge(uint64_t number, uint64_t sequence, bool full)
{
	struct nats_link_note *n = mem_zalloc(sizeof *n);
	n->note.type = NATS_LINK_ACK;
	n->number = number;
	n->sequence = sequence;
	n->full = full;
	if (full)
		snprintf(n->error, sizeof n->error, "insufficient resources");
	replica_notes_receive(&r, &n->note);
	pump_acknowledged(&r);
}

/* As long as no descriptor is to be had. */
static rlim_t take_descriptors(void)
{
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	rlim_t before = limit.rlim_cur;
	limit.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return before;
}

static void give_descriptors(rlim_t n)
{
	struct rlimit limit;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void without_descriptors(bool older)
{
	rlim_t before = take_descriptors();
	name_large(older);
	pump(&r);
	give_descriptors(before);
	assert_int_equal(nats.published, 0);
	assert_true(copies_lag(&r.copies) > 0);
	r.unread_ms[older] = 0; /* a while later */
	pump(&r);
	assert_int_equal(nats.published, 2); /* the bytes, and that these are all */
	acknowledge(1, 101, false);
	assert_true(copies_lag(&r.copies) > 0);
	acknowledge(2, 102, false);
	assert_int_equal(copies_lag(&r.copies), 0);
}

static void large_content_that_can_not_be_opened_is_missing(void **state)
{
	(void)state;
	without_descriptors(false);
}

static void so_is_that_of_a_former_start(void **state)
{
	(void)state;
	without_descriptors(true);
}

/* Opened, and then the disk fails: nobody reads a folder. */
static void large_content_that_can_not_be_read_is_missing(void **state)
{
	char name[IDENT_TEXT], away[IDENT_TEXT + 5];
	(void)state;
	ident_text(ID, name);
	snprintf(away, sizeof away, "%s.away", name);
	assert_int_equal(renameat(large, name, large, away), 0);
	assert_int_equal(mkdirat(large, name, 0700), 0);
	name_large(false);
	pump(&r);
	assert_int_equal(unlinkat(large, name, AT_REMOVEDIR), 0);
	assert_int_equal(renameat(large, away, large, name), 0);
	assert_int_equal(nats.published, 0);
	assert_true(copies_lag(&r.copies) > 0);
	assert_true(r.unread_ms[0] > 0);
}

static void what_has_gone_is_not(void **state)
{
	char name[IDENT_TEXT];
	(void)state;
	name_large(false);
	unlinkat(large, ident_text(ID, name), 0);
	pump(&r);
	assert_int_equal(nats.published, 0);
	assert_int_equal(copies_lag(&r.copies), 0);
}

/* It does not know the segment any more, and what says that its messages are dead may be gone by it, too. */
static void a_checkpoint_names_what_is_still_to_be_purged(void **state)
{
	const struct copy_key key = {.of = 5};
	struct buf text = {0};
	struct replica_head h;
	const uint8_t *payload;
	(void)state;
	r.complete = true;
	buf_puts(&text, "sluice checkpoint 2\n0000000000000009.seg read\n");
	checkpoint_close_text(&text);
	struct copy *f = copies_add(&r.copies, key, COPY_LOG);
	f->there = true;
	copy_gone(&r.copies, f);
	orders_add(&r.orders, ORDER_GONE, key);
	struct order *o = orders_add(&r.orders, ORDER_CHECKPOINT, (struct copy_key){.of = 0});
	buf_append(&o->bytes, buf_data(&text), buf_len(&text));
	pump(&r);
	assert_int_equal(nats.published, 1);
	assert_int_equal(nats.purged, 0);
	assert_true(replica_message_get(r.message, nats.len, &h, &payload));
	assert_int_equal(h.type, REPLICA_CHECKPOINT);
	buf_clear(&text);
	buf_append(&text, payload, h.length);
	assert_true(checkpoint_open_text(&text));
	assert_string_equal(buf_cstr(&text), "sluice checkpoint 2\n0000000000000009.seg read\n"
					     "0000000000000005.seg gone\n");
	buf_fini(&text);
}

static void when_there_is_no_room_what_keeps_some_goes(void **state)
{
	(void)state;
	r.complete = true;
	r.spare = SPARES;
	name_large(false);
	pump(&r);
	acknowledge(1, 0, true);
	assert_int_equal(r.room, ROOM_FOR_ALL);
	assert_int_equal(r.phase, PHASE_WAITING);
	r.phase = PHASE_RUNNING; /* set up again */
	pump(&r);
	assert_int_equal(nats.purged, 1);
	assert_string_equal(nats.subject, "sluice.n.*.spare");
}

static void what_does_not_fit_into_it_waits_until_it_does(void **state)
{
	(void)state;
	r.complete = true;
	r.spare = SPARES;
	struct copy *f = copies_add(&r.copies, (struct copy_key){.of = 9, .large = 1}, COPY_LARGE);
	copy_is(&r.copies, f, SPARES * REPLICA_PIECE, 0, 0);
	name_large(false);
	nats.number = ++r.flight.number; /* something before */
	acknowledge(1, 0, true);
	assert_int_equal(r.room, ROOM_FOR_OTHERS);
	assert_true(r.alone); /* which is said before anything relies on it */
	assert_false(r.told_alone);
	r.phase = PHASE_RUNNING;
	int published = nats.published;
	pump(&r);
	assert_int_equal(nats.kept, SPARES - 1);
	orders_done(&r.orders); /* it was purged */
	pump(&r);
	assert_int_equal(nats.published, published);
	copies_remove(&r.copies, f); /* it is dead by now */
	pump(&r);
	pump(&r);
	assert_int_equal(r.room, ROOM_FOR_ALL);
	assert_int_equal(nats.purged, 2);
	assert_int_equal(nats.kept, 0);
	orders_done(&r.orders);
	pump(&r);
	assert_int_equal(nats.published, published + 2);
}

/* Whatever was refused may be something that nobody sends again, as a beat is; then nothing is acknowledged either. */
static void what_keeps_some_comes_back_when_nothing_else_is_sent(void **state)
{
	(void)state;
	r.complete = true;
	pump_beat(&r, 1);
	acknowledge(1, 0, true);
	flight_drop(&r.flight);
	r.phase = PHASE_RUNNING;
	orders_done(&r.orders); /* it was purged */
	int published = nats.published;
	pump(&r);
	assert_int_equal(nats.published, published); /* not at once */
	r.spare_ms = r.loop->now_ms;
	pump(&r);
	assert_int_equal(nats.published, published + 1);
}

/* Some of it has come back, and what kept the rest from coming back is not the last that was missing. */
static void what_keeps_some_again_goes_again(void **state)
{
	(void)state;
	r.complete = true;
	r.room = ROOM_FOR_ALL;
	r.spare = SPARES - 1;
	name_large(false);
	pump(&r);
	acknowledge(1, 0, true);
	r.phase = PHASE_RUNNING;
	int published = nats.published;
	pump(&r);
	assert_int_equal(nats.purged, 1);
	assert_string_equal(nats.subject, "sluice.n.*.spare");
	assert_int_equal(nats.published, published); /* it would be refused again */
}

static void a_stream_that_is_shorter_than_it_was_is_asked_for_all(void **state)
{
	(void)state;
	name_large(false);
	pump(&r);
	acknowledge(1, 101, false);
	acknowledge(2, 90, false); /* sent later, and lies before */
	assert_true(r.shorter);
	r.phase = PHASE_SETTING_UP;
	struct nats_link_note *n = mem_zalloc(sizeof *n);
	n->note.type = NATS_LINK_SET_UP;
	n->epoch = 3;
	n->last = 200;
	replica_notes_receive(&r, &n->note);
	assert_false(r.shorter);
	assert_int_equal(r.begun, 0);
	assert_int_equal(copies_lag(&r.copies), SIZE + 1);
}

static void so_is_one_whose_last_number_says_so(void **state)
{
	(void)state;
	name_large(false);
	pump(&r);
	acknowledge(1, 101, false);
	acknowledge(2, 102, false);
	for (uint64_t last = 102; last >= 101; last--) {
		r.phase = PHASE_SETTING_UP;
		struct nats_link_note *n = mem_zalloc(sizeof *n);
		n->note.type = NATS_LINK_SET_UP;
		n->epoch = 3;
		n->last = last;
		replica_notes_receive(&r, &n->note);
		assert_int_equal(copies_lag(&r.copies), last == 102 ? 0 : SIZE + 1);
	}
}

static void set_up_anew(uint64_t first, uint64_t last, bool mended)
{
	struct nats_link_note *n = mem_zalloc(sizeof *n);
	r.phase = PHASE_SETTING_UP;
	n->note.type = NATS_LINK_SET_UP;
	n->epoch = 3;
	n->first = first;
	n->last = last;
	n->mended = mended;
	replica_notes_receive(&r, &n->note);
}

static void so_is_one_that_somebody_has_purged_or_limited(void **state)
{
	(void)state;
	for (int mended = 0; mended < 2; mended++) {
		r.begun = r.kept = 90;
		if (mended == 0)
			name_large(false);
		pump(&r);
		acknowledge(nats.number - 1, 101, false);
		acknowledge(nats.number, 102, false);
		set_up_anew(90, 102, false);
		assert_int_equal(copies_lag(&r.copies), 0);
		set_up_anew(mended ? 90 : 103, 102, mended);
		assert_int_equal(copies_lag(&r.copies), SIZE + 1);
		assert_int_equal(r.begun, 0);
		r.acked = r.acked_number = 0;
	}
}

static void look_says(uint64_t first, uint64_t last, uint64_t acked, bool fresh)
{
	struct nats_link_note *n = mem_zalloc(sizeof *n);
	n->note.type = NATS_LINK_LOOKED;
	n->first = first;
	n->last = last;
	n->acked = acked;
	n->fresh = fresh;
	r.looking = true;
	replica_notes_receive(&r, &n->note);
}

static void what_is_seen_to_be_lost_is_asked_for_though_nothing_is_sent(void **state)
{
	(void)state;
	r.begun = r.kept = 90;
	look_says(90, 102, 102, false);
	assert_int_equal(r.phase, PHASE_RUNNING);
	look_says(91, 102, 102, false);
	assert_int_equal(r.phase, PHASE_WAITING);
	r.phase = PHASE_RUNNING;
	r.anchor = 80;
	look_says(81, 102, 102, false);
	assert_int_equal(r.phase, PHASE_WAITING);
	r.phase = PHASE_RUNNING;
	r.anchor = 0;
	look_says(90, 101, 102, false);
	assert_int_equal(r.phase, PHASE_WAITING);
	r.phase = PHASE_RUNNING;
	look_says(0, 0, 0, true);
	assert_int_equal(r.phase, PHASE_WAITING);
}

static void hear_of_beat(uint32_t beat)
{
	struct nats_link_note *n = mem_zalloc(sizeof *n);
	n->note.type = NATS_LINK_BEAT;
	n->beat = beat;
	replica_notes_receive(&r, &n->note);
}

static void what_follows_a_pause_waits_until_a_beat_is_noted(void **state)
{
	(void)state;
	r.beat_ms = r.loop->now_ms;
	name_large(false);
	pump(&r);
	pump(&r);
	assert_int_equal(nats.noted, 1);
	assert_int_equal(nats.published, 0);
	hear_of_beat(1);
	assert_int_equal(nats.published, 1); /* the beat */
	pump(&r);
	assert_int_equal(r.own.beat, 1);
	assert_int_equal(nats.published, 3);
}

static void where_none_can_be_noted_it_goes_without(void **state)
{
	(void)state;
	r.beat_ms = r.loop->now_ms;
	name_large(false);
	pump(&r);
	for (int again = 0; again < 10; again++) {
		hear_of_beat(0);
		pump(&r);
		assert_int_equal(nats.published, 0);
		replica_note_beat(&r);
	}
	hear_of_beat(0);
	pump(&r);
	assert_int_equal(nats.noted, 11);
	assert_int_equal(nats.published, 2);
}

static void one_that_is_noted_at_last_is_borne(void **state)
{
	(void)state;
	r.beat_ms = r.loop->now_ms;
	name_large(false);
	pump(&r);
	hear_of_beat(0);
	replica_note_beat(&r);
	hear_of_beat(1);
	pump(&r);
	assert_int_equal(r.own.beat, 1);
	assert_int_equal(nats.published, 3); /* the beat, the bytes, and that these are all */
}

/* It was noted with its epoch, perhaps long before that could be taken. */
static void so_does_what_an_epoch_begins_with(void **state)
{
	(void)state;
	struct replica_begin *n = mem_zalloc(sizeof *n);
	n->note.type = REPLICA_NOTE_EPOCH;
	n->own.epoch = 3;
	r.begun = 0;
	replica_notes_receive(&r, &n->note);
	name_large(false);
	pump(&r);
	assert_int_equal(nats.noted, 1);
	assert_int_equal(nats.published, 0);
	hear_of_beat(1);
	pump(&r);
	assert_int_equal(r.own.beat, 1);
	assert_int_equal(nats.published, 1); /* that it begins */
}

/* What came in before would be purged when all is there, and counts for nobody until then. */
static void nothing_is_sent_before_its_epoch_is_known_to_have_begun(void **state)
{
	(void)state;
	r.begun = 0;
	name_large(false);
	pump(&r);
	pump(&r);
	assert_int_equal(nats.published, 1);
	acknowledge(1, 101, false);
	assert_int_equal(r.begun, 101);
	pump(&r);
	assert_int_equal(nats.published, 3); /* the bytes, and that these are all */
}

static void nothing_is_noted_where_nothing_is_sent(void **state)
{
	(void)state;
	r.beat_ms = r.loop->now_ms;
	pump(&r);
	assert_int_equal(nats.noted, 0);
}

static void name_segment(uint64_t seq, uint64_t end)
{
	struct copy *f = copies_find(&r.copies, seq, false);
	if (!f) {
		f = copies_add(&r.copies, (struct copy_key){.of = seq}, COPY_LOG);
		f->file = content_file_new(openat(large, ".", O_TMPFILE | O_RDWR, 0600));
	}
	assert_int_equal(ftruncate(f->file->fd, (off_t)end), 0);
	copy_is(&r.copies, f, end, f->sent, f->acked);
}

static void name_log(uint64_t end)
{
	name_segment(1, end);
}

static void the_log_waits_for_large_content_that_was_there_before_it(void **state)
{
	(void)state;
	name_large(false);
	name_log(100);
	pump(&r);
	assert_int_equal(nats.published, 2); /* the bytes, and that these are all */
	acknowledge(1, 101, false);
	pump(&r);
	assert_int_equal(nats.published, 2);
	acknowledge(2, 102, false);
	pump(&r);
	assert_int_equal(nats.published, 3);
	name_log(200);
	pump(&r);
	assert_int_equal(nats.published, 4); /* it waits for nothing now */
}

static void withdraw_log(uint64_t end)
{
	struct replicate *n = mem_zalloc(sizeof *n + RECORD_HEAD);
	n->note.type = REPLICATE_CUT;
	n->of = 1;
	n->end = end;
	n->n = RECORD_HEAD;
	memset(n->bytes, 'E', RECORD_HEAD);
	replica_notes_receive(&r, &n->note);
}

static struct replica_head last_head(const uint8_t **payload)
{
	struct replica_head h;
	assert_true(replica_message_get(r.message, nats.len, &h, payload));
	assert_int_equal(h.type, REPLICA_LOG);
	return h;
}

/* It has all of it; then a sync fails, and of the file only what was before is left: with an end, or cut short. */
static void what_was_withdrawn_stands_behind_an_end_in_the_stream(void **state)
{
	const uint8_t *payload;
	(void)state;
	name_log(1000);
	pump(&r);
	acknowledge(1, 101, false);
	assert_int_equal(copies_lag(&r.copies), 0);
	withdraw_log(600);
	assert_int_equal(ftruncate(copies_find(&r.copies, 1, false)->file->fd, 600), 0);
	pump(&r);
	assert_int_equal(nats.published, 2);
	struct replica_head h = last_head(&payload);
	assert_true(h.of == 1 && h.offset == 600 && h.length == RECORD_HEAD);
	assert_int_equal(payload[0], 'E');
	assert_int_equal(payload[RECORD_HEAD - 1], 'E');
	acknowledge(2, 102, false);
	assert_int_equal(copies_lag(&r.copies), 0);
	copies_again(&r.copies, true); /* the stream is lost */
	pump(&r);
	assert_int_equal(nats.published, 4);
	assert_int_equal(last_head(&payload).offset, 600);
}

/* All of it was under way. */
static void so_does_what_is_withdrawn_on_its_way(void **state)
{
	const uint8_t *payload;
	(void)state;
	name_log(1000);
	pump(&r);
	withdraw_log(600);
	pump(&r);
	assert_int_equal(nats.published, 3);
	assert_int_equal(last_head(&payload).offset, 600);
	acknowledge(2, 102, false);
	acknowledge(3, 103, false);
	assert_int_equal(copies_lag(&r.copies), 0);
}

static void large_is_gone(void)
{
	struct replicate *n = mem_zalloc(sizeof *n);
	n->note.type = REPLICATE_LARGE_GONE;
	n->of = ID;
	replica_notes_receive(&r, &n->note);
}

static void hear_purged(const char *error)
{
	struct nats_link_note *n = mem_zalloc(sizeof *n);
	n->note.type = NATS_LINK_PURGED;
	snprintf(n->error, sizeof n->error, "%s", error);
	replica_notes_receive(&r, &n->note);
}

/* A message that was taken, given back, and is taken once more. */
static void content_that_comes_once_more_before_its_purge_stays(void **state)
{
	(void)state;
	r.complete = true;
	name_large(false);
	pump(&r);
	assert_int_equal(nats.published, 2);
	large_is_gone();
	name_large(false);
	acknowledge(1, 101, false); /* of the former */
	acknowledge(2, 102, false);
	assert_int_equal(copies_lag(&r.copies), SIZE + 1);
	r.spare_ms = INT64_MAX;
	pump(&r);
	assert_int_equal(nats.published, 4);
	acknowledge(3, 103, false);
	acknowledge(4, 104, false);
	assert_int_equal(copies_lag(&r.copies), 0);
	pump(&r);
	assert_int_equal(nats.purged, 0);
	large_is_gone();
	pump(&r);
	assert_int_equal(nats.purged, 1);
	hear_purged("");
	assert_null(copies_find(&r.copies, ID, true));
}

/* Its purge has begun, of which nobody can say what it takes of what is sent now. */
static void purge_what_comes_once_more(void)
{
	r.complete = true;
	r.spare_ms = INT64_MAX;
	name_large(false);
	pump(&r);
	acknowledge(1, 101, false);
	acknowledge(2, 102, false);
	large_is_gone();
	pump(&r);
	assert_int_equal(nats.purged, 1);
	name_large(false);
	pump(&r);
	assert_int_equal(nats.published, 2);
	assert_int_equal(copies_lag(&r.copies), SIZE + 1);
}

static void what_comes_once_more_during_its_purge_waits_for_that(void **state)
{
	(void)state;
	purge_what_comes_once_more();
	hear_purged("");
	pump(&r);
	assert_int_equal(nats.published, 4);
	acknowledge(3, 103, false);
	acknowledge(4, 104, false);
	assert_int_equal(copies_lag(&r.copies), 0);
	assert_int_equal(r.orders.n, 0);
}

static void and_is_sent_where_that_fails(void **state)
{
	(void)state;
	purge_what_comes_once_more();
	hear_purged("no answer");
	assert_int_equal(r.phase, PHASE_WAITING);
	r.phase = PHASE_RUNNING;
	pump(&r);
	assert_int_equal(nats.published, 4);
	assert_int_equal(nats.purged, 1);
}

static void what_goes_again_during_its_purge_is_not_sent(void **state)
{
	(void)state;
	purge_what_comes_once_more();
	large_is_gone();
	assert_int_equal(copies_lag(&r.copies), 0);
	hear_purged("");
	pump(&r);
	assert_int_equal(nats.published, 2);
	assert_int_equal(nats.purged, 1);
}

/* Two were refused while NATS was away: the first segment has their envelopes, the second says that they are withdrawn, and the content
 * of one has gone. */
static void what_withdraws_content_that_never_came_goes_before_its_envelope(void **state)
{
	const uint8_t *payload;
	(void)state;
	name_large(false);
	name_segment(1, 100);
	name_segment(2, 100);
	large_is_gone();
	pump(&r);
	assert_int_equal(nats.published, 1);
	assert_int_equal(last_head(&payload).of, 2);
	acknowledge(1, 101, false);
	pump(&r);
	assert_int_equal(nats.published, 2);
	assert_int_equal(last_head(&payload).of, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(large_content_that_can_not_be_opened_is_missing),
		TEST(so_is_that_of_a_former_start),
		TEST(large_content_that_can_not_be_read_is_missing),
		TEST(what_has_gone_is_not),
		TEST(a_checkpoint_names_what_is_still_to_be_purged),
		TEST(when_there_is_no_room_what_keeps_some_goes),
		TEST(what_does_not_fit_into_it_waits_until_it_does),
		TEST(what_keeps_some_comes_back_when_nothing_else_is_sent),
		TEST(what_keeps_some_again_goes_again),
		TEST(a_stream_that_is_shorter_than_it_was_is_asked_for_all),
		TEST(so_is_one_whose_last_number_says_so),
		TEST(so_is_one_that_somebody_has_purged_or_limited),
		TEST(what_is_seen_to_be_lost_is_asked_for_though_nothing_is_sent),
		TEST(what_follows_a_pause_waits_until_a_beat_is_noted),
		TEST(so_does_what_an_epoch_begins_with),
		TEST(nothing_is_sent_before_its_epoch_is_known_to_have_begun),
		TEST(where_none_can_be_noted_it_goes_without),
		TEST(one_that_is_noted_at_last_is_borne),
		TEST(nothing_is_noted_where_nothing_is_sent),
		TEST(the_log_waits_for_large_content_that_was_there_before_it),
		TEST(what_was_withdrawn_stands_behind_an_end_in_the_stream),
		TEST(so_does_what_is_withdrawn_on_its_way),
		TEST(what_withdraws_content_that_never_came_goes_before_its_envelope),
		TEST(content_that_comes_once_more_before_its_purge_stays),
		TEST(what_comes_once_more_during_its_purge_waits_for_that),
		TEST(and_is_sent_where_that_fails),
		TEST(what_goes_again_during_its_purge_is_not_sent),
	};
	return RUN(tests);
}
