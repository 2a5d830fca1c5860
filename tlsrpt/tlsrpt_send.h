/* tlsrpt_send.h - sends one report, from the look-up of its recipients to the last of them.
 *
 *	COUNTING -- due --> RECORD --> nobody --------------------------> gone
 *	    ^                  |
 *	    |                  +--> SENDING: mail to the spool, HTTPS --> all have it: gone
 *	    +---- later, if somebody does not have it ---------+
 *
 * OWNERSHIP  The reports are the tally's; one that is done with is dropped here.
 * THREAD     tlsrpt.
 * ERRORS     Logged; tried again after five minutes, and twice as long each time up to an hour.
 */
#ifndef TLSRPT_TLSRPT_SEND_H
#define TLSRPT_TLSRPT_SEND_H

#include "base/conf.h"
#include "base/https.h"
#include "base/resolve.h"
#include "tlsrpt/tlsrpt.h"
#include "tlsrpt/tlsrpt_record.h"
#include "tlsrpt/tlsrpt_tally.h"

/* The thread. */
struct tlsrpt {
	struct loop *loop;
	struct conf *conf;
	struct tlsrpt_edges edges;
	struct https *https; /* NULL at the end: what comes now is freed */
	struct tlsrpt_tally tally;
	int sending;  /* reports that are not COUNTING */
	bool changed; /* since it was saved */
	struct timer save, tick;
	char hostname[256], from[TLS_REPORT_FROM_SIZE];
};

void tlsrpt_send_begin(struct tlsrpt *, struct tlsrpt_report *);
void tlsrpt_send_resolved(struct tlsrpt *, struct resolve *);	/* takes the answer */
void tlsrpt_send_stored(struct tlsrpt *, struct spool_store *); /* takes the answer */
void tlsrpt_send_drop(struct tlsrpt_report *);			/* nobody hears of it */

void tlsrpt_save_soon(struct tlsrpt *);
/* Of tlsrpt.c. */

#endif
