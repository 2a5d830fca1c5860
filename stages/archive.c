/* SPDX-License-Identifier: ISC */
#include "stages/archive.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/tables.h"
#include "stages/archive_mark.h"
#include "stages/archive_report.h"
#include "stages/budget.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COPYING_MAGIC = 0xa7c41fe5 };

/* One message, from the choice of who gets a copy to that copy. */
struct copying {
	unsigned magic;
	struct envelope *envelope; /* of the copy, until it is made */
	struct archive_marks marks;
	struct spool_store *copy;
	int error;
};

bool archive_wanted(const struct conf *c)
{
	return c->archive.to.n > 0 || c->archive.tables.n > 0;
}

static void add_recipient(struct envelope *copy, const char *to)
{
	struct mailaddr a;
	if (mailaddr_mailbox(to, strlen(to), true, &a) != MAILADDR_OK || envelope_has(copy, a.text))
		return;
	envelope_add(copy, a.text)->notify = NOTIFY_NEVER;
	copy->smtputf8 |= a.utf8;
}

static void add_found(struct envelope *copy, char *to)
{
	if (to)
		add_recipient(copy, to);
	free(to);
}

static void add_by_login(const struct conf *c, const char *login, struct envelope *copy)
{
	struct table_origin origin;
	char *key = mem_printf("login:%s", login);
	for (char *p = key; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	add_found(copy, tables_get(c->tables, TABLE_ARCHIVE, key, &origin));
	free(key);
}

static void choose_recipients(const struct passage *p, struct envelope *copy)
{
	const struct conf *c = p->conf;
	const struct envelope *e = p->draft.envelope;
	struct table_origin origin;
	for (int i = 0; i < c->archive.to.n; i++)
		add_recipient(copy, c->archive.to.item[i]);
	if (c->archive.tables.n == 0)
		return;
	add_found(copy, tables_find(c->tables, TABLE_ARCHIVE, e->sender, &origin));
	for (uint32_t i = 0; i < e->nrcpt; i++)
		add_found(copy, tables_find(c->tables, TABLE_ARCHIVE, e->rcpt[i].address, &origin));
	if (p->login)
		add_by_login(c, p->login, copy);
}

/* The message goes to the archive as it is. */
static bool is_there(const struct envelope *e, const struct envelope *copy)
{
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (!envelope_has(copy, e->rcpt[i].address))
			return false;
	return true;
}

/* The address has got a copy of what this is a copy of. */
static bool has_it(const struct passage *p, const struct archive_marks *marks, const char *address)
{
	bool has = archive_marks_has(marks, address, clock_wall_ms(),
				     p->conf->queue.maximal_queue_lifetime);
	if (has)
		log_event(LOG_LEVEL_INFO, "archive", "id", log_id(p->draft.id), "result",
			  "not copied", "to", address, "reason",
			  "it is a copy of a copy that this archive has got", NULL);
	return has;
}

/* NULL: nobody gets a copy. */
static struct envelope *copy_envelope(const struct passage *p, const struct archive_marks *marks)
{
	const struct envelope *e = p->draft.envelope;
	struct envelope *wanted = envelope_new(), *copy = envelope_new();
	choose_recipients(p, wanted);
	bool there = is_there(e, wanted);
	for (uint32_t i = 0; !there && i < wanted->nrcpt; i++)
		if (!has_it(p, marks, wanted->rcpt[i].address))
			add_recipient(copy, wanted->rcpt[i].address);
	envelope_free(&wanted);
	if (copy->nrcpt == 0) {
		envelope_free(&copy);
		return NULL;
	}
	copy->id = ident_new();
	copy->arrived_ms = clock_wall_ms();
	copy->sender = mem_strdup(p->conf->archive.sender);
	copy->body = e->body == BODY_BINARYMIME ? BODY_BINARYMIME : BODY_8BITMIME;
	copy->archive = true;
	copy->flow = mem_strdup(envelope_flow(e));
	if (e->tls == ENVELOPE_TLS_REQUIRED)
		copy->tls = ENVELOPE_TLS_REQUIRED;
	return copy;
}

static int write_copy(const struct passage *p, const struct archive_marks *marks, struct draft *to)
{
	const struct archive_report report = {
		.passage = p,
		.to = to->envelope,
		.marks = marks,
		.hostname = p->conf->own_name,
		.now_ms = date_ms(),
	};
	struct content_writer content;
	content_writer_init(&content, to->spool, to->id);
	content.spills = budget_spent(p->conf);
	int error = archive_report_write(&report, &content);
	if (!error)
		to->size = content_writer_take(&content, &to->content, &to->file);
	content_writer_fini(&content);
	return error;
}

static struct log_held *hold_log(const struct passage *copy, uint64_t original)
{
	const struct envelope *e = copy->draft.envelope;
	assert(e->nrcpt > 0);
	return log_hold(LOG_LEVEL_INFO, "queued", "id", log_id(e->id), "from", e->sender, "to",
			e->rcpt[0].address, "nrcpt", log_number(e->nrcpt), "size",
			log_number((int64_t)copy->draft.size), "flow", envelope_flow(e),
			"message_id", log_text("<%s@%s>", log_id(e->id), copy->conf->own_name),
			"archive_of", log_id(original), "signed", copy->signed_by, NULL);
}

/* The copy has a way of its own to the queue; it takes the envelope. */
static int make_copy(const struct passage *p, struct copying *c)
{
	const struct passage_stage *signs = passage_context(p);
	assert(c->envelope && !c->copy);
	struct passage *copy = passage_new(p->conf, NULL, NULL, p->draft.spool, c->envelope->id);
	copy->draft.envelope = c->envelope;
	c->envelope = NULL;
	if (signs)
		passage_add(copy, signs, NULL);
	int error = write_copy(p, &c->marks, &copy->draft);
	if (!error && passage_run_here(copy) != PASSAGE_DONE)
		error = copy->error ? copy->error : EIO;
	if (!error) {
		c->copy = mailbox_note(sizeof *c->copy, SPOOL_STORE);
		c->copy->log = hold_log(copy, p->draft.id);
		draft_give(&copy->draft, c->copy);
	}
	passage_free(&copy);
	return error;
}

/* In the pool, but for what is small and not signed. */
static void copy_draft(struct passage *p)
{
	struct copying *c = p->at_work;
	magic_check(c, COPYING_MAGIC);
	c->error = draft_settle(&p->draft) ? make_copy(p, c) : errno;
}

static void copying_free(struct copying *c)
{
	magic_check(c, COPYING_MAGIC);
	envelope_free(&c->envelope);
	archive_marks_fini(&c->marks);
	spool_store_free(&c->copy);
	magic_free(c);
}

static void cancel_copying(struct passage *p)
{
	copying_free(p->at_work);
}

static void finish_copying(struct passage *p)
{
	struct copying *c = p->at_work;
	magic_check(c, COPYING_MAGIC);
	assert(c->error || (c->copy && !p->draft.with));
	int error = c->error;
	if (error) {
		log_event(LOG_LEVEL_ERROR, "archive", "id", log_id(p->draft.id), "result", "failed",
			  "reason", strerror(error), NULL);
	} else {
		p->draft.with = c->copy;
		c->copy = NULL;
		metrics_add(METRIC_archive_copies, 1);
	}
	copying_free(c);
	if (error)
		passage_fail(p, error);
	else
		passage_next(p);
}

/* Of a header that is too long to be looked at, no marks are seen. */
static bool read_marks(struct passage *p, struct archive_marks *marks)
{
	*marks = (struct archive_marks){0};
	if (!draft_open(&p->draft))
		return errno == EMSGSIZE;
	archive_marks_read(marks, &p->draft);
	return true;
}

static void begin_copying(struct passage *p)
{
	struct archive_marks marks;
	assert(!p->at_work);
	bool read = read_marks(p, &marks);
	int error = errno;
	struct envelope *e = read ? copy_envelope(p, &marks) : NULL;
	if (!e) {
		archive_marks_fini(&marks);
		if (read)
			passage_next(p);
		else
			passage_fail(p, error);
		return;
	}
	struct copying *c = mem_zalloc(sizeof *c);
	c->magic = COPYING_MAGIC;
	c->envelope = e;
	c->marks = marks;
	p->at_work = c;
	if (p->draft.content && !draft_settles_slowly(&p->draft) && !passage_context(p)) {
		copy_draft(p);
		finish_copying(p);
	} else if (!passage_give(p, copy_draft)) {
		copying_free(c);
		passage_fail(p, ECANCELED);
	}
}

const struct passage_stage archive_stage = {
	.begin = begin_copying, .worked = finish_copying, .cancel = cancel_copying};
