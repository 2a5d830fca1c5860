/* SPDX-License-Identifier: ISC */
/* sluice trace: the story of a message, or of a person's mail, from the log and the queue. */
#include "base/date.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/logs/log_when.h"
#include "cmd/logs/trace_tell.h"
#include "cmd/operator/client.h"
#include "cmd/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: sluice trace [--since T] [--until T] [--last N] [--log FILE|-] [--json]\n"
	"                    ADDRESS|LOGIN|ID|MESSAGE-ID\n"
	"Tell what has happened to a message, or to all mail from, to or of somebody: from the "
	"log,\n"
	"with the files that logrotate has put aside, and from the queue. It needs no running "
	"relay.\n"
	"  --since T   nothing before then: 10:42, yesterday, 2026-11-22, \"2026-11-22 10:42\", "
	"2h\n"
	"  --until T   nothing from then on; a day is meant with its end\n"
	"  --last N    the N latest messages; 1000 if not given\n"
	"  --log FILE  another log than that of the configuration; -: standard input\n"
	"  --json      one object for each message\n"
	"Exit status 1: there is no such message.\n";

enum { OPTION_SINCE = OPTION_OWN, OPTION_UNTIL, OPTION_LAST, OPTION_LOG, LAST_MOST = 1000000 };

static const struct option longs[] = {
	{"since", required_argument, NULL, OPTION_SINCE},
	{"until", required_argument, NULL, OPTION_UNTIL},
	{"last", required_argument, NULL, OPTION_LAST},
	{"log", required_argument, NULL, OPTION_LOG},
	{"json", no_argument, NULL, OPTION_JSON},
	OPTIONS_COMMON,
};

struct tracing {
	struct conf *conf;
	struct trace_find find;
	const char *log;
	bool json;
	char *wanted;	  /* without angles */
	struct buf queue; /* lines of sluice queue list */
	bool asked;	  /* the queue has answered */
	bool unread;	  /* or has not, when it was asked */
};

static void parse_options(struct options *o, struct tracing *t, int argc, char **argv)
{
	int option;
	int64_t now_ms = date_ms();
	while ((option = options_next(o, argc, argv)) != -1) {
		bool until = option == OPTION_UNTIL;
		if (option == OPTION_JSON)
			t->json = true;
		else if (option == OPTION_LOG)
			t->log = optarg;
		else if (option == OPTION_LAST)
			t->find.most = (int)options_number(o, "--last", optarg, 1, LAST_MOST);
		else if (!log_when(optarg, now_ms, until,
				   until ? &t->find.span.to_ms : &t->find.span.from_ms))
			options_wrong(o, "%s is no time; 10:42, yesterday and 2026-11-22 are",
				      optarg);
	}
	if (optind + 1 != argc || !*argv[optind])
		options_wrong(o, "trace wants one address, id or Message-ID");
}

/* Of an id there is one message; all else is looked for, and so is a login that only looks like an id. */
static void set_wanted(struct tracing *t, const char *word)
{
	uint64_t id;
	size_t len = strlen(word);
	bool angled = len > 2 && word[0] == '<' && word[len - 1] == '>';
	t->wanted = mem_strndup(word + angled, len - (angled ? 2 : 0));
	if (strlen(word) == IDENT_TEXT - 1 && ident_parse(word, &id))
		trace_find_add(&t->find, id);
	else
		t->find.wanted = t->wanted;
}

static void ask_queue(struct tracing *t, int n, char **more)
{
	char queue[] = "queue", list[] = "list", json[] = "--json";
	char **words = mem_alloc(((size_t)n + 4) * sizeof *words);
	int nword = 0;
	words[nword++] = queue;
	words[nword++] = list;
	if (t->json)
		words[nword++] = json;
	for (int i = 0; i < n; i++)
		words[nword++] = more[i];
	words[nword] = NULL;
	int status = client_ask_queue_into(t->conf, nword, words, &t->queue);
	t->asked = status == STATUS_DONE || status == STATUS_REFUSED;
	t->unread |= !t->asked;
	free(words);
}

/* A message in the queue may be older than the oldest log. */
static void find_in_queue(struct tracing *t)
{
	char login[] = "--login", from[] = "--from", to[] = "--to", id[IDENT_TEXT], *word = id;
	if (t->find.messages) {
		ident_text(t->find.messages->number, id);
		ask_queue(t, 1, &word);
		return;
	}
	const bool may_be_address = strchr(t->wanted, '@');
	ask_queue(t, 2, (char *[]){login, t->wanted});
	if (t->asked && may_be_address)
		ask_queue(t, 2, (char *[]){from, t->wanted});
	if (t->asked && may_be_address)
		ask_queue(t, 2, (char *[]){to, t->wanted});
}

static const char *line_start(bool json)
{
	return json ? "{\"id\":\"" : "";
}

