/* SPDX-License-Identifier: ISC */
#include "base/conf_scan.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct scanner {
	struct conf_scan *scan;
	struct conf_faults *faults;
	const char *file, *at;
	int line;
	/* the statement so far */
	char *word[2];
	int nword, word_line;
	size_t word_at, word_end; /* of the last one, in the clean text */
	bool assigned;		  /* an '=' has been seen */
	bool in_list;
	int list_line, depth, section_line;
	const char *wanted; /* by conf_scan_find(), or NULL */
	char *found;
};

static void end_statement(struct scanner *s)
{
	free(s->word[0]);
	free(s->word[1]);
	s->word[0] = s->word[1] = NULL;
	s->nword = 0;
	s->assigned = false;
}

static bool awaits_wanted(const struct scanner *s)
{
	return s->wanted && s->assigned && s->nword > 0 &&
	       strcmp(s->word[s->nword - 1], s->wanted) == 0;
}

static void add_word(struct scanner *s, const char *text, size_t len)
{
	if (s->in_list)
		return;
	if (awaits_wanted(s)) {
		free(s->found);
		s->found = mem_strndup(text, len);
	}
	if (s->assigned) {
		end_statement(s); /* this was its value */
		return;
	}
	if (s->nword == 2)
		end_statement(s);
	if (s->nword == 0)
		s->word_line = s->line;
	assert(s->nword < 2 && !s->word[s->nword]);
	s->word[s->nword++] = mem_strndup(text, len);
}

static void copy_bytes(struct scanner *s, size_t len)
{
	buf_append(&s->scan->clean, s->at, len);
	s->at += len;
}

/* One blank in its place, since libconfuse takes longer for many in a row than their number; its lines stay. */
static void blank_out(struct scanner *s, size_t len)
{
	buf_puts(&s->scan->clean, " ");
	for (size_t i = 0; i < len; i++) {
		if (s->at[i] != '\n')
			continue;
		buf_puts(&s->scan->clean, "\n");
		s->line++;
	}
	s->at += len;
}

/* Who looks for something else goes on behind the line. */
static bool pass_unterminated(struct scanner *s, const char *line_end)
{
	bool goes_on = s->wanted && !awaits_wanted(s);
	conf_fault(s->faults, s->file, s->line, "unterminated string");
	if (goes_on)
		s->at = line_end;
	end_statement(s);
	return goes_on;
}

/* A string never goes on over the end of its line, so that a forgotten quote is found where it
 * is. */
static bool scan_quoted(struct scanner *s)
{
	char quote = *s->at;
	const char *begin = s->at + 1, *end = begin;
	while (*end && *end != quote && *end != '\n')
		end += end[0] == '\\' && end[1] && end[1] != '\n' ? 2 : 1;
	if (*end != quote)
		return pass_unterminated(s, end);
	add_word(s, begin, (size_t)(end - begin));
	s->word_at = buf_len(&s->scan->clean);
	copy_bytes(s, 1);
	while (s->at < end) {
		if (*s->at == '\\')
			copy_bytes(s, 2);
		else if (quote == '"' && s->at[0] == '$' && s->at[1] == '{')
			buf_puts(&s->scan->clean, "\\$"), s->at++;
		else
			copy_bytes(s, 1);
	}
	assert(s->at == end);
	copy_bytes(s, 1);
	s->word_end = buf_len(&s->scan->clean);
	return true;
}

static void scan_unquoted(struct scanner *s)
{
	size_t len = strcspn(s->at, " #\"'\t\r\n={}()+,");
	if (len >= 1 && s->at[len - 1] == '$' && s->at[len] == '{')
		conf_fault(s->faults, s->file, s->line,
			   "variables are not expanded: put the value in quotes");
	/* libconfuse would pass over it, and count a line for a comment that begins within a word. */
	if (memchr(s->at, '*', len))
		conf_fault(s->faults, s->file, s->line,
			   "* outside of quotes: put what it belongs to in quotes");
	if (len == 0) {
		copy_bytes(s, 1); /* for libconfuse to judge */
		return;
	}
	add_word(s, s->at, len);
	s->word_at = buf_len(&s->scan->clean);
	copy_bytes(s, len);
	s->word_end = buf_len(&s->scan->clean);
}

static void add_head(struct scanner *s)
{
	struct conf_scan *scan = s->scan;
	bool titled = s->nword == 2;
	scan->head = mem_realloc(scan->head, (size_t)(scan->nhead + 1) * sizeof *scan->head);
	scan->head[scan->nhead++] =
		(struct conf_head){.name = mem_strdup(s->word[0]),
				   .title = mem_strdup(titled ? s->word[1] : ""),
				   .line = s->word_line,
				   .title_at = titled ? s->word_at : 0,
				   .title_end = titled ? s->word_end : 0,
				   .brace = buf_len(&scan->clean)};
}

static void open_brace(struct scanner *s)
{
	if (s->wanted) { /* one that is never closed hides nothing */
		end_statement(s);
	} else if (s->assigned) {
		s->in_list = true;
		s->list_line = s->line;
	} else {
		if (s->depth == 0 && s->nword > 0)
			add_head(s);
		if (s->depth++ == 0)
			s->section_line = s->nword > 0 ? s->word_line : s->line;
		end_statement(s);
	}
	copy_bytes(s, 1);
}

