/* SPDX-License-Identifier: ISC */
#include "spool/spool_look.h"

#include "base/mem.h"
#include "spool/check_open.h"
#include "spool/checkpoint.h"
#include "spool/disk.h"
#include "spool/inventory.h"
#include "spool/journal.h"
#include "spool/older_copy.h"
#include "spool/spool_core.h"
#include "spool/survey.h"
#include "spool/verify.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct spool_look {
	struct spool spool; /* its index and its folders; the rest is not used */
	char *folder;
	struct check_folders at;
	struct inventory names;
	struct replay replay;
	struct older_copies older;
	bool unreadable; /* some page of the log */
};

static void receive_command(void *owner, struct note *note)
{
	struct spool_look *l = owner;
	assert(note->type == SPOOL_COMMAND);
	operator_look(&l->spool, (struct spool_command *)note);
}

/* One without a right head tells nothing, nor does one whose name a crash has left alone. */
static bool open_segment(struct spool_look *l, uint64_t seq, struct buf *error)
{
	struct replay *r = &l->replay;
	char name[SEGMENT_NAME];
	int64_t changed_ms;
	struct segment *g = segment_open(l->at.log, seq, O_RDONLY, &changed_ms);
	if (!g && errno == EBADMSG)
		return true;
	if (!g) {
		buf_printf(error, "%s/log/%s: %s", l->folder, segment_name(seq, name),
			   strerror(errno));
		return false;
	}
	r->segment = mem_realloc(r->segment, (r->nsegment + 1) * sizeof *r->segment);
	r->segment[r->nsegment++] = g;
	return true;
}

/* One that is damaged says nothing. */
static void judge_segments(const struct spool_look *l)
{
	struct checkpoint_row *row;
	size_t n;
	checkpoint_read(l->at.log, &row, &n);
	for (size_t i = 0; i < l->replay.nsegment; i++)
		checkpoint_judge(row, n, l->replay.segment[i]);
	free(row);
}

static bool read_log(struct spool_look *l, struct buf *error)
{
	struct survey v;
	if (!inventory_read(&l->names, l->at.log)) {
		buf_printf(error, "%s/log: %s", l->folder, strerror(errno));
		return false;
	}
	for (size_t i = 0; i < l->names.n; i++)
		if (!open_segment(l, l->names.seq[i], error))
			return false;
	judge_segments(l);
	for (size_t i = 0; i < l->replay.nsegment; i++) {
		survey_segment(&v, &l->replay, i);
		l->unreadable |= v.unreadable;
		survey_fini(&v);
	}
	return true;
}

static bool all_done(const struct stub *stub)
{
	struct envelope *e = stub->state == STUB_ACTIVE ? fetch_envelope(stub) : NULL;
	bool done = e && envelope_open(e) == 0;
	envelope_free(&e);
	return done;
}

/* A start would have it in the queue. */
static bool is_there(struct stub *stub)
{
	replay_end(stub);
	if (!stub->envelope.segment || all_done(stub))
		return false;
	return stub->seen || stub->large || verify_promised(stub);
}

static void make_index(struct spool_look *l)
{
	struct journal none = {.emptied = false};
	struct found *found = &l->replay.found;
	size_t n, kept = 0;
	replay_end_all(&l->replay);
	struct stub **stub = found_take(found, &n);
	for (size_t i = 0; i < n; i++) {
		if (is_there(stub[i])) {
			stub[kept++] = stub[i];
			continue;
		}
		work_free(stub[i]->work, &none);
		domains_drop(&found->domains, stub[i]);
		stub_free(&found->pool, stub[i]);
	}
	stub_pool_join(&l->spool.stubs, &found->pool);
	domains_move(&l->spool.domains, &found->domains, stub, kept);
	catalog_merge(&l->spool.catalog, stub, kept);
	free(stub);
}

/* From now on a relay may start. */
static void release_lock(struct spool_look *l)
{
	if (l->at.lock >= 0)
		disk_close(l->at.lock);
	l->at.lock = -1;
}

struct spool_look *spool_look_new(struct conf *conf, const char *folder, struct buf *error)
{
	struct spool_look *l = mem_zalloc(sizeof *l);
	int format;
	l->spool.conf = conf_ref(conf);
	l->folder = mem_strdup(folder);
	domains_init(&l->spool.domains);
	l->spool.loop = loop_new("look", receive_command, NULL, l);
	bool ok = check_folders_open(&l->at, folder, &format, error);
	if (ok && l->at.log < 0) {
		buf_printf(error, "%s: there is no queue", folder);
		ok = false;
	}
	l->spool.large = l->at.large;
	if (!ok || !read_log(l, error)) {
		spool_look_free(&l);
		return NULL;
	}
	make_index(l);
	release_lock(l);
	loop_start(l->spool.loop);
	return l;
}

void spool_look_free(struct spool_look **lp)
{
	struct journal none = {.emptied = false};
	struct spool_look *l = *lp;
	if (!l)
		return;
	loop_stop(l->spool.loop);
	loop_free(&l->spool.loop);
	struct catalog_at at = catalog_from(&l->spool.catalog, 0);
	for (struct stub *stub; (stub = catalog_step(&l->spool.catalog, &at));)
		work_free(stub->work, &none);
	catalog_fini(&l->spool.catalog);
	stub_pool_fini(&l->spool.stubs);
	domains_fini(&l->spool.domains);
	for (size_t i = 0; i < l->replay.nsegment; i++)
		segment_free(&l->replay.segment[i]);
	free(l->replay.segment);
	older_copies_fini(&l->older);
	replay_fini(&l->replay);
	inventory_fini(&l->names);
	check_folders_close(&l->at);
	conf_unref(l->spool.conf);
	free(l->folder);
	free(l);
	*lp = NULL;
}

size_t spool_look_ids(const struct spool_look *l, uint64_t after, uint64_t *id, size_t most)
{
	const struct stub *stub;
	size_t n = 0;
	while (n < most && (stub = catalog_next(&l->spool.catalog, after)))
		id[n++] = after = stub->id;
	return n;
}

bool spool_look_unreadable(const struct spool_look *l)
{
	return l->unreadable;
}

struct content *spool_look_older(struct spool_look *l, uint64_t id, uint64_t size)
{
	return older_copy(&l->older, l->replay.segment, l->replay.nsegment, id, size);
}

struct loop *spool_look_loop(struct spool_look *l)
{
	return l->spool.loop;
}
