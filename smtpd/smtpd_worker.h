/* smtpd_worker.h - one thread that serves clients: its loop, its sockets, its sessions.
 *
 *	kernel --> [ listener ] -- accepted --> [ session ] ...
 *	main -- SMTPD_WORKER_LISTEN, _RELOAD, _TABLES, _CLOSE --> mailbox <-- SPOOL_STORED -- spool
 *	                                                            <-- _ANSWER -- whom a session waits for
 *
 * OWNERSHIP  smtpd.c makes and frees workers; a worker owns its listeners and sessions.
 * THREAD     The loop's own, but for what is said to be shared.
 * ERRORS     None.
 */
#ifndef SMTPD_SMTPD_WORKER_H
#define SMTPD_SMTPD_WORKER_H

#include "base/list.h"
#include "base/loop.h"
#include "smtpd/clients.h"
#include "smtpd/service.h"
#include "smtpd/wait.h"
#include "spool/spool.h"

enum smtpd_worker_note {
	SMTPD_WORKER_CLOSE = NOTES_FROM(NOTES_OF_SMTPD_WORKER),
	SMTPD_WORKER_LISTEN,
	SMTPD_WORKER_RELOAD,
	SMTPD_WORKER_TABLES, /* a conf_note: the same settings with other tables */
	SMTPD_WORKER_ANSWER, /* struct wait_answer */
};

struct smtpd_worker {
	struct loop *loop;
	struct conf *conf; /* for addresses: the newest, while a session keeps its service */
	struct spool *spool;
	struct clients *clients;   /* shared */
	struct failures *failures; /* shared */
	struct loop *qmgr;	   /* for struct verify; NULL: nobody is asked */
	struct limiter *limiter;   /* shared; NULL: there are no limits */
	struct thread_pool *pool;  /* shared; NULL: no password is checked here */
	struct dovecot *dovecot;
	struct socketmaps *socketmaps;
	struct milters *milters;
	struct Gsasl *gsasl; /* sasl.h: made at first use */
	struct list sessions;
	struct list listeners;
	struct waits waits; /* of the sessions */
	int reserve_fd;	    /* given up to tell a client that there are no more */
	bool closing;
};

/* One listening socket, as one worker sees it. */
struct listener {
	struct list link;
	struct smtpd_worker *worker;
	int port;   /* its id */
	int number; /* of its section */
	struct service *service;
	atomic_long *connections; /* of the section, in all workers */
	int fd;
	ev_io accept;
	struct timer pause;
	struct list proxied; /* connections whose PROXY header has not ended */
};

struct smtpd_worker_listen {
	struct note note;
	struct listener *listener;
};

/* All ports that there are now; listeners of others are closed. */
struct smtpd_worker_reload {
	struct note note;
	struct conf *conf; /* a reference */
	int n;
	struct smtpd_worker_port {
		int port, number;
		struct service *service; /* a reference */
		atomic_long *connections;
	} of[];
};

struct smtpd_worker *smtpd_worker_new(struct conf *, struct spool *, struct clients *);
void smtpd_worker_free(struct smtpd_worker **);
/* Answers of the spool that are still in the mailbox are seen to. */

void smtpd_worker_end_sessions(struct smtpd_worker *); /* the thread has ended */

/* listener.c */
struct listener *listener_new(struct smtpd_worker *, int fd, const struct smtpd_worker_port *);
/* Takes the descriptor, and a reference on the service. */

void listener_start(struct listener *); /* in the loop's thread, or before it runs */
void listener_stop(struct listener *);	/* closes the descriptor; the socket may have others */
void listener_free(struct listener **);

bool listener_port_free(const union address *, struct buf *error);
/* Does nobody listen there yet? Sockets that share a port would not notice. */

int listener_bind(union address *, struct buf *error);
/* A listening socket; -1: error says why. A port of 0 is replaced with the one that was given. */

bool listener_parse(const char *text, union address *);
/* "192.0.2.1:25", "[2001:db8::1]:25" */

#endif
