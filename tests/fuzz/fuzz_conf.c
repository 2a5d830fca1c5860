/* SPDX-License-Identifier: ISC */
/* A configuration: it is read, or each of its faults is said with a line that it has. What is read
 * can be shown. */
#include "tests/fuzz/fuzz.h"

#include "base/conf.h"

#include <ctype.h>

static int lines_of(const uint8_t *data, size_t size)
{
	int n = 1;
	for (size_t i = 0; i < size; i++)
		n += data[i] == '\n';
	return n;
}

static void check_faults(char *said, const char *file, int lines)
{
	size_t len = strlen(file);
	assert(*said && said[strlen(said) - 1] == '\n');
	for (char *line = strtok(said, "\n"); line; line = strtok(NULL, "\n")) {
		assert(strncmp(line, file, len) == 0 && line[len] == ':');
		int at = atoi(line + len + 1);
		assert(at >= 1 && at <= lines);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_file file;
	struct buf errors;
	buf_init(&errors);
	fuzz_file_write(&file, data, size);
	/* The files that it names are not the input's to choose. */
	struct conf *c = conf_read_with(file.path, 0, &errors);
	assert((c == NULL) == (buf_len(&errors) > 0));
	if (c) {
		conf_print(c, NULL, &errors);
		assert(c->nlistener > 0 && c->ntransport > 0 && c->nroute > 0);
		conf_unref(c);
	} else {
		check_faults(buf_cstr(&errors), file.path, lines_of(data, size));
	}
	buf_fini(&errors);
	return 0;
}
