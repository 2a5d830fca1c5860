/* SPDX-License-Identifier: ISC */
#include "cmd/maildrop/queue_habits.h"

#include "base/mem.h"
#include "cmd/cmd.h"

#include <stdlib.h>

bool queue_habit_read(struct queue_habit *h, const char *value)
{
	*h = (struct queue_habit){0};
	if (*value && !value[1])
		return false;
	switch (*value) {
	case '\0':
		return true;
	case 'I':
		h->word[0] = mem_strdup(value + 1);
		return true;
	case 'R':
	case 'S':
		h->word[0] = mem_strdup(*value == 'R' ? "--to" : "--from");
		h->word[1] = mem_printf("*%s*", value + 1);
		return true;
	default:
		return false;
	}
}

void queue_habit_free(struct queue_habit *h)
{
	free(h->word[0]);
	free(h->word[1]);
}

static int run_habit(const struct queue_habit *h, char *verb, char *otherwise,
		     const char *conf_file)
{
	char queue[] = "queue", config[] = "-c", *file = mem_strdup(conf_file);
	char *words[8] = {queue, verb, config, file};
	int n = 4;
	if (h->word[0])
		words[n++] = h->word[0];
	else if (otherwise)
		words[n++] = otherwise;
	if (h->word[1])
		words[n++] = h->word[1];
	int status = cmd_queue(n, words);
	free(file);
	return status;
}

int queue_habit_flush(const struct queue_habit *h, const char *conf_file)
{
	char verb[] = "flush", all[] = "--all";
	return run_habit(h, verb, all, conf_file);
}

int queue_habit_list(const struct queue_habit *h, const char *conf_file)
{
	char verb[] = "list";
	return run_habit(h, verb, NULL, conf_file);
}
