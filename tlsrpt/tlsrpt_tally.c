/* SPDX-License-Identifier: ISC */
#include "tlsrpt/tlsrpt_tally.h"

#include "base/address.h"
#include "base/mem.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { REASON_MAX = 300 };

static void free_policy(struct tlsrpt_policy *p)
{
	for (int i = 0; i < p->ndetail; i++) {
		free(p->detail[i].mx);
		free(p->detail[i].address);
		free(p->detail[i].own);
		free(p->detail[i].reason);
	}
	free(p->detail);
	free(p->text);
}

void tlsrpt_tally_drop(struct tlsrpt_tally *t, struct tlsrpt_report *r)
{
	assert(!r->target && r->open == 0);
	HASH_DEL(t->reports, r);
	for (int i = 0; i < r->npolicy; i++)
		free_policy(&r->policy[i]);
	for (int i = 0; i < r->nsent; i++)
		free(r->sent[i]);
	free(r->sent);
	free(r->policy);
	free(r->key);
	free(r);
}

void tlsrpt_tally_fini(struct tlsrpt_tally *t)
{
	hash_each (struct tlsrpt_report, r, t->reports)
		tlsrpt_tally_drop(t, r);
}

struct tlsrpt_report *tlsrpt_tally_get(struct tlsrpt_tally *t, int64_t day, const char *domain)
{
	struct tlsrpt_report *r;
	char *key = mem_printf("%" PRId64 " %s", day, domain);
	HASH_FIND_STR(t->reports, key, r);
	if (r || HASH_COUNT(t->reports) >= TLSRPT_REPORTS_MAX) {
		free(key);
		return r;
	}
	r = mem_zalloc(sizeof *r);
	r->key = key;
	r->domain = strchr(key, ' ') + 1;
	r->day = day;
	HASH_ADD_KEYPTR(hh, t->reports, r->key, strlen(r->key), r);
	return r;
}

bool tlsrpt_report_went_to(const struct tlsrpt_report *r, const char *to)
{
	for (int i = 0; i < r->nsent; i++)
		if (strcmp(r->sent[i], to) == 0)
			return true;
	return false;
}

static void forget_first_sent(struct tlsrpt_report *r)
{
	free(r->sent[0]);
	memmove(r->sent, r->sent + 1, (size_t)--r->nsent * sizeof *r->sent);
}

void tlsrpt_report_add_sent(struct tlsrpt_report *r, const char *to)
{
	if (tlsrpt_report_went_to(r, to))
		return;
	if (r->nsent == TLSRPT_SENT_MAX)
		forget_first_sent(r);
	assert(r->nsent < TLSRPT_SENT_MAX);
	r->sent = mem_realloc(r->sent, (size_t)(r->nsent + 1) * sizeof *r->sent);
	r->sent[r->nsent++] = mem_strdup(to);
}

struct tlsrpt_policy *tlsrpt_report_policy(struct tlsrpt_report *r, enum tls_result_policy policy,
					   const char *text)
{
	for (int i = 0; i < r->npolicy; i++)
		if (r->policy[i].policy == policy && strcmp(r->policy[i].text, text) == 0)
			return &r->policy[i];
	if (r->npolicy == TLSRPT_POLICIES_MAX)
		return &r->policy[r->npolicy - 1];
	r->policy = mem_realloc(r->policy, (size_t)(r->npolicy + 1) * sizeof *r->policy);
	struct tlsrpt_policy *p = &r->policy[r->npolicy++];
	*p = (struct tlsrpt_policy){.policy = policy, .text = mem_strdup(text)};
	return p;
}

static bool same_detail(const struct tlsrpt_detail *a, const struct tlsrpt_detail *b)
{
	return a->type == b->type && strcmp(a->mx, b->mx) == 0 &&
	       strcmp(a->address, b->address) == 0 && strcmp(a->own, b->own) == 0 &&
	       strcmp(a->reason, b->reason) == 0;
}

struct tlsrpt_detail *tlsrpt_policy_detail(struct tlsrpt_policy *p, const struct tlsrpt_detail *as)
{
	for (int i = 0; i < p->ndetail; i++)
		if (same_detail(&p->detail[i], as))
			return &p->detail[i];
	if (p->ndetail == TLSRPT_DETAILS_MAX)
		return &p->detail[p->ndetail - 1];
	p->detail = mem_realloc(p->detail, (size_t)(p->ndetail + 1) * sizeof *p->detail);
	struct tlsrpt_detail *d = &p->detail[p->ndetail++];
	*d = (struct tlsrpt_detail){.type = as->type,
				    .mx = mem_strdup(as->mx),
				    .address = mem_strdup(as->address),
				    .own = mem_strdup(as->own),
				    .reason = mem_strdup(as->reason)};
	return d;
}

static const char *known_address(const union address *a, char text[ADDRESS_WHERE_MAX])
{
	bool ip = a->sa.sa_family == AF_INET || a->sa.sa_family == AF_INET6;
	return ip ? address_where(a, text) : "";
}

void tlsrpt_tally_add(struct tlsrpt_tally *t, int64_t day, const struct tls_result *from)
{
	char address[ADDRESS_WHERE_MAX], own[ADDRESS_WHERE_MAX];
	struct tlsrpt_report *r = tlsrpt_tally_get(t, day, from->domain);
	if (!r)
		return;
	struct tlsrpt_policy *p = tlsrpt_report_policy(r, from->policy, from->text);
	if (from->type == TLS_RESULT_SUCCESS) {
		p->successes++;
		return;
	}
	/* One line, since it is kept in one. */
	char *reason = mem_strndup(from->reason ? from->reason : "", REASON_MAX);
	reason[strcspn(reason, "\r\n")] = '\0';
	struct tlsrpt_detail as = {.type = from->type,
				   .mx = from->mx ? from->mx : "",
				   .address = (char *)known_address(&from->address, address),
				   .own = (char *)known_address(&from->own, own),
				   .reason = reason};
	p->failures++;
	tlsrpt_policy_detail(p, &as)->count++;
	free(reason);
}