static void close_brace(struct scanner *s)
{
	if (s->in_list)
		s->in_list = false;
	else if (s->depth > 0)
		s->depth--;
	end_statement(s);
	copy_bytes(s, 1);
}

static bool block_comment(struct scanner *s)
{
	const char *end = strstr(s->at + 2, "*/");
	if (!end) {
		conf_fault(s->faults, s->file, s->line, "unterminated comment");
		return false;
	}
	blank_out(s, (size_t)(end + 2 - s->at));
	return true;
}

/* False at a fault behind which nothing can be made out. */
static bool scan_piece(struct scanner *s)
{
	switch (*s->at) {
	case '#':
		blank_out(s, strcspn(s->at, "\n"));
		return true;
	case '/':
		if (s->at[1] == '/')
			blank_out(s, strcspn(s->at, "\n"));
		else if (s->at[1] == '*')
			return block_comment(s);
		else
			scan_unquoted(s);
		return true;
	case ' ':
	case '\t':
		blank_out(s, strspn(s->at, " \t"));
		return true;
	case '"':
	case '\'':
		return scan_quoted(s);
	case '{':
		open_brace(s);
		return true;
	case '}':
		close_brace(s);
		return true;
	case '=':
		s->assigned = true;
		copy_bytes(s, 1);
		return true;
	case '\n':
		s->line++;
		copy_bytes(s, 1);
		return true;
	default:
		scan_unquoted(s);
		return true;
	}
}

static int compare_to(const struct conf_head *h, const char *name, const char *title)
{
	int names = strcmp(h->name, name);
	return names ? names : strcmp(h->title, title);
}

static int by_title(const void *a, const void *b)
{
	const struct conf_head *const *x = a, *const *y = b;
	int order = compare_to(*x, (*y)->name, (*y)->title);
	return order ? order : (*x > *y) - (*x < *y);
}

static void sort_heads(struct conf_scan *scan)
{
	size_t n = (size_t)scan->nhead;
	if (n == 0)
		return;
	scan->sorted = mem_alloc(n * sizeof *scan->sorted);
	for (size_t i = 0; i < n; i++)
		scan->sorted[i] = &scan->head[i];
	qsort(scan->sorted, n, sizeof *scan->sorted, by_title);
}

void conf_scan(struct conf_scan *scan, const char *text, const char *file,
	       struct conf_faults *faults)
{
	struct scanner s = {.scan = scan, .faults = faults, .file = file, .at = text, .line = 1};
	*scan = (struct conf_scan){0};
	bool whole = true;
	while (whole && *s.at)
		whole = scan_piece(&s);
	if (whole && s.in_list)
		conf_fault(faults, file, s.list_line, "this list is never closed: } is missing");
	else if (whole && s.depth > 0)
		conf_fault(faults, file, s.section_line,
			   "this section is never closed: } is missing");
	end_statement(&s);
	sort_heads(scan);
}

bool conf_scan_find(const char *text, const char *name, char **value)
{
	struct conf_scan scan = {0};
	struct conf_faults unused = {0};
	struct scanner s = {.scan = &scan,
			    .faults = &unused,
			    .file = "",
			    .at = text,
			    .line = 1,
			    .wanted = name};
	bool whole = true;
	while (whole && *s.at)
		whole = scan_piece(&s);
	end_statement(&s);
	conf_scan_fini(&scan);
	conf_faults_fini(&unused);
	*value = s.found;
	/* An escape that stands for another character is the parser's to read. */
	return whole && !(s.found && strchr(s.found, '\\'));
}

void conf_scan_fini(struct conf_scan *scan)
{
	for (int i = 0; i < scan->nhead; i++) {
		free(scan->head[i].name);
		free(scan->head[i].title);
	}
	free(scan->sorted);
	free(scan->head);
	buf_fini(&scan->clean);
}

/* The lines between the title and the brace stay where they are. */
static void move_title(struct buf *to, const char *clean, const struct conf_head *h)
{
	buf_append(to, clean + h->title_end, h->brace - h->title_end);
	buf_puts(to, "{ " CONF_SCAN_TITLE " = ");
	buf_append(to, clean + h->title_at, h->title_end - h->title_at);
	buf_puts(to, " ");
}

void conf_scan_move_titles(struct conf_scan *scan, bool (*titled)(const char *name))
{
	struct buf with = {0};
	const char *clean = buf_cstr(&scan->clean);
	size_t done = 0;
	for (int i = 0; i < scan->nhead; i++) {
		const struct conf_head *h = &scan->head[i];
		if (h->title_end == h->title_at || !titled(h->name))
			continue;
		assert(done <= h->title_at && h->title_at < h->title_end &&
		       h->title_end <= h->brace);
		buf_append(&with, clean + done, h->title_at - done);
		move_title(&with, clean, h);
		done = h->brace + 1;
	}
	buf_puts(&with, clean + done);
	buf_fini(&scan->clean);
	scan->clean = with;
}

const struct conf_head *conf_scan_first(const struct conf_scan *scan, const char *name,
					const char *title)
{
	int low = 0, high = scan->nhead;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (compare_to(scan->sorted[middle], name, title) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	bool found = low < scan->nhead && compare_to(scan->sorted[low], name, title) == 0;
	return found ? scan->sorted[low] : NULL;
}
