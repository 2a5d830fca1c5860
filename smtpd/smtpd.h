/* smtpd.h - the server side of SMTP.
 *
 *	client --> [ listener ] --> [ session: one verb a file ] -- SPOOL_STORE --> spool
 *	   ^                              |      ^
 *	   +---------- replies -----------+      +------- SPOOL_STORED ------------ spool
 *
 * n workers, each a loop of its own with its own listening sockets (SO_REUSEPORT); a session
 * belongs to the worker that accepted it.
 *
 *	smtpd.c smtpd_worker.[ch]	start and stop; one thread
 *	listener.c clients.[ch]		accepting, and how often for one client
 *	proxied.[ch] proxy_header.[ch]	a connection until its PROXY header has come
 *	service.[ch]			the settings of a listener; a reload makes another
 *	port.[ch] inherited.[ch]	the sockets of one address; those of whoever started us
 *	session_run.[ch]		one client, from its connection to its end
 *	session_read.[ch]		input: a command, content, a chunk
 *	session.[ch] session_table.h	what verbs know of a client: its state, replies, refusals
 *	greeting.[ch]			the first reply
 *	wait.[ch]			how a session waits for anything, in any verb
 *	command.[ch] verb_X.c param.[ch]	one line; what it does; its parameters
 *	response.[ch] response_table.h	all replies of the server
 *	auth.[ch] sasl.[ch]		logging in: one AUTH command; the bytes of a mechanism
 *	auth_check.[ch] failures.[ch]	a password, compared with its hash; how often that failed
 *	dovecot.[ch] dovecot_line.[ch]	a Dovecot that knows the users; a line of its protocol
 *	client_certificate.[ch]		logging in by a certificate
 *	policy.[ch]			who may send to whom
 *	limiter.[ch] limits.[ch]	the thread for limits on sending; how much each client has sent
 *	limit_check.[ch]		a session asks that thread
 *	rcpt_pending.[ch]		a RCPT, while somebody is asked about it
 *	verify_check.[ch]		a session asks whether the next hop takes a recipient
 *	access.[ch] consult.[ch]		who may come in; looking something up in tables, and waiting
 *	socketmap.[ch] socketmap_reply.[ch]	servers that have tables; what they answer
 *	socketmap_question.[ch]			what one of them is asked, and who waits for that
 *	addressing.[ch]			rewriting, aliases, copies: what happens to addresses
 *	alias.[ch] rewrite.[ch]		two of these steps
 *	alias_heard.[ch] alias_learn.[ch]	what servers say of aliases; how they are asked
 *	alias_wait.[ch]			a session waits for that
 *	reception.[ch] received.[ch]	one message, from MAIL to the spool; its Received field
 *	content_in.[ch] header_in.[ch]	its bytes: line ends, dots, limits; what its header says
 *	content_end.[ch]		all of them have come: stages, then the spool
 *	header_check.[ch]		whether its header may name these authors: a stage
 *	flow_name.[ch]			whose mail it is
 *	field_order.[ch]		its fields, while many of them change
 *	filtering.[ch] filter_macros.[ch]	a session and the filters that its mail passes
 *	filter_mail.[ch]		content on its way through them: a stage of stages/stages.h
 *	filter_changes.[ch]		what a filter wants changed
 *	milter/				the protocol: see milter_chain.h
 *	header_rewrite.[ch]		the addresses in that, where they are to change
 *	intake.[ch]			where they go: memory or a file of the spool
 *
 * They call each other downwards only: listener, session_run, session_read, command, verbs and
 * content_end, what these ask (access, auth, limit_check ...), reception, filtering, wait, session.
 *
 * OWNERSHIP  Each worker owns its sessions. The configuration is counted. A session whose message
 *            is with the spool waits for the answer: stop the spool, and the pool, between
 *            smtpd_stop() and smtpd_free().
 * THREAD     All calls here: main.
 * ERRORS     smtpd_new() returns NULL and says which address could not be bound, or which
 *            certificate not read.
 * SEE        RFC 5321, 1870, 2920, 3030, 3207, 3461, 4954, 6152, 6531, 9422.
 */
#ifndef SMTPD_SMTPD_H
#define SMTPD_SMTPD_H

#include "base/conf.h"
#include "base/thread_pool.h"
#include "spool/spool.h"

struct smtpd;
struct clients;
struct limiter;

/* Whom sessions ask. */
struct smtpd_edges {
	struct spool *spool;
	struct thread_pool *pool;
	struct limiter *limiter;
	struct loop *qmgr; /* VERIFY_ASK; NULL: nobody is asked */
};

struct smtpd *smtpd_new(struct conf *, const struct smtpd_edges *, struct buf *error);
/* Bind all listeners, for every worker; or take over the sockets that the program was started with. */

struct clients *smtpd_clients(struct smtpd *); /* they stay until smtpd_free() */

void smtpd_start(struct smtpd *);

void smtpd_close(struct smtpd *, bool keep_sockets);
/* Take no further connection; each session gets 421 4.3.2 at its next command boundary, or when
 * what it has under way in the spool is answered. Returns at once. keep_sockets: who connects from
 * now on waits in the kernel, for whoever takes the sockets over. */

void smtpd_close_sockets(struct smtpd *);
/* After smtpd_close(): nobody will take over those that were kept. */

void smtpd_stop(struct smtpd *); /* the threads end; sessions still open are closed */

int smtpd_take_sockets(struct smtpd *, int **fd);
/* The listening sockets that were kept, the caller's from now on, and free() for the array. Returns
 * how many they are. */

void smtpd_free(struct smtpd **);

bool smtpd_reload(struct smtpd *, struct conf *, struct buf *error);
/* New limits, networks and certificates for sessions to come; addresses that are new are listened
 * on, those left out no longer, and the others without a break. False: a certificate can't be read,
 * or an address not be listened on, and nothing has changed. */

void smtpd_tables(struct smtpd *, struct conf *);
/* The same settings with other tables, for addresses to come. Takes a reference. */

#endif
