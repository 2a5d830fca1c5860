/* SPDX-License-Identifier: ISC */
#include "base/conf_value.h"

#include <string.h>

enum { COLUMNS = 78 };

/* A comment, wrapped. */
static void put_remark(struct buf *to, const char *indent, const char *text)
{
	size_t room = COLUMNS - strlen(indent);
	while (*text) {
		size_t len = strlen(text);
		if (len > room) {
			for (len = room; len > 0 && text[len] != ' '; len--)
				;
			if (len == 0)
				len = strcspn(text, " ");
		}
		buf_printf(to, "%s# %.*s\n", indent, (int)len, text);
		text += len;
		text += strspn(text, " ");
	}
}

static void print_choices(const struct conf_row *row, const char *indent, struct buf *to)
{
	struct buf words = {0};
	buf_puts(&words, "One of ");
	for (const char *c = row->choices; *c; c++)
		buf_printf(&words, *c == '|' ? ", " : "%c", *c);
	buf_puts(&words, ".");
	put_remark(to, indent, buf_cstr(&words));
	buf_fini(&words);
}

static void sample_rows(const struct conf_section *s, const char *indent, struct buf *to)
{
	for (int i = 0; i < s->nrow; i++) {
		put_remark(to, indent, s->row[i].sentence);
		if (s->row[i].type == CONF_choice)
			print_choices(&s->row[i], indent, to);
		buf_printf(to, "%s#%s = ", indent, s->row[i].name);
		conf_value_print_default(&s->row[i], to);
		buf_puts(to, i + 1 < s->nrow ? "\n\n" : "\n");
	}
}

static void remark_row(const struct conf_row *row, struct buf *to)
{
	struct buf text = {0};
	buf_printf(&text, "%s: %s", row->name, row->sentence);
	put_remark(to, "", buf_cstr(&text));
	buf_fini(&text);
}

void conf_sample(struct buf *to)
{
	static const char *const titles[CONF_KINDS] = {
		[CONF_KIND_LISTENER] = "smtp",
		[CONF_KIND_TRANSPORT] = "smtp",
		[CONF_KIND_ROUTE] = "*",
	};
	/* Of these, one that is there has a meaning already. */
	static const char *const examples[CONF_KINDS] = {
		[CONF_KIND_ALIAS] = "alias \"list@example.org\" { to = {\"a@example.com\"} }",
		[CONF_KIND_LIMIT] = "limit \"login\" { messages = \"500/h\"  recipients = "
				    "\"2000/h\"  action = defer }",
		[CONF_KIND_MILTER] = "milter \"rspamd\" { address = \"inet:127.0.0.1:11332\" }",
		[CONF_KIND_PROVIDER] = "provider \"example\" { mx = {\".mx.example.com\"}  "
				       "connection_limit = 100 }",
		[CONF_KIND_SOURCE] = "source \"a\" { address = {\"192.0.2.10\"}  helo = "
				     "\"out-a.example.org\" }",
		[CONF_KIND_FLOW] = "flow \"example.org\" { weight = 4 }",
		[CONF_KIND_DKIM] = "dkim \"example.org\" { selector = \"s1\"  key = "
				   "\"/etc/sluice/dkim/s1.pem\" }",
	};
	put_remark(to, "", "sluice.conf - every setting and its default; see sluice.conf(5).");
	put_remark(to, "",
		   "Durations: 500ms 30s 5m 1h 5d. Sizes: 500 64k 10m 1g. Values with blanks or "
		   "one of "
		   "# = { } ( ) , go in quotes.");
	buf_puts(to, "\n");
	sample_rows(&conf_sections[CONF_KIND_GLOBAL], "", to);
	for (int kind = CONF_KIND_GLOBAL + 1; kind < CONF_KINDS; kind++) {
		const struct conf_section *s = &conf_sections[kind];
		buf_puts(to, "\n");
		put_remark(to, "", s->sentence);
		if (examples[kind]) {
			for (int i = 0; s->nrow > 1 && i < s->nrow; i++)
				remark_row(&s->row[i], to);
			buf_printf(to, "#%s\n", examples[kind]);
			continue;
		}
		buf_puts(to, s->name);
		if (s->titled)
			buf_printf(to, " \"%s\"", titles[kind]);
		buf_puts(to, " {\n");
		sample_rows(s, "\t", to);
		buf_puts(to, "}\n");
	}
}

/* Text for mdoc: no line may look like a request, no backslash like an escape. */
static void put_roff(struct buf *to, const char *text)
{
	if (*text == '.' || *text == '\'')
		buf_puts(to, "\\&");
	for (; *text; text++)
		buf_printf(to, *text == '\\' ? "\\e" : *text == '-' ? "\\-" : "%c", *text);
}

static void manual_range(const struct conf_row *row, struct buf *to)
{
	struct conf_row bound = *row;
	buf_puts(to, "Range: ");
	conf_value_print(&bound, &row->low, to);
	buf_puts(to, " to ");
	conf_value_print(&bound, &row->high, to);
	buf_puts(to, ".\n");
}

static void manual_row(const struct conf_row *row, struct buf *to)
{
	static const char *const types[] = {
		[CONF_flag] = "flag",	      [CONF_number] = "number",
		[CONF_duration] = "duration", [CONF_size] = "size",
		[CONF_text] = "text",	      [CONF_list] = "list",
		[CONF_percent] = "percent",   [CONF_choice] = "",
		[CONF_rate] = "rate",	      [CONF_feedback] = "feedback",
	};
	struct buf text = {0};
	buf_printf(to, ".It Ic %s No = Ar %s\n", row->name,
		   row->type == CONF_choice ? row->choices : types[row->type]);
	put_roff(to, row->sentence);
	buf_puts(to, "\n");
	if (row->type == CONF_number || row->type == CONF_duration || row->type == CONF_size ||
	    row->type == CONF_percent)
		manual_range(row, to);
	conf_value_print_default(row, &text);
	buf_puts(to, "Default: ");
	put_roff(to, buf_cstr(&text));
	buf_puts(to, row->reload ? ".\n" : ".\nTakes effect at the next start.\n");
	buf_fini(&text);
}

void conf_manual(struct buf *to)
{
	for (int kind = 0; kind < CONF_KINDS; kind++) {
		const struct conf_section *s = &conf_sections[kind];
		if (kind == CONF_KIND_GLOBAL)
			buf_puts(to, ".Ss Global settings\n");
		else
			buf_printf(to, ".Ss %s%s\n", s->name, s->titled ? " \\(dqNAME\\(dq" : "");
		put_roff(to, s->sentence);
		buf_puts(to, "\n.Bl -tag -width Ds\n");
		for (int i = 0; i < s->nrow; i++)
			manual_row(&s->row[i], to);
		buf_puts(to, ".El\n");
	}
}
