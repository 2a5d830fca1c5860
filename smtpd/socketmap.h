/* socketmap.h - servers that have tables: Sendmail's and Postfix's protocol, for many sessions.
 *
 *	socketmap_ask() --> [ waiting ] --> one of SOCKETMAP_CONNECTIONS: NAME KEY
 *	                                    OK, NOTFOUND, TEMP ... --> struct socketmap_answer
 *
 * A connection has one question at a time, since no document says that a server may be asked twice at
 * once; it is kept, and made again when it was lost between two questions. Whoever asks what another of
 * this loop has asked, and has no answer to yet, waits for the same answer, but for who asks after a reload. Whatever happens, each
 * who asks is answered once, by a note in the worker's mailbox, within the time limit: with FAILED
 * when the server says so, is away, hangs, or says what is not the protocol. After that it rests for
 * 100 ms, then twice as long, up to 5 s, and whoever asks meanwhile has FAILED at once. It is tried
 * again by itself then. FAILED has, too, and unasked, who has waited behind others for so long that the
 * answer would come too late, as far as can be told from how long others took.
 *
 * Answers are remembered for a short time, at most SOCKETMAP_KNOWN_MAX of them in
 * SOCKETMAP_KNOWN_BYTES, the oldest forgotten first; failures are not.
 *
 * What it says is not believed further than it must be: a reply is bounded, and a connection that
 * said something unasked, or anything behind its reply, is left.
 *
 * OWNERSHIP  The worker's, or the maildrop's. Answers are freed by wait.c, or by socketmap_receive().
 * THREAD     That of its loop.
 * STATES     Of a connection: CLOSED, CONNECTING, IDLE, BUSY; moved by socketmap.c alone.
 * ERRORS     As answers; condition socketmap_away until it answers again.
 * SEE        POSTFIX socketmap_table(5); socketmap_question.h; socketmap_reply.h; base/socketmap_name.h.
 */
#ifndef SMTPD_SOCKETMAP_H
#define SMTPD_SOCKETMAP_H

#include "base/conf.h"
#include "base/socketmap_name.h"
#include "smtpd/wait.h"

/* A note of its loop: for socketmap_receive(). */
enum { SOCKETMAP_HEARD = NOTES_FROM(NOTES_OF_SOCKETMAP) };

enum {
	SOCKETMAP_CONNECTIONS = 4, /* of one worker to one server */
	SOCKETMAP_WAITING_MAX = 1000,
	SOCKETMAP_KNOWN_MAX = 10000,
	SOCKETMAP_KNOWN_BYTES = 4 << 20,
};

struct socketmaps;

enum socketmap_result { SOCKETMAP_FOUND, SOCKETMAP_NONE, SOCKETMAP_FAILED };

struct socketmap_answer {
	struct wait_answer answer; /* first */
	enum socketmap_result result;
	char *text; /* FOUND: the value; FAILED: why; or NULL */
};

struct socketmaps *socketmaps_new(struct loop *);
void socketmaps_free(struct socketmaps **);

void socketmaps_use(struct socketmaps *, const struct conf *);
/* New settings or tables: servers that they do not name any more are left, and what was known is
 * forgotten. */

bool socketmap_known(struct socketmaps *, const struct socketmap_name *, const char *key,
		     char **value);
/* True: it is known, and *value the caller's; NULL: the server has nothing of that key. */

void socketmap_ask(struct socketmaps *, const struct socketmap_name *, const char *key,
		   uint64_t cookie);

void socketmap_withdraw(struct socketmaps *, uint64_t cookie);
/* Nobody waits for it any more: if the server was not asked yet, it is not. One that was answered is allowed. */

/* As socketmap_ask(), for who is no session, or whose session waits for something else already. */
typedef void socketmap_answered(void *owner, const struct socketmap_answer *);

uint64_t socketmap_ask_for(struct socketmaps *, const struct socketmap_name *, const char *key,
			   socketmap_answered *, void *owner);
/* The question's number, not 0. It is called later, once, unless: */

void socketmap_forget(struct socketmaps *, uint64_t number);
/* The answer is not wanted any more: as withdrawn. */

void socketmap_receive(struct socketmaps *, struct note *); /* NULL: nobody waits any more */

#endif
