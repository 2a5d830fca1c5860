/* SPDX-License-Identifier: ISC */
#include "spool/journal.h"

#include "base/log.h"
#include "base/metrics.h"
#include "spool/disk.h"
#include "spool/removal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>

enum { LANE_SHARE = 8 }; /* segments of the other lanes are so much smaller */
enum { RESERVE_MIN = 64 << 10, RESERVE_MAX = 4 << 20, MAKE_AGAIN_MS = 1000 };
enum { ROOM_SHARE = 4 }; /* a segment takes so much less than there is room for: others come */

static struct segment *segment_of(struct list *link)
{
	return list_entry(link, struct segment, link);
}

static uint64_t clamp_size(uint64_t n, uint64_t low, uint64_t high)
{
	return n < low ? low : n > high ? high : n;
}

void journal_init(struct journal *j, uint64_t segment_size)
{
	*j = (struct journal){
		.folder = -1, .next_seq = 1, .renew_above = UINT64_MAX, .room = INT64_MAX};
	list_init(&j->segments);
	list_init(&j->older);
	for (uint32_t i = 0; i < LANES; i++)
		lane_init(&j->lane[i], i,
			  i == LANE_MAIN ? segment_size
					 : clamp_size(segment_size / LANE_SHARE, RESERVE_MIN,
						      segment_size));
}

void journal_fini(struct journal *j)
{
	journal_join(j);
	list_each (link, tmp, &j->segments) {
		struct segment *s = segment_of(link);
		segment_free(&s);
	}
	assert(list_empty(&j->segments));
	for (uint32_t i = 0; i < LANES; i++)
		lane_fini(&j->lane[i]);
}

/* One that was planned may come behind another that was made since. */
static void insert_segment(struct journal *j, struct segment *s)
{
	struct list *behind = j->segments.prev;
	while (behind != &j->segments && segment_of(behind)->head.seq > s->head.seq)
		behind = behind->prev;
	list_prepend(behind, &s->link);
}

static struct segment *enter_planned(struct journal *j, struct lane *l, struct segment *s)
{
	assert(s->head.seq < j->next_seq && s->head.lane == l->number);
	insert_segment(j, s);
	l->began = true;
	j->changed = true;
	replicate_segment(j->keeper, s, false);
	return s;
}

static struct segment *enter_made(struct journal *j, struct lane *l, struct segment *s)
{
	j->next_seq++; /* of one that failed, something may be left */
	return s ? enter_planned(j, l, s) : NULL;
}

/* Segments that are only kept for later go first. */
static bool make_room(struct journal *j)
{
	if (!disk_means_full(errno) || j->spares.n == 0)
		return false;
	spares_drop(&j->spares);
	return true;
}

static uint64_t reserve_size(const struct journal *j)
{
	return clamp_size(j->lane[LANE_MAIN].segment_size / 4, RESERVE_MIN, RESERVE_MAX);
}

static uint64_t least_size(const struct journal *j, const struct lane *l)
{
	return clamp_size(reserve_size(j), 0, l->segment_size);
}

bool journal_lacks_room(const struct journal *j)
{
	return !j->reserve && disk_means_full(j->reserve_error);
}

int64_t journal_usable_room(const struct journal *j)
{
	return journal_lacks_room(j) || j->room < 0 ? 0 : j->room;
}

static uint64_t fitting_size(const struct journal *j, const struct lane *l)
{
	uint64_t share = (uint64_t)journal_usable_room(j) / ROOM_SHARE;
	return clamp_size(share - share % RESERVE_MIN, least_size(j, l), l->segment_size);
}

static struct segment *create_sized(struct journal *j, struct lane *l, uint64_t size)
{
	struct segment *s = segment_create(j->folder, j->next_seq, size, l->number, !l->began);
	metrics_add(METRIC_files_created, s != NULL);
	if (s)
		j->room -= (int64_t)size;
	return enter_made(j, l, s);
}

