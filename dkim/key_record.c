/* SPDX-License-Identifier: ISC */
#include "dkim/key_record.h"

#include "base/base64.h"

#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { STRING_MAX = 255, ED25519_BYTES = 32 };

static bool is_rsa(EVP_PKEY *key)
{
	return EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA;
}

void key_record_text(EVP_PKEY *key, struct buf *to)
{
	unsigned char raw[ED25519_BYTES], *der = raw;
	size_t len = sizeof raw;
	if (is_rsa(key)) {
		unsigned char *made = NULL;
		int n = i2d_PUBKEY(key, &made);
		der = made;
		len = n > 0 ? (size_t)n : 0;
	} else {
		EVP_PKEY_get_raw_public_key(key, raw, &len);
	}
	buf_printf(to, "v=DKIM1; k=%s; p=", is_rsa(key) ? "rsa" : "ed25519");
	base64_encode(to, der, len);
	if (der != raw)
		OPENSSL_free(der);
}

void key_record_line(const char *selector, const char *domain, const char *text, struct buf *to)
{
	size_t len = strlen(text);
	buf_printf(to, "%s._domainkey.%s. IN TXT (", selector, domain);
	for (size_t at = 0; at < len; at += STRING_MAX)
		buf_printf(to, " \"%.*s\"", STRING_MAX, text + at);
	buf_puts(to, " )\n");
}

/* The value of a tag, without blanks, the caller's to free; NULL: it is not there. */
static char *tag_value(const char *text, const char *name)
{
	size_t len = strlen(name);
	for (const char *p = text; *p; p += strcspn(p, ";"), p += *p == ';') {
		p += strspn(p, " \t");
		const char *eq = p + strcspn(p, "=;");
		size_t n = (size_t)(eq - p);
		while (n > 0 && strchr(" \t", p[n - 1]))
			n--;
		if (*eq != '=' || n != len || strncmp(p, name, n) != 0)
			continue;
		struct buf value = {0};
		for (p = eq + 1; *p && *p != ';'; p++)
			if (!strchr(" \t\r\n", *p))
				buf_append(&value, p, 1);
		return buf_steal(&value, NULL);
	}
	return NULL;
}

/* Is it among these, parted by colons? A list that is not there holds all. */
static bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);
	for (const char *p = list; p; p = strchr(p, ':'), p = p ? p + 1 : NULL) {
		size_t n = strcspn(p, ":");
		if ((n == len && strncasecmp(p, word, n) == 0) || (n == 1 && *p == '*'))
			return true;
	}
	return !list;
}

static EVP_PKEY *decode_key(const char *p, bool rsa)
{
	struct buf der = {0};
	EVP_PKEY *key = NULL;
	if (base64_decode(&der, p, strlen(p))) {
		const unsigned char *at = (const unsigned char *)buf_data(&der);
		key = rsa ? d2i_PUBKEY(NULL, &at, (long)buf_len(&der))
			  : EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, at, buf_len(&der));
	}
	buf_fini(&der);
	return key;
}

static const char *find_fault(const char *text, EVP_PKEY *key, char *const of[])
{
	const char *v = of[0], *k = of[1], *p = of[2], *h = of[3], *s = of[4];
	if (v && (strcmp(v, "DKIM1") != 0 || strncmp(text, "v", 1) != 0))
		return "it does not begin with v=DKIM1";
	if (!p)
		return "it has no key (p=)";
	if (!*p)
		return "it says that the key is revoked (p= is empty)";
	if (strcmp(k ? k : "rsa", is_rsa(key) ? "rsa" : "ed25519") != 0)
		return "it is for another kind of key (k=)";
	if (!list_has(h, "sha256"))
		return "it does not allow sha256 (h=)";
	if (!list_has(s, "email"))
		return "it is not for mail (s=)";
	EVP_PKEY *other = decode_key(p, is_rsa(key));
	bool same = other && EVP_PKEY_eq(other, key) == 1;
	const char *why = !other ? "its key cannot be read (p=)" : "it has another key (p=)";
	EVP_PKEY_free(other);
	return same ? NULL : why;
}

bool key_record_fits(const char *text, EVP_PKEY *key, struct buf *why)
{
	static const char *const names[] = {"v", "k", "p", "h", "s", "t"};
	enum { TAGS = sizeof names / sizeof *names };
	char *of[TAGS];
	for (int i = 0; i < TAGS; i++)
		of[i] = tag_value(text, names[i]);
	const char *wrong = find_fault(text + strspn(text, " \t"), key, of);
	if (wrong)
		buf_puts(why, wrong);
	else if (of[TAGS - 1] && list_has(of[TAGS - 1], "y"))
		buf_puts(why, "it says that signing is only tested (t=y)");
	for (int i = 0; i < TAGS; i++)
		free(of[i]);
	return !wrong;
}
