/* mailaddr.h - mail addresses: parsing what a client sent, splitting what we keep.
 *
 * OWNERSHIP  Results lie in the caller's struct; they are cut to RFC lengths before they are
 *            stored.
 * THREAD     Any.
 * ERRORS     The result says what is wrong; nothing is stored then.
 * SEE        RFC 5321 4.1.2, 4.5.3.1; RFC 6531 3.3; RFC 3461 4 (xtext).
 */
#ifndef BASE_MAILADDR_H
#define BASE_MAILADDR_H

#include <stdbool.h>
#include <stddef.h>

/* A local part may have 64 octets everywhere, and as many as a path has room for here: RFC 5321 4.5.3.1 wants no limits
 * where there need be none, and senders that name each recipient in their address use more. */
enum { MAILADDR_LOCAL_MAX = 252, MAILADDR_DOMAIN_MAX = 255, MAILADDR_MAX = 330 };

enum mailaddr_result {
	MAILADDR_OK,
	MAILADDR_SYNTAX,
	MAILADDR_LOCAL_TOO_LONG,
	MAILADDR_DOMAIN_TOO_LONG, /* or a label longer than 63, or a path longer than 256 */
	MAILADDR_NOT_ASCII,	  /* 8-bit without SMTPUTF8, or not UTF-8 */
};

struct mailaddr {
	char text[MAILADDR_MAX]; /* local-part@domain as kept: local part as given, quotes only
				    where needed, domain in lower case without final dot; "" is the
				    null path */
	size_t at;    /* index of the '@' that parts them; strlen(text) when there is no domain */
	bool utf8;    /* holds bytes above 127 */
	bool literal; /* the domain is an address literal */
};

enum mailaddr_result mailaddr_path(const char **cursor, bool utf8_allowed, struct mailaddr *);
/* Parse "<...>" at *cursor and step over it: Reverse-path, Forward-path, with a source route, which
 * is dropped, "<>" and "<postmaster>" (no domain). A local part with dots where none may be gets quotes. */

enum mailaddr_result mailaddr_mailbox(const char *text, size_t len, bool utf8_allowed,
				      struct mailaddr *);
/* Parse a bare mailbox, as in a configuration or on a command line. */

const char *mailaddr_kept(const char *text, struct mailaddr *);
/* The form in which such a mailbox is kept, in the structure. NULL: it is none. */

const char *mailaddr_domain(const char *address);
/* The domain of an address as kept: behind the last '@' outside quotes; "" when there is none. */

bool mailaddr_domain_valid(const char *domain);
/* A host or domain name in ASCII, or an address literal. */

bool mailaddr_hello_valid(const char *name);
/* As in EHLO. DIFFERS from RFC 5321 4.1.3: an IPv6 address in brackets may lack its tag; clients in Java leave it out. */

bool xtext_decode(const char *text, size_t len, char *to, size_t size);
/* False: bad syntax, too long, or anything but printable ASCII in the result. */

bool xtext_decode_utf8(const char *text, size_t len, char *to, size_t size);
/* Likewise, but the result may be UTF-8. */

void xtext_encode(const char *text, char *to, size_t size);

#endif
