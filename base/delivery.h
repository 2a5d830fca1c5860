/* delivery.h - the contract between the scheduler and the connections.
 *
 *	qmgr                                     smtpc (the worker that owns the connection)
 *	  -- CONNECTION_OPEN ------------------------>	connect, greeting, EHLO, STARTTLS
 *	  <------------------------- CONNECTION_SLOW --	TCP does not stand after
 *	                                              	connection_attempt_delay: try another,
 *	                                              	or backup_attempt_delay: any other; or it is not
 *	                                              	ready so long after, and connect_timeout
 *	  <------------------------ CONNECTION_READY --	may carry mail: `depth` transactions at once,
 *	                                              	up to `depth_most` as the host proves good
 *	  -- DELIVERY_GIVE --------------------------->	one transaction
 *	  <------------------------- DELIVERY_BACK ---	each recipient has its verdict, or all is
 *	                                              	returned untouched (put it back at the head)
 *	  <------------------------- CONNECTION_SLOW --	it is, and the host owes an answer for long
 *	  -- CONNECTION_CLOSE ----------------------->	QUIT when what it carries is done, or at once
 *	  <----------------------- CONNECTION_CLOSED --	the last word on this connection, always
 *
 * CONNECTION_CLOSED comes exactly once for every CONNECTION_OPEN, after every DELIVERY_BACK of that
 * connection. A DELIVERY_GIVE that meets a connection already closed comes back as returned.
 * A connection is closed by its worker when it fails, when the peer closes it, when it has been
 * idle or alive too long or has carried its number of messages, or when it was told to.
 *
 * How much a host may be trusted with is qmgr's to know, over connections. It says with each
 * delivery whether its content may go ahead of the replies to its envelope; the worker says of each
 * one that comes back whether content was uploaded for nothing. A host that loses count of the
 * commands is to get the next connection in a simpler mode, and the worker says which; likewise when
 * a command that was refused ahead of its turn is taken in its turn, or when a host that takes no more
 * mail on one connection takes it on the next (delivery.mode, delivery.messages_most); and when TLS begins only
 * with a small ClientHello (connection_ready.choked, or connection_open.choked where it never became ready).
 *
 * OWNERSHIP  Notes are given away by posting. The strings that a delivery points at belong to
 *            qmgr's message, which stays until the delivery is back. Verdicts, contents and the
 *            configuration are counted.
 * THREAD     qmgr and one smtpc worker.
 * SEE        FINCH 2007 ("jobs", "workers"); RFC 2920; RFC 5321 4.5.3.2.
 */
#ifndef BASE_DELIVERY_H
#define BASE_DELIVERY_H

#include "base/conf.h"
#include "base/content.h"
#include "base/credential.h"
#include "base/envelope.h"
#include "base/few.h"
#include "base/loop.h"
#include "base/resolve.h"
#include "base/tls_result.h"

enum delivery_note {
	CONNECTION_OPEN = NOTES_FROM(NOTES_OF_DELIVERY),
	CONNECTION_READY,
	CONNECTION_CLOSE,
	CONNECTION_CLOSED,
	DELIVERY_GIVE,
	DELIVERY_BACK,
	CONNECTION_SLOW,
};

/* Extensions that are not used with a host, whatever it announces: a mask, and 0 is all of it, messages in flight
 * one behind the other. The numbers are kept on disk. */
enum connection_mode {
	CONNECTION_FULL = 0,
	CONNECTION_NO_CHUNKING = 1, /* DATA only */
	CONNECTION_LOCKSTEP = 2,    /* one command, one reply */
	CONNECTION_APART = 4,	    /* nothing behind the end of a message before it is answered */
	CONNECTION_SMALL_HELLO = 8, /* classical groups, no session with a large ticket */
};

/* One connection; the same object goes to the worker with CONNECTION_OPEN, and comes back with
 * CONNECTION_CLOSED. */
struct connection_open {
	struct note note;
	uint64_t connection; /* qmgr's number for it, never used twice */
	void *owner;	     /* qmgr's own record */
	struct loop *reply_to;
	struct conf *conf; /* a reference, returned by connection_open_free() */
	const struct conf_transport *transport; /* in conf */
	const struct conf_source
		*source;       /* in conf: where it comes from; NULL: as the transport says */
	char *host;	       /* name, for SNI, certificate and log */
	union address address; /* with the port */
	struct credential *credential; /* a reference: as whom to log in; NULL: as nobody */
	char *tls;		       /* base/tls_policy.h, of this host; NULL: the transport's */
	struct tls_dane *dane;	     /* a reference: the TLSA records that tls speaks of; or NULL */
	char *site;		     /* for the log; or NULL */
	struct tls_subject *subject; /* a reference: for whom TLS is reported; or NULL */
	bool plain; /* no TLS where it is only wished for: it is known to be broken */
	enum connection_mode mode;
	int messages_most; /* close it after so many: the host is known to take no more; 0: unknown */
	/* filled by the worker, for CONNECTION_CLOSED: */
	bool was_ready;
	bool login_refused;	/* AUTH was answered with 5xx, or can not be done as it is set up */
	bool refused;		/* the host greeted with 5xx, or answered EHLO and HELO so */
	bool unbound;		/* this machine lacks the address that it was to come from */
	bool unfit;		/* it can't carry mail with REQUIRETLS, which this was opened for */
	bool hung_up;		/* the host closed or reset it, and was not silent */
	bool confused;		/* the host lost count; mode is now the one to try next */
	struct verdict *choked; /* why it is to get CONNECTION_SMALL_HELLO; or NULL */
	struct verdict *why;	/* NULL: an orderly end (idle, aged, told to) */
};

