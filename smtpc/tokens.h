/* tokens.h - OAuth access tokens: fetched over HTTPS, kept in memory until they end.
 *
 *	tokens_ask() --> [ one a file of refresh: ] <-- form, answer --> endpoint
 *	answered()   <--     |  ^ every refresh token, before its access token is given out
 *	                     v  |
 *	                [ token_store ]
 *
 * A token is fetched when it is first asked for, and again when a tenth of its life is left, while the old
 * one still serves. An endpoint that fails is asked again after 1 s, and twice as long each time, up to five
 * minutes, or as soon as the file or what is kept for it was written; until then all who ask get that answer.
 *
 * The refresh token that is tried first is the newest. If the endpoint calls that invalid, and the one before
 * it is still there, that one is tried in the same turn: the endpoint may have taken back what a crash kept us
 * from using. What can't be written stays in memory, is a condition, and is tried again; mail goes on.
 *
 * OWNERSHIP  Questions are lent until answered() is called with them, or tokens_free().
 * THREAD     The loop's; tokens_new(), tokens_free(): main, while the loop does not run.
 * ERRORS     As the reason of an answer; the condition token_missing; one event `login` for each that begins.
 * SEE        token.h, token_store.h.
 */
#ifndef SMTPC_TOKENS_H
#define SMTPC_TOKENS_H

#include "base/credential.h"
#include "base/loop.h"

struct tokens;

struct tokens *tokens_new(struct loop *, const char *spool,
			  void (*answered)(struct note *question, const char *token,
					   const char *why));
/* answered(): token NULL: why there is none, a clause. */

void tokens_free(struct tokens **, void (*drop)(struct note *question));

void tokens_ask(struct tokens *, struct credential *, struct note *question);
void tokens_spoiled(struct tokens *, const struct credential *); /* a host refuses it */

#endif
