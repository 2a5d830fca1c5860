/* SPDX-License-Identifier: ISC */
#include "spool/spool_check.h"

#include "base/mem.h"
#include "spool/check_open.h"
#include "spool/checkpoint.h"
#include "spool/disk.h"
#include "spool/inventory.h"
#include "spool/journal.h"
#include "spool/survey.h"
#include "spool/verify.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* One run. */
struct checking {
	struct check *check;
	struct check_folders at;
	struct inventory names;
	struct replay replay;
	struct stub **stub; /* sorted */
	size_t n;
};

const char *check_fault_name(enum check_fault fault)
{
	static const char *const name[] = {
		[CHECK_DAMAGED] = "damaged", [CHECK_TORN] = "torn",
		[CHECK_SHORT] = "short",     [CHECK_HEAD] = "head",
		[CHECK_MISSING] = "missing", [CHECK_CHECKPOINT] = "checkpoint",
		[CHECK_FOREIGN] = "foreign", [CHECK_MESSAGE] = "message",
		[CHECK_ORPHAN] = "orphan",
	};
	assert(fault < sizeof name / sizeof name[0] && name[fault]);
	return name[fault];
}

static void tell_finding(struct checking *c, struct check_finding f)
{
	f.left = c->check->after_repair;
	c->check->summary.faults++;
	c->check->found(c->check->owner, &f);
}

static void tell_file(struct checking *c, enum check_fault fault, const char *folder,
		      const char *file, const char *reason)
{
	tell_finding(c, (struct check_finding){
				.fault = fault, .folder = folder, .file = file, .reason = reason});
}

static void tell_segment(struct checking *c, struct check_finding f)
{
	char name[SEGMENT_NAME];
	f.folder = "log";
	f.file = segment_name(f.seq, name);
	tell_finding(c, f);
}

static bool open_segment(struct checking *c, uint64_t seq, struct buf *error)
{
	char name[SEGMENT_NAME];
	int64_t changed_ms;
	struct segment *g = segment_open(c->at.log, seq, O_RDONLY, &changed_ms);
	if (g) {
		struct replay *r = &c->replay;
		r->segment = mem_realloc(r->segment, (r->nsegment + 1) * sizeof *r->segment);
		r->segment[r->nsegment++] = g;
		c->check->summary.bytes += g->size;
		return true;
	}
	segment_name(seq, name);
	if (errno != EBADMSG) {
		buf_printf(error, "log/%s: %s", name, strerror(errno));
		return false;
	}
	if (!inventory_blank(c->at.log, name))
		tell_segment(c, (struct check_finding){
					.fault = CHECK_HEAD,
					.seq = seq,
					.reason = "both of its heads are damaged; nothing in it "
						  "can be read"});
	return true;
}

static void look_at_checkpoint(struct checking *c)
{
	struct checkpoint_row *row;
	size_t n;
	if (!checkpoint_read(c->at.log, &row, &n))
		tell_file(c, CHECK_CHECKPOINT, "log", CHECKPOINT_NAME, "it is damaged");
	for (size_t i = 0; i < n; i++)
		if (!row[i].gone && !inventory_has(&c->names, row[i].seq))
			tell_segment(c, (struct check_finding){.fault = CHECK_MISSING,
							       .seq = row[i].seq,
							       .reason = "the segment is missing"});
	for (size_t i = 0; i < c->replay.nsegment; i++)
		checkpoint_judge(row, n, c->replay.segment[i]);
	free(row);
}

static void tell_regions(struct checking *c, const struct segment *g, const struct survey *v)
{
	for (size_t i = 0; i < v->n; i++) {
		const struct region *w = &v->region[i];
		tell_segment(c, (struct check_finding){
					.fault = w->damage ? CHECK_DAMAGED : CHECK_TORN,
					.seq = g->head.seq,
					.offset = w->from,
					.bytes = w->to - w->from,
					.id = w->id,
					.reason = w->damage ? "damaged" : "torn by a crash"});
	}
}

static void read_segment(struct checking *c, size_t i)
{
	struct segment *g = c->replay.segment[i];
	struct survey v;
	survey_segment(&v, &c->replay, i);
	/* One that a crash left while it was made may have half a head, and has nothing else. */
	if (v.end > SEGMENT_BEGIN && !segment_heads_agree(g))
		tell_segment(c, (struct check_finding){
					.fault = CHECK_HEAD,
					.seq = g->head.seq,
					.reason = "one of its heads is damaged; it is read by "
						  "the other"});
	tell_regions(c, g, &v);
	if (v.cut_short)
		tell_segment(c, (struct check_finding){.fault = CHECK_SHORT,
						       .seq = g->head.seq,
						       .offset = g->size,
						       .bytes = g->head.size - g->size,
						       .reason = "cut short"});
	survey_fini(&v);
}