enum connection_slowness {
	CONNECTION_BESIDE, /* TCP does not stand after connection_attempt_delay, or stands for backup_attempt_delay */
	CONNECTION_LATE,   /* or after backup_attempt_delay, or stands for connect_timeout */
	CONNECTION_SILENT, /* nothing was heard of it for CONNECTION_SILENT_MS, and it is not ready */
	CONNECTION_STALLED, /* it was ready, and the host owes an answer, or takes nothing, for CONNECTION_STALLED_MS */
	CONNECTION_STUCK, /* the same, for CONNECTION_STUCK_MS */
	CONNECTION_AWAITED, /* the same as stalled, but the host has all of a message: that would be in doubt */
	CONNECTION_MOVES, /* none of these three any more */
};

enum { CONNECTION_SILENT_MS = 500, CONNECTION_STALLED_MS = 5000, CONNECTION_STUCK_MS = 60000 };

struct connection_slow {
	struct note note;
	void *owner;
	enum connection_slowness how;
};

struct connection_ready {
	struct note note;
	uint64_t connection;
	void *owner;
	int depth;	       /* transactions that may be under way at once, at least 1 */
	int depth_most;	       /* the same on a host that has proved good; 0: depth is all */
	int setup_ms;	       /* connect to ready */
	int64_t round_trip_us; /* of EHLO; 0: not known */
	uint64_t size_max;     /* announced by SIZE, 0: no limit */
	int64_t messages_most; /* it may be given in all: as set, announced or known; 0: no limit */
	bool tls_broken;       /* it was wished for, and failed */
	struct verdict *choked; /* as in struct connection_open */
	bool tls, pipelining, chunking, dsn, smtputf8, deliverby;
};

struct connection_close {
	struct note note;
	uint64_t connection;
	bool leave; /* at once, with a reason, and what it carries comes back; unless the host has all of a message by now */
};

struct delivery_recipient {
	const char *address; /* qmgr's */
	const char *orcpt;   /* qmgr's, or NULL */
	uint8_t notify;
	struct verdict *verdict; /* a reference; NULL in a delivery that was not returned: the host
				    takes no more recipients at once, put it back at the head */
};

struct delivery {
	struct note note;
	uint64_t connection;
	void *owner; /* qmgr's entry */
	struct loop *reply_to;
	uint64_t id;	    /* of the message, for the log */
	const char *sender; /* qmgr's */
	const char *envid;  /* qmgr's, or NULL */
	uint8_t ret, body;
	bool smtputf8;
	bool requiretls;
	uint8_t by;	   /* enum envelope_by */
	int8_t priority;   /* of RFC 6710 */
	int64_t by_ms;	   /* wall clock */
	bool verification; /* MAIL, RCPT and RSET only: the verdicts are what was said to RCPT */
	bool second; /* a host that goes before this one has served before: what this one can't do waits for that */
	bool ahead; /* where the host takes chunks, content may go before the envelope is answered */
	uint32_t
		rcpt_most; /* recipients to offer at once, the others come back; 0: all that the host takes */
	struct content *content; /* a reference */
	/* filled by the worker: */
	bool returned; /* nothing was decided: no recipient has a verdict; put it back in front */
	bool closing; /* returned: we are closing the connection, for having been idle, say, and the host has still to answer QUIT */
	struct verdict
		*refusal; /* returned: the host said this to it, and closed; a reference, or NULL */
	bool hung_up; /* in doubt: the host closed or reset the connection, and was not silent */
	bool wants_tls; /* the host refuses mail without TLS, which had failed: it is to be tried anew */
	bool wasted; /* content was uploaded ahead and reached nobody, or nobody knows */
	enum connection_mode
		mode;		/* what the host was found out to want; CONNECTION_FULL: nothing */
	struct verdict *reason; /* for mode: how that was found out; a reference, or NULL */
	int messages_most; /* so many messages were found to be all it takes on one connection; or 0 */
	uint32_t
		rcpt_taken; /* the connection ended at a RCPT, by 421 or without a word, behind so many that were accepted; or all was
			     * refused, since there were more than so many; or 0 */
	bool rcpt_told;	    /* and the host said that it is for their number */
	int64_t began_us;   /* steady clock: first byte of MAIL; 0: nothing was said of it */
	int64_t ended_us;   /* last reply */
	int setup_ms;	    /* of the connection, on the first delivery that it carries; else 0 */
	uint32_t nrcpt;
	struct delivery_recipient rcpt[];
};

struct connection_open *connection_open_new(uint64_t connection, struct conf *,
					    const struct conf_transport *, const char *host,
					    const union address *);
void connection_open_free(struct connection_open **);

enum { DELIVERY_OF_ONE = sizeof(struct delivery) + sizeof(struct delivery_recipient) };

struct delivery *delivery_new(uint32_t nrcpt);
struct delivery *
delivery_new_few(struct few *); /* of one recipient; the few are of DELIVERY_OF_ONE bytes */

void delivery_free(struct delivery **);
void delivery_free_few(struct delivery **, struct few *); /* one of one recipient goes there */
/* Either returns its references on content and verdicts. */

#endif
