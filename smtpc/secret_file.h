/* secret_file.h - a file with a password, a token, or how one is fetched: read whole, and overwritten after use.
 *
 * OWNERSHIP  What is read: secret_file_free().
 * THREAD     Any.
 * ERRORS     NULL, and why, with the path.
 */
#ifndef SMTPC_SECRET_FILE_H
#define SMTPC_SECRET_FILE_H

#include "base/buf.h"

char *secret_file_read(const char *path, struct buf *why); /* at most 64 KiB */
void secret_file_free(char *);				   /* NULL is allowed */

#endif
