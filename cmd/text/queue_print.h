/* queue_print.h - a message of the queue as a line, as JSON, and in full.
 *
 * Rows in, text out. What a peer said is cleaned of controls, so that a message stays one line.
 *
 * THREAD     Any.
 * ERRORS     None.
 * SEE        sluice(8), "QUEUE".
 */
#ifndef CMD_TEXT_QUEUE_PRINT_H
#define CMD_TEXT_QUEUE_PRINT_H

#include "spool/spool.h"

void queue_print_line(struct buf *to, const struct spool_row *, int64_t now_ms);
void queue_print_json(struct buf *to, const struct spool_row *);
void queue_print_envelope(struct buf *to, const struct spool_row *, int64_t now_ms);
void queue_print_summary(struct buf *to, int64_t messages, uint64_t bytes);

const char *queue_print_error(int error); /* why it can't be had, an errno: spool_row.error */

/* Messages that lists of the queue have left out: they are there, and can't be had. */
struct queue_unread {
	int64_t messages;
	int error; /* of the last of them */
};

void queue_unread_add(struct queue_unread *, const struct spool_command *listed);
void queue_print_unread(struct buf *to, const struct queue_unread *); /* a sentence */
void queue_print_unread_json(struct buf *to, const struct queue_unread *);
/* The line behind the others. */

const char *queue_time_span(int64_t ms, char text[16]); /* "90s", "3h"; returns text */

#endif