static void count_message(struct checking *c, const struct stub *stub, const struct envelope *e)
{
	static const enum spool_queue queue[] = {
		[STUB_INCOMING] = SPOOL_INCOMING,
		[STUB_ACTIVE] = SPOOL_ACTIVE,
		[STUB_DEFERRED] = SPOOL_DEFERRED,
		[STUB_HELD] = SPOOL_HOLD,
	};
	struct check_summary *sum = &c->check->summary;
	uint32_t left = envelope_open(e);
	if (left == 0)
		return; /* only the record that it is finished was lost: a start writes it */
	assert(stub->state < sizeof queue / sizeof queue[0]);
	sum->messages[queue[stub->state]]++;
	sum->recipients += left;
	if (!sum->oldest || e->arrived_ms < sum->oldest_ms) {
		sum->oldest = stub->id;
		sum->oldest_ms = e->arrived_ms;
	}
	sum->needed += stub->envelope.size + (stub->large ? e->size : stub->content.size);
	for (size_t i = 0; stub->work && i < stub->work->nplace; i++)
		sum->needed += stub->work->place[i].size;
}

static void look_at_message(struct checking *c, struct stub *stub)
{
	struct envelope *e;
	replay_end(stub);
	if (!stub->envelope.segment)
		return;
	const char *wrong = verify_message(c->at.large, stub, &e);
	if (!wrong)
		count_message(c, stub, e);
	else if (verify_promised(stub))
		tell_segment(c, (struct check_finding){.fault = CHECK_MESSAGE,
						       .seq = stub->envelope.segment->head.seq,
						       .offset = stub->envelope.offset,
						       .bytes = stub->envelope.size,
						       .id = stub->id,
						       .reason = wrong});
	else
		stub->envelope.segment = NULL;
	envelope_free(&e);
}

static bool has_message(const struct checking *c, uint64_t id)
{
	const struct stub *found = found_among(c->stub, c->n, id);
	return found && found->envelope.segment && found->large;
}

static void look_at_large(void *owner, const char *name)
{
	struct checking *c = owner;
	uint64_t id, size = 0;
	int64_t changed_ms;
	int fd = disk_open(c->at.large, name, O_RDONLY);
	if (fd >= 0 && disk_size(fd, &size, &changed_ms) == 0)
		c->check->summary.bytes += size;
	if (fd >= 0)
		disk_close(fd);
	if (!inventory_large(name, &id))
		tell_file(c, CHECK_FOREIGN, "large", name, "not a file of this queue");
	else if (!has_message(c, id))
		tell_finding(c, (struct check_finding){.fault = CHECK_ORPHAN,
						       .folder = "large",
						       .file = name,
						       .id = id,
						       .reason = "it belongs to no message"});
}

static bool read_log(struct checking *c, struct buf *error)
{
	if (!inventory_read(&c->names, c->at.log)) {
		buf_printf(error, "log: %s", strerror(errno));
		return false;
	}
	for (size_t i = 0; i < c->names.n; i++)
		if (!open_segment(c, c->names.seq[i], error))
			return false;
	for (size_t i = 0; i < c->names.nforeign; i++)
		tell_file(c, CHECK_FOREIGN, "log", c->names.foreign[i], "not a file of this queue");
	look_at_checkpoint(c);
	c->check->summary.segments = c->replay.nsegment;
	for (size_t i = 0; i < c->replay.nsegment; i++)
		read_segment(c, i);
	return true;
}

static void fini_checking(struct checking *c)
{
	struct journal none = {.emptied = false};
	if (!c->stub)
		c->stub = found_take(&c->replay.found, &c->n);
	for (size_t i = 0; i < c->n; i++)
		work_free(c->stub[i]->work, &none);
	for (size_t i = 0; i < c->replay.nsegment; i++)
		segment_free(&c->replay.segment[i]);
	free(c->replay.segment);
	free(c->stub);
	replay_fini(&c->replay);
	inventory_fini(&c->names);
	check_folders_close(&c->at);
}

bool spool_check(const struct conf *conf, struct check *check, struct buf *error)
{
	struct checking c = {.check = check};
	check->summary = (struct check_summary){.format = 0};
	bool ok = check_folders_open(&c.at, conf->spool, &check->summary.format, error);
	if (ok && c.at.log >= 0)
		ok = read_log(&c, error);
	if (ok) {
		replay_end_all(&c.replay);
		c.stub = found_take(&c.replay.found, &c.n);
		for (size_t i = 0; i < c.n; i++)
			look_at_message(&c, c.stub[i]);
	}
	if (ok && c.at.large >= 0 && disk_each(c.at.large, look_at_large, &c) != 0) {
		buf_printf(error, "%s/large: %s", conf->spool, strerror(errno));
		ok = false;
	}
	fini_checking(&c);
	return ok;
}
