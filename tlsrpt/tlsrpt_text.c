/* SPDX-License-Identifier: ISC */
#include "tlsrpt/tlsrpt_text.h"

#include "base/conf.h"
#include "base/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *dash_if_empty(const char *text)
{
	return *text ? text : "-";
}

static void write_detail(const struct tlsrpt_detail *d, struct buf *to)
{
	buf_printf(to, "detail %s %lld %s %s %s %s\n", tls_result_type_word(d->type),
		   (long long)d->count, dash_if_empty(d->mx), dash_if_empty(d->address),
		   dash_if_empty(d->own), d->reason);
}

static void write_policy(const struct tlsrpt_policy *p, struct buf *to)
{
	buf_printf(to, "policy %s %lld %lld\n", tls_result_policy_word(p->policy),
		   (long long)p->successes, (long long)p->failures);
	const char *text = p->text;
	for (char *line; (line = words_line(&text)); free(line))
		buf_printf(to, "text %s\n", line);
	for (int i = 0; i < p->ndetail; i++)
		write_detail(&p->detail[i], to);
}

void tlsrpt_text_write(const struct tlsrpt_tally *t, struct buf *to)
{
	for (const struct tlsrpt_report *r = t->reports; r; r = r->hh.next) {
		buf_printf(to, "report %lld %s 0\n", (long long)r->day, r->domain);
		for (int i = 0; i < r->nsent; i++)
			buf_printf(to, "sent %s\n", r->sent[i]);
		for (int i = 0; i < r->npolicy; i++)
			write_policy(&r->policy[i], to);
	}
}

/* The report and policy that the lines before have begun. */
struct reading {
	struct tlsrpt_tally *tally;
	struct tlsrpt_report *report;
	enum tls_result_policy policy;
	long long successes, failures;
	struct buf text;
	struct tlsrpt_policy *into; /* NULL until all lines of text have come */
};

#define COUNT_MAX INT64_C(1000000000000)

static bool is_count(long long n)
{
	return n >= 0 && n <= COUNT_MAX;
}

/* Of several lines for one thing too, the sum can be read again. */
static void add_count(int64_t *to, long long n)
{
	*to = *to > COUNT_MAX - n ? COUNT_MAX : *to + n;
}

/* A policy is known by its text, so it begins when that has ended. */
static void settle_policy(struct reading *r)
{
	if (r->into || !r->report || r->successes < 0)
		return;
	r->into = tlsrpt_report_policy(r->report, r->policy, buf_cstr(&r->text));
	add_count(&r->into->successes, r->successes);
	add_count(&r->into->failures, r->failures);
	r->successes = -1;
}

static void read_report(struct reading *r, const char *line)
{
	long long day;
	char domain[256];
	settle_policy(r);
	r->report = NULL;
	r->into = NULL;
	r->successes = -1;
	if (sscanf(line, "report %lld %255s", &day, domain) == 2 && conf_host_good(domain))
		r->report = tlsrpt_tally_get(r->tally, day, domain);
}

static void read_sent(struct reading *r, const char *to)
{
	if (r->report && *to)
		tlsrpt_report_add_sent(r->report, to);
}

static void read_policy(struct reading *r, const char *line)
{
	char word[32];
	settle_policy(r);
	r->into = NULL;
	r->successes = -1;
	buf_clear(&r->text);
	for (int i = 0; i < TLS_RESULT_POLICY_COUNT; i++)
		if (sscanf(line, "policy %31s", word) == 1 &&
		    strcmp(word, tls_result_policy_word((enum tls_result_policy)i)) == 0) {
			r->policy = (enum tls_result_policy)i;
			if (sscanf(line, "policy %*s %lld %lld", &r->successes, &r->failures) !=
				    2 ||
			    !is_count(r->successes) || !is_count(r->failures))
				r->successes = -1;
		}
}

static void empty_if_dash(char *text)
{
	if (strcmp(text, "-") == 0)
		*text = '\0';
}

static void read_detail(struct reading *r, const char *line)
{
	int at = 0;
	long long count;
	char word[32], mx[256], address[64], own[64];
	settle_policy(r);
	if (!r->into ||
	    sscanf(line, "detail %31s %lld %255s %63s %63s %n", word, &count, mx, address, own,
		   &at) != 5 ||
	    !is_count(count))
		return;
	empty_if_dash(mx);
	empty_if_dash(address);
	empty_if_dash(own);
	struct tlsrpt_detail as = {
		.mx = mx, .address = address, .own = own, .reason = (char *)line + at};
	for (int i = 0; i < TLS_RESULT_TYPE_COUNT; i++)
		if (strcmp(word, tls_result_type_word((enum tls_result_type)i)) == 0) {
			as.type = (enum tls_result_type)i;
			add_count(&tlsrpt_policy_detail(r->into, &as)->count, count);
		}
}

static void read_line(struct reading *r, const char *line)
{
	if (strncmp(line, "report ", 7) == 0)
		read_report(r, line);
	else if (strncmp(line, "sent ", 5) == 0)
		read_sent(r, line + 5);
	else if (strncmp(line, "policy ", 7) == 0)
		read_policy(r, line);
	else if (strncmp(line, "text ", 5) == 0)
		buf_printf(&r->text, "%s\n", line + 5);
	else if (strncmp(line, "detail ", 7) == 0)
		read_detail(r, line);
}

void tlsrpt_text_read(struct tlsrpt_tally *t, const char *text)
{
	struct reading r = {.tally = t, .successes = -1};
	for (char *line; (line = words_line(&text)); free(line))
		read_line(&r, line);
	settle_policy(&r);
	buf_fini(&r.text);
}