/* A quota shows only where it is exceeded: less may still fit into it. */
static struct segment *create_segment(struct journal *j, struct lane *l)
{
	const uint64_t least = least_size(j, l);
	uint64_t size = fitting_size(j, l);
	struct segment *s = create_sized(j, l, size);
	while (!s && disk_means_full(errno)) {
		if (!make_room(j)) {
			if (size == least)
				break;
			size = clamp_size(size / 2, least, size);
		}
		s = create_sized(j, l, size);
	}
	return s;
}

static struct segment *reuse_spare(struct journal *j, struct lane *l)
{
	if (l->number != LANE_MAIN || j->spares.n == 0 || j->planned)
		return NULL;
	return enter_made(j, l, spares_take(&j->spares, j->next_seq, l->number, !l->began));
}

static struct segment *make_segment(struct journal *j, struct lane *l)
{
	struct segment *s = reuse_spare(j, l);
	return s ? s : create_segment(j, l);
}

static struct segment *use_reserve(struct journal *j, struct lane *l)
{
	if (!j->reserve || !j->reserve_allowed)
		return NULL;
	j->reserve = false;
	j->reserve_error = errno;
	return enter_made(
		j, l, segment_adopt(j->folder, JOURNAL_RESERVE, j->next_seq, l->number, !l->began));
}

static bool open_current(struct journal *j, struct lane *l)
{
	if (l->current)
		return true;
	l->current = l->next ? l->next : make_segment(j, l);
	l->next = NULL;
	if (!l->current && l->number == LANE_MAIN)
		l->current = use_reserve(j, l);
	return l->current;
}

bool journal_fresh(struct journal *j)
{
	return open_current(j, &j->lane[LANE_MAIN]);
}

static bool make_reserve(struct journal *j)
{
	int fd = disk_open(j->folder, JOURNAL_RESERVE, O_RDWR | O_CREAT);
	if (fd < 0)
		return false;
	bool ok = disk_allocate(fd, reserve_size(j)) == 0 && disk_sync(fd) == 0 &&
		  disk_sync(j->folder) == 0;
	disk_close(fd);
	if (!ok)
		disk_unlink(j->folder, JOURNAL_RESERVE);
	return ok;
}

void journal_room(struct journal *j, int64_t bytes)
{
	j->room = bytes;
	j->spares.unwanted = bytes < (int64_t)(j->spares.size * SPARES_MAX);
	if (j->spares.unwanted)
		spares_drop(&j->spares);
}

static bool next_is_due(const struct journal *j)
{
	const struct lane *l = &j->lane[LANE_MAIN];
	return j->reserve && !j->planned && l->current && !l->next &&
	       l->current->end > l->current->size / 2;
}

bool journal_plan_next(struct journal *j, int64_t now_ms, struct journal_plan *plan)
{
	if (!next_is_due(j) || (j->unmade && now_ms - j->planned_ms < MAKE_AGAIN_MS))
		return false;
	j->planned_ms = now_ms;
	*plan = (struct journal_plan){.seq = j->next_seq++,
				      .size = fitting_size(j, &j->lane[LANE_MAIN])};
	spares_claim(&j->spares, plan->spare);
	j->planned = true;
	return true;
}

struct segment *journal_make_planned(int folder, const struct journal_plan *plan)
{
	return *plan->spare ? segment_adopt(folder, plan->spare, plan->seq, LANE_MAIN, false)
			    : segment_create(folder, plan->seq, plan->size, LANE_MAIN, false);
}

/* Another was made in its place: what is written behind that must not lie before it. */
static bool is_late(const struct journal *j, const struct segment *s)
{
	if (j->lane[LANE_MAIN].next)
		return true;
	for (const struct list *l = j->segments.prev; l != &j->segments; l = l->prev) {
		const struct segment *other = list_entry(l, struct segment, link);
		if (other->head.seq > s->head.seq && other->head.lane == LANE_MAIN)
			return true;
	}
	return false;
}

static void drop_late(const struct journal *j, struct segment *s)
{
	char name[SEGMENT_NAME];
	struct content_file *file = content_file_ref(s->file);
	disk_unlink(j->folder, segment_name(s->head.seq, name));
	segment_free(&s);
	removal_of_file(j->removers, file);
}

