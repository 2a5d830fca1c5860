/* expected.h - the replies that a host still owes us, in the order of the commands.
 *
 * One row a kind: what the reply answers, the handler in the engine, the setting that bounds the
 * wait.
 *
 * OWNERSHIP  Embedded; refers to transactions, owns none.
 * THREAD     Any; one thread a queue.
 * ERRORS     Taking from an empty queue asserts.
 * SEE        RFC 5321 4.5.3.2 (time-outs); RFC 2920 3.1 (order).
 */
#ifndef SMTPC_EXPECTED_H
#define SMTPC_EXPECTED_H

#include "base/verdict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(kind, text, handler, time-out, stage of a verdict)   RFC 5321 4.5.3.2.n */
#define EXPECTED_KINDS(X)                                                                          \
	X(GREETING, "greeting", greeting, greeting_timeout, GREETING) /* .1 */                     \
	X(EHLO, "reply to EHLO", ehlo, helo_timeout, GREETING)                                     \
	X(HELO, "reply to HELO", helo, helo_timeout, GREETING)                                     \
	X(LHLO, "reply to LHLO", ehlo, helo_timeout, GREETING)                                     \
	X(STARTTLS, "reply to STARTTLS", starttls, starttls_timeout, GREETING)                     \
	X(AUTH, "reply to AUTH", auth, helo_timeout, GREETING)                                     \
	X(MAIL, "reply to MAIL", mail, mail_timeout, MAIL)		/* .2 */                   \
	X(RCPT, "reply to RCPT", rcpt, rcpt_timeout, RCPT)		/* .3 */                   \
	X(DATA, "reply to DATA", data, data_init_timeout, DATA)		/* .4 */                   \
	X(DOT, "reply to the end of data", dot, data_done_timeout, END) /* .6 */                   \
	X(BDAT, "reply to BDAT", bdat, data_done_timeout, END)                                     \
	X(EMPTY_DOT, "reply to an empty message", empty_dot, data_done_timeout, END)               \
	X(RSET, "reply to RSET", rset, rset_timeout, MAIL)                                         \
	X(QUIT, "reply to QUIT", quit, quit_timeout, UNKNOWN)

enum expected_kind {
#define X(kind, ...) EXPECTED_##kind,
	EXPECTED_KINDS(X)
#undef X
};

const char *expected_text(enum expected_kind);
enum verdict_stage expected_stage(enum expected_kind);

struct transaction;

struct expected {
	enum expected_kind kind;
	struct transaction *transaction; /* of MAIL, RCPT, DATA, DOT, BDAT, RSET; or NULL */
	uint32_t rcpt;			 /* of RCPT */
	bool early;			 /* sent before all that was said earlier had its reply */
};

struct expected_queue {
	struct expected *ring;
	size_t head, n, cap; /* cap is a power of two, or 0 */
};

void expected_init(struct expected_queue *);
void expected_fini(struct expected_queue *);
void expected_push(struct expected_queue *, struct expected);
const struct expected *expected_first(const struct expected_queue *); /* NULL: nothing is owed */
struct expected expected_pop(struct expected_queue *);
void expected_again(struct expected_queue *, struct expected);
/* The command is owed another reply, before all others: put back in front. */

void expected_clear(struct expected_queue *);

#endif
