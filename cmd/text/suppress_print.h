/* suppress_print.h - recipients that hosts do not know, as `sluice suppress` shows them.
 *
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef CMD_TEXT_SUPPRESS_PRINT_H
#define CMD_TEXT_SUPPRESS_PRINT_H

#include "base/buf.h"
#include "qmgr/suppress_command.h"

void suppress_print_list(struct buf *, const struct suppress_command *);
/* A line each: the address, since when, until when, who said so. */

void suppress_print_json(struct buf *, const struct suppress_command *);
/* An object each; of an order one that says what was done. */

void suppress_print_done(struct buf *, const struct suppress_command *);

#endif
