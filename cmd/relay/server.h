/* server.h - the parts of the relay, made, started and stopped together.
 *
 *	server_new    read rights, log, queue (as the user), ports (as root), become the user
 *	server_start  all threads; "ready"
 *	server_stop   smtpd, limiter, maildrop, smtpc, qmgr, cluster, events, sts, tlsrpt, spool, replica, node, dns, in this order; "stopped"
 *	server_free
 *
 * The connections end before the scheduler does, and the queue last, so that all that has become of
 * a message is known to the scheduler, and all that it decides is on disk. In between the scheduler hears which
 * reports are stored: what these are about ends with them, and is not reported again after the next start.
 *
 * Between start and stop new settings are server_reload.h's, the operator's requests requests.h's, and the end
 * ending.h's: these know the parts, and server.c hands them what comes.
 *
 * OWNERSHIP  The server owns its parts, and a reference on the configuration in force.
 * THREAD     Main, whose loop is server->loop; it runs in server_run().
 * ERRORS     server_new() returns NULL, and says why in error.
 */
#ifndef CMD_RELAY_SERVER_H
#define CMD_RELAY_SERVER_H

#include "cmd/watch/clock_watch.h"
#include "cmd/watch/certificate_watch.h"
#include "cmd/watch/disk_watch.h"
#include "cmd/control/control.h"
#include "cmd/relay/ending.h"
#include "cmd/relay/order_progress.h"
#include "cmd/control/glance.h"
#include "cmd/http/http.h"
#include "cmd/maildrop/maildrop.h"
#include "cmd/watch/kept_text.h"
#include "cmd/watch/memory_room.h"
#include "cmd/watch/milter_watch.h"
#include "cmd/watch/table_watch.h"
#include "base/thread_pool.h"
#include "cluster/cluster.h"
#include "dns/dns.h"
#include "events/events.h"
#include "qmgr/qmgr.h"
#include "smtpc/smtpc.h"
#include "smtpd/limiter.h"
#include "smtpd/smtpd.h"
#include "replica/life.h"
#include "replica/membership.h"
#include "replica/node.h"
#include "replica/replica.h"
#include "spool/spool.h"
#include "sts/sts.h"
#include "tlsrpt/tlsrpt.h"

/* X(text of another thread that is to outlive a restart, its note, its file, whether it is what somebody has ordered: of all else the
 * threads are asked at the stop) */
#define KEPT_TEXTS(X)                                                                              \
	X(HOSTS, DEST_SAVE, kept_destdb, false)                                                    \
	X(FLOWS, FLOW_SAVE, kept_flows, false)                                                     \
	X(SUPPRESSED, SUPPRESS_SAVE, kept_suppressed, false)                                       \
	X(SUSPENDED, LIMITER_SAVE, kept_suspended, true)                                           \
	X(LOGINS, LIMITER_FIGURES, kept_logins, false)                                             \
	X(TLS_RESULTS, TLS_RESULTS_SAVE, kept_tlsrpt, false)                                       \
	X(POLICIES, STS_SAVE, kept_sts, false)                                                     \
	X(CLUSTER, CLUSTER_SAVE, kept_cluster, true)

enum kept_which {
#define X(which, ...) KEPT_##which,
	KEPT_TEXTS(X)
#undef X
		KEPT_COUNT
};

struct server {
	struct conf *conf;
	struct buf fixed; /* settings that hold until the end, whatever is reloaded: conf_fixed() */
	struct loop *loop;
	struct control *control;
	struct dns *dns;
	struct sts *sts;
	struct tlsrpt *tlsrpt;
	struct smtpc *smtpc;
	struct qmgr *qmgr;
	struct spool *spool;
	struct replica *replica;  /* or NULL */
	struct node *node;	  /* the same */
	struct thread_pool *pool; /* password hashes */
	struct smtpd *smtpd;
	struct limiter *limiter;
	struct limiter_top *top; /* as it was told last, or NULL */
	struct events *events;
	struct cluster *cluster;    /* NULL: this node is alone */
	struct cluster_view *nodes; /* as it was told last, or NULL */
	struct node_view *epochs;   /* as NATS said last, or NULL */
	struct maildrop *maildrop;
	struct table_watch *tables;
	struct certificate_watch *certificates;
	struct milter_watch *filters;
	struct clock_watch *clock;
	struct disk_watch *disk;
	struct memory_room memory;
	struct http *http;
	struct glance glance;
	int64_t started_ms; /* steady clock */
	struct ending ending;
	/* Who has said node drain, and is told whether the queue was handed over; or NULL. */
	struct request *drainer;
	struct kept_text kept[KEPT_COUNT];
	struct order_progress progress;
	bool stopped; /* what was learnt is written for the last time */
};

struct server *server_new(struct conf *, struct buf *error);
/* Takes a reference of its own. */

void server_start(struct server *);
void server_run(struct server *);
/* Serve until one of ending.h's ways has come to its end. */

void server_look(struct server *);
/* After server_run(): what has come for its loop meanwhile is looked at once. */

int server_stop(struct server *, int **sockets);
/* Returns how many listening sockets are left for a successor; they and the array are the
 * caller's. */

void server_free(struct server **);

#endif
