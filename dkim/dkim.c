/* SPDX-License-Identifier: ISC */
#include "dkim/dkim.h"

#include "base/date.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "dkim/author.h"
#include "dkim/canonical_body.h"
#include "dkim/signature.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64 << 10, AT_ONCE_MAX = 16 << 10, SIGNING_MAGIC = 0xd41351a6 };

/* One message, from the choice of who signs to its fields. */
struct signing {
	unsigned magic;
	int n;
	const struct conf_dkim *by[CONF_DKIM_MAX]; /* in the passage's conf */
	char *field[CONF_DKIM_MAX];
	int error;
	char reason[128]; /* of the error, where OpenSSL has one */
};

/* The body in one of its forms. */
struct form {
	struct canonical_body body;
	EVP_MD_CTX *digest;
	unsigned char hash[SIGNATURE_HASH];
};

static void unsigned_since(const struct passage *p, const char *why)
{
	log_event(LOG_LEVEL_INFO, "dkim", "id", log_id(p->draft.id), "result", "not signed",
		  "reason", why, NULL);
}

static void digest(void *owner, const char *bytes, size_t len)
{
	struct form *f = owner;
	EVP_DigestUpdate(f->digest, bytes, len);
}

static bool form_begin(struct form *f, bool relaxed)
{
	canonical_body_init(&f->body, relaxed, digest, f);
	f->digest = EVP_MD_CTX_new();
	return f->digest && EVP_DigestInit_ex(f->digest, EVP_sha256(), NULL) == 1;
}

static bool form_end(struct form *f)
{
	canonical_body_end(&f->body);
	return EVP_DigestFinal_ex(f->digest, f->hash, NULL) == 1;
}

static bool wants(const struct signing *s, bool relaxed)
{
	for (int i = 0; i < s->n; i++)
		if (signature_body_relaxed(s->by[i]) == relaxed)
			return true;
	return false;
}

/* All forms that are wanted in one pass over the body. */
static int read_body(const struct draft *d, struct form form[2])
{
	char *piece = mem_alloc(PIECE);
	ssize_t n;
	for (uint64_t at = 0; (n = draft_body(d, at, piece, PIECE)) > 0; at += (uint64_t)n)
		for (int i = 0; i < 2; i++)
			if (form[i].digest)
				canonical_body_put(&form[i].body, piece, (size_t)n);
	int error = n < 0 ? errno : 0;
	free(piece);
	return error;
}

static int hash_body(const struct signing *s, const struct draft *d, struct form form[2])
{
	bool ok = true;
	for (int i = 0; i < 2; i++)
		ok = ok && (!wants(s, i) || form_begin(&form[i], i));
	int error = ok ? read_body(d, form) : EIO;
	for (int i = 0; i < 2; i++)
		if (form[i].digest && !form_end(&form[i]))
			ok = false;
	return error || ok ? error : EIO;
}

/* In the pool, or at once. */
static void work(struct passage *p)
{
	struct signing *s = p->at_work;
	struct form *form = mem_zalloc(2 * sizeof *form);
	magic_check(s, SIGNING_MAGIC);
	s->error = hash_body(s, &p->draft, form);
	for (int i = 0; i < s->n && !s->error; i++) {
		const struct form *f = &form[signature_body_relaxed(s->by[i])];
		s->field[i] = signature_make(s->by[i], p->draft.field, p->draft.nfield, f->hash,
					     date_ms() / 1000);
		if (!s->field[i])
			s->error = EIO;
	}
	if (s->error)
		ERR_error_string_n(ERR_peek_last_error(), s->reason, sizeof s->reason);
	ERR_clear_error();
	EVP_MD_CTX_free(form[0].digest);
	EVP_MD_CTX_free(form[1].digest);
	free(form);
}

static void signing_free(struct signing *s)
{
	magic_check(s, SIGNING_MAGIC);
	for (int i = 0; i < s->n; i++)
		free(s->field[i]);
	magic_clear(s);
	free(s);
}

static void cancel(struct passage *p)
{
	signing_free(p->at_work);
}

/* Verifiers differ in what they make of a last line without end, and of a header that nothing follows.
 * Content that is binary stays as it is. */
static void insert(struct passage *p, struct signing *s)
{
	if (p->draft.envelope->body != BODY_BINARYMIME)
		draft_complete(&p->draft);
	for (int i = s->n - 1; i >= 0; i--) {
		draft_insert(&p->draft, 0, s->field[i]);
		s->field[i] = NULL;
		metrics_add(signature_rsa(s->by[i]) ? METRIC_dkim_rsa : METRIC_dkim_ed25519, 1);
	}
	struct buf text = {0};
	conf_dkim_names(s->by, s->n, &text);
	p->signed_by = buf_steal(&text, NULL);
}

static void worked(struct passage *p)
{
	struct signing *s = p->at_work;
	int error = s->error;
	if (error) {
		metrics_add(METRIC_dkim_failed, 1);
		log_event(LOG_LEVEL_ERROR, "dkim", "id", log_id(p->draft.id), "result", "failed",
			  "reason", log_text("%s; %s", strerror(error), s->reason), NULL);
	} else {
		insert(p, s);
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
	bool quick = p->draft.content && p->draft.size <= AT_ONCE_MAX && s->n == 1;
	return quick && !signature_rsa(s->by[0]);
}

static void begin(struct passage *p)
{
	struct buf why = {0};
	struct signing *s = mem_zalloc(sizeof *s);
	s->magic = SIGNING_MAGIC;
	p->at_work = s;
	bool open = draft_open(&p->draft);
	int error = open ? 0 : errno;
	bool signs = open && author_signs(p, s->by, &s->n, &why);
	if (buf_len(&why) > 0)
		unsigned_since(p, buf_cstr(&why));
	else if (error == EMSGSIZE)
		unsigned_since(p, "its header is too long");
	buf_fini(&why);
	if (signs && is_quick(p, s)) {
		work(p);
		worked(p);
		return;
	}
	if (signs && passage_give(p, work))
		return;
	s->n = 0;
	signing_free(s);
	if (signs || (error && error != EMSGSIZE))
		passage_fail(p, signs ? ECANCELED : error);
	else
		passage_next(p);
}

const struct passage_stage dkim_stage = {
	.name = "dkim", .begin = begin, .worked = worked, .cancel = cancel};
