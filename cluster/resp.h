/* resp.h - commands to Redis, and its replies, by hiredis: no I/O.
 *
 *	resp_put(out, n, arg, len)	one command behind what is in out
 *	resp_next(resp, in, &reply)	one reply from the front of in, once it is all there
 *
 * A reply may have so many bytes and so many elements; one with more, and one that makes no sense, is a fault,
 * and nothing more is read after it.
 *
 * OWNERSHIP  Embedded. A reply is the caller's to freeReplyObject().
 * THREAD     One at a time.
 * ERRORS     RESP_FAULT, and resp_fault() says what.
 * SEE        redis.io, "Redis serialization protocol specification", RESP2.
 */
#ifndef CLUSTER_RESP_H
#define CLUSTER_RESP_H

#include "base/buf.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>

enum { RESP_REPLY_BYTES_MAX = 16 << 20, RESP_REPLY_ELEMENTS_MAX = 400000 };

#if HIREDIS_MAJOR >= 1
typedef size_t resp_count; /* in which hiredis counts elements */
#else
typedef int resp_count;
#endif

enum resp_result { RESP_NONE, RESP_REPLY, RESP_FAULT };

struct resp {
	redisReader *reader;
	redisReplyObjectFunctions make; /* hiredis' own, and arrays counted */
	void *(*make_array)(const redisReadTask *, resp_count);
	size_t fed;	 /* bytes since the last reply */
	size_t elements; /* that arrays of the present reply have */
	const char *fault;
};

void resp_init(struct resp *);
void resp_fini(struct resp *);

enum resp_result resp_next(struct resp *, struct buf *in, redisReply **);
/* Takes all of in. Ask again until there is none. */

const char *resp_fault(const struct resp *);

void resp_put(struct buf *out, int n, const char *const arg[], const size_t len[]);
/* len NULL: the arguments are strings. */

const char *resp_text(const redisReply *);
/* Of a string, a status or an error; else "". */

bool resp_is_array(const redisReply *, size_t least);
/* An array of that many elements or more; a NULL reply is none. */

#endif
