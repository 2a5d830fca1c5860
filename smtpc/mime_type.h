/* mime_type.h - the type, boundary and encoding of a MIME part, from its header.
 *
 * THREAD     Any. Pure.
 * ERRORS     None: what can't be read is MIME_OTHER, without a boundary.
 * SEE        RFC 2045 5.1, 6.1; RFC 2046 5.1.1.
 */
#ifndef SMTPC_MIME_TYPE_H
#define SMTPC_MIME_TYPE_H

#include <stdbool.h>
#include <stddef.h>

enum { MIME_BOUNDARY_MAX = 70 };

struct mime_type {
	enum mime_kind {
		MIME_TEXT, /* where nothing is said, and message/global and its kin, too */
		MIME_MULTIPART,
		MIME_SIGNED,  /* multipart/signed */
		MIME_MESSAGE, /* message/rfc822: a header follows */
		MIME_REPORT,  /* any other message/: may not be encoded */
		MIME_OTHER,
	} kind;
	bool eightbit; /* Content-Transfer-Encoding is 8bit or binary */
	char boundary[MIME_BOUNDARY_MAX + 1];
};

void mime_type_of(const char *header, size_t len, struct mime_type *);

#endif
