/* SPDX-License-Identifier: ISC */
#include "dkim/resign.h"

#include "base/mem.h"
#include "dkim/body_hash.h"
#include "dkim/keyring.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LOOKING_MAGIC = 0x4e519a00, TIME_DIGITS = 12 };

/* The signatures that may be ours, while the pool finds out. */
struct looking {
	unsigned magic;
	int n, error;
	struct candidate {
		const struct conf_dkim *by;
		int field;
		int64_t time_s, until_s; /* t=, and x=, 0 where there is none */
		bool ours;
	} of[CONF_DKIM_MAX];
};

/* The value of a tag: it stands behind a semicolon, or at the beginning. NULL: it has none. */
static const char *find_tag(const struct draft_field *f, const char *name, size_t *len)
{
	const char *end = f->text + f->len, *at = memchr(f->text, ':', f->len);
	while (at && ++at < end) {
		while (at < end && strchr(" \t\r\n", *at))
			at++;
		const char *next = memchr(at, ';', (size_t)(end - at));
		size_t n = strlen(name);
		if ((size_t)(end - at) > n && strncmp(at, name, n) == 0 && at[n] == '=') {
			at += n + 1;
			*len = (size_t)((next ? next : end) - at);
			return at;
		}
		at = next;
	}
	return NULL;
}

static bool tag_is(const struct draft_field *f, const char *name, const char *value)
{
	size_t len = 0;
	const char *at = find_tag(f, name, &len);
	return at && len == strlen(value) && strncasecmp(at, value, len) == 0;
}

/* A number of seconds; 0 where there is no such tag. False: it is none. */
static bool tag_time(const struct draft_field *f, const char *name, int64_t *time_s)
{
	size_t len = 0;
	const char *at = find_tag(f, name, &len);
	*time_s = 0;
	for (size_t i = 0; at && i < len; i++) {
		if (at[i] < '0' || at[i] > '9' || len > TIME_DIGITS)
			return false;
		*time_s = *time_s * 10 + (at[i] - '0');
	}
	return !at || len > 0;
}

static bool may_be_by(const struct draft_field *f, const struct conf_dkim *d)
{
	return d->loaded && tag_is(f, "d", d->title + (d->title[0] == '.')) &&
	       tag_is(f, "s", d->selector) &&
	       tag_is(f, "a", signature_rsa(d) ? "rsa-sha256" : "ed25519-sha256");
}

/* The key of one row; the owner's from now on. */
static const struct conf_dkim *take_row(struct signers *s, const char *domain,
					const struct dkim_row *row)
{
	struct buf why = {0};
	const struct conf_dkim *by = keyring_take(domain, row->selector, row->file, &why);
	if (by && s->n < CONF_DKIM_MAX)
		s->of[s->n++] = (struct signer){.by = by, .domain = mem_strdup(domain)};
	else
		keyring_give(by);
	buf_fini(&why);
	return s->n > 0 && s->of[s->n - 1].by == by ? by : NULL;
}

static void put_candidate(struct looking *l, const struct candidate *like,
			  const struct conf_dkim *by)
{
	assert(l->n < CONF_DKIM_MAX);
	l->of[l->n] = *like;
	l->of[l->n++].by = by;
}

/* The key of a row ".parent" signs as that parent, too. */
static void add_row_candidates(struct looking *l, const struct passage *p,
			       const struct candidate *like)
{
	const struct draft_field *f = &p->draft.field[like->field];
	struct resign *r = passage_context(p);
	struct dkim_rows rows;
	char domain[NAME_KEY_DOMAIN + 2];
	size_t len = 0;
	const char *d = find_tag(f, "d", &len);
	if (!d || p->conf->dkim_keys.n == 0 || len >= NAME_KEY_DOMAIN)
		return;
	snprintf(domain, sizeof domain, "x.%.*s", (int)len, d);
	for (int around = 0; around < 2; around++) {
		bool found = dkim_rows_find(p->conf->tables, around ? domain : domain + 2, &rows);
		for (int i = 0; found && i < rows.n && l->n < CONF_DKIM_MAX; i++) {
			if (!tag_is(f, "s", rows.row[i].selector) || !tag_is(f, "d", rows.domain))
				continue;
			const struct conf_dkim *by = take_row(&r->rows, rows.domain, &rows.row[i]);
			if (by && may_be_by(f, by))
				put_candidate(l, like, by);
		}
		dkim_rows_fini(&rows);
	}
}

