/* SPDX-License-Identifier: ISC */
#include "cmd/text/reasons.h"

#include "base/ident.h"
#include "base/log.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "cmd/text/explain_print.h"
#include "cmd/text/json_put.h"
#include "cmd/text/reply_words.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { REASONS = 200, DOMAINS = 3, RECIPIENTS = 100 /* of a message */ };

struct one_reason {
	char *key;
	enum spool_queue queue;
	struct verdict *last; /* of the oldest, or NULL */
	char *why;	      /* what the scheduler says, an object; or NULL */
	int64_t messages, oldest_ms, due_ms;
	uint64_t id;			/* the oldest */
	const struct sample_row *added; /* the message that was added last */
	char *domain[DOMAINS];
	int ndomain;
	bool more_domains;
};

struct reasons {
	int n;
	struct one_reason of[REASONS];
};

struct reasons *reasons_new(void)
{
	return mem_zalloc(sizeof(struct reasons));
}

void reasons_free(struct reasons **rp)
{
	struct reasons *r = mem_take(rp);
	if (!r)
		return;
	for (int i = 0; i < r->n; i++) {
		free(r->of[i].key);
		free(r->of[i].why);
		verdict_unref(r->of[i].last);
		for (int k = 0; k < r->of[i].ndomain; k++)
			free(r->of[i].domain[k]);
	}
	free(r);
}

/* --- what is the same */

static void put_word(struct buf *to, const char *word, size_t len)
{
	bool differs = false;
	for (size_t i = 0; i < len; i++)
		differs |= isdigit((unsigned char)word[i]) || word[i] == '@';
	buf_append(to, differs ? "*" : word, differs ? 1 : len);
	buf_puts(to, " ");
}

static bool waits_for_release(const struct sample_row *row)
{
	return row->queue == SPOOL_DEFERRED && envelope_is_scheduled(row->envelope);
}

static void put_key(struct buf *to, const struct sample_row *row, const struct verdict *v)
{
	buf_printf(to, "%d %s ", (int)row->queue, waits_for_release(row) ? "scheduled" : "");
	if (!v)
		return;
	buf_printf(to, "%d %d %s ", (int)v->class, v->code, v->dsn);
	for (const char *at = v->text; *at;) {
		size_t len = strcspn(at, " \t");
		if (len > 0)
			put_word(to, at, len);
		at += len + (at[len] != '\0');
	}
}

static struct one_reason *get_reason(struct reasons *r, const char *key)
{
	for (int i = 0; i < r->n; i++)
		if (strcmp(r->of[i].key, key) == 0)
			return &r->of[i];
	if (r->n == REASONS)
		return NULL;
	r->of[r->n].key = mem_strdup(key);
	return &r->of[r->n++];
}

static void add_domain(struct one_reason *of, const char *domain)
{
	for (int i = 0; i < of->ndomain; i++)
		if (strcasecmp(of->domain[i], domain) == 0)
			return;
	if (of->ndomain == DOMAINS)
		of->more_domains = true;
	else
		of->domain[of->ndomain++] = mem_strdup(domain);
}

/* True: it is the oldest of them so far. */
static bool add_message(struct one_reason *of, const struct sample_row *row)
{
	const struct envelope *e = row->envelope;
	bool oldest = !of->added || e->arrived_ms < of->oldest_ms;
	if (of->added != row)
		of->messages += row->stands_for;
	if (!of->added || e->due_ms < of->due_ms)
		of->due_ms = e->due_ms;
	of->added = row;
	of->queue = row->queue;
	if (!oldest)
		return false;
	of->oldest_ms = e->arrived_ms;
	of->id = e->id;
	return true;
}

static void add_recipient(struct reasons *r, const struct sample_row *row,
			  const struct recipient *to)
{
	struct buf key = {0};
	put_key(&key, row, to->last);
	struct one_reason *of = get_reason(r, buf_cstr(&key));
	buf_fini(&key);
	if (!of)
		return;
	add_domain(of, mailaddr_domain(to->address));
	if (waits_for_release(row) && !of->why)
		of->why =
			mem_strdup("{\"site\":null,\"constraint\":\"scheduled\",\"says\":\"not to "
				   "be sent yet, as its sender wants\"}");
	if (add_message(of, row)) {
		verdict_unref(of->last);
		of->last = verdict_ref(to->last);
	}
}

/* --- whose they are */

static int by_name(const void *a, const void *b)
{
	return strcasecmp(*(char *const *)a, *(char *const *)b);
}

void reasons_filter_sort(struct reasons_filter *f)
{
	if (f->npeer > 0)
		qsort(f->peer, (size_t)f->npeer, sizeof *f->peer, by_name);
	if (f->ndomain > 0)
		qsort(f->domain, (size_t)f->ndomain, sizeof *f->domain, by_name);
}

