/* SPDX-License-Identifier: ISC */
/* What a Dovecot says, word for word; and rows of the users' file, which people may write too. */
#include "base/mem.h"
#include "base/user_value.h"
#include "smtpd/dovecot_line.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void read_line(char *text)
{
	struct dovecot_line l;
	uint32_t id;
	bool more = true;
	dovecot_line_init(&l, text);
	dovecot_line_next(&l, NULL);
	dovecot_line_number(&l, &id);
	while (more) {
		const char *word = dovecot_line_next(&l, &more);
		const char *value = dovecot_line_value(word, "user");
		assert(!value || (value >= word && value <= word + strlen(word)));
	}
}

/* What is good is written as it can be read again. */
static void read_row(const char *text)
{
	struct user_value v, again;
	struct buf why = {0}, written = {0};
	if (!user_value_parse(text, &v, &why)) {
		user_value_print(&v, &written);
		assert(!user_value_parse(buf_cstr(&written), &again, &why));
		user_value_fini(&again);
	}
	user_value_fini(&v);
	buf_fini(&why);
	buf_fini(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = mem_strndup((const char *)data, len);
	read_row(text);
	read_line(text);
	free(text);
	return 0;
}
