/* SPDX-License-Identifier: ISC */
#include "base/name_key.h"

#include "base/buf.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <arpa/inet.h>
#include <idn2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void lower_ascii(char *text)
{
	for (; *text; text++)
		if (*text >= 'A' && *text <= 'Z')
			*text = (char)(*text - 'A' + 'a');
}

/* Nothing that would be read as another part of what the name stands in. */
static bool is_name(const char *text)
{
	return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_.")] == '\0';
}

/* The name as the library has it in ASCII; the caller frees with idn2_free(). NULL: nothing that is a name. */
static char *ascii_of_name(const char *text)
{
	char *ascii = NULL;
	if (idn2_to_ascii_8z(text, &ascii, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) == IDN2_OK) {
		lower_ascii(ascii);
		if (is_name(ascii))
			return ascii;
	}
	idn2_free(ascii);
	return NULL;
}

/* Beside a label that IDNA2008 refuses, those that it need not look at. False: one can't be converted. */
static bool put_labels(struct buf *to, char *text)
{
	bool good = true;
	for (char *label; (label = strsep(&text, "."));) {
		char *ascii = utf8_is_ascii(label) ? NULL : ascii_of_name(label);
		good = good && (ascii || utf8_is_ascii(label));
		buf_printf(to, "%s%s", ascii ? ascii : label, text ? "." : "");
		idn2_free(ascii);
	}
	return good;
}

bool name_key_domain(const char *domain, char to[NAME_KEY_DOMAIN])
{
	char *copy = mem_strdup(domain), *ascii = NULL;
	struct buf labels = {0};
	bool good = true;
	lower_ascii(copy);
	if (!utf8_is_ascii(copy))
		ascii = ascii_of_name(copy);
	if (!ascii && !utf8_is_ascii(copy)) {
		char *text = mem_strdup(copy);
		good = put_labels(&labels, text);
		free(text);
	}
	const char *found = ascii ? ascii : good && buf_len(&labels) ? buf_cstr(&labels) : copy;
	size_t wanted = strlen(found);
	wanted -= wanted > 1 && found[wanted - 1] == '.' && found[wanted - 2] != '.';
	int len = snprintf(to, NAME_KEY_DOMAIN, "%.*s", (int)wanted, found);
	buf_fini(&labels);
	idn2_free(ascii);
	free(copy);
	return good && len < NAME_KEY_DOMAIN;
}

/* An IPv6 address, perhaps one of mail, in its one spelling: RFC 5952. False: it is none. */
static bool put_address(struct buf *to, const char *text, size_t len)
{
	unsigned char bytes[sizeof(struct in6_addr)];
	char address[64], shortest[INET6_ADDRSTRLEN];
	size_t tag = strncasecmp(text, "IPv6:", 5) == 0 ? 5 : 0;
	if (len >= sizeof address)
		return false;
	snprintf(address, sizeof address, "%.*s", (int)len, text);
	if (inet_pton(AF_INET6, address + tag, bytes) != 1)
		return false;
	inet_ntop(AF_INET6, bytes, shortest, sizeof shortest);
	buf_printf(to, "%.*s%s", (int)tag, text, shortest);
	return true;
}

static void put_domain(struct buf *to, const char *text, size_t len)
{
	char ascii[NAME_KEY_DOMAIN], *name = mem_strndup(text, len);
	buf_puts(to, name_key_domain(name, ascii) ? ascii : name);
	free(name);
}

/* One word of a key: what stands before the domain in it, the domain, what stands behind. */
static void put_word(struct buf *to, const char *word)
{
	const char *domain = mailaddr_domain(word);
	if (!*domain)
		domain = word[0] == '"' ? strchr(word, '\0') : word + (word[0] == '@');
	domain += strspn(domain, ".[");
	buf_append(to, word, (size_t)(domain - word));
	size_t len = strcspn(domain, "]");
	if (!put_address(to, domain, len)) {
		len = strcspn(domain, ":]");
		put_domain(to, domain, len);
	}
	buf_puts(to, domain + len);
}

/* Does a domain in it end with a dot, or would one at this place? */
static bool has_final_dot(const char *key)
{
	for (const char *dot = key; (dot = strchr(dot, '.')); dot++)
		if (dot[1] == '\0' || strchr(" :]", dot[1]))
			return true;
	return false;
}

/* Only an IPv6 address has two colons, a port one. */
static bool may_have_address(const char *key)
{
	const char *colon = strchr(key, ':');
	return colon && strchr(colon + 1, ':');
}

/* An address with quotes that it may not need, or with dots for which it needs some. */
static bool may_be_kept_otherwise(const char *key)
{
	return strchr(key, '"') || strstr(key, "..") || strstr(key, ".@") ||
	       (key[0] == '.' && strchr(key, '@'));
}

bool name_key_plain(const char *key)
{
	return utf8_is_ascii(key) && !may_be_kept_otherwise(key) && !has_final_dot(key) &&
	       !may_have_address(key);
}

bool name_key_into(const char *key, char *to, size_t size)
{
	bool plain = name_key_plain(key);
	char *folded = plain ? NULL : name_key(key);
	const char *from = folded ? folded : key;
	size_t len = strlen(from);
	bool fits = len < size;
	if (fits)
		memcpy(to, from, len + 1);
	if (fits && plain)
		lower_ascii(to);
	free(folded);
	return fits;
}

/* A local part is quoted as an envelope keeps it. NULL: there is none that is, or it is no address. */
static const char *as_kept(const char *key, struct mailaddr *a)
{
	bool good = may_be_kept_otherwise(key) &&
		    mailaddr_mailbox(key, strlen(key), true, a) == MAILADDR_OK;
	return good ? a->text : NULL;
}

char *name_key(const char *key)
{
	struct buf to = {0};
	struct mailaddr a;
	const char *kept = as_kept(key, &a);
	key = kept ? kept : key;
	if (name_key_plain(key)) {
		buf_puts(&to, key);
	} else if (kept) {
		put_word(&to, kept); /* blanks in its quotes part no words */
	} else {
		for (bool more = true; more; more = *key++ != '\0') {
			size_t len = strcspn(key, " ");
			char *word = mem_strndup(key, len);
			put_word(&to, word);
			free(word);
			key += len;
			if (*key)
				buf_puts(&to, " ");
		}
	}
	char *folded = buf_steal(&to, NULL);
	lower_ascii(folded);
	return folded;
}

bool name_key_same(const char *name, const char *other)
{
	if (name_key_plain(name) && name_key_plain(other))
		return strcasecmp(name, other) == 0;
	char *key = name_key(name);
	bool same = name_key_fits(key, other);
	free(key);
	return same;
}

bool name_key_fits(const char *key, const char *name)
{
	if (name_key_plain(name))
		return strcasecmp(key, name) == 0;
	char *folded = name_key(name);
	bool fits = strcmp(key, folded) == 0;
	free(folded);
	return fits;
}
