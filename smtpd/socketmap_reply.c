/* SPDX-License-Identifier: ISC */
#include "smtpd/socketmap_reply.h"

#include <string.h>

/* The length before the colon. False: that is none. */
static bool read_length(const char *bytes, size_t digits, size_t *length)
{
	*length = 0;
	if (digits == 0 || digits > SOCKETMAP_DIGITS_MAX || (bytes[0] == '0' && digits > 1))
		return false;
	for (size_t i = 0; i < digits; i++) {
		if (bytes[i] < '0' || bytes[i] > '9')
			return false;
		*length = *length * 10 + (size_t)(bytes[i] - '0');
	}
	return *length <= SOCKETMAP_REPLY_MAX;
}

static enum socketmap_said read_text(struct socketmap_reply *r)
{
	static const struct {
		const char *word;
		enum socketmap_said said;
	} words[] = {
		{"OK ", SOCKETMAP_REPLY_OK},	   {"NOTFOUND ", SOCKETMAP_REPLY_NOT_FOUND},
		{"TEMP ", SOCKETMAP_REPLY_FAILED}, {"TIMEOUT ", SOCKETMAP_REPLY_FAILED},
		{"PERM ", SOCKETMAP_REPLY_FAILED},
	};
	if (memchr(r->text, '\0', r->len))
		return SOCKETMAP_REPLY_BAD;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t word = strlen(words[i].word);
		/* Some leave the blank out where nothing follows. */
		if (r->len == word - 1 && words[i].said != SOCKETMAP_REPLY_OK)
			word--;
		if (r->len < word || memcmp(r->text, words[i].word, word) != 0)
			continue;
		if (words[i].said == SOCKETMAP_REPLY_OK) {
			r->text += word;
			r->len -= word;
		}
		return words[i].said;
	}
	return SOCKETMAP_REPLY_BAD;
}

enum socketmap_said socketmap_reply_read(const char *bytes, size_t len, struct socketmap_reply *r)
{
	size_t most = len < SOCKETMAP_DIGITS_MAX + 1 ? len : SOCKETMAP_DIGITS_MAX + 1, length;
	const char *colon = most > 0 ? memchr(bytes, ':', most) : NULL;
	size_t digits = colon ? (size_t)(colon - bytes) : most;
	if (!colon && most <= SOCKETMAP_DIGITS_MAX)
		return most == 0 || read_length(bytes, digits, &length) ? SOCKETMAP_REPLY_PART
									: SOCKETMAP_REPLY_BAD;
	if (!read_length(bytes, digits, &length))
		return SOCKETMAP_REPLY_BAD;
	if (len - digits - 1 < length + 1)
		return SOCKETMAP_REPLY_PART;
	*r = (struct socketmap_reply){
		.text = colon + 1, .len = length, .used = digits + 1 + length + 1};
	return bytes[r->used - 1] == ',' ? read_text(r) : SOCKETMAP_REPLY_BAD;
}

void socketmap_reply_ask(struct buf *to, const char *name, const char *key)
{
	buf_printf(to, "%zu:%s %s,", strlen(name) + 1 + strlen(key), name, key);
}
