/* http_sampling.h - a sample of the queue's messages, read part by part for an answer.
 *
 *	http_sampling_ask() -- SPOOL_SAMPLE --> spool
 *	   ^                                      |
 *	   +---- there is more -------------------+---- all parts are there --> sampled()
 *
 * OWNERSHIP  The first member of what a kind of look keeps of its own; http_sampling_fini() frees the sample.
 * THREAD     http.
 * ERRORS     None: a look whose server is closed is gone, and sampled() not called.
 */
#ifndef CMD_HTTP_HTTP_SAMPLING_H
#define CMD_HTTP_HTTP_SAMPLING_H

#include "cmd/http/http_look.h"
#include "qmgr/dest_command.h"
#include "spool/sample.h"

struct http_sampling {
	struct sample *sample; /* NULL: the spool has it */
	uint64_t after;	       /* the last message of the part before */
	void (*sampled)(struct http_look *);
};

void http_sampling_ask(struct http_look *);
const struct dest_site *http_sampling_want_site(struct http_sampling *, const struct dest_command *,
						const char *transport, const char *key);
/* Before it is asked: mail that was deferred for the site that the command has found, and mail for the domains that lead there; of this
 * transport and with this key, or "". NULL: there is no such site. */

bool http_sampling_wants_none(const struct dest_site *);
/* The queue knows of no mail for it, and would be asked for all mail. */

void http_sampling_fini(struct http_sampling *);

#endif
