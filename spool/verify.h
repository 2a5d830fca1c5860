/* verify.h - whether a message is whole: its envelope, and its content to the last byte.
 *
 * THREAD     Any that has the stub to itself.
 * ERRORS     NULL when nothing is wrong; else a few words that say what.
 */
#ifndef SPOOL_VERIFY_H
#define SPOOL_VERIFY_H

#include "spool/stub.h"

bool verify_promised(const struct stub *);
/* False: of the batch that was being written when the machine stopped, its envelope is there by
 * chance. Nobody was told that it was stored. */

bool verify_by_chance(const struct stub *);
/* There is an envelope, and it is such a one. */

bool verify_large_lost(int large, uint64_t id, uint64_t size);
/* Its file is missing, or of another size. What can't be looked at is neither. */

const char *verify_message(int large, const struct stub *, struct envelope **);
/* The envelope, if it can be read, is the caller's. */

#endif
