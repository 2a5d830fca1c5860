/* spool_core.h - the state of the spool's thread, for the files of this folder only.
 *
 *	receive()  notes become ops in `todo`, or wait as commands and orders
 *	turn()     runner_run() adds ops for what is due
 *	           commit_run()  todo -> one write, one sync -> answers
 *	                              -> what needed no sync -> `written`
 *	           parked_run() answers qmgr, which asks for what waits for a site
 *	           operator_run() answers the operator
 *	           journal_collect()
 *
 * OWNERSHIP  spool_new() makes it; each member belongs to it.
 * THREAD     spool, but for what is marked.
 * SEE        commit.h for ops.
 */
#ifndef SPOOL_SPOOL_CORE_H
#define SPOOL_SPOOL_CORE_H

#include "base/fine_timer.h"
#include "base/list.h"
#include "base/note_queue.h"
#include "spool/catalog.h"
#include "spool/compact.h"
#include "spool/domains.h"
#include "spool/due.h"
#include "spool/gather.h"
#include "spool/given_back.h"
#include "spool/journal.h"
#include "spool/inflow.h"
#include "spool/parked.h"
#include "spool/replicate.h"
#include "spool/room.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
	SPOOL_LAZY_SYNC_MS = 1000,	 /* records that need no sync get one after this time, */
	SPOOL_LAZY_SYNC_BYTES = 1 << 20, /* or when there are so many of them */
	SPOOL_RETRY_MS = 1000,		 /* between attempts to write to a disk that fails */
};

enum spool_internal_note {
	SPOOL_NOTE_RECOVERED = NOTES_FROM(NOTES_OF_SPOOL_ITSELF),
	SPOOL_NOTE_STOP,
	SPOOL_NOTE_LARGE_SYNCED,
	SPOOL_NOTE_AHEAD,
};

struct thread_pool;

struct spool {
	struct loop *loop;
	struct loop *qmgr;
	struct conf *conf;
	int folder, lock, large, quarantine; /* descriptors; the first is conf->spool */
	int taken;			     /* messages of the maildrop not stored yet */
	bool untaken;			     /* some were removed there, which is not synced */
	struct journal journal;
	struct catalog catalog;
	struct stub_pool stubs;
	struct domains domains;
	struct given_back given_back;
	struct inflow incoming;
	struct due deferred;
	struct parked parked;
	struct compact compact;
	int64_t large_bytes; /* of contents that have files of their own */
	struct list todo;    /* ops not written yet */
	struct list written; /* ops written and in effect, not synced */
	int64_t unsynced_since_ms, unsynced_bytes;
	struct thread_pool *syncers; /* of large contents; they remove, too */
	int syncing;		     /* large contents, there */
	struct replication replication;
	struct gather gather;
	struct fine_timer gathered; /* todo has waited long enough */
	atomic_int expected;	    /* any thread: transactions that may bring a message */
	int64_t committed_ms;	    /* steady clock: when the last commit began */
	struct note_queue commands; /* answered at the end of the turn */
	int64_t credit;
	bool deferred_turn; /* whose turn it is when both wait for credit */
	struct room room;
	int64_t retry_ms; /* steady clock: when a commit that failed may be tried again */
	bool closing;	  /* nothing is taken any more */
	bool recovered;	  /* the older segments are known: commands can be answered */
	bool released;	  /* what was adopted is ours, also what recovery will find of it */
	bool keeps_orphans; /* a segment is missing or can't be read: large files may be of messages in it */
	bool more;	    /* the runner has not come to the end */
	bool fenced; /* the fence was closed when it ended */
	struct timer tick;
	struct note *stop;	    /* a struct spool_stop, answered at the end of the turn */
	atomic_bool accepting;	    /* any thread: new mail is taken */
	atomic_bool uncopied;	    /* any thread: it is not, since the copy is away */
	atomic_llong turn_began_ms; /* any thread: spool_turn_began_ms() */
	atomic_bool draining;	    /* any thread: no deferred message is taken up */
	atomic_bool interrupt;	    /* recovery is to end early */
	size_t longest;		    /* messages there were since memory was last given back */
	size_t active, busiest;	    /* messages that are being worked on; the most since then */
	int64_t calm_since_ms; /* steady clock: since when fewer than half of those are; 0: they are not */
	uint64_t newest;    /* what comes in during this start has later ids */
	uint64_t *headless; /* segments that can't be read: put aside at the end of recovery */
	size_t nheadless;
	pthread_t recovery;
	bool recovery_runs; /* main: there is a thread to wait for */
};

void stub_enter(struct spool *, struct stub *, enum stub_state);
/* Move it to a state: heap and gauges follow. A new stub is STUB_GONE. */

struct envelope *fetch_envelope(const struct stub *);
enum spool_queue stub_queue(const struct stub *);
/* As it is now, the verdicts since it was written counted in. NULL and errno: EBADMSG when
 * damaged. */

struct content *fetch_content(const struct spool *, const struct stub *, const struct envelope *);
/* Where it lies on disk. NULL and errno: ENOENT when it is gone. */

struct content *fetch_copy(const struct stub *);
/* The content in its record, in memory; it is not large. NULL and errno: EBADMSG when damaged. */

struct content *fetch_checked(const struct spool *, const struct stub *, const struct envelope *);
/* Where it lies, with its sum: what lies in the log has been looked at, and whoever sends it compares.
 * NULL and errno: EBADMSG when damaged. */

bool quarantine_message(const struct spool *, const struct stub *, const char *why);
/* Log it and keep its envelope and its content in quarantine/. False: they could not be, so that the message has to
 * stay in the queue. Any thread. */

bool quarantine_bytes(const struct spool *, const struct segment *, uint64_t from, uint64_t to,
		      uint64_t id);
/* Log a damaged region, whose it was if that is known, and keep a copy. False: there is none. Any
 * thread. */

bool quarantine_file(const struct spool *, int folder, const char *name, const char *why);
/* Log it and move the whole file there, beside what has that name already. Any thread. */

void runner_run(struct spool *);
uint16_t places_row(struct spool *, const struct envelope *);
/* Of its flow (inflow.h), which has what the configuration says now. */

void places_take(struct spool *, uint16_t row);
void places_give_back(struct spool *, uint16_t row);
/* Among the active messages: there is one; it was taken. row: inflow.h. */

int64_t runner_next_ms(const struct spool *);
/* Wall clock: when something is due, a moment from now at the earliest while the fence is closed; INT64_MAX: never. */

void spool_shrink(struct spool *); /* give memory back when the queue has become short */

bool operator_run(struct spool *);
/* True: there is more to do, in the next turn. */

struct op *operator_keep(struct spool *, struct stub *, struct envelope *, enum stub_wish);
/* Have its envelope written anew, as the operator wants it; takes the envelope. */

void operator_look(struct spool *, struct spool_command *);
/* Answer a question, which changes nothing: the index is all that is needed. */

void operator_drop(struct spool *); /* those that will get no answer */

#endif
