/* SPDX-License-Identifier: ISC */
#include "base/sts_policy.h"

#include "base/conf.h"
#include "base/mem.h"
#include "base/refs.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const mode_words[] = {
#define X(mode, word) [STS_##mode] = word,
	STS_MODES(X)
#undef X
};

enum { MODES = sizeof mode_words / sizeof *mode_words };

const char *sts_mode_word(enum sts_mode mode)
{
	assert((int)mode < MODES);
	return mode_words[mode];
}

/* A line while it is read: name and value without the blanks around them. */
struct field {
	const char *name, *value;
	size_t name_len, value_len;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void trim_blanks(const char **text, size_t *len)
{
	while (*len > 0 && is_blank(**text))
		(*text)++, (*len)--;
	while (*len > 0 && is_blank((*text)[*len - 1]))
		(*len)--;
}

/* False: there is none. */
static bool split_field(const char *line, size_t len, char delimiter, struct field *f)
{
	const char *at = memchr(line, delimiter, len);
	if (!at)
		return false;
	*f = (struct field){.name = line,
			    .name_len = (size_t)(at - line),
			    .value = at + 1,
			    .value_len = len - (size_t)(at - line) - 1};
	trim_blanks(&f->name, &f->name_len);
	trim_blanks(&f->value, &f->value_len);
	return f->name_len > 0;
}

static bool is_word(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(text, word, len) == 0;
}

/* The fields of a policy that have been seen. */
struct reading {
	struct sts_policy *p;
	bool version, mode, max_age;
	struct buf *why;
};

static bool say_wrong(struct reading *r, const char *what)
{
	buf_puts(r->why, what);
	return false;
}

static bool read_mode(struct reading *r, const struct field *f)
{
	for (int i = 0; i < MODES; i++)
		if (is_word(f->value, f->value_len, mode_words[i])) {
			r->p->mode = (enum sts_mode)i;
			r->mode = true;
			return true;
		}
	return say_wrong(r, "its mode is none of enforce, testing and none");
}

static bool read_max_age(struct reading *r, const struct field *f)
{
	int64_t seconds = 0;
	for (size_t i = 0; i < f->value_len; i++) {
		if (!isdigit((unsigned char)f->value[i]))
			return say_wrong(r, "its max_age is no number");
		seconds = seconds * 10 + (f->value[i] - '0');
		if (seconds > STS_MAX_AGE_S)
			seconds = STS_MAX_AGE_S;
	}
	if (f->value_len == 0)
		return say_wrong(r, "its max_age is no number");
	r->p->max_age_s = seconds;
	r->max_age = true;
	return true;
}

static bool read_mx(struct reading *r, const struct field *f)
{
	if (r->p->nmx == STS_MX_MAX)
		return say_wrong(r, "it names more than 200 mail hosts");
	char *name = mem_strndup(f->value, f->value_len);
	bool star = strncmp(name, "*.", 2) == 0;
	/* An embedded NUL makes it shorter than it was. */
	if (strlen(name) != f->value_len || !conf_host_good(name + (star ? 2 : 0))) {
		free(name);
		return say_wrong(r, "one of its mx is no name of a host");
	}
	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	assert(f->value_len > 0);
	name[f->value_len - (name[f->value_len - 1] == '.')] = '\0'; /* as hosts are called here */
	r->p->mx = mem_realloc(r->p->mx, (size_t)(r->p->nmx + 1) * sizeof *r->p->mx);
	r->p->mx[r->p->nmx++] = name;
	return true;
}

static bool read_field(struct reading *r, const struct field *f)
{
	if (is_word(f->name, f->name_len, "version") && !r->version) {
		r->version = true;
		return is_word(f->value, f->value_len, "STSv1") ||
		       say_wrong(r, "its version is not STSv1");
	}
	if (is_word(f->name, f->name_len, "mode") && !r->mode)
		return read_mode(r, f);
	if (is_word(f->name, f->name_len, "max_age") && !r->max_age)
		return read_max_age(r, f);
	return !is_word(f->name, f->name_len, "mx") || read_mx(r, f);
}

static bool read_lines(struct reading *r, const char *text, size_t len)
{
	while (len > 0) {
		struct field f;
		const char *end = memchr(text, '\n', len);
		size_t line = end ? (size_t)(end - text) : len, whole = line + (end ? 1 : 0);
		const char *begin = text;
		if (line > 0 && text[line - 1] == '\r')
			line--;
		trim_blanks(&begin, &line);
		if (line > 0 && !split_field(begin, line, ':', &f))
			return say_wrong(r, "one of its lines is no field");
		if (line > 0 && !read_field(r, &f))
			return false;
		text += whole;
		len -= whole;
	}
	return true;
}

static bool is_complete(struct reading *r)
{
	if (!r->version)
		return say_wrong(r, "it has no version");
	if (!r->mode)
		return say_wrong(r, "it has no mode");
	if (!r->max_age)
		return say_wrong(r, "it has no max_age");
	return r->p->mode == STS_NONE || r->p->nmx > 0 || say_wrong(r, "it names no mx");
}

struct sts_policy *sts_policy_parse(const char *text, size_t len, struct buf *why)
{
	struct reading r = {.p = mem_zalloc(sizeof *r.p), .why = why};
	atomic_init(&r.p->refs, 1);
	if (!read_lines(&r, text, len) || !is_complete(&r)) {
		sts_policy_unref(r.p);
		return NULL;
	}
	return r.p;
}

struct sts_policy *sts_policy_ref(struct sts_policy *p)
{
	if (p)
		refs_take(&p->refs);
	return p;
}

void sts_policy_unref(struct sts_policy *p)
{
	if (!p || !refs_drop(&p->refs))
		return;
	for (int i = 0; i < p->nmx; i++)
		free(p->mx[i]);
	free(p->mx);
	free(p);
}

/* RFC 8461 4.1: a star stands for one whole label, the first. */
static bool matches_host(const char *pattern, const char *host)
{
	if (pattern[0] != '*')
		return strcasecmp(pattern, host) == 0;
	const char *dot = strchr(host, '.');
	return dot && dot > host && strcasecmp(pattern + 1, dot) == 0;
}

bool sts_policy_has(const struct sts_policy *p, const char *host)
{
	for (int i = 0; i < p->nmx; i++)
		if (matches_host(p->mx[i], host))
			return true;
	return false;
}

void sts_policy_write(const struct sts_policy *p, struct buf *to)
{
	assert((int)p->mode < MODES);
	buf_printf(to, "version: STSv1\nmode: %s\nmax_age: %lld\n", mode_words[p->mode],
		   (long long)p->max_age_s);
	for (int i = 0; i < p->nmx; i++)
		buf_printf(to, "mx: %s\n", p->mx[i]);
}

static bool good_id(const struct field *f)
{
	bool good = f->value_len > 0 && f->value_len < STS_ID_SIZE;
	for (size_t i = 0; i < f->value_len && good; i++)
		good = isalnum((unsigned char)f->value[i]);
	return good;
}

bool sts_record_parse(const char *txt, char id[STS_ID_SIZE])
{
	static const char version[] = "v=STSv1";
	bool seen = false;
	id[0] = '\0';
	if (strncmp(txt, version, strlen(version)) != 0)
		return false;
	txt += strlen(version) + strspn(txt + strlen(version), " \t");
	if (*txt != ';')
		return false;
	while (*txt == ';') {
		struct field f;
		size_t len = strcspn(++txt, ";");
		if (split_field(txt, len, '=', &f) && is_word(f.name, f.name_len, "id") && !seen) {
			seen = true;
			if (good_id(&f)) {
				memcpy(id, f.value, f.value_len);
				id[f.value_len] = '\0';
			}
		}
		txt += len;
	}
	return true;
}
