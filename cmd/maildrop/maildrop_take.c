/* SPDX-License-Identifier: ISC */
#include "cmd/maildrop/maildrop_take.h"

#include "base/dkim_rows.h"
#include "base/clock.h"
#include "base/date.h"
#include "base/crc32c.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/log_forms.h"
#include "base/mem.h"
#include "dkim/dkim.h"
#include "base/datetime.h"
#include "smtpd/flow_name.h"
#include "smtpd/filter_mail.h"
#include "smtpd/intake.h"
#include "spool/disk.h"
#include "stages/archive.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 64 << 10, USER_MAX = 64, PASSWD_MAX = 16 << 10 };

struct reading {
	struct take *take;
	const struct take_means *with;
	struct conf *conf;
	int fd;
	uint32_t crc;
	struct buf head;
	struct envelope *envelope; /* NULL until the head is read */
	struct intake intake;
	struct maildrop_access said;
	bool unheard; /* servers of aliases must be asked first */
	bool put_off; /* a row of a table wants it later */
};

struct take *take_new(uint64_t id)
{
	struct take *t = mem_zalloc(sizeof *t);
	t->magic = TAKE_MAGIC;
	t->id = id;
	return t;
}

static void end_filters(struct take *t)
{
	if (!t->filters)
		return;
	filter_mail_fini(t->filters);
	mem_free(&t->filters);
}

void take_free(struct take **tp)
{
	struct take *t = *tp;
	if (!t)
		return;
	passage_cancel(&t->passage);
	end_filters(t);
	alias_learn_end(&t->aliases);
	free(t->reply);
	free(t->message_id);
	magic_free(t);
	*tp = NULL;
}

static enum take_result mark_bad(struct take *t, const char *why)
{
	t->why = why;
	return TAKE_BAD;
}

/* Whatever is tried next has that fault, too: there is no room, or the relay ends. All others are those of one message. */
static bool is_everybodys(int error)
{
	return disk_means_full(error) || error == EMFILE || error == ENFILE || error == ENOMEM ||
	       error == ECANCELED;
}

/* Why it is put off, said once. Takes the reason; user may be NULL. */
static void note_reason(struct take *t, enum log_level level, const char *user, char *reason)
{
	bool known = t->reply && strcmp(t->reply, reason) == 0;
	free(t->reply);
	t->reply = reason;
	if (!known)
		log_event(level, "maildrop", "file", log_id(t->id), "user", user, "reason", reason,
			  NULL);
}

static enum take_result put_off(struct reading *r, enum log_level level, char *reason)
{
	char user[USER_MAX];
	note_reason(r->take, level, r->fd >= 0 ? take_owner(r->take, user) : NULL, reason);
	r->put_off = true;
	return TAKE_LATER;
}

static enum take_result fail_file(struct reading *r, const char *what, int error)
{
	return is_everybodys(error)
		       ? TAKE_LATER
		       : put_off(r, LOG_LEVEL_WARNING, mem_printf("%s: %s", what, strerror(error)));
}

