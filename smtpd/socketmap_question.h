/* socketmap_question.h - a question to a server of tables, and all who wait for its answer.
 *
 *	socketmap_question_new() --> join() for each who asks the same --> answer() for all of them
 *	                                  +--> leave(): the client has gone; refuse_late(): its time is too short
 *
 * Whoever asks what is asked already waits for that answer: a server that is slow has one question of a key, however many
 * sessions come at once.
 *
 * OWNERSHIP  The server's in socketmap.c, in its list of those that wait or at one of its connections; in its table as long as
 *            others may join.
 * THREAD     That of its loop.
 * ERRORS     Misuse asserts.
 */
#ifndef SMTPD_SOCKETMAP_QUESTION_H
#define SMTPD_SOCKETMAP_QUESTION_H

#include "base/keyed_hash.h"
#include "base/list.h"
#include "smtpd/socketmap.h"

struct socketmap_question {
	struct list link;
	char *name, *key;
	char *known;	     /* as what its answer is remembered */
	struct list waiters; /* whoever came first is first */
	int64_t sent_ms;     /* steady clock */
	bool again;	     /* its first connection was lost */
	bool open;	     /* in the server's table: what it says holds for whoever asks now */
	UT_hash_handle hh;
};

struct socketmap_question *socketmap_question_new(const char *name, const char *key, char *known);
/* Takes known. */

void socketmap_question_free(struct socketmap_question **); /* in no list, in no table */

void socketmap_question_join(struct socketmap_question *, uint64_t cookie, bool of_asker,
			     int64_t due_ms);
/* of_asker: the cookie is the number of an asker. */

bool socketmap_question_leave(struct socketmap_question *, uint64_t cookie, bool of_asker);
/* False: nobody waits for it any more. */

bool socketmap_question_refuse_late(struct socketmap_question *, struct loop *, int64_t soonest_ms,
				    const char *why);
/* Who must be answered before then has FAILED. False: nobody waits for it any more. */

int64_t socketmap_question_due_ms(const struct socketmap_question *); /* of the first who waits */

void socketmap_question_answer(struct socketmap_question *, struct loop *, enum socketmap_result,
			       const char *text);
/* Nobody waits for it then. */

void socketmap_question_post(struct loop *, uint64_t cookie, bool of_asker, enum socketmap_result,
			     const char *text);
/* An answer without a question. */

#endif
