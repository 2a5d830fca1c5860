/* token_device.h - the messages of a login by device code: somebody says yes in a browser, wherever that is.
 *
 *	POST device_endpoint, client_id=...&scope=...	<- {"device_code": "...", "user_code": "...",
 *							    "verification_uri": "https://..."}
 *	POST endpoint, grant_type=...:device_code&...	<- authorization_pending, slow_down, or tokens:
 *	each interval					   token_answer_read()
 *
 * Google calls verification_uri verification_url.
 *
 * OWNERSHIP  token_device_fini() overwrites what is in it.
 * THREAD     Any. Pure.
 * ERRORS     false, and why. What is to be shown is printable ASCII, and short.
 * SEE        RFC 8628 3.1, 3.2, 3.4; token.h.
 */
#ifndef SMTPC_TOKEN_DEVICE_H
#define SMTPC_TOKEN_DEVICE_H

#include "smtpc/token.h"

enum { TOKEN_DEVICE_SLOWER_MS = 5000 }; /* added by each slow_down: RFC 8628 3.5 */

struct token_device {
	char *code;		   /* secret */
	char *user_code, *address; /* to be shown */
	int64_t interval_ms,
		lifetime_ms; /* at least 1 s and 1 minute, at most 1 minute and 1 hour */
};

void token_device_form(const struct token_source *, struct buf *to);
void token_device_poll_form(const struct token_source *, const struct token_device *,
			    struct buf *to);
bool token_device_read(struct token_device *, long status, const char *body, size_t len,
		       struct buf *why);
void token_device_fini(struct token_device *);

#endif
