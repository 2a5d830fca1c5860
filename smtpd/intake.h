/* intake.h - where the content of one message goes while it comes in.
 *
 *	content_in --> header_in --> content_writer: memory, or a file of the queue
 *
 * OWNERSHIP  Embedded in struct reception; intake_fini() discards what was not handed over.
 * THREAD     The session's. The writes to a spool_file block for as long as the page cache does.
 * ERRORS     A file that can't be made or written: intake_error() is its errno; the rest of the
 *            content is read and dropped.
 * SEE        spool.h.
 */
#ifndef SMTPD_INTAKE_H
#define SMTPD_INTAKE_H

#include "base/content.h"
#include "smtpd/content_in.h"
#include "smtpd/header_in.h"
#include "smtpd/response.h"
#include "spool/content_writer.h"

struct intake {
	struct content_in decoder;
	struct header_in header;
	struct content_writer out;
	const char *hostname; /* for a Message-ID and a From that are missing */
	const char *sender;
	struct conf *conf; /* which says what becomes of the header; or NULL */
};

void intake_init(struct intake *, struct spool *, uint64_t id, uint64_t expected);
/* expected: the size that the client announced, or 0. Set decoder's limits, then intake_put() the
 * Received field, then feed the decoder. */

void intake_add_missing(struct intake *, const char *hostname, const char *sender);
/* Have Date, Message-ID and From added where they are missing; both strings stay the caller's. */

void intake_use(struct intake *,
		struct conf *); /* its addresses are rewritten, its fields dropped as that says */
/* Have the addresses in the header rewritten, if these settings say so. */

void intake_fini(struct intake *);

void intake_put(struct intake *, const char *bytes, size_t len);
/* Past the decoder: what the relay itself writes. */

void intake_finish(struct intake *); /* all has been fed */
int intake_error(const struct intake *);

int8_t intake_priority(const struct intake *); /* of mail that was given none: header_in.h */

void intake_mark(const struct intake *, struct envelope *);
/* Fields of the header that the envelope keeps. Once it is finished. */

enum response intake_judge(const struct content_in *, const struct header_in *,
			   int64_t hopcount_limit);
/* Of content that has passed both: RESPONSE_OK, or why it is refused. */

uint64_t intake_take(struct intake *, struct content **, struct spool_file **);
/* Hand over what has come, as one or the other; returns its size. Not after an error. */

#endif