void journal_planned(struct journal *j, const struct journal_plan *plan, struct segment *s)
{
	struct lane *l = &j->lane[LANE_MAIN];
	assert(j->planned);
	assert(!s || s->head.seq == plan->seq);
	j->planned = false;
	metrics_add(METRIC_files_created, s && !*plan->spare);
	if (s && !*plan->spare)
		j->room -= (int64_t)s->size;
	if (s && is_late(j, s))
		drop_late(j, s);
	else if (s)
		l->next = enter_planned(j, l, s);
	else if (next_is_due(j))
		l->next = make_segment(j, l);
	j->unmade = !s && !l->next;
}

void journal_prepare(struct journal *j, int64_t now_ms)
{
	if (!j->reserve && (!j->reserve_tried || now_ms - j->reserve_tried >= MAKE_AGAIN_MS)) {
		j->reserve_tried = now_ms;
		j->reserve = make_reserve(j) || (make_room(j) && make_reserve(j));
		j->reserve_error = errno;
	}
}

int journal_reserve_error(const struct journal *j)
{
	return j->reserve ? 0 : j->reserve_error;
}

static bool sync_lane(const struct lane *l)
{
	const struct segment *s = l->current;
	return !s || !s->dirty || disk_datasync(s->file->fd) == 0;
}

static void lane_is_synced(struct lane *l)
{
	struct segment *s = l->current;
	if (!s || !s->dirty)
		return;
	assert(s->synced <= s->end);
	s->synced = s->end;
	s->dirty = false;
	metrics_add(METRIC_commits, 1);
}

static bool write_lane(struct journal *j, struct lane *l)
{
	bool any = l->npiece > 0;
	if (!lane_write(l))
		return false;
	if (any)
		replicate_written(j->keeper, l->current);
	return true;
}

/* To a reader it says that all of the segment is on stable storage, so it is written when that is so. It is synced with the
 * batch in which the segment was closed: before anything may go that what lies there belongs to. */
static bool write_end(struct journal *j, struct lane *l)
{
	lane_add_end(l);
	if (!write_lane(j, l))
		return false;
	l->current->synced = l->current->end;
	l->current->dirty = false;
	return true;
}

/* On stable storage before the next one is written to: a reader may rely on what closed segments
 * say. */
static bool close_current(struct journal *j, struct lane *l)
{
	assert(l->current->before == 0);
	l->current->before = l->current->synced;
	j->closed = true;
	if (!write_lane(j, l) || !sync_lane(l))
		return false;
	lane_is_synced(l);
	if (!write_end(j, l))
		return false;
	l->current = NULL;
	j->emptied = true; /* it may never have been needed */
	return true;
}

bool journal_renew(struct journal *j)
{
	uint64_t most = j->renew_above;
	if (most == UINT64_MAX)
		return true;
	j->renew_above = UINT64_MAX;
	for (uint32_t i = 0; i < LANES; i++) {
		struct lane *l = &j->lane[i];
		if (l->current && l->current->end > most && !close_current(j, l))
			return false;
	}
	return true;
}

static struct lane *find_room(struct journal *j, uint32_t number, uint64_t bytes)
{
	struct lane *l = &j->lane[number];
	if (lane_has_room(l, bytes))
		return l;
	if (l->current && !close_current(j, l))
		return NULL;
	if (open_current(j, l))
		return l;
	return number == LANE_MAIN ? NULL : find_room(j, LANE_MAIN, bytes);
}

bool journal_add(struct journal *j, uint32_t lane, const struct record *what, const void *payload,
		 bool borrow, struct place *place)
{
	assert(lane < LANES);
	struct lane *l = find_room(j, lane, record_size(what->length));
	if (l)
		lane_add(l, what, payload, borrow, place);
	return l;
}

bool journal_write(struct journal *j)
{
	for (uint32_t i = 0; i < LANES; i++) {
		j->written |= j->lane[i].npiece > 0;
		if (!write_lane(j, &j->lane[i]))
			return false;
	}
	return true;
}

