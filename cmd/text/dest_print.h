/* dest_print.h - sites and hosts as lines, as JSON, and in full.
 *
 * THREAD     Main.
 */
#ifndef CMD_TEXT_DEST_PRINT_H
#define CMD_TEXT_DEST_PRINT_H

#include "base/buf.h"
#include "qmgr/dest_command.h"

void dest_print_sort(struct dest_command *);
/* The worst first: those that take no mail, those that take no more, those with the most that waits,
 * here and in the queue; then by name. */

void dest_print_list(struct buf *to, const struct dest_command *);
void dest_print_full(struct buf *to, const struct dest_command *);
void dest_print_tabs(struct buf *to, const struct dest_command *);
/* Sites only, a line each; the fields as sluice(8) has them. */

void dest_print_json(struct buf *to, const struct dest_command *);
void dest_print_done(struct buf *to, const struct dest_command *); /* "1 site suspended" */

#endif
