/* SPDX-License-Identifier: ISC */
/* A queue on a disk in memory whose files are damaged as the input says, then a start. No message
 * comes that nobody has brought, none with another content or other people in its envelope; and one
 * that lies in files that were not touched is there.
 *
 * The first byte chooses the history that filled the queue; then eight bytes a blow: which file, what,
 * where (3), where from (2), how much (1). */
#include "tests/fuzz/fuzz.h"

#include "base/ident.h"
#include "base/mem.h"
#include "spool/scan.h"
#include "spool/segment.h"
#include "tests/unit/spool/edges.h"
#include "tests/unit/spool/world.h"

#include <fcntl.h>

enum { HISTORIES = 8, STEPS = 60, FILES_MAX = 64, BLOW = 8, BLOWS_MAX = 16, LATE_MS = 4000000 };

enum blow { BLOW_FLIP, BLOW_ZERO, BLOW_CUT, BLOW_REPEAT, BLOW_SWAP, BLOW_OTHER, BLOW_NOISE, BLOWS };

/* One file of the queue, and the messages that have records in it. */
struct file {
	char *path;
	uint64_t promises; /* bits, by their places in the promises */
	bool touched;
};

static struct past {
	struct memdisk *disk;
	struct promises promises;
	uint64_t there; /* promises that an undisturbed start finds */
	struct file file[FILES_MAX];
	int nfile;
} past[HISTORIES];

/* What the start under test said. */
static struct {
	const struct past *of;
	struct loop *loop;
	struct spool *spool;
	uint64_t seen; /* promises */
	bool ended;
} start;

static int number_of(const struct promises *b, uint64_t id)
{
	for (int i = 0; i < b->n; i++)
		if (b->promise[i].id == id)
			return i;
	return -1;
}

/* --- the files of a queue */

static void find_promises(struct past *h, struct file *f, int fd)
{
	uint64_t size;
	int64_t changed_ms;
	uint8_t head[SEGMENT_HEAD];
	struct segment_head s;
	if (!strstr(f->path, ".seg") || disk_size(fd, &size, &changed_ms) != 0 ||
	    disk_read(fd, head, sizeof head, 0) != (ssize_t)sizeof head ||
	    !segment_head_get(head, &s))
		return;
	struct scan scan;
	scan_init(&scan, fd, segment_head_seed(&s), size);
	enum scan_result r;
	while ((r = scan_next(&scan)) == SCAN_RECORD || r == SCAN_DAMAGE) {
		int n = r == SCAN_RECORD ? number_of(&h->promises, scan.record.id) : -1;
		if (n >= 0)
			f->promises |= UINT64_C(1) << n;
	}
	scan_fini(&scan);
}

static void take_file(void *owner, const char *path, int fd)
{
	struct past *h = owner;
	const char *large = strstr(path, "/large/");
	if (h->nfile == FILES_MAX)
		abort();
	struct file *f = &h->file[h->nfile++];
	uint64_t id;
	f->path = mem_strdup(path);
	find_promises(h, f, fd);
	if (large && ident_parse(large + strlen("/large/"), &id) &&
	    number_of(&h->promises, id) >= 0)
		f->promises |= UINT64_C(1) << number_of(&h->promises, id);
}

/* --- the blows */

static void strike(struct past *h, const uint8_t *blow)
{
	struct file *f = &h->file[blow[0] % h->nfile];
	const struct file *other = &h->file[blow[5] % h->nfile];
	uint8_t here[256], there[256];
	uint64_t size, other_size;
	int64_t changed_ms;
	int fd = disk_open(AT_FDCWD, f->path, O_RDWR);
	int from = disk_open(AT_FDCWD, other->path, O_RDONLY);
	if (fd < 0 || from < 0 || disk_size(fd, &size, &changed_ms) != 0 ||
	    disk_size(from, &other_size, &changed_ms) != 0)
		abort();
	uint64_t at =
		size ? (blow[2] | (uint64_t)blow[3] << 8 | (uint64_t)blow[4] << 16) % size : 0;
	uint64_t off = size ? (blow[5] | (uint64_t)blow[6] << 8) % size : 0;
	size_t len = (size_t)blow[7] + 1;
	ssize_t n = disk_read(fd, here, len, at), m = disk_read(fd, there, len, off);
	enum blow what = blow[1] % BLOWS;
	size_t both = (size_t)(n < m ? n : m);
	struct iovec to_there = {here, both}, to_here = {there, both};
	if (what == BLOW_CUT) {
		disk_truncate(fd, at);
	} else if (what == BLOW_REPEAT) {
		disk_write(fd, &to_there, 1, off);
	} else if (what == BLOW_SWAP) {
		disk_write(fd, &to_there, 1, off);
		disk_write(fd, &to_here, 1, at);
	} else {
		if (what == BLOW_OTHER)
			n = disk_read(from, here, len, at < other_size ? at : 0);
		for (ssize_t i = 0; i < n && what != BLOW_OTHER; i++)
			here[i] = (uint8_t)(what == BLOW_FLIP ? here[i] ^ (i ? 0 : 1 << blow[6] % 8)
					    : what == BLOW_ZERO ? 0
								: here[i] * 5 + blow[6] + i);
		disk_write(fd, &(struct iovec){here, (size_t)n}, 1, at);
	}
	disk_sync(fd);
	disk_close(fd);
	disk_close(from);
	f->touched = true;
}

