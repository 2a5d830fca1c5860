/* SPDX-License-Identifier: ISC */
#include "smtpc/token.h"

#include "base/mem.h"

#include <ctype.h>
#include <jansson.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

enum { LIFETIME_LEAST_S = 60, LIFETIME_DEFAULT_S = 3600, LIFETIME_MOST_S = 86400 };

static const struct {
	const char *name;
	size_t place;
	bool needed;
} fields[] = {
#define X(name, needed) {#name, offsetof(struct token_source, name), needed},
	TOKEN_FIELDS(X)
#undef X
};

enum { FIELDS = sizeof fields / sizeof fields[0] };

static char **place_of_field(struct token_source *s, int i)
{
	return (char **)((char *)s + fields[i].place);
}

static const char *trim_blanks(const char *from, const char **end)
{
	while (from < *end && isspace((unsigned char)*from))
		from++;
	while (*end > from && isspace((unsigned char)(*end)[-1]))
		--*end;
	return from;
}

static bool read_field(struct token_source *s, const char *line, const char *end, struct buf *why)
{
	line = trim_blanks(line, &end);
	if (line == end || *line == '#')
		return true;
	const char *equals = memchr(line, '=', (size_t)(end - line));
	const char *name_end = equals ? equals : end, *name = trim_blanks(line, &name_end);
	for (int i = 0; equals && i < FIELDS; i++) {
		char **at = place_of_field(s, i);
		if (strlen(fields[i].name) != (size_t)(name_end - name) ||
		    memcmp(fields[i].name, name, (size_t)(name_end - name)) != 0)
			continue;
		const char *value_end = end, *value = trim_blanks(equals + 1, &value_end);
		mem_free_secret(*at);
		*at = mem_strndup(value, (size_t)(value_end - value));
		return true;
	}
	buf_printf(why, "a line is none of \"name = value\" with endpoint, client_id, "
			"client_secret, refresh_token, scope, ca or device_endpoint");
	return false;
}

static bool is_https(const char *url)
{
	return strncmp(url, "https://", 8) == 0;
}

static bool is_complete(struct token_source *s, struct buf *why)
{
	for (int i = 0; i < FIELDS; i++)
		if (fields[i].needed && (!*place_of_field(s, i) || !**place_of_field(s, i))) {
			buf_printf(why, "it has no %s", fields[i].name);
			return false;
		}
	bool device = !s->device_endpoint || is_https(s->device_endpoint);
	if (is_https(s->endpoint) && device)
		return true;
	buf_printf(why, "%s does not begin with https://", device ? "endpoint" : "device_endpoint");
	return false;
}

bool token_source_read(struct token_source *s, const char *text, struct buf *why)
{
	bool good = true;
	*s = (struct token_source){0};
	while (good && *text) {
		const char *end = text + strcspn(text, "\n");
		good = read_field(s, text, end, why);
		text = *end ? end + 1 : end;
	}
	return good && is_complete(s, why);
}

void token_form_put(struct buf *to, const char *name, const char *value)
{
	if (!value)
		return;
	buf_printf(to, "%s%s=", buf_len(to) > 0 ? "&" : "", name);
	for (; *value; value++) {
		if (isalnum((unsigned char)*value) || strchr("-._~", *value))
			buf_append(to, value, 1);
		else
			buf_printf(to, "%%%02X", (unsigned)(unsigned char)*value);
	}
}

void token_source_form(const struct token_source *s, const char *refresh, struct buf *to)
{
	token_form_put(to, "grant_type", refresh ? "refresh_token" : "client_credentials");
	token_form_put(to, "refresh_token", refresh);
	token_form_put(to, "client_id", s->client_id);
	token_form_put(to, "client_secret", s->client_secret);
	token_form_put(to, "scope", s->scope);
}

void token_source_fini(struct token_source *s)
{
	for (int i = 0; i < FIELDS; i++)
		mem_free_secret(*place_of_field(s, i));
	*s = (struct token_source){0};
}

/* A blank would end a bearer token (RFC 6750 2.1); a refresh token may have some (RFC 6749 A.17). */
static bool is_printable(const char *text, char least)
{
	for (; *text; text++)
		if (*text < least || *text >= 0x7f)
			return false;
	return true;
}

static int64_t lifetime_ms(const json_t *answer)
{
	const json_t *n = json_object_get(answer, "expires_in");
	json_int_t seconds = json_is_integer(n)	 ? json_integer_value(n)
			     : json_is_string(n) ? atoll(json_string_value(n))
						 : LIFETIME_DEFAULT_S;
	if (seconds < LIFETIME_LEAST_S)
		seconds = LIFETIME_LEAST_S;
	return (seconds < LIFETIME_MOST_S ? seconds : LIFETIME_MOST_S) * INT64_C(1000);
}

static bool take_answer(struct token_answer *a, const json_t *answer, struct buf *why)
{
	const char *access = json_string_value(json_object_get(answer, "access_token"));
	const char *refresh = json_string_value(json_object_get(answer, "refresh_token"));
	if (!access || !*access || !is_printable(access, '!')) {
		buf_puts(why, "its answer has no access_token");
		return false;
	}
	if (refresh && !is_printable(refresh, ' ')) {
		buf_puts(why, "its answer has a refresh_token that is none");
		return false;
	}
	a->access = mem_strdup(access);
	a->refresh = refresh && *refresh ? mem_strdup(refresh) : NULL;
	a->lifetime_ms = lifetime_ms(answer);
	return true;
}

static enum token_error error_of(const char *word)
{
	static const struct {
		const char *word;
		enum token_error error;
	} words[] = {{"invalid_grant", TOKEN_ERROR_GRANT},
		     {"authorization_pending", TOKEN_ERROR_PENDING},
		     {"slow_down", TOKEN_ERROR_SLOW_DOWN},
		     {"access_denied", TOKEN_ERROR_DENIED},
		     {"authorization_declined", TOKEN_ERROR_DENIED}, /* Microsoft's word */
		     {"expired_token", TOKEN_ERROR_EXPIRED}};
	for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
		if (strcmp(word, words[i].word) == 0)
			return words[i].error;
	return TOKEN_ERROR_OTHER;
}

/* RFC 6749 5.2. */
static enum token_error say_error(long status, const json_t *answer, struct buf *why)
{
	const char *error = json_string_value(json_object_get(answer, "error"));
	const char *more = json_string_value(json_object_get(answer, "error_description"));
	buf_printf(why, "it answers %ld", status);
	if (error)
		buf_printf(why, " %.200s%s%.500s", error, more ? ": " : "", more ? more : "");
	return error_of(error);
}

bool token_answer_read(struct token_answer *a, long status, const char *body, size_t len,
		       struct buf *why)
{
	json_error_t error;
	json_t *answer = json_loadb(body, len, 0, &error);
	bool good = false;
	*a = (struct token_answer){0};
	if (status != 200)
		a->error = say_error(status, answer, why);
	else if (!answer)
		buf_puts(why, "its answer is no JSON");
	else
		good = take_answer(a, answer, why);
	json_decref(answer);
	return good;
}

void token_answer_fini(struct token_answer *a)
{
	mem_free_secret(a->access);
	mem_free_secret(a->refresh);
	*a = (struct token_answer){0};
}
