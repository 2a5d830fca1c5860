/* SPDX-License-Identifier: ISC */
#include "base/tls_result.h"

#include "base/mem.h"
#include "base/refs.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *tls_result_type_word(enum tls_result_type type)
{
	static const char *const words[] = {
#define X(type, word) [TLS_RESULT_##type] = word,
		TLS_RESULT_TYPES(X)
#undef X
	};
	assert(type < sizeof words / sizeof words[0]);
	return words[type];
}

const char *tls_result_policy_word(enum tls_result_policy policy)
{
	static const char *const words[] = {
#define X(policy, word) [TLS_RESULT_OF_##policy] = word,
		TLS_RESULT_POLICIES(X)
#undef X
	};
	assert(policy < sizeof words / sizeof words[0]);
	return words[policy];
}

struct tls_subject *tls_subject_new(struct loop *to, const char *domain, struct sts_policy *sts)
{
	struct tls_subject *s = mem_zalloc(sizeof *s);
	atomic_init(&s->refs, 1);
	s->to = to;
	s->domain = mem_strdup(domain);
	s->sts = sts_policy_ref(sts);
	return s;
}

struct tls_subject *tls_subject_ref(struct tls_subject *s)
{
	if (s)
		refs_take(&s->refs);
	return s;
}

void tls_subject_unref(struct tls_subject *s)
{
	if (!s || !refs_drop(&s->refs))
		return;
	sts_policy_unref(s->sts);
	free(s->domain);
	free(s);
}

void tls_report_names(const struct conf *c, char hostname[256], char from[TLS_REPORT_FROM_SIZE])
{
	snprintf(hostname, 256, "%s", c->hostname);
	if (!*hostname && gethostname(hostname, 255) != 0)
		snprintf(hostname, 256, "localhost");
	hostname[255] = '\0';
	if (*c->tls_report.from)
		snprintf(from, TLS_REPORT_FROM_SIZE, "%s", c->tls_report.from);
	else
		snprintf(from, TLS_REPORT_FROM_SIZE, "postmaster@%s", hostname);
}

struct tls_result *tls_result_new(const struct tls_subject *s, enum tls_result_type type,
				  const char *reason)
{
	assert(type < TLS_RESULT_TYPE_COUNT);
	struct buf text = {0};
	struct tls_result *r = mem_zalloc(sizeof *r);
	bool sts = s->sts && s->sts->mode != STS_NONE;
	r->note.type = TLS_RESULT;
	r->domain = mem_strdup(s->domain);
	r->policy = sts ? TLS_RESULT_OF_STS : TLS_RESULT_OF_NONE;
	if (sts)
		sts_policy_write(s->sts, &text);
	r->text = buf_steal(&text, NULL);
	r->type = type;
	r->reason = mem_strdup(reason);
	return r;
}

void tls_result_free(struct tls_result **rp)
{
	struct tls_result *r = mem_take(rp);
	if (!r)
		return;
	free(r->domain);
	free(r->text);
	free(r->mx);
	free(r->reason);
	free(r);
}
