/* worker.h - one thread of connections: a loop, the table of what is open, TLS.
 *
 * OWNERSHIP  Owns its connections.
 * THREAD     worker_new(), worker_free(): main. worker_start(), worker_stop(): main. The table:
 *            the worker's own thread, or main while it does not run.
 * ERRORS     None.
 */
#ifndef SMTPC_WORKER_H
#define SMTPC_WORKER_H

#include "base/keyed_hash.h"
#include "base/loop.h"
#include "base/note_queue.h"
#include "smtpc/sessions.h"

#include <stdbool.h>

struct connection;
struct connection_open;
struct secrets;

/* Besides those of base/delivery.h. */
enum worker_note {
	WORKER_PART =
		NOTES_FROM(NOTES_OF_SMTPC_WORKER), /* a struct note: connection_part() for all */
};

struct worker {
	char name[16];
	struct loop *loop;
	SSL_CTX *tls;
	struct Gsasl *sasl;
	struct secrets *secrets; /* of all workers */
	struct sessions sessions;
	struct connection *connections; /* by their numbers */
	struct note_queue waiting;	/* to be opened: there was no descriptor */
	struct timer again;
	bool parting; /* none is opened any more */
	bool stopped; /* what still arrives is only freed */
};

struct worker *worker_new(int number, struct secrets *);
void worker_start(struct worker *);
void worker_stop(struct worker *);
void worker_free(struct worker **);

void worker_open(struct worker *, struct connection_open *);
/* Begin it, or have it wait for a descriptor. Takes the note. */

void worker_add(struct worker *, struct connection *);
void worker_remove(struct worker *, struct connection *);

#endif
