/* SPDX-License-Identifier: ISC */
#include "cmd/control/explain_domain.h"

#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "cmd/text/explain_print.h"
#include "cmd/text/json_put.h"
#include "cmd/text/moment.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { REASONS_MAX = 50 };

struct reason {
	enum spool_queue queue;
	bool scheduled;	      /* deferred until their senders want them sent */
	struct verdict *last; /* a reference, or NULL */
	int64_t messages, recipients;
	int64_t due_ms;	  /* the first of them */
	uint64_t counted; /* the message that was counted last */
};

struct explain_domain {
	char *domain; /* as it was asked for */
	char *key;    /* of which mail may have any spelling */
	bool cut;
	int n;
	struct reason of[REASONS_MAX];
};

struct explain_domain *explain_domain_new(const char *domain)
{
	struct explain_domain *d = mem_zalloc(sizeof *d);
	d->domain = mem_strdup(domain);
	d->key = name_key(domain);
	return d;
}

void explain_domain_free(struct explain_domain **dp)
{
	struct explain_domain *d = mem_take(dp);
	if (!d)
		return;
	for (int i = 0; i < d->n; i++)
		verdict_unref(d->of[i].last);
	free(d->domain);
	free(d->key);
	free(d);
}

static bool same_verdict(const struct verdict *a, const struct verdict *b)
{
	return a == b || (a && b && a->class == b->class && a->code == b->code &&
			  strcmp(a->text, b->text) == 0);
}

/* Too many to tell apart count with the last. */
static struct reason *find_reason(struct explain_domain *r, const struct spool_row *row,
				  struct verdict *last)
{
	bool scheduled = row->queue == SPOOL_DEFERRED && envelope_is_scheduled(row->envelope);
	for (int i = 0; i < r->n; i++)
		if (r->of[i].queue == row->queue && r->of[i].scheduled == scheduled &&
		    same_verdict(r->of[i].last, last))
			return &r->of[i];
	if (r->n == REASONS_MAX)
		return &r->of[REASONS_MAX - 1];
	r->of[r->n] = (struct reason){
		.queue = row->queue, .scheduled = scheduled, .last = verdict_ref(last)};
	return &r->of[r->n++];
}

static void count_recipient(struct explain_domain *r, const struct spool_row *row,
			    const struct recipient *to)
{
	struct reason *of = find_reason(r, row, to->last);
	int64_t due_ms = row->envelope->due_ms;
	of->recipients++;
	of->messages += of->counted != row->envelope->id;
	of->counted = row->envelope->id;
	if (of->due_ms == 0 || due_ms < of->due_ms)
		of->due_ms = due_ms;
}

void explain_domain_add(struct explain_domain *r, const struct spool_command *listed)
{
	for (int i = 0; i < listed->nrow; i++) {
		const struct spool_row *row = &listed->row[i];
		const struct envelope *e = row->envelope;
		for (uint32_t k = 0; k < e->nrcpt && row->queue != SPOOL_ACTIVE; k++)
			if (!e->rcpt[k].done &&
			    name_key_fits(r->key, mailaddr_domain(e->rcpt[k].address)))
				count_recipient(r, row, &e->rcpt[k]);
	}
}

void explain_domain_cut(struct explain_domain *r)
{
	r->cut = true;
}

static int by_recipients(const void *a, const void *b)
{
	const struct reason *x = a, *y = b;
	return (x->recipients < y->recipients) - (x->recipients > y->recipients);
}

/* Of the constraint its name, and what it says and what ends it. */
struct told {
	const char *name, *says, *again, *relief;
};

/* As of a message of them, asked about by its id. */
static const char *constraint_of(const struct verdict *last)
{
	if (explain_print_of_flow(last) || explain_print_of_suspension(last))
		return "suspended";
	return last && last->class == VERDICT_IN_DOUBT ? "in_doubt" : "deferred";
}

static struct told told_of(const struct reason *of)
{
	static const struct told hold = {"hold", "on hold", NULL, "sluice queue release"};
	static const struct told scheduled = {"scheduled",
					      "not to be sent yet, as the sender wants", "sent",
					      "that time; sluice queue release ID"};
	static const struct told credit = {
		"credit", "incoming, for the scheduler has all the messages it may have", NULL,
		"messages that are done; message_active_limit"};
	if (of->queue == SPOOL_HOLD)
		return hold;
	if (of->queue == SPOOL_INCOMING)
		return credit;
	if (of->scheduled)
		return scheduled;
	return (struct told){
		.name = constraint_of(of->last),
		.says = "deferred",
		.again = "tried again",
		.relief = explain_print_of_flow(of->last)
				  ? "sluice flow resume; sluice flow names those that are suspended"
			  : explain_print_of_suspension(of->last)
				  ? "sluice dest resume"
				  : "that time, the destination when it lives again, "
				    "sluice queue flush",
	};
}

static void put_sentence(struct buf *to, const struct reason *of, bool cut, int64_t now_ms,
			 bool utc)
{
	bool one = of->messages == 1;
	const struct told told = told_of(of);
	buf_printf(to, "%s%" PRId64 " message%s for %" PRId64 " recipient%s %s %s",
		   cut ? "more than " : "", of->messages, one ? "" : "s", of->recipients,
		   of->recipients == 1 ? "" : "s", one ? "is" : "are", told.says);
	explain_print_last(to, of->last);
	if (told.again) {
		buf_printf(to, ". %s %s ", one ? "It is" : "The first is", told.again);
		moment_put_due(to, of->due_ms, now_ms, utc);
	}
	buf_printf(to, ". What lets %s go: %s", one ? "it" : "them", told.relief);
}

static void put_object(struct buf *to, const struct explain_domain *r, const struct reason *of,
		       const char *sentence)
{
	const struct told told = told_of(of);
	buf_puts(to, "{");
	json_put_text(to, "id", NULL);
	json_put_text(to, "site", r->domain);
	json_put_text(to, "transport", NULL);
	json_put_text(to, "constraint", told.name);
	json_put_text(to, "says", sentence);
	json_put_text(to, "relief", told.relief);
	json_put_number(to, "messages", of->messages);
	json_put_number(to, "recipients", of->recipients);
	json_put_flag(to, "more", r->cut);
	json_put_time(to, "until", told.again ? of->due_ms : 0);
	json_put_text(to, "last", of->last ? of->last->text : NULL);
	json_put_line(to);
}

void explain_domain_print(struct buf *to, struct explain_domain *r, bool json, int64_t now_ms)
{
	struct buf sentence = {0};
	qsort(r->of, (size_t)r->n, sizeof r->of[0], by_recipients);
	for (int i = 0; i < r->n; i++) {
		buf_clear(&sentence);
		put_sentence(&sentence, &r->of[i], r->cut, now_ms, json);
		if (json)
			put_object(to, r, &r->of[i], buf_cstr(&sentence));
		else
			buf_printf(to, "%s: %s\n", r->domain, buf_cstr(&sentence));
	}
	buf_fini(&sentence);
}

void explain_domain_nothing(struct buf *to, const char *domain, bool json)
{
	if (!json) {
		buf_printf(to, "%s: no mail waits for it, and none is on its way there\n", domain);
		return;
	}
	buf_puts(to, "{");
	json_put_text(to, "id", NULL);
	json_put_text(to, "site", domain);
	json_put_text(to, "transport", NULL);
	json_put_text(to, "constraint", "idle");
	json_put_text(to, "says", "no mail waits for it");
	json_put_text(to, "relief", "mail for it");
	json_put_text(to, "until", NULL);
	json_put_number(to, "recipients", 0);
	json_put_line(to);
}
