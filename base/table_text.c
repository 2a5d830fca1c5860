/* SPDX-License-Identifier: ISC */
#include "base/table_text.h"

#include "base/conf_file.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/words.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	struct table_text *to;
	const char *file;
	const struct table_form *form;
	const void *context;
	struct conf_faults *faults;
	int line;
	bool open;  /* the last row may go on: */
	bool empty; /* of its value nothing has come */
	int from;   /* the line where its value begins */
	char *end;  /* of its value so far */
};

bool table_key_lower(const char *key)
{
	for (; *key; key++)
		if (isupper((unsigned char)*key))
			return false;
	return true;
}

/* The end of the key: not within its quotes. */
static char *end_of_key(char *text, bool colon)
{
	bool quoted = false;
	for (; *text; text++) {
		if (!quoted && (colon ? *text == ':' : words_is_blank(*text)))
			return text;
		if (*text == '\\' && text[1])
			text++;
		else if (*text == '"')
			quoted = !quoted;
	}
	return colon ? NULL : text;
}

static char *trimmed_end(char *from, char *end)
{
	while (end > from && words_is_blank(end[-1]))
		end--;
	return end;
}

static struct table_row *add_row(struct table_text *t)
{
	if ((t->n & (t->n - 1)) == 0)
		t->row = mem_realloc(t->row, (size_t)(t->n ? t->n * 2 : 1) * sizeof *t->row);
	return &t->row[t->n++];
}

static void say_shape(const struct reader *r, int line)
{
	conf_fault(r->faults, r->file, line, "must be \"%s\"", r->form->shape);
}

static void check_row(const struct reader *r, const struct table_row *row)
{
	struct buf why = {0};
	const char *at = r->form->check(r->context, row->key, row->value, &why);
	int line = r->from;
	for (const char *c = row->value; at && c < at; c++)
		line += *c == '\n';
	if (at)
		conf_fault(r->faults, r->file, line, "%s", buf_cstr(&why));
	buf_fini(&why);
}

/* The whole row has come. */
static void close_row(struct reader *r)
{
	if (!r->open)
		return;
	r->open = false;
	assert(r->end && r->to->n > 0);
	*r->end = '\0';
	const struct table_row *row = &r->to->row[r->to->n - 1];
	if (r->empty && !r->form->bare && !r->form->colon)
		say_shape(r, row->line);
	else
		check_row(r, row);
}

/* The word at *value moves up to the key that ends at stop. Returns where that ends now. */
static char *join_word(char *stop, char **value, char *end)
{
	char *word = *value, *behind = end_of_key(word, false);
	assert(stop < word); /* there is a blank between them */
	size_t len = (size_t)(behind - word);
	*stop++ = ' ';
	memmove(stop, word, len);
	for (*value = behind; *value < end && words_is_blank(**value); ++*value)
		;
	return stop + len;
}

/* Takes the key. */
static void replace_key(struct table_row *row, char *key)
{
	free(row->folded);
	row->key = row->folded = key;
}

/* A domain beyond ASCII becomes longer than the line has room for. */
static void fold_key(const struct reader *r, struct table_row *row)
{
	if (!r->form->verbatim && !name_key_plain(row->key))
		replace_key(row, name_key(row->key));
	char *key = r->form->fold ? r->form->fold(row->key) : NULL;
	if (key)
		replace_key(row, key);
}

/* A value may begin in the next line, but not what belongs to a key. */
static void begin_row(struct reader *r, char *line, char *end)
{
	assert(!r->open);
	char *stop = end_of_key(line, r->form->colon);
	char *value = !stop || stop == end ? end : stop + 1;
	while (value < end && words_is_blank(*value))
		value++;
	if (!stop || (value == end && r->form->two)) {
		say_shape(r, r->line);
		return;
	}
	if (r->form->two && r->form->two(value))
		stop = join_word(stop, &value, end);
	*trimmed_end(line, stop) = '\0';
	for (char *c = line; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	*add_row(r->to) = (struct table_row){line + (*line == '@'), value, r->line, NULL};
	fold_key(r, &r->to->row[r->to->n - 1]);
	r->open = true;
	r->empty = value == end;
	r->from = r->line;
	r->end = trimmed_end(value, end);
}

/* Where the key has ended its line, the end of that is its end. */
static void begin_value(struct reader *r, char *text, char *end)
{
	assert(r->open && r->to->n > 0);
	*r->end = '\0';
	r->to->row[r->to->n - 1].value = text;
	r->empty = false;
	r->from = r->line;
	r->end = trimmed_end(text, end);
}

/* Bytes between the parts of a value read as blanks; line ends stay, to be counted. */
static void blank_out(char *from, char *to)
{
	assert(from <= to);
	for (; from < to; from++)
		if (*from != '\n')
			*from = ' ';
}

static void read_line(struct reader *r, char *line, char *end)
{
	char *text = line;
	while (text < end && words_is_blank(*text))
		text++;
	if (text == end || *text == '#')
		return;
	if (text == line) {
		close_row(r);
		begin_row(r, line, end);
	} else if (r->open && r->empty) {
		begin_value(r, text, end);
	} else if (r->open) {
		blank_out(r->end, text);
		r->end = trimmed_end(text, end);
	} else {
		conf_fault(r->faults, r->file, r->line,
			   "this line goes on with one that was never begun");
	}
}

static int by_key(const void *a, const void *b)
{
	const struct table_row *x = a, *y = b;
	int keys = strcmp(x->key, y->key);
	return keys ? keys : x->line - y->line;
}

static void check_twice(const struct table_text *t, const char *file, struct conf_faults *faults)
{
	for (int i = 1; i < t->n; i++)
		if (strcmp(t->row[i].key, t->row[i - 1].key) == 0)
			conf_fault(faults, file, t->row[i].line,
				   "\"%s\" is already there, at %s:%d", t->row[i].key, file,
				   t->row[i - 1].line);
}

void table_text_read(struct table_text *t, const char *file, const struct table_form *form,
		     const void *context, struct conf_faults *faults)
{
	struct reader r = {
		.to = t, .file = file, .form = form, .context = context, .faults = faults};
	*t = (struct table_text){.text = conf_file_named_text(file, faults)};
	for (char *line = t->text, *end; line; line = end ? end + 1 : NULL) {
		end = strchr(line, '\n');
		if (end)
			*end = '\0';
		r.line++;
		read_line(&r, line, end ? end : line + strlen(line));
		if (end)
			*end = '\n';
	}
	close_row(&r);
	if (t->n > 0)
		qsort(t->row, (size_t)t->n, sizeof *t->row, by_key);
	check_twice(t, file, faults);
}

void table_text_fini(struct table_text *t)
{
	for (int i = 0; i < t->n; i++)
		free(t->row[i].folded);
	free(t->row);
	free(t->text);
}

char *table_text_get(const struct table_text *t, const char *key, int *line)
{
	int low = 0, high = t->n;
	while (low < high) {
		int middle = low + (high - low) / 2;
		int order = strcmp(t->row[middle].key, key);
		if (order == 0) {
			*line = t->row[middle].line;
			return mem_strdup(t->row[middle].value);
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
