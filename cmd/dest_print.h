/* dest_print.h - sites and hosts as lines, as JSON, and in full.
 *
 * THREAD     Main.
 */
#ifndef CMD_DEST_PRINT_H
#define CMD_DEST_PRINT_H

#include "base/buf.h"
#include "qmgr/dest_command.h"

void dest_print_list(struct buf *to, const struct dest_command *);
void dest_print_full(struct buf *to, const struct dest_command *);
void dest_print_json(struct buf *to, const struct dest_command *);
void dest_print_done(struct buf *to, const struct dest_command *); /* "1 site suspended" */

#endif