static enum take_result open_file(struct reading *r)
{
	char name[IDENT_TEXT];
	r->fd = disk_open(r->with->folder, ident_text(r->take->id, name),
			  O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (r->fd >= 0)
		return TAKE_ASKED;
	if (is_everybodys(errno) || errno == EIO)
		return fail_file(r, "it cannot be opened", errno);
	return mark_bad(r->take, errno == ELOOP	   ? "a symbolic link"
				 : errno == EACCES ? "the relay may not read it"
						   : "it cannot be opened");
}

/* The kind of file, and whose it is; then its first line. */
static enum take_result look_at_file(struct reading *r, struct maildrop_first *first)
{
	struct stat st;
	char line[MAILDROP_FIRST_MAX];
	uint64_t limit = (uint64_t)r->conf->message_size_limit;
	if (fstat(r->fd, &st) != 0)
		return fail_file(r, "it cannot be read", errno);
	r->take->owner = st.st_uid;
	if (!S_ISREG(st.st_mode))
		return mark_bad(r->take, "not a regular file");
	if (st.st_nlink != 1)
		return mark_bad(r->take, "it has another name elsewhere");
	ssize_t n = disk_read(r->fd, line, sizeof line, 0);
	if (n < 0)
		return fail_file(r, "it cannot be read", errno);
	if (!maildrop_form_first(line, (size_t)n, first))
		return mark_bad(r->take, "it does not begin as a message in the maildrop does");
	if (first->size != (uint64_t)st.st_size - first->length)
		return mark_bad(r->take, "it is not complete");
	if (limit && first->size > limit + MAILDROP_HEAD_MAX)
		return mark_bad(r->take, response_reason(RESPONSE_TOO_LARGE));
	return TAKE_ASKED;
}

/* RFC 5321 4.4 leaves "from" to those who came by SMTP. */
static void put_received(struct reading *r)
{
	struct buf field = {0};
	char id[IDENT_TEXT], date[DATETIME_TEXT];
	const struct envelope *e = r->envelope;
	buf_printf(&field, "Received: by %s (sluice, from uid %u)\r\n\tid %s", r->conf->own_name,
		   (unsigned)r->take->owner, ident_text(r->take->id, id));
	if (e->nrcpt == 1)
		buf_printf(&field, "\r\n\tfor <%s>", e->rcpt[0].address);
	buf_printf(&field, ";\r\n\t%s\r\n", datetime_text(date_ms(), date));
	intake_put(&r->intake, buf_data(&field), buf_len(&field));
	buf_fini(&field);
}

/* By a row of sender_access or recipient_access: for good, or for now. */
static enum take_result refuse_by_row(struct reading *r)
{
	struct take *t = r->take;
	const struct access_value *v = &r->said.refusal;
	char *reply = mem_printf("%d %s %s", v->code, v->dsn, v->text);
	if (v->code < 500)
		return put_off(r, LOG_LEVEL_INFO, reply);
	free(t->reply);
	t->reply = reply;
	return mark_bad(t, reply);
}

static enum take_result begin_intake(struct reading *r, size_t head_len, uint64_t size)
{
	r->envelope = envelope_new();
	const struct maildrop_with with = {&r->take->aliases.heard, &r->said};
	enum response why =
		maildrop_form_read(r->conf, &with, buf_data(&r->head), head_len, r->envelope);
	if (why == RESPONSE_ACCESS_DENIED)
		return refuse_by_row(r);
	r->unheard = why == RESPONSE_LOOKUP_FAILED;
	if (r->unheard)
		return TAKE_LATER;
	if (why != RESPONSE_OK)
		return mark_bad(r->take, why == RESPONSE_BAD_PARAMETER ? "its envelope is faulty"
								       : response_reason(why));
	intake_init(&r->intake, r->with->spool, r->take->id, size - head_len);
	maildrop_form_limits(r->conf, &r->intake.decoder);
	intake_add_missing(&r->intake, r->conf->own_name, r->envelope->sender);
	intake_use(&r->intake, r->conf);
	put_received(r);
	return TAKE_ASKED;
}

static enum take_result feed_bytes(struct reading *r, const char *bytes, size_t len, uint64_t size)
{
	r->crc = crc32c(r->crc, bytes, len);
	if (r->envelope) {
		content_in_feed(&r->intake.decoder, bytes, len);
		return TAKE_ASKED;
	}
	size_t before = buf_len(&r->head);
	buf_append(&r->head, bytes, len);
	size_t end = maildrop_form_head_end(buf_data(&r->head), buf_len(&r->head), before);
	if (end == 0)
		return buf_len(&r->head) <= MAILDROP_HEAD_MAX
			       ? TAKE_ASKED
			       : mark_bad(r->take, "its envelope is too long");
	enum take_result result = begin_intake(r, end, size);
	if (result == TAKE_ASKED)
		content_in_feed(&r->intake.decoder, buf_data(&r->head) + end,
				buf_len(&r->head) - end);
	return result;
}

static enum take_result read_file(struct reading *r, const struct maildrop_first *first)
{
	char *piece = mem_alloc(PIECE);
	enum take_result result = TAKE_ASKED;
	for (uint64_t at = 0; result == TAKE_ASKED && at < first->size;) {
		size_t want = first->size - at < PIECE ? (size_t)(first->size - at) : PIECE;
		ssize_t n = disk_read(r->fd, piece, want, first->length + at);
		if (n < 0)
			result = fail_file(r, "it cannot be read", errno);
		else if ((size_t)n < want)
			result = mark_bad(r->take, "it is not complete");
		else
			result = feed_bytes(r, piece, want, first->size);
		at += want;
	}
	free(piece);
	if (result == TAKE_ASKED && (!r->envelope || r->crc != first->crc))
		result = mark_bad(r->take, "it is damaged");
	return result;
}

static enum take_result judge_content(struct reading *r)
{
	const struct intake *in = &r->intake;
	intake_finish(&r->intake);
	enum response why = intake_judge(&in->decoder, &in->header, r->conf->hopcount_limit);
	if (why != RESPONSE_OK)
		return mark_bad(r->take, response_reason(why));
	return intake_error(in) ? fail_file(r, "its content cannot be written", intake_error(in))
				: TAKE_ASKED;
}

static void remember_id(struct take *t, const struct header_in *header)
{
	free(t->message_id);
	t->message_id = *header->id ? mem_strdup(header->id) : NULL;
}

const char *take_owner(const struct take *t, char name[USER_MAX])
{
	char room[PASSWD_MAX];
	struct passwd pw, *found = NULL;
	if (getpwuid_r(t->owner, &pw, room, sizeof room, &found) == 0 && found)
		snprintf(name, USER_MAX, "%s", found->pw_name);
	else
		snprintf(name, USER_MAX, "%u", (unsigned)t->owner);
	return name;
}

static struct log_held *hold_log(const struct take *t, const struct envelope *e,
				 const char *signed_by)
{
	char user[USER_MAX];
	return log_hold(LOG_LEVEL_INFO, "queued", "id", log_id(t->id), "via", "maildrop", "user",
			take_owner(t, user), "uid", log_number(t->owner), "from", e->sender,
			"nrcpt", log_number(e->nrcpt), "size", log_number((int64_t)e->size),
			"message_id", t->message_id, "flow", envelope_flow(e), "signed", signed_by,
			"held", e->held ? "yes" : NULL, NULL);
}

static struct spool_store *new_store(struct take *t, struct loop *reply_to)
{
	struct spool_store *ask = mailbox_note(sizeof *ask, SPOOL_STORE);
	ask->reply_to = reply_to;
	ask->owner = t;
	ask->taken = true;
	ask->id = t->id;
	return ask;
}

/* A message that was not stored, as if it had been asked for: how it ended is in t->end. */
static void post_unstored(struct take *t, struct loop *to)
{
	struct spool_store *ask = new_store(t, to);
	ask->note.type = SPOOL_STORED;
	loop_post(to, &ask->note);
}

static void post_store(struct take *t, struct spool *spool, struct spool_store *ask,
		       const char *signed_by)
{
	ask->envelope->arrived_ms = clock_wall_ms();
	ask->log = hold_log(t, ask->envelope, signed_by);
	loop_post(spool_loop(spool), &ask->note);
}

static void note_failure(struct take *t, int error)
{
	char user[USER_MAX];
	t->end = is_everybodys(error) ? TAKE_AGAIN : TAKE_PUT_OFF;
	if (t->end == TAKE_PUT_OFF)
		note_reason(t, LOG_LEVEL_WARNING, take_owner(t, user),
			    mem_printf("it cannot be processed: %s", strerror(error)));
}

static void note_end(struct take *t, const struct passage *p)
{
	if (p->end == PASSAGE_FAILED) {
		note_failure(t, p->error);
		return;
	}
	bool no_recipient = p->end == PASSAGE_DONE;
	free(t->reply);
	t->reply = mem_strdup(no_recipient ? "no recipient is left" : p->reply);
	t->why = t->reply;
	if (p->end == PASSAGE_REFUSED)
		t->end = t->reply[0] == '4' ? TAKE_PUT_OFF : TAKE_REFUSED;
	else
		t->end = TAKE_DISCARDED;
}

/* A message that has not come through is answered as one that could not be stored. */
static void on_passage_over(struct passage *p)
{
	struct take *t = p->owner;
	magic_check(t, TAKE_MAGIC);
	assert(t->passage == p);
	t->passage = NULL;
	t->end = TAKE_AGAIN;
	if (p->end != PASSAGE_DONE || p->draft.envelope->nrcpt == 0)
		note_end(t, p);
	end_filters(t);
	if (p->end == PASSAGE_DONE && t->end == TAKE_AGAIN) {
		struct spool_store *ask = new_store(t, p->loop);
		draft_give(&p->draft, ask);
		post_store(t, p->draft.spool, ask, p->signed_by);
	} else {
		post_unstored(t, p->loop);
	}
	passage_free(&p);
}

static void add_filters(struct reading *r, struct passage *p)
{
	struct take *t = r->take;
	if (conf_milter_locals(r->conf) == 0)
		return;
	const struct filter_owner owner = {.hostname = r->conf->own_name,
					   .daemon = "maildrop",
					   .maps = r->with->maps,
					   .patient = true};
	t->filters = mem_zalloc(sizeof *t->filters);
	filter_mail_init(t->filters, r->with->milters, r->conf, &owner);
	for (int i = 0; i < r->conf->nmilter; i++)
		if (r->conf->milter[i].local)
			milter_chain_add(t->filters->chain, &r->conf->milter[i]);
	filter_mail_stage(t->filters, p);
}

static void begin_passage(struct reading *r)
{
	const struct take_means *with = r->with;
	struct take *t = r->take;
	char user[USER_MAX];
	struct passage *p =
		passage_new(r->conf, with->loop, with->pool, with->spool, r->envelope->id);
	p->draft.envelope = r->envelope;
	p->draft.size = intake_take(&r->intake, &p->draft.content, &p->draft.file);
	r->envelope = NULL;
	p->client = mem_printf("%s (uid %u), by sendmail", take_owner(t, user), (unsigned)t->owner);
	add_filters(r, p);
	if (dkim_rows_signs(r->conf))
		passage_add(p, &dkim_stage, NULL);
	if (archive_wanted(r->conf))
		passage_add(p, &archive_stage,
			    dkim_rows_signs(r->conf) ? (void *)&dkim_stage : NULL);
	t->passage = p;
	if (passage_run(p, on_passage_over, t))
		on_passage_over(p);
}

static void name_origin(struct reading *r)
{
	char user[USER_MAX];
	const struct header_in *header = &r->intake.header;
	const struct flow_facts facts = {.id = r->take->id,
					 .named = header->flow_named ? header->flow : NULL,
					 .sender = r->envelope->sender};
	r->envelope->flow = r->said.flow ? mem_strdup(r->said.flow) : flow_name(r->conf, &facts);
	envelope_came_from(r->envelope, take_owner(r->take, user), NULL);
}

static void tell_dropped(const struct reading *r)
{
	const struct maildrop_access *said = &r->said;
	for (int i = 0; i < said->dropped.n; i++)
		log_event(LOG_LEVEL_INFO, "discard", "id", log_id(r->take->id), "from",
			  r->envelope->sender, "to", said->dropped.item[i], "reason",
			  said->discards ? "sender_access" : "recipient_access", NULL);
}

static void ask_to_store(struct reading *r)
{
	struct take *t = r->take;
	tell_dropped(r);
	if (r->envelope->nrcpt == 0) {
		t->end = TAKE_DISCARDED;
		t->why = LOG_NO_RECIPIENT;
		post_unstored(t, r->with->loop);
		return;
	}
	remember_id(t, &r->intake.header);
	r->envelope->id = t->id;
	intake_mark(&r->intake, r->envelope);
	r->envelope->priority = intake_priority(&r->intake);
	name_origin(r);
	if (dkim_rows_signs(r->conf) || conf_milter_locals(r->conf) > 0 ||
	    archive_wanted(r->conf)) {
		begin_passage(r);
		return;
	}
	struct spool_store *ask = new_store(t, r->with->loop);
	r->envelope->size = intake_take(&r->intake, &ask->content, &ask->file);
	ask->envelope = r->envelope;
	r->envelope = NULL;
	post_store(t, r->with->spool, ask, NULL);
}

/* The answer that a take waited for was heard, or can't be for now. */
static void learnt_aliases(void *owner, bool failed)
{
	struct take *t = owner;
	magic_check(t, TAKE_MAGIC);
	t->end = failed ? TAKE_PUT_OFF : TAKE_AGAIN;
	if (failed)
		alias_learn_end(&t->aliases);
	post_unstored(t, t->reply_to);
}

static enum take_result learn_aliases(struct take *t, const struct take_means *with)
{
	const struct alias_learner by = {.maps = with->maps,
					 .conf = with->conf,
					 .id = t->id,
					 .learnt = learnt_aliases,
					 .owner = t,
					 .patient = true};
	t->reply_to = with->loop;
	enum alias_learnt so_far = alias_learn(&t->aliases, &by);
	if (so_far != ALIAS_WAITS)
		learnt_aliases(t, so_far == ALIAS_FAILED);
	return TAKE_ASKED;
}

enum take_result take_store(struct take *t, const struct take_means *with)
{
	struct conf *conf = with->conf;
	struct reading r = {.take = t, .with = with, .conf = conf, .fd = -1};
	struct maildrop_first first;
	assert(!t->passage && !t->filters);
	enum take_result result = open_file(&r);
	if (result == TAKE_ASKED)
		result = look_at_file(&r, &first);
	if (result == TAKE_ASKED)
		result = read_file(&r, &first);
	if (result == TAKE_ASKED)
		result = judge_content(&r);
	if (result == TAKE_ASKED)
		ask_to_store(&r);
	if (r.fd >= 0)
		close(r.fd);
	envelope_free(&r.envelope);
	intake_fini(&r.intake);
	maildrop_access_fini(&r.said);
	buf_fini(&r.head);
	if (r.put_off) {
		t->end = TAKE_PUT_OFF;
		post_unstored(t, with->loop);
		return TAKE_ASKED;
	}
	return r.unheard ? learn_aliases(t, with) : result;
}
