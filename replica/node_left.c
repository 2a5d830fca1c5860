/* SPDX-License-Identifier: ISC */
#include "replica/node_left.h"

#include "base/mem.h"
#include "replica/life.h"
#include "replica/membership.h"
#include "replica/node_core.h"
#include "spool/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Of a life that is past all was adopted: by us, if the next one began with the epoch that follows ours. */
static enum left left_of_past(const struct replica_epoch *row, const struct harvest_origin *of,
			      bool had)
{
	return row->since == of->epoch + 1 || had ? LEFT_OURS : LEFT_LOST;
}

/* A row that we have given back is nobody's: what we have taken since, by an older one that a server showed us which did not know all
 * yet, is for whoever takes it now. */
enum left left_of(const char *us, const struct replica_epoch *row, const struct harvest_origin *of,
		  bool had)
{
	if (!row)
		return LEFT_NOTHING;
	if (row->life != of->life)
		return left_of_past(row, of, had);
	bool names_us = strcmp(row->by, us) == 0;
	if (names_us && (row->state == REPLICA_ADOPTED || row->state == REPLICA_RETIRED))
		return LEFT_OURS;
	return names_us && row->state == REPLICA_ADOPTING ? LEFT_TAKING : LEFT_LOST;
}

enum left left_of_both(enum left a, enum left b)
{
	return a > b ? a : b;
}

/* Which node it is of, and what has become of that. One without an origin is not whole: nothing was taken from it. */
static enum left judge_folder(const struct node *n, const char *name)
{
	char node[REPLICA_NODE_MAX + 1];
	struct harvest_origin of;
	if (!replica_token_parse(name + strlen(LIFE_ADOPTED_FROM), node))
		return LEFT_NOTHING;
	if (!harvest_origin(&of, n->conf->spool, name))
		return errno == ENOENT ? LEFT_NOTHING : LEFT_UNREAD;
	const struct roster_row *r = roster_find(&n->roster, node);
	return left_of(n->name, r ? &r->is : NULL, &of, life_had(n->conf->spool, node, of.epoch));
}

bool node_any_is_noted(const struct node *n)
{
	return membership_adopts(n->conf->spool);
}

struct judging {
	const struct node *node;
	enum left left; /* of all of them: what one says counts more the higher it is */
};

static void judge_leftover(void *owner, const char *name)
{
	struct judging *j = owner;
	j->left = left_of_both(j->left, judge_folder(j->node, name));
}

enum left node_left(const struct node *n)
{
	struct judging j = {.node = n, .left = LEFT_NOTHING};
	if (node_any_is_noted(n) && !life_each_leftover(n->conf->spool, judge_leftover, &j))
		return LEFT_UNREAD;
	return j.left;
}

bool node_left_has(const struct node *n, const char *node)
{
	char token[REPLICA_TOKEN];
	char *path = mem_printf("%s/" LIFE_ADOPTED_FROM "%s", n->conf->spool,
				replica_token(node, token));
	int folder = disk_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
	bool there = folder >= 0 || errno != ENOENT;
	disk_close(folder);
	free(path);
	return there;
}

static void put_ours_aside(void *owner, const char *name)
{
	const struct node *n = owner;
	if (judge_folder(n, name) == LEFT_OURS)
		life_keep(n->conf->spool, name, "the adoption that it was made for has ended");
}

void node_left_ours_aside(const struct node *n)
{
	life_each_leftover(n->conf->spool, put_ours_aside, (void *)n);
}

static void put_lost_aside(void *owner, const char *name)
{
	const struct node *n = owner;
	if (judge_folder(n, name) == LEFT_LOST)
		life_keep(n->conf->spool, name, "another has the queue that it was made of");
}

void node_left_lost_aside(const struct node *n)
{
	life_each_leftover(n->conf->spool, put_lost_aside, (void *)n);
}
