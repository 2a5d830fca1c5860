/* fetch_token.h - one POST over HTTPS, by libcurl on a loop.
 *
 * No redirects, no other protocol, the certificate checked, 64 kB of answer, half a minute in all.
 *
 * OWNERSHIP  A fetch belongs to fetch_tokens until fetched() was called, or fetch_token_drop().
 * THREAD     The loop's; fetch_tokens_new(), _free(): main, while the loop does not run.
 * ERRORS     As fetched()'s error, a clause.
 * SEE        libcurl-multi(3), curl_multi_socket_action(3).
 */
#ifndef SMTPC_FETCH_TOKEN_H
#define SMTPC_FETCH_TOKEN_H

#include "base/buf.h"
#include "base/loop.h"

struct fetch_tokens;
struct fetch_token;

struct fetch_tokens *fetch_tokens_new(struct loop *);
void fetch_tokens_free(struct fetch_tokens **); /* none is under way */

struct fetch_token *fetch_token_begin(struct fetch_tokens *, const char *url, const char *ca,
				      const struct buf *form,
				      void (*fetched)(void *owner, long status, const char *body,
						      size_t len, const char *error),
				      void *owner);
/* ca: a PEM file in the place of the system's; or NULL. fetched() is called once, from the loop, and the
 * fetch is gone then. */

void fetch_token_drop(struct fetch_token **); /* NULL is allowed; nothing is called */

#endif