static void add_candidate(struct looking *l, const struct passage *p, int field)
{
	const struct draft_field *f = &p->draft.field[field];
	struct candidate like = {.field = field};
	if (!tag_time(f, "t", &like.time_s) || !tag_time(f, "x", &like.until_s))
		return;
	for (int i = 0; i < p->conf->ndkim && l->n < CONF_DKIM_MAX; i++)
		if (may_be_by(f, &p->conf->dkim[i]))
			put_candidate(l, &like, &p->conf->dkim[i]);
	add_row_candidates(l, p, &like);
}

static void compare_signature(struct candidate *c, const struct draft *d,
			      const struct body_hash *hash)
{
	const struct draft_field *f = &d->field[c->field];
	char *again = signature_make(c->by, d->field, d->nfield, body_hash_for(hash, c->by),
				     c->time_s, c->until_s);
	c->ours = again && strlen(again) == f->len && memcmp(again, f->text, f->len) == 0;
	free(again);
}

static void compare_candidates(struct passage *p)
{
	struct looking *l = p->at_work;
	const struct conf_dkim *by[CONF_DKIM_MAX];
	struct body_hash hash;
	magic_check(l, LOOKING_MAGIC);
	for (int i = 0; i < l->n; i++)
		by[i] = l->of[i].by;
	l->error = body_hash(&p->draft, by, l->n, &hash);
	for (int i = 0; i < l->n && !l->error; i++)
		compare_signature(&l->of[i], &p->draft, &hash);
}

static void looking_free(struct looking *l)
{
	magic_check(l, LOOKING_MAGIC);
	magic_free(l);
}

static void cancel_looking(struct passage *p)
{
	looking_free(p->at_work);
}

static void finish_looking(struct passage *p)
{
	struct looking *l = p->at_work;
	struct resign *r = passage_context(p);
	magic_check(l, LOOKING_MAGIC);
	assert(r->n == 0 && l->n <= CONF_DKIM_MAX);
	int error = l->error;
	for (int i = 0; i < l->n && !error; i++) {
		const struct draft_field *f = &p->draft.field[l->of[i].field];
		if (!l->of[i].ours)
			continue;
		r->by[r->n] = l->of[i].by;
		r->field[r->n++] = mem_strndup(f->text, f->len);
	}
	looking_free(l);
	if (error)
		passage_fail(p, error);
	else
		passage_next(p);
}

/* A header that is too long to be looked at is for the filters to refuse. */
static void begin_looking(struct passage *p)
{
	if (!draft_open(&p->draft)) {
		if (errno == EMSGSIZE)
			passage_next(p);
		else
			passage_fail(p, errno);
		return;
	}
	struct looking *l = mem_zalloc(sizeof *l);
	l->magic = LOOKING_MAGIC;
	for (int i = 0; i < p->draft.nfield; i++)
		if (draft_field_is(&p->draft.field[i], "DKIM-Signature"))
			add_candidate(l, p, i);
	p->at_work = l;
	if (l->n > 0 && passage_give(p, compare_candidates))
		return;
	bool refused = l->n > 0;
	looking_free(l);
	p->at_work = NULL;
	if (refused)
		passage_fail(p, ECANCELED);
	else
		passage_next(p);
}

const struct passage_stage resign_stage = {
	.begin = begin_looking, .worked = finish_looking, .cancel = cancel_looking};

void resign_fini(struct resign *r)
{
	for (int i = 0; i < r->n; i++)
		free(r->field[i]);
	signers_fini(&r->rows);
	r->n = 0;
}

int resign_choose(const struct resign *r, const struct conf_dkim *by[CONF_DKIM_MAX])
{
	int n = *r->changed ? r->n : 0;
	for (int i = 0; i < n; i++)
		by[i] = r->by[i];
	return n;
}

void resign_remove(const struct resign *r, struct draft *d)
{
	for (int i = 0; i < r->n; i++)
		for (int k = d->nfield - 1; k >= 0; k--)
			if (d->field[k].len == strlen(r->field[i]) &&
			    memcmp(d->field[k].text, r->field[i], d->field[k].len) == 0)
				draft_remove(d, k);
}
