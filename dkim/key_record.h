/* key_record.h - what a key looks like in the DNS, and whether a record is that of a key.
 *
 * THREAD     Any.
 * SEE        RFC 6376 3.6.1; RFC 8463 4.
 */
#ifndef DKIM_KEY_RECORD_H
#define DKIM_KEY_RECORD_H

#include "base/buf.h"

#include <openssl/types.h>
#include <stdbool.h>

void key_record_text(EVP_PKEY *, struct buf *to); /* appends "v=DKIM1; k=rsa; p=..." */

void key_record_line(const char *selector, const char *domain, const char *text, struct buf *to);
/* Appends it as a zone file has it, in strings of 255 bytes at most. */

bool key_record_fits(const char *text, EVP_PKEY *, struct buf *why);
/* May what this key signs be verified by that record? False: why not. True: in why, what else is to be
 * said of it. */

#endif
