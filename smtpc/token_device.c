/* SPDX-License-Identifier: ISC */
#include "smtpc/token_device.h"

#include "base/mem.h"

#include <jansson.h>
#include <string.h>

static const char grant[] = "urn:ietf:params:oauth:grant-type:device_code";

enum {
	CODE_MAX = 4096,
	USER_CODE_MAX = 64,
	ADDRESS_MAX = 1024,
	INTERVAL_DEFAULT_S = 5,
	INTERVAL_MOST_S = 60,
	LIFETIME_LEAST_S = 60,
	LIFETIME_DEFAULT_S = 900,
	LIFETIME_MOST_S = 3600,
};

void token_device_form(const struct token_source *s, struct buf *to)
{
	token_form_put(to, "client_id", s->client_id);
	token_form_put(to, "client_secret", s->client_secret);
	token_form_put(to, "scope", s->scope);
}

void token_device_poll_form(const struct token_source *s, const struct token_device *d,
			    struct buf *to)
{
	token_form_put(to, "grant_type", grant);
	token_form_put(to, "device_code", d->code);
	token_form_put(to, "client_id", s->client_id);
	token_form_put(to, "client_secret", s->client_secret);
}

/* Of printable ASCII, without anything that a terminal could take for an order; NULL: it is none. */
static char *text_of(const json_t *answer, const char *name, size_t most)
{
	const char *text = json_string_value(json_object_get(answer, name));
	size_t len = text ? strlen(text) : 0;
	if (len == 0 || len > most)
		return NULL;
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] >= 0x7f)
			return NULL;
	return mem_strdup(text);
}

static int64_t seconds_of(const json_t *answer, const char *name, int64_t usual, int64_t least,
			  int64_t most)
{
	const json_t *n = json_object_get(answer, name);
	int64_t s = json_is_integer(n) ? json_integer_value(n) : usual;
	s = s < least ? least : s;
	return (s < most ? s : most) * 1000;
}

static bool is_web(const char *address)
{
	return strncmp(address, "https://", 8) == 0 || strncmp(address, "http://", 7) == 0;
}

static bool take_answer(struct token_device *d, const json_t *answer, struct buf *why)
{
	d->code = text_of(answer, "device_code", CODE_MAX);
	d->user_code = text_of(answer, "user_code", USER_CODE_MAX);
	d->address = text_of(answer, "verification_uri", ADDRESS_MAX);
	if (!d->address)
		d->address = text_of(answer, "verification_url", ADDRESS_MAX);
	d->interval_ms = seconds_of(answer, "interval", INTERVAL_DEFAULT_S, 1, INTERVAL_MOST_S);
	d->lifetime_ms = seconds_of(answer, "expires_in", LIFETIME_DEFAULT_S, LIFETIME_LEAST_S,
				    LIFETIME_MOST_S);
	if (d->code && d->user_code && d->address && is_web(d->address))
		return true;
	buf_puts(why, "its answer has no device_code, user_code and verification_uri");
	return false;
}

bool token_device_read(struct token_device *d, long status, const char *body, size_t len,
		       struct buf *why)
{
	struct token_answer refusal = {0};
	json_error_t error;
	*d = (struct token_device){0};
	if (status != 200) {
		token_answer_read(&refusal, status, body, len, why);
		return false;
	}
	json_t *answer = json_loadb(body, len, 0, &error);
	bool good = answer && take_answer(d, answer, why);
	if (!answer)
		buf_puts(why, "its answer is no JSON");
	json_decref(answer);
	return good;
}

void token_device_fini(struct token_device *d)
{
	mem_free_secret(d->code);
	mem_free_secret(d->user_code);
	mem_free_secret(d->address);
	*d = (struct token_device){0};
}
