/* stream_form.h - whether a stream keeps what it is told to, or the bucket: somebody may have made it by hand, or changed it.
 *
 *	limits of number, age and size, and what goes at a limit   may be put right at any time
 *	where it is stored, for whom, and what is denied           stand for ever
 *
 * A limit in bytes is the operator's, as long as what is new is refused at it, and nothing old goes.
 *
 * OWNERSHIP  The caller's.
 * THREAD     Any. No I/O.
 * ERRORS     None.
 */
#ifndef REPLICA_STREAM_FORM_H
#define REPLICA_STREAM_FORM_H

#include <nats/nats.h>
#include <stdbool.h>

bool stream_form_keeps(const jsStreamConfig *);
/* No limit takes anything away, or refuses a message of ours. */

void stream_form_mend(jsStreamConfig *); /* so that it does */

bool stream_form_keeps_rows(const jsStreamConfig *);
/* The same of the bucket, which has one message of each subject. A row that goes by age is a node that nobody adopts, or a number
 * that two nodes have. */

void stream_form_mend_rows(jsStreamConfig *);

const char *stream_form_wrong(const jsStreamConfig *);
/* A text: how it is not to be, and can't be changed; or NULL. */

#endif
