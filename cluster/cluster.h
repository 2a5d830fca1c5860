/* cluster.h - the front page of cluster/: several machines that know what each other knows, by Redis.
 *
 *	qmgr --- FACT_SEEN, FACT_PROBE ------> [ cluster: facts, orders, inquiries, nodes ] <-- link --> Redis
 *	qmgr, limiter --- SHARING_NEED, _WANT, _SPENT --> [ shares ] --> the answers of base/sharing.h
 *	main --- CLUSTER_ORDER, _INQUIRY, _TOLD ->    |  |
 *	qmgr <-- FACT_HEARD, FACT_LEAVE ---------+  |
 *	main <-- CLUSTER_APPLY, _SAVE, _ASKED ------+
 *	main, http <-- CLUSTER_VIEW: who is there --+
 *
 *	cluster.c	this thread
 *	link.c		Redis: commands, channels, away or not
 *	wire.c		one connection to it
 *	resp.c		its protocol, by hiredis: no I/O
 *	facts.c		what is known about hosts, and who probes one that is out
 *	orders.c	what the operator wants of all nodes, also of those that start later
 *	inquiry.c	what all nodes say when one asks
 *	shares.c	limits that nodes share: base/sharing.h
 *	lease_table.c	connections to hosts with a limit, and lease.c, how many of them are this node's (pure)
 *	reserve_table.c	rates, and reserve.c, what this node may do of them (pure)
 *	nodes.c		who is there, and what all have done together
 *	node_text.c	what a node says of itself (pure)
 *
 * Nothing waits for Redis. Without `cluster { redis }` there is no such thread, and nobody posts to it.
 *
 * OWNERSHIP  Each note is the receiver's from the post on.
 * THREAD     cluster_new(), _recall(), _start(), _stop(), _free(): main. The notes: any.
 * ERRORS     Logged and counted: link.h.
 * SEE        FINCH 2007: "the destdb should ideally be shared".
 */
#ifndef CLUSTER_CLUSTER_H
#define CLUSTER_CLUSTER_H

#include "base/conf.h"
#include "base/loop.h"
#include "base/order.h"
#include "cluster/node_text.h"

enum cluster_note {
	CLUSTER_ORDER = NOTES_FROM(NOTES_OF_CLUSTER),
	CLUSTER_APPLY,
	CLUSTER_SAVE, /* a text_note: which orders this node has carried out */
	CLUSTER_VIEW,
	CLUSTER_INQUIRY,
	CLUSTER_ASKED,
	CLUSTER_TOLD,
};

/* X(kind, its word) */
#define CLUSTER_KINDS(X)                                                                           \
	X(DEST, "dest")                                                                            \
	X(USER, "user")                                                                            \
	X(FLOW, "flow")

enum cluster_kind {
#define X(kind, word) CLUSTER_##kind,
	CLUSTER_KINDS(X)
#undef X
		CLUSTER_KIND_COUNT
};

/* One of the operator's for all nodes; the same object comes back. CLUSTER_APPLY is one that is to be
 * carried out here. */
struct cluster_order {
	struct note note;
	struct loop *reply_to;
	void *owner;
	enum cluster_kind kind;
	enum order verb;
	char *name;	  /* of a site, host, domain, login or flow */
	int64_t until_ms; /* wall clock: a suspension ends by itself; 0: not */
	char *why;	  /* it was not taken, a clause; NULL: all nodes have it, or will */
};

struct cluster_order *cluster_order_new(enum cluster_kind, enum order verb, const char *name,
					struct loop *reply_to, void *owner);
void cluster_order_free(struct cluster_order **);

/* All nodes that are known, this one too, by name. */
struct cluster_view {
	struct note note;
	bool redis; /* it is there: the others are as it says */
	int n;
	struct node_text *node;
};

void cluster_view_free(struct cluster_view **); /* NULL is allowed */

enum { CLUSTER_TEXT_MAX = 1 << 20 }; /* bytes that a node may say */

/* The answer of a node, or who should have given one. */
struct cluster_said {
	char *node;
	char state[NODE_WORD_MAX]; /* as it was seen last */
	int64_t seen_ms;	   /* ago, then */
	bool answered;
	struct buf text; /* all of it */
	int pieces;	 /* of it that have come */
};

/* A question to all nodes; the same object comes back. */
struct cluster_inquiry {
	struct note note;
	struct loop *reply_to;
	void *owner;
	char *question; /* printable */
	char *why;	/* it was not asked, a clause; or NULL */
	int n;
	struct cluster_said *said; /* by node */
};

struct cluster_inquiry *cluster_inquiry_new(const char *question, struct loop *reply_to,
					    void *owner);
void cluster_inquiry_free(struct cluster_inquiry **);

/* A node asks: the same object goes back as CLUSTER_TOLD, with a text that has no NUL. */
struct cluster_asked {
	struct note note;
	char *node, *token, *question;
	struct buf text;
	bool unknown; /* the question is: nothing is said */
};

void cluster_asked_free(struct cluster_asked **);

bool cluster_built(void);
/* Has this sluice the folders cluster/ and replica/? Not with CLUSTER=no: cluster_absent.c. */

struct cluster;

struct cluster_edges {
	struct loop *dns;	      /* RESOLVE_ASK */
	struct loop *qmgr;	      /* FACT_HEARD, FACT_TELL, FACT_LEAVE */
	struct loop *main;	      /* CLUSTER_APPLY, CLUSTER_SAVE, CLUSTER_VIEW */
	struct loop *watcher;	      /* CLUSTER_VIEW, too */
	struct loop *limiter;	      /* SHARING_PARTS */
	const struct wire_far *redis; /* a model of it; NULL: a real one */
};

struct cluster *cluster_new(struct conf *, const char *version, const struct cluster_edges *);
/* NULL: the configuration wants none. Takes a reference. */

void cluster_recall(struct cluster *, const char *text); /* what CLUSTER_SAVE said last */
void cluster_begin(struct cluster *);
/* Without a thread: the loop is turned by whoever simulates. */

void cluster_start(struct cluster *);
struct loop *cluster_loop(struct cluster *);
void cluster_stop(struct cluster *);
/* The loops of the edges are there. What is posted to it afterwards is dropped. */

void cluster_free(struct cluster **);

#endif
