/* address_pattern.h - patterns of addresses and domains, as an operator types them.
 *
 *	anna@shop.example	this address
 *	*@shop.example		* is any text, none too; @shop.example means the same
 *	news@*
 *	.example.com		every address at example.com, and at all domains below it
 *	<>			the null sender; an empty pattern too
 *	<anna@shop.example>	as answers and logs have it: address_pattern_copy() takes off the brackets
 *
 * Of a domain the same without a local part: shop.example, shop.*, .example.com; an at sign in front
 * means nothing. Upper and lower case are the same, and so are all spellings of a domain, of an address literal,
 * and of a local part that needs no quotes (name_key.h).
 *
 * THREAD     Any. Pure.
 * ERRORS     None: any text is a pattern.
 */
#ifndef BASE_ADDRESS_PATTERN_H
#define BASE_ADDRESS_PATTERN_H

#include <stdbool.h>

char *address_pattern_copy(const char *typed); /* the caller frees it */

bool address_pattern_fits(const char *pattern, const char *address);
bool address_pattern_fits_domain(const char *pattern, const char *domain);

const char *address_pattern_domain(const char *pattern);
/* The pattern of domains that the domain of an address must fit for the address to fit. NULL: the
 * pattern is of the null sender, or has no at sign before its first star. */

bool address_pattern_of_domain(const char *pattern);
/* Does the domain alone decide? */

#endif
