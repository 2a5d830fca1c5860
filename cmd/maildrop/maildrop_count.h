/* maildrop_count.h - the shape of the maildrop: for whom mail was left, and when.
 *
 * Files in maildrop/ and in taken/, which are not in the queue yet, are read up to the end of their
 * envelopes; of what is no message nothing is counted. Nothing is changed.
 *
 * THREAD     Any; it blocks while the disk does.
 * ERRORS     False and errno: maildrop/ can't be read. A file that can't be read, or goes meanwhile,
 *            is passed over.
 * SEE        maildrop_form.h; POSTFIX QSHAPE_README.
 */
#ifndef CMD_MAILDROP_MAILDROP_COUNT_H
#define CMD_MAILDROP_MAILDROP_COUNT_H

#include "spool/shape.h"

bool maildrop_count(const char *spool, struct shape *);

#endif
