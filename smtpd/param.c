/* SPDX-License-Identifier: ISC */
#include "smtpd/param.h"

#include "base/envelope.h"
#include "base/internet_time.h"
#include "base/mailaddr.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ENVID_MAX = 100, BY_DIGITS = 9, HOLD_DIGITS = 9 };

void param_init(struct param *p, char *rest)
{
	*p = (struct param){.at = rest};
}

static bool is_key(unsigned char ch, bool first)
{
	return ch < 128 && (isalnum(ch) || (ch == '-' && !first));
}

static bool is_value(unsigned char ch)
{
	return ch > 32 && ch != '=' && ch != 127;
}

static enum param_result fail_syntax(struct param *p)
{
	p->failed = true;
	return PARAM_SYNTAX;
}

enum param_result param_next(struct param *p)
{
	char *at = p->at;
	if (p->failed)
		return PARAM_SYNTAX;
	if (!p->begun && *at && *at != ' ')
		return fail_syntax(p); /* something clings to the path */
	p->begun = true;
	while (*at == ' ')
		at++;
	if (!*at)
		return PARAM_END;
	p->key = at;
	p->value = NULL;
	while (is_key((unsigned char)*at, at == p->key))
		at++;
	if (at == p->key)
		return fail_syntax(p);
	if (*at == '=') {
		*at++ = '\0';
		p->value = at;
		while (is_value((unsigned char)*at))
			at++;
		if (at == p->value)
			return fail_syntax(p);
	}
	if (*at && *at != ' ')
		return fail_syntax(p);
	if (*at)
		*at++ = '\0';
	p->at = at;
	return PARAM_NEXT;
}

bool param_is(const struct param *p, const char *key)
{
	return strcasecmp(p->key, key) == 0;
}

bool param_once(unsigned *seen, unsigned bit)
{
	bool first = !(*seen & bit);
	*seen |= bit;
	return first;
}

bool param_number(const char *value, uint64_t *number)
{
	uint64_t n = 0;
	if (!value || !*value)
		return false;
	for (int i = 0; value[i]; i++) {
		if (value[i] < '0' || value[i] > '9' || i >= 20 || n > (INT64_MAX - 9) / 10)
			return false;
		n = n * 10 + (uint64_t)(value[i] - '0');
	}
	*number = n;
	return true;
}

bool param_size(const char *value, uint64_t *size)
{
	enum { DIGITS = 20 };
	size_t digits = value ? strspn(value, "0123456789") : 0;
	if (digits == 0 || digits > DIGITS || value[digits])
		return false;
	if (!param_number(value, size))
		*size = INT64_MAX;
	return true;
}

static uint8_t notify_bit(const char *word, size_t len)
{
	static const struct {
		const char *name;
		uint8_t bit;
	} words[] = {
		{"NEVER", NOTIFY_NEVER},
		{"SUCCESS", NOTIFY_SUCCESS},
		{"FAILURE", NOTIFY_FAILURE},
		{"DELAY", NOTIFY_DELAY},
	};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i].name) == len && strncasecmp(words[i].name, word, len) == 0)
			return words[i].bit;
	return 0;
}

bool param_notify(const char *value, uint8_t *notify)
{
	uint8_t all = 0;
	while (value) {
		size_t len = strcspn(value, ",");
		uint8_t bit = notify_bit(value, len);
		if (!bit)
			return false;
		all |= bit;
		value = value[len] ? value + len + 1 : NULL;
	}
	*notify = all;
	return all == NOTIFY_NEVER || (all && !(all & NOTIFY_NEVER));
}

static bool is_word(const char *value, const char *wanted)
{
	return value && strcasecmp(value, wanted) == 0;
}

bool param_body(const char *value, uint8_t *body)
{
	*body = is_word(value, "8BITMIME") ? BODY_8BITMIME : BODY_7BIT;
	return *body == BODY_8BITMIME || is_word(value, "7BIT");
}

bool param_ret(const char *value, uint8_t *ret)
{
	*ret = is_word(value, "FULL") ? RET_FULL : RET_HDRS;
	return *ret == RET_FULL || is_word(value, "HDRS");
}

