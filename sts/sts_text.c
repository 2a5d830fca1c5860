/* SPDX-License-Identifier: ISC */
#include "sts/sts_text.h"

#include "base/conf.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void sts_text_write(const struct sts_table *t, int64_t now_ms, struct buf *to)
{
	for (const struct sts_domain *d = t->all; d; d = d->hh.next) {
		if (!d->policy || d->ends_ms <= now_ms)
			continue;
		assert(*d->id); /* else it could not be read back */
		buf_printf(to, "domain %s %s %lld %lld\n", d->name, d->id, (long long)d->fetched_ms,
			   (long long)d->ends_ms);
		sts_policy_write(d->policy, to);
		buf_puts(to, "\n");
	}
}

/* The first line of a block. */
struct head {
	char name[256], id[STS_ID_SIZE];
	long long fetched_ms, ends_ms;
};

static bool read_head(const char *block, struct head *h)
{
	return sscanf(block, "domain %255s %32s %lld %lld\n", h->name, h->id, &h->fetched_ms,
		      &h->ends_ms) == 4 &&
	       conf_host_good(h->name);
}

void sts_text_read(const char *text, int64_t now_ms,
		   struct sts_domain *(*domain_of)(void *, const char *), struct sts_table *t,
		   void *owner)
{
	struct buf why = {0};
	const char *end;
	for (; (end = strstr(text, "\n\n")); text = end + 2) {
		struct head h;
		const char *policy = strchr(text, '\n') + 1;
		if (policy > end || !read_head(text, &h) || h.ends_ms <= now_ms ||
		    h.ends_ms - now_ms > STS_MAX_AGE_S * INT64_C(1000))
			continue;
		struct sts_policy *p = sts_policy_parse(policy, (size_t)(end - policy), &why);
		if (!p)
			continue;
		struct sts_domain *d = domain_of(owner, h.name);
		sts_table_set(t, d, p);
		memcpy(d->id, h.id, sizeof d->id);
		memcpy(d->record, h.id, sizeof d->record);
		d->fetched_ms = h.fetched_ms;
		d->ends_ms = h.ends_ms;
	}
	buf_fini(&why);
}
