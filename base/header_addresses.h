/* header_addresses.h - the addresses in a field such as To, Cc or Bcc.
 *
 * Lists, groups, display names, comments, quoted strings, folded lines, source routes; and the
 * obsolete forms of RFC 5322 4.4 that are still sent, such as empty places in a list.
 *
 * OWNERSHIP  The list owns its strings.
 * THREAD     Any.
 * ERRORS     False, and the first thing that is no address in error; what was found before it stays
 *            in the list.
 * SEE        RFC 5322 3.4, 3.2.2 (comments), 4.4.
 */
#ifndef BASE_HEADER_ADDRESSES_H
#define BASE_HEADER_ADDRESSES_H

#include "base/buf.h"

#include <stdbool.h>

struct address_list {
	int n;
	char **item;
};

bool header_addresses(const char *field, size_t len, struct address_list *, struct buf *error);
/* field is what follows the colon. An address without a domain is taken as it stands. */

void address_list_add(struct address_list *, const char *address);
void address_list_free(struct address_list *);

#endif
