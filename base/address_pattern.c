/* SPDX-License-Identifier: ISC */
#include "base/address_pattern.h"

#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool same_letter(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Where a star did not take enough, the last one takes one more: no star before it could do better. */
static bool fits_glob(const char *pattern, const char *text)
{
	const char *star = NULL, *again = NULL;
	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			again = text;
		} else if (*pattern && same_letter(*pattern, *text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++again;
		} else {
			return false;
		}
	}
	return pattern[strspn(pattern, "*")] == '\0';
}

/* Is it the domain behind the dot of the pattern, or below it? */
static bool is_within(const char *pattern, const char *domain)
{
	size_t len = strlen(domain), tail = strlen(pattern);
	if (len + 1 == tail)
		return strcasecmp(pattern + 1, domain) == 0;
	return len >= tail && strcasecmp(pattern, domain + len - tail) == 0;
}

static bool fits_domain(const char *pattern, const char *domain)
{
	pattern += *pattern == '@';
	return *pattern == '.' && !strchr(pattern, '*') ? is_within(pattern, domain)
							: fits_glob(pattern, domain);
}

static bool is_null(const char *pattern)
{
	return !*pattern || strcmp(pattern, "<>") == 0;
}

char *address_pattern_copy(const char *typed)
{
	size_t len = strlen(typed);
	bool bracketed = len > 2 && *typed == '<' && typed[len - 1] == '>';
	return mem_strndup(typed + bracketed, bracketed ? len - 2 : len);
}

static bool pattern_fits_address(const char *pattern, const char *address)
{
	if (is_null(pattern) || !*address)
		return is_null(pattern) && !*address;
	if (*pattern == '.' || *pattern == '@')
		return fits_domain(pattern, mailaddr_domain(address));
	return fits_glob(pattern, address);
}

/* A star between quotes may stand for what needs them. */
static char *fold_pattern(const char *pattern)
{
	const char *at = strrchr(pattern, '@');
	if (!at || !strchr(pattern, '"') || !strchr(pattern, '*'))
		return name_key(pattern);
	char *domain = name_key(at + 1);
	char *folded = mem_printf("%.*s%s", (int)(at + 1 - pattern), pattern, domain);
	free(domain);
	return folded;
}

static bool judge_by_key(bool (*judgement)(const char *pattern, const char *of),
			 const char *pattern, const char *of)
{
	if (name_key_plain(pattern) && name_key_plain(of))
		return judgement(pattern, of);
	char *folded_pattern = fold_pattern(pattern), *folded = name_key(of);
	bool good = judgement(folded_pattern, folded);
	free(folded_pattern);
	free(folded);
	return good;
}

bool address_pattern_fits_domain(const char *pattern, const char *domain)
{
	return judge_by_key(fits_domain, pattern, domain);
}

bool address_pattern_fits(const char *pattern, const char *address)
{
	return judge_by_key(pattern_fits_address, pattern, address);
}

const char *address_pattern_domain(const char *pattern)
{
	const char *at = strrchr(pattern, '@');
	if (is_null(pattern))
		return NULL;
	return *pattern == '.' ? pattern : at ? at + 1 : NULL;
}

bool address_pattern_of_domain(const char *pattern)
{
	return *pattern == '.' || *pattern == '@' || strncmp(pattern, "*@", 2) == 0;
}
