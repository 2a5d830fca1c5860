/* secrets.h - passwords and tokens for logging in: read from files, fetched over HTTPS.
 *
 *	worker -- SECRET_ASK --> [ file, or tokens.h <-> endpoint ]
 *	       <- SECRET_ANSWER --
 *	       -- SECRET_SPOILED -->	the host refuses it: a token is fetched anew
 *
 * One thread with a loop of its own, so that neither a slow disk nor an endpoint that does not answer
 * holds up a connection. Files are read at each question: what has changed counts at once.
 *
 * OWNERSHIP  Notes are given away by posting. Secrets in answers are the receiver's to mem_free_secret().
 * THREAD     secrets_new() to secrets_free(): main. Posting: any.
 * ERRORS     As the verdict of an answer.
 * SEE        base/credential.h, tokens.h.
 */
#ifndef SMTPC_SECRETS_H
#define SMTPC_SECRETS_H

#include "base/credential.h"
#include "base/loop.h"
#include "base/verdict.h"

#include <stdint.h>

struct secrets;

enum secrets_note { SECRET_ASK = NOTES_FROM(NOTES_OF_SECRETS), SECRET_ANSWER, SECRET_SPOILED };

/* The same object goes there and comes back. */
struct secret_ask {
	struct note note;
	struct loop *reply_to;
	uint64_t connection;	       /* the asker's own */
	struct credential *credential; /* a reference */
	char *secret;
	struct verdict *failure; /* or NULL */
};

struct secrets *secrets_new(const char *spool); /* copied */
void secrets_start(struct secrets *);
void secrets_stop(struct secrets *);
void secrets_free(struct secrets **);

void secrets_ask(struct secrets *, struct credential *, struct loop *reply_to, uint64_t connection);
void secrets_spoiled(struct secrets *, struct credential *);
/* Post. */

void secret_ask_free(struct secret_ask **);

#endif
