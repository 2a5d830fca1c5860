/* node_text.h - what a node says of itself, as a text for the others.
 *
 *	"version=1.0<TAB>state=working<TAB>received=17<TAB>..."
 *
 * A field that is not known is passed over, so that other versions understand each other.
 *
 * OWNERSHIP  node_text_read() to node_text_fini().
 * THREAD     Any. Pure.
 * ERRORS     What makes no sense is 0, or ""; a count is NODE_COUNT_MAX at most.
 */
#ifndef CLUSTER_NODE_TEXT_H
#define CLUSTER_NODE_TEXT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* X(counter, its name, what it is) */
#define NODE_COUNTERS(X)                                                                           \
	X(RECEIVED, "received", "messages accepted since its start")                               \
	X(SENT, "sent", "recipients sent to")                                                      \
	X(DEFERRED, "deferred", "attempts put off")                                                \
	X(BOUNCED, "bounced", "recipients returned")                                               \
	X(INCOMING, "queue_incoming", "messages in its queue, by queue")                           \
	X(ACTIVE, "queue_active", "")                                                              \
	X(WAITING, "queue_deferred", "")                                                           \
	X(HELD, "queue_hold", "")                                                                  \
	X(CLIENTS, "clients", "connections of clients")                                            \
	X(HOSTS, "hosts", "connections to next hops")

enum node_counter {
#define X(counter, ...) NODE_##counter,
	NODE_COUNTERS(X)
#undef X
		NODE_COUNTER_COUNT
};

enum { NODE_WORD_MAX = 32, NODE_NAME_MAX = 255, NODE_GONE_MS = 5000 };

#define NODE_COUNT_MAX INT64_C(1000000000000000)

struct node_text {
	char *name;
	char version[NODE_WORD_MAX], state[NODE_WORD_MAX]; /* state: working, gone */
	int64_t seen_ms;				   /* ago, by Redis' clock */
	int64_t count[NODE_COUNTER_COUNT];
};

void node_text_put(struct buf *to, const struct node_text *);
void node_text_read(struct node_text *, const char *name, const char *text);
void node_text_fini(struct node_text *);

bool node_text_alive(const struct node_text *);
const char *node_counter_name(enum node_counter);

#endif
