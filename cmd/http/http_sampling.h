/* http_sampling.h - a sample of the queue's messages, read part by part for an answer.
 *
 *	http_sampling_of_site() -- DEST_COMMAND --> qmgr --> found(): which mail is for this site
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
	struct sample *sample;	     /* NULL: the spool has it */
	uint64_t after;		     /* the last message of the part before */
	const char *transport, *key; /* of the site that is asked about */
	void (*sampled)(struct http_look *);
	void (*found)(struct http_look *, const struct dest_site *); /* or NULL */
};

void http_sampling_ask(struct http_look *);

void http_sampling_of_site(struct http_look *, const char *site, const char *transport,
			   const char *key);
/* The same of mail that was deferred for this site, of this transport and with this key, or "", and of mail for the domains that
 * lead there. The texts are the look's own. Where the queue knows of none, no part is read; where there is no such site, the look fails. */

void http_sampling_fini(struct http_sampling *);

#endif
