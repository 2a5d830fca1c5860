/* SPDX-License-Identifier: ISC */
#include "base/conf_build.h"

#include "base/header_field.h"
#include "base/tls_keys.h"

#include <ctype.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

enum { RSA_BITS_MIN = 1024 }; /* RFC 8301 3.2 */

#define FAULT(place, item, ...)                                                                    \
	conf_fault(faults, c->file, conf_lines_find(lines, (place), (item), d->line), __VA_ARGS__)

/* RFC 6376 3.1: labels of letters, digits and hyphens, with dots between them. */
static bool selector_good(const char *s)
{
	const char *label = s;
	for (; *s; s++) {
		if (*s == '.' ? s == label || s[1] == '\0'
			      : !isalnum((unsigned char)*s) && *s != '-')
			return false;
		if (*s == '.')
			label = s + 1;
	}
	return s > label;
}

/* A name, perhaps with ? behind it. */
static bool header_good(const char *name)
{
	size_t len = strlen(name);
	char line[128];
	if (len > 1 && name[len - 1] == '?')
		len--;
	if (len + 2 > sizeof line || strchr(name, ';'))
		return false;
	memcpy(line, name, len);
	line[len] = ':';
	return header_field_name(line, len + 1) == len;
}

static bool ascii(const char *s)
{
	while (*s && (unsigned char)*s < 128)
		s++;
	return !*s;
}

static void check_section(const struct conf *c, const struct conf_dkim *d,
			  const struct conf_lines *lines, struct conf_faults *faults)
{
	if (!ascii(d->title) || !conf_host_good(d->title + (d->title[0] == '.')))
		FAULT(d, -1, "dkim: \"%s\" is not a domain, nor one with a dot in front%s",
		      d->title, ascii(d->title) ? "" : "; beyond ASCII it is written as xn--...");
	if (!selector_good(d->selector))
		FAULT(&d->selector, -1, "dkim \"%s\": %s \"%s\"", d->title,
		      *d->selector ? "that is no selector:" : "it needs a selector, not",
		      d->selector);
	if (d->key[0] != '/')
		FAULT(&d->key, -1,
		      "dkim \"%s\": key must be the absolute path of a file, not \"%s\"", d->title,
		      d->key);
	for (int i = 0; i < d->headers.n; i++)
		if (!header_good(d->headers.item[i]))
			FAULT(&d->headers, i, "\"%s\" is not the name of a header field",
			      d->headers.item[i]);
	for (const struct conf_dkim *other = c->dkim; other < d; other++)
		if (strcmp(other->title, d->title) == 0 &&
		    strcmp(other->selector, d->selector) == 0)
			FAULT(d, -1,
			      "dkim \"%s\" with selector \"%s\" is already there, in line %d",
			      d->title, d->selector, other->line);
}

void conf_dkim_check(const struct conf *c, const struct conf_lines *lines,
		     struct conf_faults *faults)
{
	for (int i = 0; i < c->ndkim; i++)
		check_section(c, &c->dkim[i], lines, faults);
}

/* Why it can't sign; NULL: it can. */
static const char *wrong(EVP_PKEY *key)
{
	switch (EVP_PKEY_get_base_id(key)) {
	case EVP_PKEY_ED25519:
		return NULL;
	case EVP_PKEY_RSA:
		return EVP_PKEY_get_bits(key) < RSA_BITS_MIN ? "is RSA of less than 1024 bits"
							     : NULL;
	default:
		return "is neither RSA nor Ed25519";
	}
}

void conf_dkim_load(struct conf *c, const struct conf_lines *lines, struct conf_faults *faults)
{
	for (int i = 0; i < c->ndkim; i++) {
		struct conf_dkim *d = &c->dkim[i];
		d->loaded = tls_keys_private(d->key);
		const char *why = d->loaded ? wrong(d->loaded) : NULL;
		if (!d->loaded)
			FAULT(&d->key, -1, "key %s can not be read: %s", d->key,
			      ERR_reason_error_string(ERR_peek_last_error()));
		else if (why)
			FAULT(&d->key, -1, "the key in %s %s", d->key, why);
		ERR_clear_error();
	}
}
