/* author_list.h - the addresses in From or Sender, where those must be believed.
 *
 * What RFC 5322 and RFC 6854 let a program write today, to the letter: names in front of angle brackets, groups, quoted
 * strings, comments and folded lines where they may stand. Not the forms of RFC 5322 4 that may only be read, since
 * readers make different things of them: routes, empty places in a list, white space or a comment inside of an address,
 * white space alone on a line. Of these only the dot in a display name is taken, which many write and none misreads.
 *
 * OWNERSHIP  The list owns its strings.
 * THREAD     Any. Pure.
 * ERRORS     False, and what is wrong in error; the list holds what was found before.
 * SEE        header_addresses.h, for fields where nothing depends on it; RFC 5322 3.4, RFC 6854 2, RFC 6532.
 */
#ifndef BASE_AUTHOR_LIST_H
#define BASE_AUTHOR_LIST_H

#include "base/header_addresses.h"

enum { AUTHOR_LIST_MAX = 100 };

bool author_list(const char *field, size_t len, struct address_list *, struct buf *error);
/* field is what follows the colon, with the end of its last line. */

#endif
