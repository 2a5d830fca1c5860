/* report_print.h - the figures of a day, as a text that fits into a mail, and as JSON.
 *
 * THREAD     Main.
 * ERRORS     None.
 */
#ifndef CMD_LOGS_REPORT_PRINT_H
#define CMD_LOGS_REPORT_PRINT_H

#include "cmd/logs/report_count.h"

struct report_frame {
	const char *hostname;
	struct log_span span;
	int top; /* rows of a table */
	const char *
		waiting; /* what sluice shape says, in the same form; NULL: the queue cannot be read */
};

void report_print_text(struct buf *, const struct report_count *, const struct report_frame *);
void report_print_json(struct buf *, const struct report_count *, const struct report_frame *);

#endif
