/* https.h - one request over HTTPS, by libcurl on a loop.
 *
 * Redirects and other protocols are refused, the certificate is verified, and the size of the answer
 * (HTTPS_ANSWER_MAX) and the time are limited.
 *
 * OWNERSHIP  A request belongs to struct https until answered() was called, or https_drop(). Texts of the
 *            order are copied; what answered() is given is lent for the call.
 * THREAD     The loop's; https_new(), https_free(): main, while the loop does not run.
 * ERRORS     As the answer's error, a clause.
 * SEE        libcurl-multi(3), curl_multi_socket_action(3).
 */
#ifndef BASE_HTTPS_H
#define BASE_HTTPS_H

#include "base/buf.h"
#include "base/resolve.h"

enum { HTTPS_ANSWER_MAX = 64 << 10 };

struct https;
struct https_request;

struct https_order {
	const char *url;
	const char *ca;		/* PEM file, or folder, in the place of the system's; or NULL */
	const char *at;		/* "host:port:address,address": where that is; NULL: libcurl asks */
	const struct buf *body; /* to be posted; NULL: GET */
	const char *content_type; /* of the body; NULL: a form */
	int64_t timeout_ms;
};

struct https_answer {
	long status;		  /* also where there is an error behind it; 0: none was heard */
	const char *content_type; /* "" where none is given */
	const char *body;
	size_t len;
	const char *error; /* NULL: there is an answer, whatever its status */
	bool untrusted;	   /* the error is that of the certificate */
};

struct https *https_new(struct loop *);
void https_free(struct https **); /* nothing is under way */

struct https_request *https_begin(struct https *, const struct https_order *,
				  void (*answered)(void *owner, const struct https_answer *),
				  void *owner);
/* answered() is called once, from the loop, and the request is gone then. */

void https_put_addresses(struct buf *to, const struct resolve *);
/* Of all hosts of an answer, as the end of an order's place. */

void https_drop(struct https_request **); /* NULL is allowed; nothing is called */

#endif