static void add_queued(struct tracing *t)
{
	char *text = buf_cstr(&t->queue);
	const char *start = line_start(t->json);
	for (char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		char id[IDENT_TEXT] = "";
		uint64_t number;
		size_t left = strcspn(line, "\n");
		if (left < strlen(start) + IDENT_TEXT || strncmp(line, start, strlen(start)) != 0)
			continue;
		memcpy(id, line + strlen(start), IDENT_TEXT - 1);
		if (ident_parse(id, &number))
			trace_find_add(&t->find, number);
	}
}

/* Its line in what the queue has answered. */
static char *now_of(struct tracing *t, const struct trace_item *m)
{
	char id[IDENT_TEXT];
	char *start = mem_printf("%s%s", line_start(t->json), ident_text(m->number, id));
	char *line = strstr(buf_cstr(&t->queue), start);
	size_t skip = t->json ? 0 : strlen(start) + 1;
	free(start);
	if (!line)
		return NULL;
	return mem_strndup(line + skip, strcspn(line, "\n") - skip);
}

static bool is_done(const struct trace_item *m)
{
	struct log_line l;
	for (int i = m->lines.n - 1; i >= 0; i--) {
		const struct trace_line *line = &m->lines.of[i];
		if (log_line_read(&l, line->text, line->len, line->wall_ms) &&
		    log_line_is(&l, "done"))
			return true;
	}
	return false;
}

/* Messages that were found by the log alone, as mail of a login or for an alias, and is not known to be over. */
static void ask_rest(struct tracing *t)
{
	size_t most = HASH_COUNT(t->find.messages), n = 0;
	char(*id)[IDENT_TEXT] = mem_alloc((most + 1) * sizeof *id);
	char **word = mem_alloc((most + 1) * sizeof *word);
	for (const struct trace_item *m = t->find.messages; m; m = m->hh.next) {
		char *now = is_done(m) ? NULL : now_of(t, m);
		if (!now && !is_done(m)) {
			ident_text(m->number, id[n]);
			word[n] = id[n];
			n++;
		}
		free(now);
	}
	if (n > 0)
		ask_queue(t, (int)n, word);
	free(word);
	free(id);
}

/* False: there was nothing to tell. */
static bool tell_found(struct tracing *t)
{
	struct buf out = {0};
	bool found = t->find.loose.n > 0;
	for (const struct trace_item *m = t->find.messages; m; m = m->hh.next) {
		char *now = now_of(t, m);
		const char *known = now || t->asked || is_done(m) ? now : "?";
		if (m->lines.n > 0 || now) {
			found = true;
			trace_tell(&out, m, trace_find_session(&t->find, m), known, t->json);
		}
		fputs(buf_cstr(&out), stdout);
		buf_clear(&out);
		free(now);
	}
	trace_tell_loose(&out, &t->find.loose, t->json);
	fputs(buf_cstr(&out), stdout);
	buf_fini(&out);
	if (t->find.dropped > 0)
		fprintf(stderr,
			"sluice: these are the %d latest messages, %d older ones are left out: "
			"--since, --until or --last\n",
			t->find.most, t->find.dropped);
	return found;
}

static bool tell_of_wanted(struct tracing *t, struct log_files *files, bool *read)
{
	find_in_queue(t);
	add_queued(t);
	*read = files->n > 0 && trace_find_run(&t->find, files);
	ask_rest(t);
	return tell_found(t);
}

static bool tell_of_word(struct tracing *t, struct log_files *files, bool *read)
{
	trace_find_clear(&t->find);
	buf_clear(&t->queue);
	t->find.wanted = t->wanted;
	return tell_of_wanted(t, files, read);
}

static int trace_word(struct tracing *t, const char *word)
{
	struct log_files files = {0};
	bool read;
	log_pass_files(&files, t->conf, t->log);
	set_wanted(t, word);
	bool found = tell_of_wanted(t, &files, &read) ||
		     (!t->find.wanted && tell_of_word(t, &files, &read));
	if (!found)
		fprintf(stderr, "sluice: %s is neither in the log%s nor in the queue%s\n", word,
			files.n > 0 ? "" : ", which can't be read,",
			t->unread ? ", which can't be read" : "");
	log_files_fini(&files);
	return found && read && fflush(stdout) == 0 ? STATUS_DONE : STATUS_REFUSED;
}

int cmd_trace(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	struct tracing t = {.find = {.most = 1000, .span = {INT64_MIN, INT64_MAX}}};
	parse_options(&o, &t, argc, argv);
	t.conf = options_conf_to_ask(&o);
	if (!t.conf)
		return STATUS_REFUSED;
	int status = trace_word(&t, argv[optind]);
	trace_find_fini(&t.find);
	buf_fini(&t.queue);
	free(t.wanted);
	conf_unref(t.conf);
	return status;
}
