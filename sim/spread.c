/* SPDX-License-Identifier: ISC */
#include "sim/spread.h"

#include "base/conf_units.h"
#include "base/mem.h"

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

static bool parse_item(struct spread_item *to, enum conf_type type, char *text, double *weight)
{
	char *colon = strrchr(text, ':'), *end;
	*weight = 1;
	if (colon) {
		*colon = '\0';
		*weight = strtod(colon + 1, &end);
		if (end == colon + 1 || *end || !(*weight > 0 && *weight < 1e9))
			return false;
	}
	if (type != CONF_text)
		return parse_range(type, text, to);
	to->word = mem_strdup(text);
	char *mark = strchr(text, '#');
	if (mark)
		*mark = '1';
	if (conf_host_good(text))
		return true;
	free(to->word);
	return false;
}

bool spread_add(struct spread *s, enum conf_type type, const char *text)
{
	struct spread_item item = {0};
	char *copy = mem_strdup(text);
	double weight;
	bool good = parse_item(&item, type, copy, &weight);
	free(copy);
	if (!good)
		return false;
	item.upto = weight + (s->n ? s->item[s->n - 1].upto : 0);
	s->item = mem_realloc(s->item, (size_t)(s->n + 1) * sizeof *s->item);
	s->item[s->n++] = item;
	return true;
}

static const struct spread_item *choose(const struct spread *s, struct dice *dice)
{
	double at = dice_part(dice) * s->item[s->n - 1].upto;
	int i = 0;
	while (i < s->n - 1 && s->item[i].upto <= at)
		i++;
	return &s->item[i];
}

int64_t spread_number(const struct spread *s, struct dice *dice)
{
	const struct spread_item *item = choose(s, dice);
	return item->low + (int64_t)(dice_part(dice) * (double)(item->high - item->low + 1));
}

const char *spread_word(const struct spread *s, struct dice *dice)
{
	return choose(s, dice)->word;
}

void spread_fini(struct spread *s)
{
	for (int i = 0; i < s->n; i++)
		free(s->item[i].word);
	free(s->item);
	*s = (struct spread){0};
}
