/* SPDX-License-Identifier: ISC */
#include "base/conf_build.h"

#include "base/conf_value.h"
#include "base/header_field.h"
#include "base/mem.h"
#include "base/tls_keys.h"
#include "base/utf8.h"

#include <assert.h>
#include <ctype.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

enum { RSA_BITS_MIN = 1024 }; /* RFC 8301 3.2 */

#define FAULT(place, item, ...)                                                                    \
	conf_fault(faults, c->file, conf_lines_find(lines, (place), (item), d->line), __VA_ARGS__)

/* RFC 6376 3.1: labels of letters, digits and hyphens, with dots between them. */
bool conf_dkim_selector_good(const char *s)
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
	if (len > 0 && name[len - 1] == '?')
		len--;
	if (len == 0 || len + 2 > sizeof line || strchr(name, ';'))
		return false;
	memcpy(line, name, len);
	line[len] = ':';
	return header_field_name(line, len + 1) == len;
}

static void check_section(const struct conf *c, const struct conf_dkim *d,
			  const struct conf_lines *lines, struct conf_faults *faults)
{
	if (!utf8_is_ascii(d->title) || !conf_host_good(d->title + (d->title[0] == '.')))
		FAULT(d, -1, "dkim: \"%s\" is not a domain, nor one with a dot in front%s",
		      d->title,
		      utf8_is_ascii(d->title) ? "" : "; beyond ASCII it is written as xn--...");
	if (!conf_dkim_selector_good(d->selector))
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

static int by_title(const void *a, const void *b)
{
	const struct conf_dkim *x = *(const struct conf_dkim *const *)a;
	const struct conf_dkim *y = *(const struct conf_dkim *const *)b;
	int differs = strcmp(x->title, y->title);
	return differs ? differs : (x > y) - (x < y);
}

static void sort_sections(struct conf *c)
{
	c->dkim_sorted = mem_alloc((size_t)(c->ndkim + 1) * sizeof *c->dkim_sorted);
	for (int i = 0; i < c->ndkim; i++)
		c->dkim_sorted[i] = &c->dkim[i];
	qsort(c->dkim_sorted, (size_t)c->ndkim, sizeof *c->dkim_sorted, by_title);
}

void conf_dkim_check(struct conf *c, const struct conf_lines *lines, struct conf_faults *faults)
{
	sort_sections(c);
	conf_value_keep_name(&c->dkim_also);
	if (*c->dkim_also && !conf_host_good(c->dkim_also))
		conf_fault(faults, c->file, conf_lines_find(lines, &c->dkim_also, -1, 1),
			   "dkim_also \"%s\" is not a domain", c->dkim_also);
	for (int i = 0; i < c->ndkim; i++) {
		const struct conf_dkim *d = c->dkim_sorted[i];
		check_section(c, d, lines, faults);
		if (i >= CONF_DKIM_MAX &&
		    strcmp(c->dkim_sorted[i - CONF_DKIM_MAX]->title, d->title) == 0)
			FAULT(d, -1, "dkim \"%s\": more than %d signatures of one message",
			      d->title, CONF_DKIM_MAX);
	}
}

/* The first of that title, or where it would be. */
static int first_at(const struct conf *c, const char *title)
{
	int low = 0, high = c->ndkim;
	while (low < high) {
		int middle = (low + high) / 2;
		if (strcmp(c->dkim_sorted[middle]->title, title) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int find_titled(const struct conf *c, const char *title, const struct conf_dkim *found[])
{
	int n = 0, at = first_at(c, title);
	while (n < CONF_DKIM_MAX && at + n < c->ndkim &&
	       strcmp(c->dkim_sorted[at + n]->title, title) == 0) {
		found[n] = c->dkim_sorted[at + n];
		n++;
	}
	return n;
}

int conf_dkim_find(const struct conf *c, const char *domain,
		   const struct conf_dkim *found[CONF_DKIM_MAX])
{
	int n = c->ndkim > 0 ? find_titled(c, domain, found) : 0;
	for (const char *dot = domain; c->ndkim > 0 && n == 0 && (dot = strchr(dot, '.')); dot++)
		n = find_titled(c, dot, found);
	assert(n <= CONF_DKIM_MAX);
	return n;
}

void conf_dkim_names(const struct conf_dkim *const found[], int n, struct buf *to)
{
	for (int i = 0; i < n; i++)
		buf_printf(to, "%s%s:%s", i > 0 ? "," : "",
			   found[i]->title + (found[i]->title[0] == '.'), found[i]->selector);
}

/* Why it can't sign; NULL: it can. */
static const char *key_fault(EVP_PKEY *key)
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
		const char *why = d->loaded ? key_fault(d->loaded) : NULL;
		if (!d->loaded)
			FAULT(&d->key, -1, "key %s cannot be read: %s", d->key, tls_keys_reason());
		else if (why)
			FAULT(&d->key, -1, "the key in %s %s", d->key, why);
		else if (!(d->signing = tls_keys_signing(d->loaded)))
			FAULT(&d->key, -1, "the key in %s can not sign: %s", d->key,
			      tls_keys_reason());
		ERR_clear_error();
	}
}
