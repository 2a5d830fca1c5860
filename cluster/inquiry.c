/* SPDX-License-Identifier: ISC */
#include "cluster/inquiry.h"

#include "base/fact.h"
#include "base/list.h"
#include "base/magic.h"
#include "base/mem.h"

#include <assert.h>
#include <inttypes.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INQUIRIES_MAGIC = 0x73757276, INQUIRY_MAGIC = 0x71756573, TOKEN_MAX = 16 };

/* One of ours. */
struct inquiry {
	unsigned magic;
	struct inquiries *all;
	struct list in_list;
	struct cluster_inquiry *asked;
	char token[TOKEN_MAX + 1];
	struct timer timer;
	size_t room;
};

struct inquiries {
	unsigned magic;
	struct loop *loop, *main;
	struct link *link;
	struct nodes *nodes;
	char *node;
	struct list under_way; /* struct inquiry */
	int n, nanswering;
};

struct cluster_inquiry *cluster_inquiry_new(const char *question, struct loop *reply_to,
					    void *owner)
{
	struct cluster_inquiry *s = mailbox_note(sizeof *s, CLUSTER_INQUIRY);
	s->question = mem_strdup(question);
	s->reply_to = reply_to;
	s->owner = owner;
	return s;
}

void cluster_inquiry_free(struct cluster_inquiry **sp)
{
	struct cluster_inquiry *s = mem_take(sp);
	if (!s)
		return;
	for (int i = 0; i < s->n; i++) {
		free(s->said[i].node);
		buf_fini(&s->said[i].text);
	}
	free(s->said);
	free(s->question);
	free(s->why);
	free(s);
}

void cluster_asked_free(struct cluster_asked **ap)
{
	struct cluster_asked *a = mem_take(ap);
	if (!a)
		return;
	free(a->node);
	free(a->token);
	free(a->question);
	buf_fini(&a->text);
	free(a);
}

static struct cluster_said *add_node(struct cluster_inquiry *s, const char *name)
{
	s->said = mem_realloc(s->said, ((size_t)s->n + 1) * sizeof *s->said);
	struct cluster_said *said = &s->said[s->n++];
	*said = (struct cluster_said){.node = mem_strdup(name), .state = "working"};
	return said;
}

static void expect_nodes(struct cluster_inquiry *s, const struct cluster_view *v)
{
	for (int i = 0; i < v->n; i++) {
		struct cluster_said *said = add_node(s, v->node[i].name);
		memcpy(said->state, v->node[i].state, sizeof said->state);
		said->seen_ms = v->node[i].seen_ms;
	}
}

static int by_node(const void *a, const void *b)
{
	return strcmp(((const struct cluster_said *)a)->node,
		      ((const struct cluster_said *)b)->node);
}

static void give_back(struct cluster_inquiry *s, const char *why)
{
	s->why = mem_strdup(why);
	if (s->n > 0)
		qsort(s->said, (size_t)s->n, sizeof *s->said, by_node);
	loop_post(s->reply_to, &s->note);
}

static void end_inquiry(struct inquiry *s, const char *why)
{
	timer_stop(&s->all->loop->timers, &s->timer);
	list_remove(&s->in_list);
	assert(s->all->n > 0);
	s->all->n--;
	give_back(s->asked, why);
	magic_free(s);
}

static void on_late(void *owner)
{
	struct inquiry *s = owner;
	magic_check(s, INQUIRY_MAGIC);
	end_inquiry(s, NULL);
}

/* Who is gone is waited for no longer than it takes the others. */
static bool has_all(const struct cluster_inquiry *s)
{
	for (int i = 0; i < s->n; i++)
		if (!s->said[i].answered && strcmp(s->said[i].state, "gone") != 0)
			return false;
	return true;
}

static struct inquiry *find_inquiry(struct inquiries *all, const char *token)
{
	list_each_entry (struct inquiry, s, in_list, &all->under_way) {
		if (strcmp(s->token, token) == 0)
			return s;
	}
	return NULL;
}

static struct cluster_said *find_node(struct cluster_inquiry *s, const char *name)
{
	for (int i = 0; i < s->n; i++)
		if (strcmp(s->said[i].node, name) == 0)
			return &s->said[i];
	return s->n < NODES_MAX ? add_node(s, name) : NULL;
}

/* Pieces that come in another order, or where one is missing, are no text. */
static void take_piece(struct inquiry *s, struct cluster_said *said, const char *which,
		       const char *text)
{
	char *rest;
	int64_t piece = strtoll(which, &rest, 10);
	int64_t pieces = *rest == '/' ? strtoll(rest + 1, NULL, 10) : 0;
	size_t len = strlen(text);
	if (said->answered || piece != said->pieces + 1 || piece > pieces || len > s->room ||
	    buf_len(&said->text) + len > CLUSTER_TEXT_MAX)
		return;
	assert(s->room >= len);
	s->room -= len;
	buf_append(&said->text, text, len);
	said->pieces = (int)piece;
	assert(buf_len(&said->text) <= CLUSTER_TEXT_MAX);
	said->answered = piece == pieces;
}

