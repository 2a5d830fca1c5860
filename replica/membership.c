/* SPDX-License-Identifier: ISC */
#include "replica/membership.h"

#include "replica/life.h"
#include "spool/adoption.h"
#include "spool/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static const char *name_of(const struct conf *c)
{
	if (c->cluster.replicate == REPLICATE_OFF)
		return NULL;
	return *c->cluster.name ? c->cluster.name : c->own_name;
}

static bool has_name(const struct epoch_own *own, const char *name)
{
	return !*own->name || strncmp(own->name, name, REPLICA_NODE_MAX) == 0;
}

enum membership membership_judge(const struct epoch_own *own, const char *name)
{
	if (own->epoch == 0 || (name ? has_name(own, name) : own->bond == EPOCH_LEFT))
		return MEMBERSHIP_GOES_ON;
	if (own->bond == EPOCH_DRAINED)
		return MEMBERSHIP_HANDED_OVER;
	return name ? MEMBERSHIP_RENAMED : MEMBERSHIP_ALONE;
}

bool membership_adopts(const char *spool)
{
	int folder = disk_open_top(spool);
	bool noted = folder >= 0 ? adoption_is_noted(folder) : errno != ENOENT;
	disk_close(folder);
	return noted;
}

static void say_renamed(const struct epoch_own *own, const char *spool, const char *name,
			struct buf *why)
{
	buf_printf(why,
		   "%s/node: the queue there is that of the node \"%s\", and would be taken for "
		   "that of \"%.*s\": set cluster { name = \"%s\" }; before it gets another "
		   "name, it is to be drained under this one (sluice node drain)",
		   spool, own->name, REPLICA_NODE_MAX, name, own->name);
}

static void say_alone(const struct epoch_own *own, const char *spool, struct buf *why)
{
	buf_printf(why,
		   "%s/node: the queue there is that of the node \"%s\", and another node may have "
		   "it by now: start it with cluster { replicate } as before; or, if no other "
		   "node has it, nor will have it, say so by sluice node leave",
		   spool, *own->name ? own->name : "?");
}

static void add_node(void *owner, const char *name)
{
	char node[REPLICA_NODE_MAX + 1];
	if (replica_token_parse(name + strlen(LIFE_ADOPTED_FROM), node))
		buf_printf(owner, "%s\"%s\"", buf_len(owner) > 0 ? ", " : "", node);
}

static void say_adopting(const char *spool, struct buf *why)
{
	struct buf nodes = {0};
	life_each_leftover(spool, add_node, &nodes);
	buf_printf(
		why,
		"%s/adopting: the queue of another node (%s) was being adopted, and what has been "
		"taken of it is nobody's yet: start it with cluster { replicate } as before",
		spool, buf_len(&nodes) > 0 ? buf_cstr(&nodes) : "?");
	buf_fini(&nodes);
}

static bool say_judgement(enum membership m, const struct epoch_own *own, const struct conf *c,
			  struct buf *why)
{
	const char *name = name_of(c);
	if (m == MEMBERSHIP_RENAMED)
		say_renamed(own, c->spool, name, why);
	else if (m == MEMBERSHIP_ALONE && !membership_adopts(c->spool))
		say_alone(own, c->spool, why);
	else if (!name && m != MEMBERSHIP_HANDED_OVER && membership_adopts(c->spool))
		say_adopting(c->spool, why);
	else
		return true;
	return false;
}

/* A folder that is not there yet is that of a new queue. */
static bool read_own(const char *spool, struct epoch_own *own)
{
	if (life_read(spool, own))
		return true;
	*own = (struct epoch_own){.life = 0};
	return errno == ENOENT;
}

bool membership_would_start(const struct conf *c, struct buf *why)
{
	struct epoch_own own;
	return !read_own(c->spool, &own) ||
	       say_judgement(membership_judge(&own, name_of(c)), &own, c, why);
}

bool membership_may_start(const struct conf *c, struct buf *error)
{
	struct epoch_own own;
	if (!read_own(c->spool, &own)) {
		buf_printf(error, "%s/node: %s", c->spool, strerror(errno));
		return false;
	}
	enum membership m = membership_judge(&own, name_of(c));
	if (m != MEMBERSHIP_HANDED_OVER)
		return say_judgement(m, &own, c, error);
	if (life_end(c->spool))
		return life_put_aside(c->spool, error);
	buf_printf(error, "%s/node.past: %s", c->spool, strerror(errno));
	return false;
}

bool membership_is_alone(const char *spool, struct buf *why)
{
	struct epoch_own own;
	if (!read_own(spool, &own)) {
		buf_printf(why, "%s/node: %s", spool, strerror(errno));
		return false;
	}
	bool alone =
		membership_judge(&own, NULL) == MEMBERSHIP_GOES_ON && !membership_adopts(spool);
	buf_puts(why, alone ? "" : "another node may have this queue by now");
	return alone;
}

/* NULL: it may. */
static const char *why_not_leave(const char *spool, const struct epoch_own *own)
{
	if (own->epoch == 0)
		return "the queue there is no node's: it is this machine's alone";
	if (own->bond == EPOCH_DRAINED)
		return "the queue there was handed over: a start without cluster { replicate } "
		       "puts it aside, and begins with an empty one";
	if (membership_adopts(spool))
		return "the queue of another node was being adopted: start it with cluster { "
		       "replicate } before, until that has come to its end";
	return NULL;
}

static bool leave_locked(const char *spool, struct buf *says)
{
	struct epoch_own own;
	bool read = life_read(spool, &own);
	const char *not = read ? why_not_leave(spool, &own) : strerror(errno);
	if (!not ) {
		own.bond = EPOCH_LEFT;
		not = life_write(spool, &own) ? NULL : strerror(errno);
	}
	if (not )
		buf_printf(says, "%s: %s", spool, not );
	else
		buf_printf(says, "%s: the queue there is this machine's alone from now on", spool);
	return !not ;
}

bool membership_leave(const char *spool, struct buf *says)
{
	int folder = disk_open_top(spool);
	int lock = folder >= 0 ? disk_open(folder, "lock", O_RDWR | O_CREAT) : -1;
	bool ok = lock >= 0 && disk_lock(lock) == 0;
	if (ok)
		ok = leave_locked(spool, says);
	else if (lock >= 0)
		buf_printf(says, "%s: the relay is running: stop it before", spool);
	else
		buf_printf(says, "%s: %s", spool, strerror(errno));
	disk_close(lock);
	disk_close(folder);
	return ok;
}
