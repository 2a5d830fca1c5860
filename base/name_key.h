/* name_key.h - the one form in which domains and addresses are looked up, however they are written.
 *
 *	Bücher.test, BÜCHER.TEST, xn--Bcher-kva.test, ｂücher．test, bücher.test. --> xn--bcher-kva.test
 *	"anna"@a.test, Anna@a.test. --> anna@a.test
 *	[IPv6:2001:DB8:0::1] --> [ipv6:2001:db8::1]; 2001:DB8:0::1 --> 2001:db8::1
 *
 * What is ASCII passes as it is, in lower case: the DNS has names that IDNA2008 refuses, such as r3---sn.test. The
 * rest is as UTS 46 has it, not transitional, which is what resolvers make of it too. What was said stays
 * as it was on the wire: this is for tables, sections, limits, and questions to the DNS.
 *
 * OWNERSHIP  Results of name_key() are the caller's.
 * THREAD     Any. Pure.
 * ERRORS     What has no such form stays as it is, in lower case as far as it is ASCII.
 * SEE        UTS 46; RFC 5890, 5891.
 */
#ifndef BASE_NAME_KEY_H
#define BASE_NAME_KEY_H

#include <stdbool.h>
#include <stddef.h>

enum { NAME_KEY_DOMAIN = 256 };

bool name_key_domain(const char *domain, char to[NAME_KEY_DOMAIN]);
/* False: it has no such form, or it is too long, and to is cut there. */

char *name_key(const char *key);
/* Of an address, whose local part becomes ASCII lower case; a domain, a ".parent", "[host]:port", an IPv6 address, or several
 * of these between blanks. */

bool name_key_plain(const char *key);
/* Is only the case of its letters to be changed, which costs no memory? */

bool name_key_fits(const char *key, const char *name);
/* Is that the key of the name? Of one that is plain this costs no memory. */

bool name_key_same(const char *name, const char *other);
/* Have both one key? Of two that are plain this costs no memory. */

bool name_key_into(const char *key, char *to, size_t size);
/* The same, into room of that size, without memory of its own where it is plain. False: it does not fit, and to is as it
 * was. */

#endif