bool param_by(const char *value, int64_t *seconds, uint8_t *by)
{
	if (!value)
		return false;
	const char *at = value + (*value == '-' || *value == '+');
	size_t digits = strspn(at, "0123456789");
	if (digits == 0 || digits > BY_DIGITS || at[digits] != ';')
		return false;
	*seconds = strtoll(value, NULL, 10);
	const char *mode = at + digits + 1;
	bool returns = strncasecmp(mode, "R", 1) == 0,
	     traced = mode[0] && strcasecmp(mode + 1, "T") == 0;
	if ((!returns && strncasecmp(mode, "N", 1) != 0) || (!traced && mode[1]))
		return false;
	*by = (uint8_t)((returns ? ENVELOPE_BY_RETURN : ENVELOPE_BY_NOTIFY) |
			(traced ? ENVELOPE_BY_TRACE : 0));
	return !returns || *seconds > 0;
}

bool param_priority(const char *value, int8_t *priority)
{
	bool below = value && *value == '-';
	const char *digit = value ? value + below : "";
	if (*digit < (below ? '1' : '0') || *digit > '9' || digit[1])
		return false;
	*priority = (int8_t)(below ? '0' - *digit : *digit - '0');
	return true;
}

bool param_hold_for(const char *value, int64_t *seconds)
{
	size_t digits = value ? strspn(value, "0123456789") : 0;
	if (digits == 0 || digits > HOLD_DIGITS || value[digits] || *value == '0')
		return false;
	*seconds = strtoll(value, NULL, 10);
	return true;
}

bool param_hold_until(const char *value, int64_t *date_ms)
{
	return value && internet_time_parse(value, date_ms);
}

bool param_envid(const char *value)
{
	char decoded[ENVID_MAX + 1];
	return value && xtext_decode(value, strlen(value), decoded, sizeof decoded);
}

bool param_orcpt(const char *value)
{
	char decoded[PARAM_ORCPT_MAX + 1];
	const char *semicolon = value ? strchr(value, ';') : NULL;
	if (!semicolon || semicolon == value || strlen(value) > PARAM_ORCPT_MAX)
		return false;
	for (const char *p = value; p < semicolon; p++)
		if (!isalnum((unsigned char)*p) && *p != '-')
			return false;
	semicolon++;
	return *semicolon && xtext_decode(semicolon, strlen(semicolon), decoded, sizeof decoded);
}

/* Of a character of so many bytes, which it is. */
static unsigned code_point(const char *text, size_t len)
{
	static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	unsigned code = (unsigned char)*text & first[len];
	for (size_t i = 1; i < len; i++)
		code = code << 6 | ((unsigned char)text[i] & 0x3f);
	return code;
}

bool param_orcpt_utf8(const char *value, char to[PARAM_ORCPT_MAX + 1])
{
	enum { LONGEST = 10 }; /* \x{10FFFF} */
	bool beyond = false;
	size_t at = 0;
	if (!value || strncasecmp(value, "utf-8;", 6) != 0)
		return false;
	while (*value) {
		size_t len = utf8_length(value);
		if (len == 0 || at + LONGEST > PARAM_ORCPT_MAX)
			return false;
		beyond |= len > 1;
		if (len > 1)
			at += (size_t)snprintf(to + at, PARAM_ORCPT_MAX + 1 - at, "\\x{%X}",
					       code_point(value, len));
		else
			to[at++] = *value;
		value += len;
	}
	to[at] = '\0';
	return beyond;
}

bool param_orcpt_of(const char *address, char to[PARAM_ORCPT_MAX + 1])
{
	struct buf text = {0};
	buf_puts(&text, "utf-8;");
	for (const char *c = address; *c; c++)
		buf_printf(&text, strchr(" \\+=", *c) ? "\\x{%02X}" : "%c", *c);
	bool good = param_orcpt_utf8(buf_cstr(&text), to);
	buf_fini(&text);
	return good;
}

bool param_orcpt_octets(const char *value, char to[PARAM_ORCPT_MAX + 1])
{
	static const char type[] = "rfc822;";
	const size_t len = sizeof type - 1;
	char address[PARAM_ORCPT_MAX + 1];
	if (!value || strncasecmp(value, type, len) != 0)
		return false;
	value += len;
	return xtext_decode_utf8(value, strlen(value), address, sizeof address) &&
	       !utf8_is_ascii(address) && param_orcpt_of(address, to);
}
