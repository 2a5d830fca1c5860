/* token.h - how an OAuth access token is fetched, and what comes back.
 *
 *	# refresh:FILE of the credentials		POST to endpoint, a form:
 *	endpoint = https://login.example.com/token	grant_type=refresh_token&refresh_token=...
 *	client_id = 1234				without a refresh_token:
 *	client_secret = ...				grant_type=client_credentials&...
 *	refresh_token = ...				<- {"access_token": "...", "expires_in": 3600}
 *	scope = https://outlook.office365.com/.default
 *	ca = /etc/sluice/own-ca.pem
 *	device_endpoint = https://login.example.com/device	for `sluice login`: token_device.h
 *
 * OWNERSHIP  token_source_fini(), token_answer_fini() overwrite what is in them.
 * THREAD     Any. Pure.
 * ERRORS     false, and why.
 * SEE        RFC 6749 4.4 (client credentials), 5 (answers), 6 (refreshing).
 */
#ifndef SMTPC_TOKEN_H
#define SMTPC_TOKEN_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* X(name, must be there) */
#define TOKEN_FIELDS(X)                                                                            \
	X(endpoint, true)                                                                          \
	X(client_id, true)                                                                         \
	X(client_secret, false)                                                                    \
	X(refresh_token, false)                                                                    \
	X(scope, false)                                                                            \
	X(ca, false)                                                                               \
	X(device_endpoint, false)

struct token_source {
#define X(name, ...) char *name;
	TOKEN_FIELDS(X)
#undef X
};

bool token_source_read(struct token_source *, const char *text, struct buf *why);
void token_source_form(const struct token_source *, const char *refresh, struct buf *to);
/* The body of the request, with this refresh token, whatever the source has; or NULL. */

void token_source_fini(struct token_source *);

void token_form_put(struct buf *to, const char *name, const char *value);
/* One more field of a form, encoded; NULL: none. */

/* Why there is no token: RFC 6749 5.2, RFC 8628 3.5. */
enum token_error {
	TOKEN_ERROR_OTHER,
	TOKEN_ERROR_GRANT, /* invalid_grant: this refresh token is worth nothing (any more) */
	TOKEN_ERROR_PENDING,
	TOKEN_ERROR_SLOW_DOWN,
	TOKEN_ERROR_DENIED,
	TOKEN_ERROR_EXPIRED,
};

struct token_answer {
	char *access, *refresh; /* refresh: another refresh token, or NULL */
	int64_t lifetime_ms;	/* at least a minute, at most a day */
	enum token_error error; /* when there is no token */
};

bool token_answer_read(struct token_answer *, long status, const char *body, size_t len,
		       struct buf *why);
void token_answer_fini(struct token_answer *);

#endif
