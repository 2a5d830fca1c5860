/* SPDX-License-Identifier: ISC */
#include "sim/spread.h"

#include "base/conf_units.h"
#include "base/mem.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool parse_amount(enum conf_type type, const char *text, int64_t *to)
{
	struct buf why = {0};
	bool good = conf_amount_parse(type, text, to, &why) && *to >= (type == CONF_number);
	buf_fini(&why);
	return good;
}

static bool parse_range(enum conf_type type, char *text, struct spread_item *to)
{
	char *dots = strstr(text, "..");
	if (dots)
		*dots = '\0';
	if (!parse_amount(type, text, &to->low))
		return false;
	if (dots)
		return parse_amount(type, dots + 2, &to->high) && to->high >= to->low;
	to->high = to->low;
	return true;
}

bool spread_range(const char *word, struct spread_range *r)
{
	enum { RANGE_MOST = 100000 };
	const char *dots = strstr(word, ".."), *low = dots;
	char *end;
	while (low && low > word && isdigit((unsigned char)low[-1]))
		low--;
	if (!dots || low == dots || !isdigit((unsigned char)dots[2]))
		return false;
	r->before = (int)(low - word);
	r->low = strtoll(low, NULL, 10);
	r->high = strtoll(dots + 2, &end, 10);
	r->after = end;
	return r->high >= r->low && r->high - r->low < RANGE_MOST;
}

char *spread_range_word(const char *word, const struct spread_range *r, int64_t number)
{
	return mem_printf("%.*s%" PRId64 "%s", r->before, word, number, r->after);
}

static bool parse_word(const char *text, struct spread_item *to)
{
	char *trial = mem_strdup(text), *mark = strchr(trial, '#');
	if (mark)
		*mark = '1';
	bool good = conf_host_good(trial);
	free(trial);
	to->word = good ? mem_strdup(text) : NULL;
	return good;
}

static bool parse_weight(char *text, double *weight)
{
	char *colon = strrchr(text, ':'), *end;
	*weight = 1;
	if (!colon)
		return true;
	*colon = '\0';
	*weight = strtod(colon + 1, &end);
	return end != colon + 1 && !*end && *weight > 0 && *weight < 1e9;
}

static void add_item(struct spread *s, const struct spread_item *item, double weight)
{
	s->item = mem_realloc(s->item, (size_t)(s->n + 1) * sizeof *s->item);
	s->item[s->n] = *item;
	s->item[s->n].upto = weight + (s->n ? s->item[s->n - 1].upto : 0);
	s->n++;
}

static bool add_words(struct spread *s, const char *text, double weight)
{
	struct spread_item item = {0};
	struct spread_range r;
	bool good = true;
	if (!spread_range(text, &r)) {
		good = parse_word(text, &item);
		if (good)
			add_item(s, &item, weight);
		return good;
	}
	for (int64_t i = r.low; i <= r.high && good; i++) {
		char *word = spread_range_word(text, &r, i);
		good = parse_word(word, &item);
		if (good)
			add_item(s, &item, weight / (double)(r.high - r.low + 1));
		free(word);
	}
	return good;
}

bool spread_add(struct spread *s, enum conf_type type, const char *text)
{
	struct spread_item item = {0};
	char *copy = mem_strdup(text);
	double weight;
	bool good = parse_weight(copy, &weight);
	if (good && type == CONF_text) {
		good = add_words(s, copy, weight);
	} else if (good) {
		good = parse_range(type, copy, &item);
		if (good)
			add_item(s, &item, weight);
	}
	free(copy);
	return good;
}

static const struct spread_item *choose_item(const struct spread *s, struct dice *dice)
{
	assert(s->n > 0);
	double at = dice_part(dice) * s->item[s->n - 1].upto;
	int low = 0, high = s->n - 1;
	while (low < high) {
		int middle = (low + high) / 2;
		if (s->item[middle].upto <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return &s->item[low];
}

int64_t spread_number(const struct spread *s, struct dice *dice)
{
	const struct spread_item *item = choose_item(s, dice);
	return item->low + (int64_t)(dice_part(dice) * (double)(item->high - item->low + 1));
}

const char *spread_word(const struct spread *s, struct dice *dice)
{
	return choose_item(s, dice)->word;
}

void spread_fini(struct spread *s)
{
	for (int i = 0; i < s->n; i++)
		free(s->item[i].word);
	free(s->item);
	*s = (struct spread){0};
}
