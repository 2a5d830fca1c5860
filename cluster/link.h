/* link.h - Redis (or Valkey), as all of cluster/ sees it: commands and their answers, channels, away or not.
 *
 *	link_send(), link_eval() --> [ FIFO of what is awaited ] <--> one connection
 *	heard(payload)          <-- channel -------------------- <--> another, which subscribes
 *
 *	away -> resolving -> opening -> ready
 *	  ^_________|___________|_________|	after 100 ms, 200 ms, ... 1.5 s, with jitter; from 100 ms on again
 *						once it was ready for LINK_STEADY_MS
 *
 * It is ready when both connections are, all channels are subscribed to, and Redis has been asked to write, and to do whatever
 * else we use, and has done so, or lacks nothing but room: what it writes is PREFIX since, when its data began, by its clock in
 * milliseconds. It is away when one of them ends, when an answer takes longer than cluster.redis_timeout, be it one that opens the
 * link, or when Redis says later that it can't serve now (LOADING, READONLY, NOREPLICAS, MASTERDOWN) or that our user may not (NOPERM). Which of
 * the two it is, is said in the log once each ("cluster", state, reason), counted, and told to those who watch. Nothing is
 * kept for a Redis that is away: what was awaited is answered by NULL, and what is sent then is refused at once. After a
 * NULL nobody knows whether the command was carried out.
 *
 * Commands are carried out in the order in which they were sent; only a script that Redis did not know is sent once
 * more, and comes later.
 *
 * OWNERSHIP  A reply is lent for the call. Arguments are copied.
 * THREAD     The loop's, but link_new(), link_hear(), link_watch() and link_free(): whoever makes the loop, while it
 *            does not run. Callbacks come from the loop, never from within a call.
 * ERRORS     False: it is away, or too much is awaited (LINK_AWAITED_MAX); answered() is not called then. Error
 *            replies are replies (type REDIS_REPLY_ERROR), and counted.
 * SEE        hiredis/hiredis.h for redisReply; RESP2.
 */
#ifndef CLUSTER_LINK_H
#define CLUSTER_LINK_H

#include "base/conf.h"
#include "base/loop.h"
#include "base/resolve.h"
#include "cluster/resp.h"

#include <stdbool.h>

enum { LINK_REST_MOST_MS = 1500 };
/* From the beginning of an attempt to reach Redis to that of the next, or a moment longer than the first takes: all nodes are back so
 * long after it is. */

enum {
	LINK_AWAITED_MAX = 10000,  /* commands */
	LINK_UNSENT_MAX = 8 << 20, /* bytes */
	LINK_CHANNELS_MAX = 8,
	LINK_WATCHERS_MAX = 8,
	LINK_STEADY_MS = 10000,
};

struct link;

typedef void link_answered(void *owner, const redisReply *); /* NULL: there is no answer */

struct link *link_new(struct loop *, struct loop *dns, struct conf *);
/* Takes a reference to the configuration. dns is asked for a host that has a name (RESOLVE_ASK); what it answers
 * comes to the loop's mailbox as RESOLVE_ANSWER, and must be given to link_resolved(). It may be NULL where redis is an address. */

struct wire_far;

void link_reach(struct link *, const struct wire_far *);
/* Redis is a model; before link_begin(). */

void link_begin(struct link *);
/* First connect: in the loop, or before it runs. */

void link_free(struct link **); /* what is awaited is answered by NULL */

void link_resolved(struct link *, struct resolve *); /* takes the answer */

void link_hear(struct link *, const char *channel,
	       void (*heard)(void *owner, const char *payload, size_t len), void *owner);
/* Subscribe. Messages of ours come back to us, too. */

void link_watch(struct link *, void (*changed)(void *owner, bool ready), void *owner);
/* Called when it becomes ready, and when it is so no longer. What others published between is lost. */

bool link_ready(const struct link *);
bool link_lacks_room(const char *error);
/* Redis has refused a write for want of memory, or of room on its disk. */

const char *link_prefix(const struct link *); /* of all keys and channels */
char *link_name_channel(const struct link *, const char *channel);
/* To be freed: with the prefix, and the database, since channels of Redis belong to none. */
const char *link_since(const struct link *); /* the name of that key */

/* Something that we write again and again, each time with a larger number. */
struct link_mark {
	const char *key, *field; /* of a hash; both stay */
	int64_t at;		 /* what is there begins with this number, or a larger one */
};

void link_mark(struct link *, const struct link_mark *);
/* Redis has that. Where it has not when it is reached the next time, it has come back with older data: its since is then, anew. */

void link_tell_again(struct link *);
/* Redis has lost data, and is there: soon those who watch are told once more that it is ready. */

extern const char link_since_script[];
/* KEYS: of it, PREFIX passing, which is made and gone, and the mark's hash. ARGV: its field, its number. Returns 1; an error that begins with NOPERM and names a command: the
 * user may not use it, or not with these keys. Scripts that use another command name it there, too. */

/* Part of a script, behind a local now_ms: the local since, which is now if it is not there or makes no sense. */
#define LINK_LUA_SINCE(key)                                                                        \
	"local since = tonumber(redis.pcall('GET', " key "))\n"                                    \
	"if not (since and since >= 0 and since <= now_ms) then\n"                                 \
	"  since = now_ms\n"                                                                       \
	"  redis.call('SET', " key ", string.format('%.0f', since))\n"                             \
	"end\n"

bool link_send(struct link *, link_answered *, void *owner, int n, const char *const arg[],
	       const size_t len[]);
/* One command. len NULL: the arguments are strings. answered may be NULL: nobody cares. */

struct link_script {
	const char *text;
	char sha[41];
};

void link_script_init(struct link_script *, const char *text); /* text stays */

bool link_eval(struct link *, const struct link_script *, link_answered *, void *owner, int nkeys,
	       int n, const char *const arg[]);
/* EVALSHA with n arguments, of which the first nkeys are keys; EVAL where Redis does not know it yet. The script
 * stays until the answer. */

void link_publish(struct link *, const char *channel, const char *payload, size_t len);
/* Lost when Redis is away. */

#endif
