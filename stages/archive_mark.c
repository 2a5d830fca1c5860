/* SPDX-License-Identifier: ISC */
#include "stages/archive_mark.h"

#include "base/header_field.h"
#include "base/ident.h"

#include <assert.h>
#include <ctype.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEY = 32,
	MAC = 16, /* bytes of what HMAC makes */
	MAC_TEXT = 2 * MAC,
	ID_TEXT = IDENT_TEXT - 1,
	FIELD_MAX = 80 + ARCHIVE_MARK_ADDRESSES * (MAC_TEXT + 3)
};

static unsigned char key[KEY];
static bool has_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_key(void)
{
	has_key = RAND_bytes(key, sizeof key) == 1;
}

static bool make_mac(const char *id, const char *address, char text[MAC_TEXT + 1])
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	unsigned int len = 0;
	struct buf what = {0};
	pthread_once(&once, make_key);
	buf_printf(&what, "%s ", id);
	for (const char *p = address; *p; p++)
		buf_printf(&what, "%c", tolower((unsigned char)*p));
	bool ok = has_key &&
		  HMAC(EVP_sha256(), key, sizeof key, (const unsigned char *)buf_data(&what),
		       buf_len(&what), mac, &len) != NULL;
	buf_fini(&what);
	for (int i = 0; ok && i < MAC; i++)
		snprintf(text + 2 * i, 3, "%02x", mac[i]);
	return ok;
}

/* The next word of a field, NULL behind the last. */
static const char *next_word(const char **at, const char *end, size_t *len)
{
	while (*at < end && strchr(" \t\r\n", **at))
		(*at)++;
	const char *word = *at;
	while (*at < end && !strchr(" \t\r\n", **at))
		(*at)++;
	*len = (size_t)(*at - word);
	return *len > 0 ? word : NULL;
}

static bool is_word(const char *word, size_t len, size_t wanted)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)word[i]))
			return false;
	return len == wanted;
}

/* Put the text of the field, where that is a mark, on a line for each word: nobody's own text comes into a copy. */
static bool put_again(const struct draft_field *f, struct buf *to)
{
	const char *end = f->text + f->len, *word;
	const char *at = (const char *)memchr(f->text, ':', f->len) + 1;
	size_t len, before = buf_len(to);
	bool good = f->len <= FIELD_MAX;
	int n = 0;
	buf_puts(to, ARCHIVE_MARK_FIELD ":");
	for (; good && (word = next_word(&at, end, &len)); n++) {
		good = is_word(word, len, n == 0 ? ID_TEXT : MAC_TEXT);
		buf_printf(to, "%s%.*s", n == 0 ? " " : "\r\n\t", (int)len, word);
	}
	buf_puts(to, "\r\n");
	good = good && n > 1;
	if (!good)
		buf_shorten(to, buf_len(to) - before);
	return good;
}

void archive_marks_read(struct archive_marks *m, const struct draft *d)
{
	assert(d->opened);
	int n = 0;
	*m = (struct archive_marks){0};
	for (int i = 0; i < d->nfield && n < ARCHIVE_MARKS_MAX; i++)
		if (draft_field_is(&d->field[i], ARCHIVE_MARK_FIELD))
			n += put_again(&d->field[i], &m->text);
}

void archive_marks_fini(struct archive_marks *m)
{
	buf_fini(&m->text);
}

/* text: a field as put_again() writes it. Returns where it ends. */
static const char *look_for_mark(const char *text, const char *end, const char *address,
				 int64_t since_ms, bool *found)
{
	char id[IDENT_TEXT], mac[MAC_TEXT + 1] = "";
	size_t len = header_field_end(text, (size_t)(end - text));
	const char *at = text + sizeof ARCHIVE_MARK_FIELD, *stop = text + len, *word;
	uint64_t number;
	snprintf(id, sizeof id, "%.*s", ID_TEXT, next_word(&at, stop, &len));
	assert(strlen(id) == ID_TEXT);
	bool valid = ident_parse(id, &number) && ident_time_ms(number) >= since_ms &&
		     make_mac(id, address, mac);
	while (valid && (word = next_word(&at, stop, &len))) {
		assert(len == MAC_TEXT);
		*found |= CRYPTO_memcmp(word, mac, MAC_TEXT) == 0;
	}
	return stop;
}

bool archive_marks_has(const struct archive_marks *m, const char *address, int64_t now_ms,
		       int64_t lifetime_ms)
{
	const char *at = buf_data(&m->text), *end = at + buf_len(&m->text);
	bool found = false;
	while (at < end && !found)
		at = look_for_mark(at, end, address, now_ms - lifetime_ms, &found);
	return found;
}

bool archive_mark_put(struct buf *to, const struct envelope *copy)
{
	assert(copy->id != 0 && copy->nrcpt > 0);
	char id[IDENT_TEXT], mac[MAC_TEXT + 1];
	uint32_t n = copy->nrcpt < ARCHIVE_MARK_ADDRESSES ? copy->nrcpt : ARCHIVE_MARK_ADDRESSES;
	bool ok = true;
	buf_printf(to, ARCHIVE_MARK_FIELD ": %s", ident_text(copy->id, id));
	for (uint32_t i = 0; ok && i < n; i++) {
		ok = make_mac(id, copy->rcpt[i].address, mac);
		buf_printf(to, "\r\n\t%s", ok ? mac : "");
	}
	buf_puts(to, "\r\n");
	return ok;
}
