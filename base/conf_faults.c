/* SPDX-License-Identifier: ISC */
#include "base/conf_faults.h"

#include "base/mem.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A file may say anything, and each fault is one line. */
static char *hide_controls(char *text)
{
	for (char *c = text; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	return text;
}

void conf_fault(struct conf_faults *f, const char *file, int line, const char *fmt, ...)
{
	struct buf text = {0};
	va_list args;
	va_start(args, fmt);
	buf_vprintf(&text, fmt, args);
	va_end(args);
	f->fault = mem_realloc(f->fault, (size_t)(f->n + 1) * sizeof *f->fault);
	f->fault[f->n++] =
		(struct conf_fault){file, line > 0 ? line : 1,
				    hide_controls(buf_steal(&text, NULL)), line == CONF_LINE_NONE};
}

void conf_faults_name(struct conf_faults *f, int from, const char *file, int line)
{
	assert(line > 0);
	for (int i = from; i < f->n; i++) {
		struct conf_fault *of = &f->fault[i];
		if (!of->whole)
			continue;
		char *text = hide_controls(mem_printf("%s %s", of->file, of->text));
		free(of->text);
		*of = (struct conf_fault){file, line, text, false};
	}
}

/* Stable, and by line within a file; the files in the order in which they were read. */
static void sort_faults(struct conf_faults *f)
{
	for (int i = 1; i < f->n; i++) {
		struct conf_fault moved = f->fault[i];
		int j = i;
		for (; j > 0; j--) {
			const struct conf_fault *before = &f->fault[j - 1];
			if (strcmp(before->file, moved.file) != 0 || before->line <= moved.line)
				break;
			f->fault[j] = *before;
		}
		f->fault[j] = moved;
	}
}

void conf_faults_say(struct conf_faults *f, struct buf *to)
{
	sort_faults(f);
	for (int i = 0; i < f->n; i++)
		buf_printf(to, "%s:%d: %s\n", f->fault[i].file, f->fault[i].line, f->fault[i].text);
}

void conf_faults_fini(struct conf_faults *f)
{
	for (int i = 0; i < f->n; i++)
		free(f->fault[i].text);
	free(f->fault);
	*f = (struct conf_faults){0};
}
