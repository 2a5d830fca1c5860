/* milter_content.h - how far one filter has been told of a message's content.
 *
 *	HEADER ... END_OF_HEADER  BODY ... END_OF_BODY
 *
 * OWNERSHIP  Embedded; milter_content_fini(). The draft is the caller's.
 * THREAD     The chain's.
 * ERRORS     milter_content_data(): NULL and errno, when the disk fails.
 */
#ifndef SMTPD_MILTER_MILTER_CONTENT_H
#define SMTPD_MILTER_MILTER_CONTENT_H

#include "smtpd/milter/milter_engine.h"
#include "stages/draft.h"

struct milter_content {
	const struct draft *draft;
	int hidden;	      /* the field that it is not told of; -1: none */
	enum milter_event at; /* what it is to be told; MILTER_EVENT_COUNT: nothing more */
	int field;
	uint64_t offset; /* of the body */
	struct buf data;
};

void milter_content_begin(struct milter_content *, const struct draft *, int hidden);
void milter_content_fini(struct milter_content *); /* before it has begun, too */

static inline enum milter_event milter_content_due(const struct milter_content *c)
{
	return c->at;
}

const struct buf *milter_content_data(struct milter_content *, enum milter_event,
				      bool leading_space);
/* Data of the event that is due: at most MILTER_BODY_CHUNK bytes. A value that is longer is cut.
 * leading_space: the filter wants the blank behind the colon too. */

void milter_content_told(struct milter_content *, enum milter_event);
void milter_content_skip(struct milter_content *, enum milter_event); /* and the rest of its kind */

#endif
