/* SPDX-License-Identifier: ISC */
#include "base/route_value.h"

#include "base/conf_value.h"
#include "base/mem.h"
#include "base/words.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *route_value_error(const char *text, struct route_value *v, struct buf *why)
{
	size_t len;
	const char *at = words_next(&text, &len);
	v->action = ROUTE_ERROR;
	snprintf(v->dsn, sizeof v->dsn, "5.0.0");
	if (words_dsn(at, len, "45")) {
		assert(len < sizeof v->dsn);
		snprintf(v->dsn, sizeof v->dsn, "%.*s", (int)len, at);
		at = words_rest(&text);
	}
	free(v->text);
	v->text = *at ? mem_strdup(at) : mem_strdup("mail is not delivered there");
	const char *bad = words_unprintable(at);
	if (bad)
		buf_puts(why, "the text of an error must be printable ASCII");
	return bad;
}

static const char *parse_relays(const char *text, size_t len, struct route_value *v,
				struct buf *why)
{
	for (const char *end = text + len; text < end;) {
		size_t one = strcspn(text, ",");
		one = text + one > end ? (size_t)(end - text) : one;
		char *item = mem_strndup(text, one);
		char *kept = conf_relay_kept(item);
		if (kept)
			conf_list_add(&v->relay, kept);
		else
			buf_printf(why,
				   "\"%s\" is not a relay: host, host:port, [host], [host]:port or "
				   "unix:/SOCKET, perhaps with =WEIGHT",
				   item);
		free(item);
		if (!kept)
			return text;
		free(kept);
		text += one + 1;
	}
	v->by_mx = v->relay.n == 0;
	return NULL;
}

static const char *parse_way(const char *text, struct route_value *v, struct buf *why)
{
	const char *word, *bad = NULL;
	size_t len;
	while (!bad && *(word = words_next(&text, &len))) {
		if (len >= 6 && strncasecmp(word, "relay=", 6) == 0 && v->relay.n == 0 &&
		    !v->by_mx) {
			bad = parse_relays(word + 6, len - 6, v, why);
		} else if (!v->verify && words_is(word, len, "verify")) {
			v->verify = true;
		} else if (!v->transport && !words_is(word, len, "verify") &&
			   !memchr(word, '=', len)) {
			v->transport = mem_strndup(word, len);
		} else {
			buf_puts(why, "must be a transport, relay=HOST,HOST, verify, error DSN "
				      "TEXT or discard");
			bad = word;
		}
	}
	return bad;
}

const char *route_value_parse(const char *text, struct route_value *v, struct buf *why)
{
	const char *rest = text;
	size_t len;
	const char *word = words_next(&rest, &len);
	*v = (struct route_value){.action = ROUTE_DELIVER};
	if (len == 0) {
		buf_puts(why, "there is nothing behind the key");
		return word;
	}
	if (words_is(word, len, "error"))
		return route_value_error(rest, v, why);
	if (words_is(word, len, "discard")) {
		v->action = ROUTE_DISCARD;
		v->text = mem_strdup(words_rest(&rest));
		return NULL;
	}
	return parse_way(text, v, why);
}

void route_value_fini(struct route_value *v)
{
	conf_list_free(&v->relay);
	free(v->transport);
	free(v->text);
	*v = (struct route_value){.action = ROUTE_DELIVER};
}
