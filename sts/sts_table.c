/* SPDX-License-Identifier: ISC */
#include "sts/sts_table.h"

#include "base/mem.h"
#include "base/metrics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void sts_table_init(struct sts_table *t)
{
	*t = (struct sts_table){0};
	list_init(&t->with);
	list_init(&t->without);
}

static void unlist_domain(struct sts_table *t, struct sts_domain *d)
{
	int *n = d->policy ? &t->nwith : &t->nwithout;
	assert(*n > 0 && t->bytes >= d->bytes);
	--*n;
	t->bytes -= d->bytes;
	metrics_add(METRIC_sts_policies, d->policy ? -1 : 0);
	list_remove(&d->in_use);
}

static size_t size_of(const struct sts_policy *p)
{
	size_t bytes = p ? sizeof *p : 0;
	for (int i = 0; p && i < p->nmx; i++)
		bytes += strlen(p->mx[i]) + 1 + sizeof p->mx[i];
	return bytes;
}

/* As the newest of its kind. */
static void list_domain(struct sts_table *t, struct sts_domain *d)
{
	d->bytes = size_of(d->policy);
	t->bytes += d->bytes;
	++*(d->policy ? &t->nwith : &t->nwithout);
	metrics_add(METRIC_sts_policies, d->policy ? 1 : 0);
	list_append(d->policy ? &t->with : &t->without, &d->in_use);
}

static void free_domain(struct sts_table *t, struct sts_domain *d)
{
	assert(d->look == STS_LOOK_NONE && !d->waiting && !d->fetch && list_empty(&d->in_queue));
	assert(!timer_active(&d->limit) && !timer_active(&d->slow));
	unlist_domain(t, d);
	HASH_DEL(t->all, d);
	sts_policy_unref(d->policy);
	free(d->why);
	free(d->at);
	free(d->name);
	free(d);
}

void sts_table_fini(struct sts_table *t)
{
	hash_each (struct sts_domain, d, t->all)
		free_domain(t, d);
	assert(t->nwith == 0 && t->nwithout == 0 && t->bytes == 0);
	assert(list_empty(&t->with) && list_empty(&t->without));
}

struct sts_domain *sts_table_get(struct sts_table *t, const char *name)
{
	struct sts_domain *d;
	HASH_FIND_STR(t->all, name, d);
	if (d) {
		unlist_domain(t, d);
		list_domain(t, d);
		return d;
	}
	d = mem_zalloc(sizeof *d);
	d->name = mem_strdup(name);
	list_init(&d->in_use);
	list_init(&d->in_queue);
	HASH_ADD_KEYPTR(hh, t->all, d->name, strlen(d->name), d);
	list_domain(t, d);
	return d;
}

void sts_table_set(struct sts_table *t, struct sts_domain *d, struct sts_policy *p)
{
	assert(!p || p != d->policy); /* one reference would stand for two */
	unlist_domain(t, d);
	sts_policy_unref(d->policy);
	d->policy = p;
	list_domain(t, d);
}

/* The one asked for longest ago, of those at rest. False: there is none. */
static bool drop_oldest(struct sts_table *t, struct list *kind)
{
	list_each_entry (struct sts_domain, d, in_use, kind) {
		if (d->look == STS_LOOK_NONE) {
			free_domain(t, d);
			return true;
		}
	}
	return false;
}

void sts_table_trim(struct sts_table *t)
{
	while (t->nwith > STS_POLICIES_MAX || t->bytes > STS_POLICY_BYTES_MAX)
		if (!drop_oldest(t, &t->with))
			break;
	while (t->nwithout > STS_WITHOUT_MAX)
		if (!drop_oldest(t, &t->without))
			break;
}

void sts_domain_move(struct sts_domain *d, enum sts_look to)
{
	static const unsigned next[] = {
#define X(look, follow) [STS_LOOK_##look] = (follow),
		STS_LOOKS(X)
#undef X
	};
	assert(next[d->look] & (1u << to));
	d->look = to;
}
