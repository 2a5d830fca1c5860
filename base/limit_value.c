/* SPDX-License-Identifier: ISC */
#include "base/limit_value.h"

#include "base/conf_units.h"
#include "base/mem.h"
#include "base/words.h"

#include <stdlib.h>

static bool parse_rate(const char *word, size_t len, struct conf_rate *to, struct buf *why)
{
	char *text = mem_strndup(word, len);
	bool good = conf_rate_parse(text, to, why);
	free(text);
	return good;
}

const char *limit_value_parse(const char *text, struct limit_value *v, struct buf *why)
{
	size_t len;
	*v = (struct limit_value){.of_recipients = false};
	const char *word = words_next(&text, &len);
	if (len == 0) {
		buf_puts(why, "there is no rate of messages, such as 500/h");
		return word;
	}
	if (!parse_rate(word, len, &v->messages, why))
		return word;
	word = words_next(&text, &len);
	if (len == 0)
		return NULL;
	v->of_recipients = true;
	if (!parse_rate(word, len, &v->recipients, why))
		return word;
	word = words_next(&text, &len);
	if (len == 0)
		return NULL;
	buf_puts(why, "there is more than a rate of messages and one of recipients");
	return word;
}
