/* envelope.h - the sender of a message, its recipients, and the state of each.
 *
 * What smtpd gathers, the spool keeps, qmgr works on and the bounce reports.
 *
 * OWNERSHIP  envelope_free() frees all that hangs on it.
 * THREAD     Whoever holds it; it is given away by posting. While a delivery is under way, smtpc
 *            reads the addresses of qmgr's envelope: they do not change.
 * ERRORS     None.
 * SEE        RFC 5321 2.3.1; RFC 3461 (NOTIFY, ORCPT, RET, ENVID); RFC 6152; RFC 6531.
 */
#ifndef BASE_ENVELOPE_H
#define BASE_ENVELOPE_H

#include "base/recipient_index.h"
#include "base/verdict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dsn_notify { /* bits; none set: the default of RFC 3461 4.1, failure and delay */
		  NOTIFY_NEVER = 1,
		  NOTIFY_SUCCESS = 2,
		  NOTIFY_FAILURE = 4,
		  NOTIFY_DELAY = 8,
};

enum dsn_ret { RET_NONE, RET_FULL, RET_HDRS };
/* The sender's wish for TLS, RFC 8689. The numbers are kept on disk. */
enum envelope_tls {
	ENVELOPE_TLS_USUAL,
	ENVELOPE_TLS_REQUIRED, /* REQUIRETLS: only to hosts that are proven and that hand it on so */
	ENVELOPE_TLS_WAIVED,   /* TLS-Required: No: whatever the recipient's domain demands */
};

/* When it is to be delivered, RFC 2852. The numbers are kept on disk. */
enum envelope_by {			   /* bits */
		   ENVELOPE_BY_NOTIFY = 1, /* else its sender is told of the delay */
		   ENVELOPE_BY_RETURN = 2, /* else it is returned */
		   ENVELOPE_BY_TRACE = 4,  /* and its sender is told where it has gone */
		   ENVELOPE_BY_TOLD = 8,   /* has been told of the delay */
};

enum body_type { BODY_7BIT, BODY_8BITMIME, BODY_BINARYMIME };

struct recipient {
	char *address;	/* local-part@domain, the domain in lower case */
	char *orcpt;	/* "type;address" in xtext as it came, or NULL */
	uint8_t notify; /* enum dsn_notify */
	bool done;	/* has its final verdict, and what was owed to the sender is written */
	bool copy;	/* gets a copy of what others get; on the way in, and not in the queue */
	uint32_t tries; /* attempts that ended with a verdict */
	uint8_t doubts; /* of them, left it in doubt whether the message arrived */
	struct verdict *last; /* of the latest attempt, or NULL */
};

/* The end of one round of attempts, for the recipients that share this verdict. */
struct history {
	uint32_t round;	    /* from 1 */
	uint32_t recipient; /* the first of them */
	uint32_t nrcpt;	    /* how many */
	struct verdict *verdict;
};

enum { RECIPIENT_DOUBTS_MAX = 31 };
enum { ENVELOPE_PRIORITY_MAX = 9 };
enum { ENVELOPE_HISTORY_MAX = 16, ENVELOPE_HISTORY_FIRST = 4, ENVELOPE_HISTORY_ROUND = 4 };

struct envelope {
	uint64_t id;
	int64_t arrived_ms;    /* wall clock */
	int64_t due_ms;	       /* wall clock: next attempt; 0 before the first */
	char *sender;	       /* "" is the null sender */
	char *flow;	       /* whose mail it is; NULL: as its sender says */
	char *user;	       /* who logged in, or left it in the maildrop; NULL: nobody did */
	char *client;	       /* the address that it came from, as text; NULL: none */
	char *envid;	       /* in xtext as it came, or NULL */
	uint8_t ret;	       /* enum dsn_ret */
	uint8_t body;	       /* enum body_type */
	uint8_t tls;	       /* enum envelope_tls */
	uint8_t by;	       /* enum envelope_by; 0: at any time */
	int8_t priority;       /* among its flow's mail, RFC 6710: -ENVELOPE_PRIORITY_MAX to that */
	int64_t by_ms;	       /* wall clock: until then */
	int64_t not_before_ms; /* wall clock: nothing is tried until then, RFC 4865; 0: no such time */
	int64_t hold_asked; /* for that: seconds of HOLDFOR, or the time of HOLDUNTIL, in ms since 1970 */
	bool hold_for; /* which of them; both outlive an early release */
	bool smtputf8;
	bool warned;	 /* the sender has been told of the delay */
	bool held;	 /* stays until the operator releases it */
	bool returned;	 /* the operator wants it returned to its sender */
	bool packed;	 /* all but its history is one piece of memory: envelope_pack() */
	bool archive;	 /* a copy for an archive: tried again whatever is said, at last held */
	uint32_t rounds; /* of attempts that have ended with recipients left */
	uint64_t size;	 /* bytes of content */
	bool summed;	 /* sum is known: content that has a file of its own */
	uint32_t sum;	 /* CRC32C of the content */
	uint32_t nrcpt;
	struct recipient *rcpt;
	struct recipient_index index; /* of them, where envelope_find() has needed one */
	uint32_t nhistory;
	struct history *history;
};

struct envelope *envelope_new(void);
void envelope_free(struct envelope **);

struct envelope *envelope_pack(struct envelope *);
/* The same in one piece of memory, for another thread that will free it: to free a dozen pieces that another thread
 * has allocated costs more than to copy them. No recipient is added to it, and no text of it is another from now on; it has no
 * verdicts yet. Takes the envelope. */

struct recipient *envelope_add(struct envelope *, const char *address);
/* The new recipient; the pointer is valid until the next envelope_add(). */

struct recipient *envelope_find(struct envelope *, const char *address);
/* The first recipient of this address, its local part to the letter; or NULL. It is not packed. */

bool envelope_has(const struct envelope *, const char *address);
/* Is one of its recipients of this address, in any case? */

void envelope_remove(struct envelope *, const bool *gone);
/* Those recipients of which gone is true; the others move up. It is not packed. */

void envelope_add_history(struct envelope *, const struct history *);
/* Takes a reference of its own on the verdict. Of too many, the first few and the latest stay. */

void envelope_remember(struct envelope *);
/* Add the latest verdicts of its recipients, as far as they are not there yet, to the history. */

#define ENVELOPE_FLOW_REPORTS "<reports>" /* of the relay's own */

enum { ENVELOPE_FLOW_MAX = 64 };

bool envelope_flow_good(const char *name);
/* As header fields and tables may name one: [A-Za-z0-9._-], 1 to ENVELOPE_FLOW_MAX. */

const char *envelope_flow(const struct envelope *);
/* Whose mail it is: the flow that it was accepted for, else the domain of its sender, "<>" if that is the null sender. */

int64_t envelope_began_ms(const struct envelope *);
/* Wall clock: when it came, or later on, when it was to be sent. Its age counts from then. */

bool envelope_is_scheduled(const struct envelope *);
/* The message waits for the time before which nothing is to be tried. */

void envelope_let_go(struct envelope *, int64_t now_ms);
/* The message is scheduled, and may be tried from now on. What was to end by a time ends by as much sooner. */

void envelope_came_from(struct envelope *, const char *user, const char *client);
/* Either may be NULL. */

bool envelope_wants_word(const struct envelope *, const struct recipient *);
/* Its sender may have to be told that it has gone to a host: for NOTIFY=SUCCESS, or for DELIVERBY. */

uint32_t envelope_open(const struct envelope *);
/* How many recipients are not done. */

const struct verdict *envelope_latest_verdict(const struct envelope *);
/* Of those; or NULL. */

#endif
