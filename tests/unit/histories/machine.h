/* machine.h - one node: a disk, clocks, a relay that runs the code of spool/ and replica/, and its neighbours.
 *
 *	off --> [ begins --> serves --> ends ] --> off       the same calls in the same order as cmd/relay/server.c
 *	  ^                   |  ^         |
 *	  +---- killed -------+  +- lost --+                 a lost epoch: the relay begins again
 *
 * Clients and qmgr are one loop, whose notes become entries of the ledger; what is worked on waits for machine_work().
 *
 * OWNERSHIP  The program's; machines_begin() makes them anew. What a killed relay had allocated stays with the program.
 * THREAD     One.
 */
#ifndef TESTS_UNIT_HISTORIES_MACHINE_H
#define TESTS_UNIT_HISTORIES_MACHINE_H

#include "base/conf.h"
#include "base/content.h"
#include "base/envelope.h"
#include "base/loop.h"
#include "replica/node.h"
#include "tests/unit/spool/memdisk.h"

enum { MACHINES = 4, MACHINE_HELD = 16 };

enum machine_state { MACHINE_OFF, MACHINE_BEGINS, MACHINE_SERVES, MACHINE_ENDS };

/* A message that its qmgr works on. */
struct held {
	struct envelope *envelope;
	struct content *content;
	bool cancelled, keep;
	bool delivers; /* all of it was sent just now: its release, which follows, says so */
};

struct machine {
	int number;
	char name[16];
	struct memdisk *disk, *backup; /* as it was at some time, or NULL */
	struct conf *conf;
	struct chance chance;
	enum machine_state state;
	bool wanted; /* whoever watches over it starts it when it ends */
	bool again;  /* it has lost its epoch */
	bool asked_to_end;
	bool eager;	       /* all that comes is sent, and finished */
	bool gone;	       /* for good */
	bool full;	       /* it has no room, and will not get any */
	int64_t since_us;      /* of this state */
	int64_t open_us;       /* when its fence was open last */
	int kill_in;	       /* disk calls until it dies; 0: it does not */
	const char *doomed_at; /* it is to die soon after it logs this state of a node; or NULL */
	int doomed_in;	       /* then it dies at that disk call; 0: at some */
	bool incomplete;       /* its last start could not read or make safe all of its queue */
	int starts_failed;     /* one after the other */
	int listed;	       /* rows of the last list; -1: none yet */
	char error[160];       /* why the last start failed */
	struct loop *main, *client;
	struct spool *spool;
	struct replica *replica;
	struct node *node;
	struct held held[MACHINE_HELD];
	int nheld;
	bool closed; /* nobody listens to what comes */
};

extern struct machine machine[MACHINES];
extern int machines;

void machines_begin(int n, uint64_t seed, const struct conf_cluster *like, int64_t segment_bytes);
void machine_enter(int of); /* for fibers_begin() */

void machine_start(struct machine *);
void machine_stop(struct machine *); /* as SIGTERM does */
void machine_kill(struct machine *); /* as SIGKILL does */
void machine_power_cut(struct machine *);
void machine_disk(struct machine *, struct memdisk *); /* another one, takes it; it must be off */

bool machine_runs(const struct machine *);
bool machine_fence_open(struct machine *);

/* What its clients, its qmgr and its operator do. */
bool machine_store(struct machine *, uint64_t salt);
void machine_work(struct machine *); /* with one of those that are held: send, defer or finish */
void machine_work_all(struct machine *);
void machine_credit(struct machine *, int64_t);
void machine_ask(struct machine *, int spool_order, uint64_t id);
void machine_order(struct machine *, enum node_op, const char *name);
void machine_drain(struct machine *);
bool machine_whole(struct machine *);

#endif
