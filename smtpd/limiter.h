/* limiter.h - the thread that owns limits: one state for all workers.
 *
 *	smtpd worker -- LIMITER_ASK ------> [ limiter: struct limits ] --> the answer, to WAIT
 *	             -- LIMITER_LOGGED_IN ->
 *	             -- LIMITER_ACCEPTED -->
 *	             -- LIMITER_FAILED ---->
 *	operator -- LIMITER_ORDER --------> ------------------------------> LIMITER_ORDER, back
 *	main  <-- LIMITER_SAVE: who is suspended ---+
 *	main  <-- LIMITER_FIGURES: what each has sent, LIMITER_FIGURES_MS after it has changed
 *	cluster <-- SHARING_SPENT ------ -- SHARING_TOTAL, SHARING_PARTS --> what other nodes have let pass
 *	watchers <-- LIMITER_TOP: who sends most, once a second while that changes
 *
 * A thread of its own, since all others make somebody wait now and then: the spool for the disk, main
 * for a table of a million rows, a worker for its clients' content. Not a table behind mutexes as
 * clients.h has, since one message concerns up to three rows that must be judged together, and the
 * operator's list would hold up all workers. Where there is no limit and no login nobody asks.
 *
 * OWNERSHIP  Each note is the limiter's from the post on; what comes back is whose loop it comes to.
 * THREAD     limiter_new() to limiter_free(): main. The notes: any.
 * ERRORS     None.
 */
#ifndef SMTPD_LIMITER_H
#define SMTPD_LIMITER_H

#include "base/order.h"
#include "smtpd/clients.h"
#include "smtpd/limits.h"
#include "smtpd/wait.h"

enum limiter_note {
	LIMITER_ASK = NOTES_FROM(NOTES_OF_LIMITER),
	LIMITER_LOGGED_IN,
	LIMITER_ACCEPTED,
	LIMITER_FAILED,
	LIMITER_ORDER,
	LIMITER_CONF,
	LIMITER_SAVE, /* a text_note: a login in each line, before the answer to the order that changed it */
	LIMITER_TOP,
	LIMITER_FIGURES, /* a text_note, as limits_write() has it */
};

struct limiter;

/* May one more message or recipient of these pass? */
struct limiter_question {
	struct wait_answer answer; /* first; its cookie and reply_to are set */
	enum limit_of of;
	char *name[LIMIT_BY_COUNT]; /* NULL: of none */
	bool asked; /* a server has tables of limits, and was asked for its login: */
	char *row;  /* what it says; NULL: nothing */
	struct limits_ruling ruling;
};

/* An event of a login: LIMITER_LOGGED_IN; LIMITER_ACCEPTED, a message was queued; LIMITER_FAILED, a wrong password. */
struct limiter_event {
	struct note note;
	uint32_t nrcpt;
	char login[];
};

struct limiter_login {
	char *name;
	enum limit_by by; /* what the name is: a login, unless it says otherwise */
	bool suspended;
	struct figures figures; /* today's and yesterday's, by enum login_figure */
	int64_t seen_ms;	/* wall clock; 0: never */
	struct conf_rate limit[LIMIT_OF_COUNT];
	int64_t room[LIMIT_OF_COUNT]; /* so many may pass now, where there is a limit */
};

/* The operator's; the same object comes back. */
struct limiter_order {
	struct note note;
	struct loop *reply_to;
	void *owner;
	enum order op;
	char *name; /* NULL: all logins, to be listed */
	bool found;
	bool stranger; /* SUSPEND: no such login was seen, and the users' files, where there are some, have none */
	bool listed; /* SUSPEND: there are such files */
	int n;
	struct limiter_login *login; /* by name */
};

enum { LIMITER_TOP_MAX = 10, LIMITER_WATCHERS_MAX = 2, LIMITER_FIGURES_MS = 10000 };

/* Who has sent most today; and who is kept from sending: suspended, refused by a limit or known for wrong passwords, in this
 * order, each the most first. The latter are clients and senders, too. */
struct limiter_top {
	struct note note;
	int n;
	struct limiter_login login[LIMITER_TOP_MAX];
	int nkept;
	struct limiter_login kept[LIMITER_TOP_MAX];
	int64_t suspended; /* logins, in all */
};

struct limiter *limiter_new(struct conf *, struct loop *saver);
/* saver: who gets LIMITER_SAVE and LIMITER_FIGURES. */

void limiter_recall(struct limiter *, const char *text); /* before the start: what was saved last */
void limiter_recall_figures(struct limiter *, const char *text); /* likewise */
void limiter_watch(struct limiter *, struct loop *); /* before the start: gets LIMITER_TOP */
void limiter_share(struct limiter *, void (*to_cluster)(void *context, struct note *),
		   void *context);
/* Before the start: its limits are those of all nodes of a cluster together (base/sharing.h). */

void limiter_share_clients(struct limiter *, struct clients *);
/* Likewise: it hears what concerns their rates, too. They outlive it. */

struct loop *limiter_loop(struct limiter *);
void limiter_start(struct limiter *);
void limiter_reload(struct limiter *, struct conf *);
void limiter_stop(struct limiter *);
void limiter_figures(const struct limiter *, struct buf *to); /* after it: to be kept */
void limiter_free(struct limiter **);
/* Answers what is left in its mailbox: while the loops of those who have asked are there. */

struct limiter_event *limiter_event_new(enum limiter_note, const char *login, uint32_t nrcpt);
struct limiter_order *limiter_order_new(enum order, const char *name, struct loop *reply_to,
					void *owner);
void limiter_order_free(struct limiter_order **);
void limiter_top_free(struct limiter_top **); /* NULL is allowed */

void limiter_question_fini(struct limiter_question *); /* its names */

#endif
