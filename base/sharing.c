/* SPDX-License-Identifier: ISC */
#include "base/sharing.h"

#include "base/mem.h"

#include <stdlib.h>

struct sharing_want *sharing_want_new(struct loop *reply_to, const char *key,
				      const struct conf_rate *rate, int64_t n)
{
	struct sharing_want *w = mem_zalloc(sizeof *w);
	w->note.type = SHARING_WANT;
	w->reply_to = reply_to;
	w->key = mem_strdup(key);
	w->rate = *rate;
	w->n = n;
	return w;
}

void sharing_want_free(struct sharing_want **wp)
{
	free((*wp)->key);
	free(*wp);
	*wp = NULL;
}

struct sharing_need *sharing_need_new(struct loop *reply_to, const char *key)
{
	struct sharing_need *n = mem_zalloc(sizeof *n);
	n->note.type = SHARING_NEED;
	n->reply_to = reply_to;
	n->key = mem_strdup(key);
	return n;
}

void sharing_need_free(struct sharing_need **np)
{
	free((*np)->key);
	free(*np);
	*np = NULL;
}

struct sharing_leased *sharing_leased_new(const char *key)
{
	struct sharing_leased *l = mem_zalloc(sizeof *l);
	l->note.type = SHARING_LEASED;
	l->key = mem_strdup(key);
	return l;
}

void sharing_leased_free(struct sharing_leased **lp)
{
	free((*lp)->key);
	free(*lp);
	*lp = NULL;
}

struct sharing_spent *sharing_spent_new(struct loop *reply_to, const char *key,
					const struct conf_rate *rate)
{
	struct sharing_spent *s = mem_zalloc(sizeof *s);
	s->note.type = SHARING_SPENT;
	s->reply_to = reply_to;
	s->key = mem_strdup(key);
	s->rate = *rate;
	return s;
}

void sharing_spent_free(struct sharing_spent **sp)
{
	free((*sp)->key);
	free(*sp);
	*sp = NULL;
}

struct sharing_total *sharing_total_new(const char *key)
{
	struct sharing_total *t = mem_zalloc(sizeof *t);
	t->note.type = SHARING_TOTAL;
	t->key = mem_strdup(key);
	return t;
}

void sharing_total_free(struct sharing_total **tp)
{
	free((*tp)->key);
	free(*tp);
	*tp = NULL;
}
