/* tlsrpt.h - the front page of tlsrpt/: results of TLS to other domains, reported to those who ask for them.
 *
 *	smtpc, qmgr, sts                the thread "tlsrpt"
 *
 *	TLS_RESULT ----> [ tally ] -- by domain and UTC day --> the day has ended, and up to four hours
 *	                     |                                             |
 *	                     v                                             v
 *	main <-- TLS_RESULTS_SAVE                    _smtp._tls.DOMAIN TXT: who wants it?
 *	                                                                   |
 *	                                    JSON, gzipped --> mail, by our own queue; HTTPS
 *
 *	tlsrpt.c	  the thread, its notes, the clock, what is kept over restarts
 *	tlsrpt_tally.c	  counts, bounded (pure)
 *	tlsrpt_text.c	  the counts as text
 *	tlsrpt_record.c	  the TXT record (pure)
 *	tlsrpt_report.c	  the report: JSON, and the mail around it (pure)
 *	tlsrpt_send.c	  one report, from the record to the last recipient
 *
 * Days are those of the system's clock, in UTC. A report that cannot be delivered is tried again for a
 * day; one that nobody wants is dropped, and so are all when reporting is switched off.
 *
 * OWNERSHIP  Results that are posted are the thread's.
 * THREAD     tlsrpt_loop() is for posting from any thread; all else: main.
 * ERRORS     Logged.
 * SEE        RFC 8460.
 */
#ifndef TLSRPT_TLSRPT_H
#define TLSRPT_TLSRPT_H

#include "base/conf.h"
#include "base/tls_result.h"

struct spool_store;
struct tlsrpt;

struct tlsrpt_edges {
	void (*to_dns)(void *context, struct note *); /* struct resolve */
	void (*store)(void *context, struct conf *,
		      struct spool_store *); /* signed, where it can be */
	void *context;
	struct loop *main; /* gets TLS_RESULTS_SAVE */
};

struct tlsrpt *tlsrpt_new(struct conf *, const struct tlsrpt_edges *); /* takes a reference */
void tlsrpt_recall(struct tlsrpt *, const char *text);		       /* before tlsrpt_start() */
void tlsrpt_start(struct tlsrpt *);
void tlsrpt_stop(struct tlsrpt *);
void tlsrpt_learnt(struct tlsrpt *, struct buf *to); /* after tlsrpt_stop() */

void tlsrpt_free(struct tlsrpt **);
/* When all who post to it have ended, and dns and the spool have stopped. */

struct loop *tlsrpt_loop(struct tlsrpt *);
void tlsrpt_reload(struct tlsrpt *, struct conf *); /* posts; takes a reference */

#endif
