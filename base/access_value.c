/* SPDX-License-Identifier: ISC */
#include "base/access_value.h"

#include "base/envelope.h"
#include "base/mem.h"
#include "base/words.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 400 }; /* a reply line is 512 at most, RFC 5321 4.5.3.1.5 */

/* 421 would end the session: RFC 5321 3.8 leaves it to a server that closes. */
static int code_of(const char *word, size_t len)
{
	int code = len == 3 && strspn(word, "0123456789") >= 3 ? atoi(word) : 0;
	return code >= 400 && code <= 599 && code != 421 ? code : 0;
}

static const char *parse_refusal(const char *text, int code, struct access_value *v,
				 struct buf *why)
{
	size_t len;
	const char *start = text, *word = words_next(&text, &len);
	char class = (char)('0' + v->code / 100), classes[] = {class, '\0'};
	v->action = ACCESS_REFUSE;
	assert(v->code / 100 == 4 || v->code / 100 == 5);
	if (len == 3 && strspn(word, "0123456789") >= 3 && !code_of(word, len)) {
		buf_puts(why, "the code of a refusal is 400 to 599, and not 421");
		return word;
	}
	if (!code && code_of(word, len)) {
		code = code_of(word, len);
		if (code / 100 != v->code / 100) {
			buf_printf(why, "the code must begin with %c", class);
			return word;
		}
		v->code = code;
		start = text;
		word = words_next(&text, &len);
	}
	snprintf(v->dsn, sizeof v->dsn, "%c.7.1", class);
	if (words_dsn(word, len, classes)) {
		assert(len < sizeof v->dsn);
		snprintf(v->dsn, sizeof v->dsn, "%.*s", (int)len, word);
		start = text;
	}
	const char *said = words_rest(&start);
	v->text = mem_strdup(*said ? said : "access denied");
	const char *bad = words_unprintable(said);
	if (bad || strlen(said) > TEXT_MAX)
		buf_printf(why, "the text must be printable ASCII, at most %d bytes", TEXT_MAX);
	return bad ? bad : strlen(said) > TEXT_MAX ? said : NULL;
}

static const char *parse_flow(const char *text, struct access_value *v, struct buf *why)
{
	const char *name = words_rest(&text);
	v->text = mem_strdup(name);
	if (envelope_flow_good(name))
		return NULL;
	buf_puts(why, "flow needs the name of one: up to 64 letters, digits, dots, lines and "
		      "underscores");
	return name;
}

const char *access_value_parse(const char *text, struct access_value *v, struct buf *why)
{
	static const struct {
		const char *word;
		enum access_action action;
		int code;
	} words[] = {
		{"dunno", ACCESS_ACCEPT, 0},	{"accept", ACCESS_ACCEPT, 0},
		{"ok", ACCESS_ACCEPT, 0},	{"hold", ACCESS_HOLD, 0},
		{"discard", ACCESS_DISCARD, 0}, {"verify", ACCESS_VERIFY, 0},
		{"reject", ACCESS_REFUSE, 550}, {"defer", ACCESS_REFUSE, 450},
		{"flow", ACCESS_FLOW, 0},
	};
	size_t len;
	const char *word = words_next(&text, &len);
	*v = (struct access_value){.code = code_of(word, len)};
	if (v->code)
		return parse_refusal(text, v->code, v, why);
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (!words_is(word, len, words[i].word))
			continue;
		v->action = words[i].action;
		v->code = words[i].code;
		if (v->action == ACCESS_FLOW)
			return parse_flow(text, v, why);
		return v->code ? parse_refusal(text, 0, v, why) : NULL;
	}
	buf_puts(why, "must be accept, reject, defer, hold, discard, verify, flow NAME, or a code "
		      "and a text");
	return word;
}

void access_value_fini(struct access_value *v)
{
	mem_free(&v->text);
}
