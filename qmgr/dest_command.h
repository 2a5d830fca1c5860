/* dest_command.h - the operator's view of sites and hosts, and what the operator may change.
 *
 *	main -- DEST_COMMAND --> qmgr -- the same, with rows --> the loop named in reply_to
 *	qmgr -- DEST_SAVE --> main, which writes it to disk
 *
 * OWNERSHIP  Given away by posting. A command holds copies only; dest_command_free().
 * THREAD     Whoever holds it.
 * ERRORS     found is 0 where nothing has the name.
 */
#ifndef QMGR_DEST_COMMAND_H
#define QMGR_DEST_COMMAND_H

#include "base/loop.h"
#include "base/order.h"
#include "base/verdict.h"
#include "qmgr/dest/site_hour.h"

#include <stdbool.h>
#include <stdint.h>

/* DEST_SAVE: a text_note, as qmgr/dest/destdb_text.h has it. */
enum dest_note { DEST_COMMAND = NOTES_FROM(NOTES_OF_DEST), DEST_SAVE };

struct dest_host {
	char *name, *address;
	char *login; /* as whom connections log in, or NULL */
	char *peer;  /* name[address]:port, or unix:/its/path */
	int port;
	uint32_t preference;
	const char *state; /* active, idle, closed, unused, retry, slow, out, limited, suspended */
	int connections, ready, idle, failures;
	int unanswered;		 /* of the connections: no mail waits for them any more */
	int doubts;		 /* deliveries in doubt */
	int64_t retry_in_ms;	 /* out for so long; 0: not */
	int64_t opened_ago_ms;	 /* the last connection was begun; -1: never */
	int64_t plain_in_ms;	 /* TLS is not tried for so long */
	struct verdict *why;	 /* last failure, or NULL */
	int depth;		 /* messages in flight that it has earned */
	const char *mode;	 /* full, no chunking, apart, lockstep: host_mode_name() */
	int64_t mode_in_ms;	 /* all is tried again after so long */
	int64_t classical_in_ms; /* it gets a small ClientHello for so long */
	int messages_most;	 /* on one connection; 0: not known */
	int64_t messages_in_ms;
	uint32_t recipients_most; /* of one message at once; 0: not known */
	int64_t recipients_in_ms;
	int64_t slow_in_ms;		   /* it comes after others for so long */
	int limit;			   /* connections that it was seen to take; 0: not known */
	int64_t limit_in_ms;		   /* one more is tried after so long */
	int64_t round_trip_us, service_us; /* measured; 0: not known */
};

enum { DEST_DOMAINS_MOST = 100 }; /* of a site, where all sites are listed */

struct dest_site {
	char *key; /* tells it from others of its name: site_name.h */
	char *name, *transport;
	char *provider;	    /* whose its hosts are; or NULL */
	char *source;	    /* where its connections come from; or NULL */
	int64_t shut_in_ms; /* it refuses that, and is not tried for so long; 0 */
	bool shared;	    /* its pace is that of all sites of the provider */
	const char *state;  /* alive, dead, out, refused, paced, limited, suspended */
	int window, limit;  /* limit 0: none */
	int connections, connecting, busy, idle;
	int64_t waiting;
	int64_t verdicts;	  /* on recipients, in all; while the site is remembered */
	int64_t unreached;	  /* connections that came to nothing, likewise */
	int64_t parked, deferred; /* messages in the queue: that wait for it to live again; all */
	uint16_t number;	  /* of the site, as the spool has it; 0: none */
	int64_t rate_events, rate_per_ms, delay_ms; /* 0: none */
	int64_t dead_in_ms;			    /* for so long */
	double pace;		 /* deliveries a second that its hosts let through; 0: any */
	int64_t paced_ms;	 /* wall clock: since when; 0 */
	struct verdict *refused; /* what they said last, or NULL */
	struct verdict *last;	 /* last failure, or NULL */
	int nhost;
	struct dest_host *host;
	int ndomain; /* where a name was given, or domains: those whose mail is known to go there */
	int more_domains; /* beyond DEST_DOMAINS_MOST, where all are listed */
	bool domains_seen; /* by relays: some mail of theirs has gone there, other may go elsewhere */
	char **domain;
	struct site_past *past; /* where it was asked for; or NULL */
	const void *of;		/* qmgr's own, of no use to others */
};

struct dest_suspended {
	char *name;
	bool provider;	  /* it is one's */
	int64_t until_ms; /* wall clock; 0: until it is resumed */
};

struct dest_command {
	struct note note;
	enum order op;
	char *name;	/* of sites or else of hosts; NULL: all, or */
	char *provider; /* all sites of this one; or NULL */
	char *flow; /* LIST: of these, those for which it has mail that is being worked on; or NULL */
	int64_t until_ms; /* SUSPEND: wall clock, it ends by itself; 0: not */
	struct loop *reply_to;
	void *owner;
	bool filters;	 /* the asker's own: which of its parts asked */
	bool everywhere; /* RESET: of all nodes, which are told what is known now */
	bool domains;	 /* LIST of all sites: with the domains of each */
	bool past;	 /* LIST of a name: with the last hour of each site */
	int most;	 /* LIST: copy no more sites and hosts than so many; 0: all */
	/* filled by qmgr: */
	int found;  /* sites, or hosts, or names that were suspended */
	bool hosts; /* the name is a host's */
	int nsite;
	struct dest_site *site;
	int nhost; /* hosts that were meant, or that no site has now */
	struct dest_host *host;
	int nsuspended; /* names that are suspended, of all */
	struct dest_suspended *suspended;
};

struct dest_command *dest_command_new(enum order, const char *name, struct loop *reply_to,
				      void *owner);
void dest_command_free(struct dest_command **);

struct qmgr;
void dest_execute(struct qmgr *, struct dest_command *);
/* Do it, and send it back. */

#endif