/* --- the start */

static void check_envelope(const struct envelope *e)
{
	const struct promises *b = &start.of->promises;
	int n = number_of(b, e->id);
	assert(n >= 0);
	struct envelope *first = promise_envelope(&b->promise[n]);
	assert(strcmp(first->sender, e->sender) == 0 && first->nrcpt == e->nrcpt);
	for (uint32_t i = 0; i < e->nrcpt; i++)
		assert(strcmp(first->rcpt[i].address, e->rcpt[i].address) == 0);
	envelope_free(&first);
	start.seen |= UINT64_C(1) << n;
}

/* What its sum gives away is not sent: smtpc asks the same before the end of the content. */
static void check_content(uint64_t id, const struct content *c)
{
	const struct promises *b = &start.of->promises;
	const struct promise *l = &b->promise[number_of(b, id)];
	char *bytes = mem_alloc(c->size + 1);
	uint32_t sum = 0;
	ssize_t n = content_read(c, 0, bytes, c->size);
	if (n == (ssize_t)c->size && content_intact(c, &sum, 0, bytes, c->size))
		assert(!promises_check_content(l, c));
	free(bytes);
}

static void hear(void *owner, struct note *note)
{
	(void)owner;
	if (note->type == SPOOL_ARRIVAL) {
		struct spool_arrival *a = (struct spool_arrival *)note;
		check_envelope(a->envelope);
		check_content(a->envelope->id, a->content);
		envelope_free(&a->envelope);
		content_unref(a->content);
		free(a);
	} else if (note->type == SPOOL_COMMAND) {
		struct spool_command *c = (struct spool_command *)note;
		for (int i = 0; i < c->nrow; i++)
			check_envelope(c->row[i].envelope);
		start.ended = true;
		spool_command_free(&c);
	} else {
		if (note->type == SPOOL_MOVED)
			content_unref(((struct spool_moved *)note)->content);
		free(note);
	}
}

static void post(struct note *note)
{
	loop_post(spool_loop(start.spool), note);
}

/* All of it is listed, and handed to qmgr. */
static void look_at_all(void)
{
	struct spool_command *c = spool_command_new(SPOOL_LIST, start.loop, NULL);
	struct spool_credit *credit = mem_zalloc(sizeof *credit);
	c->limit = PROMISES;
	credit->note.type = SPOOL_CREDIT;
	credit->n = PROMISES;
	post(&c->note);
	edges_threads(INT32_MAX);
	edges_settle();
	post(&credit->note);
	edges_pass(LATE_MS);
	edges_settle();
}

static void check_kept(const struct past *h)
{
	uint64_t harmed = 0;
	for (int i = 0; i < h->nfile; i++)
		harmed |= h->file[i].touched ? h->file[i].promises : 0;
	assert(!(h->there & ~harmed & ~start.seen));
}

static void play(struct past *h, struct memdisk *disk, struct conf *conf)
{
	struct buf error;
	buf_init(&error);
	memset(&start, 0, sizeof start);
	start.of = h;
	start.loop = loop_new("client", hear, NULL, NULL);
	start.spool = spool_new(conf, start.loop, &error);
	if (start.spool) {
		loop_start(start.loop);
		spool_start(start.spool);
		look_at_all();
		assert(start.ended);
		check_kept(h);
		memdisk_freeze(disk, true);
		loop_stop(spool_loop(start.spool));
		spool_free(&start.spool);
		memdisk_freeze(disk, false);
	}
	loop_free(&start.loop);
	assert(memdisk_descriptors() == 0);
	buf_fini(&error);
}

static void play_blows(struct past *h, const uint8_t *blow, size_t n)
{
	struct chance none = {.state = 1};
	static struct conf *conf;
	if (!conf) {
		conf = conf_defaults();
		free(conf->spool);
		conf->spool = mem_strdup("/var/spool/sluice");
		conf->segment_size = 24 << 10;
	}
	edges_begin();
	edges_stepped(false);
	edges_listen(NULL, NULL);
	struct memdisk *disk = memdisk_cut(h->disk, &none);
	memdisk_use(disk, NULL, NULL);
	for (int i = 0; i < h->nfile; i++)
		h->file[i].touched = false;
	for (size_t i = 0; i < n && i < BLOWS_MAX; i++)
		strike(h, blow + i * BLOW);
	play(h, disk, conf);
	memdisk_free(&disk);
}

/* --- the history */

static void make_history(struct past *h, int number)
{
	struct world w;
	world_seed = (uint64_t)number;
	edges_begin();
	edges_stepped(false);
	world_init(&w, memdisk_new(), (uint64_t)(number + 1) << 8);
	world_open(&w);
	for (int i = 0; i < STEPS; i++)
		world_step(&w);
	world_pass_long(&w);
	world_stop(&w);
	struct chance none = {.state = 1};
	h->disk = memdisk_cut(w.disk, &none);
	h->promises = w.promises;
	memdisk_files(h->disk, take_file, h);
	world_fini(&w);
	play_blows(h, NULL, 0);
	h->there = start.seen;
	assert(h->there);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	struct past *h = &past[data[0] % HISTORIES];
	if (!h->disk)
		make_history(h, data[0] % HISTORIES);
	play_blows(h, data + 1, (size - 1) / BLOW);
	return 0;
}
