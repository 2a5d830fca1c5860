/* SPDX-License-Identifier: ISC */
#include "dkim/dkim.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "dkim/author.h"
#include "dkim/body_hash.h"
#include "dkim/resign.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE_MAX = 16 << 10, SIGNING_MAGIC = 0xd41351a6 };

/* One message, from the choice of who signs to its fields. */
struct signing {
	unsigned magic;
	int n;
	struct signers signers;
	const struct conf_dkim *by[CONF_DKIM_MAX]; /* in the passage's conf, or theirs */
	char *field[CONF_DKIM_MAX];
	int error;
	char reason[128]; /* of the error, where OpenSSL has one */
};

static void unsigned_since(const struct passage *p, const char *why)
{
	log_event(LOG_LEVEL_INFO, "dkim", "id", log_id(p->draft.id), "result", "not signed",
		  "reason", why, NULL);
}

/* Of rows; those of sections are there. */
static bool load_keys(struct signing *s)
{
	struct buf why = {0};
	bool all = signers_load(&s->signers, &why);
	for (int i = 0; i < s->signers.n; i++)
		s->by[i] = s->signers.of[i].by;
	if (!all) {
		s->error = ENOKEY;
		snprintf(s->reason, sizeof s->reason, "%s", buf_cstr(&why));
	}
	buf_fini(&why);
	return all;
}

/* The date until which it is valid; 0: for ever. Mail that is for later is not sent before its time. */
static int64_t end_of(const struct conf_dkim *d, const struct envelope *e, int64_t now_ms)
{
	int64_t ahead_ms = e->not_before_ms - clock_wall_ms();
	if (d->expire == 0)
		return 0;
	return (now_ms + (ahead_ms > 0 ? ahead_ms : 0)) / 1000 + (d->expire + 999) / 1000;
}

/* In the pool, or at once. */
static void make_signatures(struct passage *p)
{
	struct signing *s = p->at_work;
	struct body_hash hash;
	int64_t now_ms = date_ms();
	magic_check(s, SIGNING_MAGIC);
	if (!load_keys(s))
		return;
	assert(s->n > 0 && s->n <= CONF_DKIM_MAX && (s->signers.n == 0 || s->signers.n == s->n));
	s->error = body_hash(&p->draft, s->by, s->n, &hash);
	for (int i = 0; i < s->n && !s->error; i++) {
		s->field[i] = signature_make(s->by[i], p->draft.field, p->draft.nfield,
					     body_hash_for(&hash, s->by[i]), now_ms / 1000,
					     end_of(s->by[i], p->draft.envelope, now_ms));
		if (!s->field[i])
			s->error = EIO;
	}
	if (s->error)
		ERR_error_string_n(ERR_peek_last_error(), s->reason, sizeof s->reason);
	ERR_clear_error();
}

static void signing_free(struct signing *s)
{
	magic_check(s, SIGNING_MAGIC);
	for (int i = 0; i < s->n; i++)
		free(s->field[i]);
	signers_fini(&s->signers);
	magic_free(s);
}

static void cancel_signing(struct passage *p)
{
	signing_free(p->at_work);
}

/* Verifiers differ in what they make of a last line without end, and of a header that nothing follows.
 * Content that is binary stays as it is. */
static void insert_signatures(struct passage *p, struct signing *s)
{
	assert(!p->signed_by);
	const struct resign *again = passage_context(p);
	if (again)
		resign_remove(again, &p->draft);
	if (p->draft.envelope->body != BODY_BINARYMIME)
		draft_complete(&p->draft);
	for (int i = s->n - 1; i >= 0; i--) {
		assert(s->field[i]);
		draft_insert(&p->draft, 0, s->field[i]);
		s->field[i] = NULL;
		metrics_add(signature_rsa(s->by[i]) ? METRIC_dkim_rsa : METRIC_dkim_ed25519, 1);
	}
	struct buf text = {0};
	conf_dkim_names(s->by, s->n, &text);
	p->signed_by = buf_steal(&text, NULL);
}

static void finish_signing(struct passage *p)
{
	struct signing *s = p->at_work;
	magic_check(s, SIGNING_MAGIC);
	int error = s->error;
	if (error) {
		metrics_add(METRIC_dkim_failed, 1);
		log_event(LOG_LEVEL_ERROR, "dkim", "id", log_id(p->draft.id), "result", "failed",
			  "reason", log_text("%s; %s", strerror(error), s->reason), NULL);
	} else {
		insert_signatures(p, s);
	}
	signing_free(s);
	if (error)
		passage_fail(p, error);
	else
		passage_next(p);
}

/* To have it done by another thread would cost more than to do it: two wake-ups take longer than a signature
 * of Ed25519. */
static bool is_quick(const struct passage *p, const struct signing *s)
{
	bool quick = p->draft.content && p->draft.size <= AT_ONCE_MAX && s->n == 1 && s->by[0];
	return quick && !signature_rsa(s->by[0]);
}

static bool choose_signers(const struct passage *p, struct signing *s, struct buf *why)
{
	const struct resign *again = passage_context(p);
	if (again) {
		s->n = resign_choose(again, s->by);
		return s->n > 0;
	}
	author_signers(p, &s->signers, why);
	s->n = s->signers.n;
	for (int i = 0; i < s->n; i++)
		s->by[i] = s->signers.of[i].by;
	return s->n > 0;
}

static void begin_signing(struct passage *p)
{
	struct buf why = {0};
	struct signing *s = mem_zalloc(sizeof *s);
	assert(!p->at_work);
	s->magic = SIGNING_MAGIC;
	p->at_work = s;
	bool open = draft_open(&p->draft);
	int error = open ? 0 : errno;
	bool signs = open && choose_signers(p, s, &why);
	if (buf_len(&why) > 0)
		unsigned_since(p, buf_cstr(&why));
	else if (error == EMSGSIZE)
		unsigned_since(p, "its header is too long");
	buf_fini(&why);
	if (signs && is_quick(p, s)) {
		make_signatures(p);
		finish_signing(p);
		return;
	}
	if (signs && passage_give(p, make_signatures))
		return;
	s->n = 0;
	signing_free(s);
	if (signs || (error && error != EMSGSIZE))
		passage_fail(p, signs ? ECANCELED : error);
	else
		passage_next(p);
}

const struct passage_stage dkim_stage = {
	.begin = begin_signing, .worked = finish_signing, .cancel = cancel_signing};
