/* reasons.h - why messages wait: each reason once, with its oldest message.
 *
 * Two recipients wait for the same reason when they are in the same queue and were told the same:
 * code, enhanced code and text, where words that hold a digit or an at sign (ids, addresses, times) are
 * alike. What is being worked on waits for what the scheduler says: the constraint, and the site.
 *
 * OWNERSHIP  reasons_free() frees all; verdicts are counted.
 * THREAD     One.
 * ERRORS     Of more than 200 reasons, and of more than 100 recipients of one message, the others are left
 *            out.
 */
#ifndef CMD_TEXT_REASONS_H
#define CMD_TEXT_REASONS_H

#include "qmgr/explain.h"
#include "spool/sample.h"

struct reasons;

/* Whose reasons are wanted; NULL: all. */
struct reasons_filter {
	char **peer; /* of its hosts, as verdicts name them */
	int npeer;
	char **domain; /* whose mail goes there, by their keys (base/name_key.h); none: it is not known */
	int ndomain;
};

void reasons_filter_sort(struct reasons_filter *); /* due before it is used */

struct reasons *reasons_new(void);
void reasons_free(struct reasons **);

void reasons_add(struct reasons *, const struct sample_row *, const struct reasons_filter *);
void reasons_add_active(struct reasons *, const struct sample_row *,
			const struct explain_question *, int64_t now_ms);
/* The same of a message that the scheduler has explained; where it does not know it, as above. */

enum reasons_order { REASONS_OLDEST, REASONS_MOST };
void reasons_print(struct buf *, struct reasons *, enum reasons_order, int most);
/* A JSON array of objects. */

#endif