static bool one_of(char *const *names, int n, const char *name)
{
	return n > 0 && bsearch(&name, names, (size_t)n, sizeof *names, by_name);
}

static bool is_domain_wanted(const struct reasons_filter *f, const char *domain)
{
	char *key = f->ndomain > 0 ? name_key(domain) : NULL;
	bool wanted = !key || one_of(f->domain, f->ndomain, key);
	free(key);
	return wanted;
}

/* Who was told by one of its hosts goes there; of the others the domain decides, if that is known. */
static bool is_wanted(const struct reasons_filter *f, const struct recipient *r)
{
	if (!f)
		return true;
	if (r->last && *r->last->host)
		return one_of(f->peer, f->npeer, r->last->host);
	return is_domain_wanted(f, mailaddr_domain(r->address));
}

void reasons_add(struct reasons *r, const struct sample_row *row, const struct reasons_filter *f)
{
	const struct envelope *e = row->envelope;
	int n = 0;
	for (uint32_t i = 0; i < e->nrcpt && n < RECIPIENTS; i++)
		if (!e->rcpt[i].done && is_wanted(f, &e->rcpt[i])) {
			add_recipient(r, row, &e->rcpt[i]);
			n++;
		}
}

void reasons_add_active(struct reasons *r, const struct sample_row *row,
			const struct explain_question *x, int64_t now_ms)
{
	struct explain_question one = *x;
	one.nrow = 1;
	for (int i = 0; i < x->nrow; i++) {
		one.row = &x->row[i];
		const char *site = one.row->key ? one.row->key : one.row->site;
		char *key = mem_printf("active %s %s", constraint_name(one.row->constraint),
				       site ? site : "");
		struct one_reason *of = get_reason(r, key);
		free(key);
		if (!of || !add_message(of, row))
			continue;
		struct buf why = {0};
		explain_print(&why, &one, true, now_ms);
		free(of->why);
		of->why = mem_strndup(buf_data(&why), buf_len(&why) - 1); /* its newline */
		buf_fini(&why);
		for (uint32_t k = 0; k < row->envelope->nrcpt && !of->more_domains; k++)
			if (!row->envelope->rcpt[k].done)
				add_domain(of, mailaddr_domain(row->envelope->rcpt[k].address));
	}
	if (x->nrow == 0)
		reasons_add(r, row, NULL);
}

/* --- out */

static int by_age(const void *a, const void *b)
{
	const struct one_reason *x = a, *y = b;
	return (x->oldest_ms > y->oldest_ms) - (x->oldest_ms < y->oldest_ms);
}

static int by_messages(const void *a, const void *b)
{
	const struct one_reason *x = a, *y = b;
	return x->messages != y->messages ? (x->messages < y->messages ? 1 : -1) : by_age(a, b);
}

static void put_domains(struct buf *to, const struct one_reason *of)
{
	buf_puts(to, ",\"domains\":[");
	for (int i = 0; i < of->ndomain; i++) {
		buf_puts(to, i > 0 ? "," : "");
		log_json_string(to, of->domain[i]);
	}
	buf_printf(to, "],\"more_domains\":%s", of->more_domains ? "true" : "false");
}

static void put_reply(struct buf *to, const struct verdict *v)
{
	struct buf words = {0};
	if (!v) {
		buf_puts(to, ",\"class\":null,\"code\":null,\"says\":null,\"text\":null");
		return;
	}
	reply_words_put(&words, v, false);
	buf_printf(to, ",\"class\":\"%s\",", verdict_class_name(v->class));
	json_put_code(to, v->code);
	buf_puts(to, "\"says\":");
	log_json_string(to, buf_cstr(&words));
	buf_puts(to, ",\"text\":");
	log_json_string(to, v->text);
	buf_fini(&words);
}

static void put_reason(struct buf *to, const struct one_reason *of)
{
	char id[IDENT_TEXT];
	buf_printf(to,
		   "{\"queue\":\"%s\",\"messages\":%" PRId64 ",\"oldest_ms\":%" PRId64
		   ",\"due_ms\":%" PRId64 ",\"id\":\"%s\"",
		   spool_queue_name(of->queue), of->messages, of->oldest_ms, of->due_ms,
		   ident_text(of->id, id));
	put_domains(to, of);
	put_reply(to, of->last);
	buf_printf(to, ",\"why\":%s}", of->why ? of->why : "null");
}

void reasons_print(struct buf *to, struct reasons *r, enum reasons_order order, int most)
{
	qsort(r->of, (size_t)r->n, sizeof r->of[0], order == REASONS_OLDEST ? by_age : by_messages);
	buf_puts(to, "[");
	for (int i = 0; i < r->n && i < most; i++) {
		buf_puts(to, i > 0 ? "," : "");
		put_reason(to, &r->of[i]);
	}
	buf_puts(to, "]");
}
