/* fact.h - what the nodes of a cluster tell each other about hosts: the contract between destdb and cluster.
 *
 *	qmgr -- FACT_SEEN: what this node has seen -----> [ cluster ] --> all others
 *	qmgr <- FACT_HEARD: what another one has seen ---+
 *	qmgr <- FACT_TELL: all that it has seen is wanted +	when Redis is there (again)
 *	qmgr -- FACT_PROBE: may I probe that host? -----> ............ --> FACT_LEAVE, the same object
 *
 * A fact is about one host, by its key, and has parts, each of which somebody saw at some time: of two, the newer
 * one counts, and of two of one time that of the node whose name sorts last, so that all nodes come to the same.
 * A part is a text of fields, "<TAB>name=value<TAB>name=value": qmgr/dest/destdb_text.h. Doubts are a counter, which adds:
 * of each node its own number, and what is heard is their sum.
 *
 * A time is the date that the node's system had (base/date.h) when it saw it, not the time of its queue, which waits out what is
 * done to the system's clock; and more than any that was known of the part before (fact_stamp()). So whose clock is
 * wrong by a minute is believed a minute too long, and no longer: what is further ahead is not heard.
 *
 * OWNERSHIP  Given away by posting. Texts are the fact's.
 * THREAD     Whoever holds it. fact_merge() and fact_stamp() are pure.
 * ERRORS     What can't be parsed is no part.
 */
#ifndef BASE_FACT_H
#define BASE_FACT_H

#include "base/buf.h"
#include "base/loop.h"

#include <stdbool.h>
#include <stdint.h>

enum fact_note {
	FACT_SEEN = NOTES_FROM(NOTES_OF_FACT),
	FACT_HEARD,
	FACT_TELL,
	FACT_PROBE,
	FACT_LEAVE,
};

/* X(part, its name) */
#define FACT_PARTS(X)                                                                              \
	X(HEALTH, "health")	/* up, or out until when and why */                                \
	X(SPEED, "speed")	/* r, s, time to connect */                                        \
	X(LIMIT, "limit")	/* connections that it was seen to take */                         \
	X(PIPELINE, "pipeline") /* depth earned, mode, messages on a connection, recipients */     \
	X(PLAIN, "plain")	/* names under which its TLS is broken */                          \
	X(PACE, "pace")		/* deliveries in a time that it was found to let through */

enum fact_which {
#define X(which, name) FACT_##which,
	FACT_PARTS(X)
#undef X
		FACT_PART_COUNT
};

enum { FACT_TEXT_MAX = 4096, FACT_NODE_MAX = 255, FACT_KEY_MAX = 1024, FACT_AHEAD_MS = 60000 };

struct fact_part {
	int64_t stamp;	   /* date, ms */
	char *node, *text; /* NULL: nothing is known */
};

struct fact {
	struct note note;
	char *key;
	struct fact_part part[FACT_PART_COUNT];
	int64_t doubts; /* SEEN: of this node; HEARD: of all; 0: not known */
};

struct fact *fact_new(enum fact_note, const char *key);
void fact_free(struct fact **);

void fact_set(struct fact *, enum fact_which, int64_t stamp, const char *node, const char *text);
/* Whatever was there. Control characters in the text become blanks, but for tabs; one that is too long is none. */

bool fact_word_good(const char *, size_t most);
/* May it be a key, or the name of a node or of what an order is about: not empty, no control characters? It goes
 * into texts of lines and tabs, and onto the operator's screen. */

int64_t fact_stamp(int64_t known, int64_t now_ms);
/* For what is seen now, where a part of that stamp is known; one of a clock that was ahead, which nobody heard, is none. */

unsigned fact_merge(struct fact *known, const struct fact *heard);
/* Take over the parts that are newer: a bit for each, 1 << enum fact_which. */

struct fact *fact_copy(const struct fact *, unsigned parts); /* FACT_SEEN */

const char *fact_part_name(enum fact_which);

bool fact_parse_part(struct fact *, const char *name, const char *value, int64_t now_ms);
/* "STAMP<TAB>NODE<TAB>TEXT", as cluster/facts.c has Redis keep it. False: it makes no sense, or is of a part that a
 * newer version has, or comes from a clock that is more than a minute ahead. */

struct fact_probe {
	struct note note;
	struct loop *reply_to;
	char *key;
	bool granted;
};

struct fact_probe *fact_probe_new(const char *key, struct loop *reply_to);
void fact_probe_free(struct fact_probe **);

#endif