static bool sync_ends(const struct journal *j)
{
	for (const struct list *l = j->segments.next; j->closed && l != &j->segments; l = l->next) {
		const struct segment *s = list_entry(l, struct segment, link);
		if (s->before && disk_datasync(s->file->fd) != 0)
			return false;
	}
	return true;
}

bool journal_sync(struct journal *j)
{
	/* All of it, or none: what is written again after a failure must be cut off every lane. */
	for (uint32_t i = 0; i < LANES; i++)
		if (!sync_lane(&j->lane[i]))
			return false;
	if (!sync_ends(j))
		return false;
	for (uint32_t i = 0; i < LANES; i++)
		lane_is_synced(&j->lane[i]);
	for (struct list *s = j->segments.next; j->closed && s != &j->segments; s = s->next)
		segment_of(s)->before = 0;
	j->closed = false;
	return true;
}

bool journal_say_synced(struct journal *j)
{
	bool any = false;
	for (uint32_t i = 0; i < LANES; i++)
		any |= lane_add_synced(&j->lane[i]);
	return any && journal_write(j);
}

static void abandon_segment(struct journal *j, struct segment *s)
{
	char name[SEGMENT_NAME];
	uint64_t end = s->before ? s->before : s->synced;
	assert(end <= s->end);
	bool cut = segment_seal(s, end) ||
		   (disk_truncate(s->file->fd, end) == 0 && disk_sync(s->file->fd) == 0);
	log_event(LOG_LEVEL_ERROR, "abandoned", "segment", segment_name(s->head.seq, name),
		  "offset", log_number((int64_t)end), "tail", cut ? "cut" : "left", NULL);
	s->end = s->synced = end;
	s->dirty = false;
	s->before = 0;
	replicate_cut(j->keeper, s);
}

void journal_abandon(struct journal *j)
{
	metrics_add(METRIC_commit_failures, 1);
	for (uint32_t i = 0; i < LANES; i++) {
		struct lane *l = &j->lane[i];
		bool touched = l->current && (l->current->dirty || l->npiece > 0);
		lane_drop(l);
		if (!touched)
			continue;
		abandon_segment(j, l->current);
		l->current = NULL;
	}
	/* A batch that was refused must be cut off all segments that it lies in. */
	for (struct list *s = j->segments.next; j->closed && s != &j->segments; s = s->next)
		if (segment_of(s)->before)
			abandon_segment(j, segment_of(s));
	j->closed = false;
	j->emptied = true;
}

void journal_let_go(struct journal *j, const struct place *p, enum segment_use use)
{
	if (segment_release(p, use))
		j->emptied = true;
}

void journal_join(struct journal *j)
{
	while (!list_empty(&j->older)) {
		struct list *link = j->older.prev;
		list_remove(link);
		list_prepend(&j->segments, link);
	}
	j->emptied = true;
}

bool journal_open_segment(const struct journal *j, const struct segment *s)
{
	const struct lane *l = &j->lane[s->head.lane < LANES ? s->head.lane : LANE_MAIN];
	return s == l->current || s == l->next;
}

uint64_t journal_bytes(const struct journal *j, uint64_t *live_bytes)
{
	uint64_t bytes = 0;
	*live_bytes = 0;
	for (const struct list *l = j->segments.next; l != &j->segments; l = l->next) {
		const struct segment *s = list_entry(l, struct segment, link);
		if (journal_open_segment(j, s))
			continue;
		bytes += s->size;
		*live_bytes += s->live_bytes;
	}
	return bytes;
}

uint64_t journal_open_bytes(const struct journal *j, uint64_t *live_bytes)
{
	uint64_t bytes = 0;
	*live_bytes = 0;
	for (const struct list *l = j->segments.next; l != &j->segments; l = l->next) {
		const struct segment *s = list_entry(l, struct segment, link);
		if (!journal_open_segment(j, s))
			continue;
		bytes += s->end;
		*live_bytes += s->live_bytes;
	}
	return bytes;
}