static void on_told(void *owner, const char *payload, size_t len)
{
	struct inquiries *all = owner;
	magic_check(all, INQUIRIES_MAGIC);
	if (memchr(payload, '\0', len))
		return;
	char *copy = mem_strndup(payload, len), *text = copy;
	char *head = strsep(&text, "\n");
	const char *token = strsep(&head, "\t"), *node = strsep(&head, "\t");
	struct inquiry *s = find_inquiry(all, token);
	bool sense = text && head && fact_word_good(node, NODE_NAME_MAX);
	struct cluster_said *said = s && sense ? find_node(s->asked, node) : NULL;
	if (said)
		take_piece(s, said, head, text);
	if (said && has_all(s->asked))
		end_inquiry(s, NULL);
	free(copy);
}

static void on_asked(void *owner, const char *payload, size_t len)
{
	struct inquiries *all = owner;
	magic_check(all, INQUIRIES_MAGIC);
	if (memchr(payload, '\0', len) || all->nanswering >= INQUIRIES_MAX)
		return;
	char *copy = mem_strndup(payload, len), *question = copy;
	const char *node = strsep(&question, "\t"), *token = strsep(&question, "\t");
	if (question && strlen(token) <= TOKEN_MAX && fact_word_good(node, NODE_NAME_MAX) &&
	    fact_word_good(token, TOKEN_MAX) && fact_word_good(question, FACT_TEXT_MAX)) {
		struct cluster_asked *a = mailbox_note(sizeof *a, CLUSTER_ASKED);
		a->node = mem_strdup(node);
		a->token = mem_strdup(token);
		a->question = mem_strdup(question);
		all->nanswering++;
		assert(all->nanswering <= INQUIRIES_MAX);
		loop_post(all->main, &a->note);
	}
	free(copy);
}

struct inquiries *inquiries_new(struct loop *loop, struct link *link, const char *node,
				struct nodes *nodes, struct loop *main)
{
	struct inquiries *all = mem_zalloc(sizeof *all);
	all->magic = INQUIRIES_MAGIC;
	all->loop = loop;
	all->main = main;
	all->link = link;
	all->nodes = nodes;
	all->node = mem_strdup(node);
	list_init(&all->under_way);
	char *own = mem_printf("told:%s", node);
	link_hear(link, "asked", on_asked, all);
	link_hear(link, own, on_told, all);
	free(own);
	return all;
}

void inquiries_free(struct inquiries **ap)
{
	struct inquiries *all = mem_take(ap);
	if (!all)
		return;
	magic_check(all, INQUIRIES_MAGIC);
	for (struct list *first; (first = list_first(&all->under_way)) != NULL;)
		end_inquiry(list_entry(first, struct inquiry, in_list), "this relay ends");
	assert(all->n == 0);
	magic_clear(all);
	free(all->node);
	free(all);
}

static void make_token(char token[TOKEN_MAX + 1])
{
	uint64_t chance;
	if (RAND_bytes((unsigned char *)&chance, sizeof chance) != 1)
		abort();
	snprintf(token, TOKEN_MAX + 1, "%016" PRIx64, chance);
}

static void on_seen(void *owner, const struct cluster_view *v)
{
	struct inquiry *s = owner;
	magic_check(s, INQUIRY_MAGIC);
	if (!v) {
		end_inquiry(s, "Redis has not answered");
		return;
	}
	assert(s->asked->n == 0 && !timer_active(&s->timer));
	expect_nodes(s->asked, v);
	loop_timer_in(s->all->loop, &s->timer, INQUIRY_MS);
	char *text = mem_printf("%s\t%s\t%s", s->all->node, s->token, s->asked->question);
	link_publish(s->all->link, "asked", text, strlen(text));
	free(text);
}

static struct inquiry *begin_inquiry(struct inquiries *all, struct cluster_inquiry *asked)
{
	struct inquiry *s = mem_zalloc(sizeof *s);
	s->magic = INQUIRY_MAGIC;
	s->all = all;
	s->asked = asked;
	s->room = INQUIRY_ROOM_MAX;
	make_token(s->token);
	list_init(&s->in_list);
	list_append(&all->under_way, &s->in_list);
	all->n++;
	assert(all->n <= INQUIRIES_MAX);
	timer_init(&s->timer, on_late, s);
	return s;
}

void inquiries_ask(struct inquiries *all, struct cluster_inquiry *asked)
{
	assert(loop_is_ours(all->loop));
	if (all->n >= INQUIRIES_MAX) {
		give_back(asked, "too many are asking");
		return;
	}
	struct inquiry *s = begin_inquiry(all, asked);
	if (!link_ready(all->link) || !nodes_look(all->nodes, on_seen, s))
		end_inquiry(s, "Redis is away");
}

static void tell_asker(const struct inquiries *all, const struct cluster_asked *a)
{
	size_t len = buf_len(&a->text), pieces = len / INQUIRY_PIECE + 1;
	char *channel = mem_printf("told:%s", a->node);
	for (size_t i = 0; i < pieces; i++) {
		size_t from = i * INQUIRY_PIECE;
		size_t n = len - from < INQUIRY_PIECE ? len - from : INQUIRY_PIECE;
		struct buf piece = {0};
		buf_printf(&piece, "%s\t%s\t%zu/%zu\n", a->token, all->node, i + 1, pieces);
		buf_append(&piece, buf_data(&a->text) + from, n);
		link_publish(all->link, channel, buf_data(&piece), buf_len(&piece));
		buf_fini(&piece);
	}
	free(channel);
}

void inquiries_told(struct inquiries *all, struct cluster_asked *a)
{
	assert(loop_is_ours(all->loop));
	if (!a->unknown)
		tell_asker(all, a);
	assert(all->nanswering > 0);
	all->nanswering--;
	cluster_asked_free(&a);
}
