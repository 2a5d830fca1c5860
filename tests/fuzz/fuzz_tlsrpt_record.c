/* SPDX-License-Identifier: ISC */
/* A record of TLSRPT, from any bytes: whom it names can be written into a header and a URL; and what is kept of
 * counts, which is read as far as it can be. */
#include "tests/fuzz/fuzz.h"

#include "tlsrpt/tlsrpt_record.h"
#include "tlsrpt/tlsrpt_text.h"

static void check_target(const struct tlsrpt_target *t)
{
	assert(*t->to && !strpbrk(t->to, " \t\r\n"));
	assert(t->https == (strncasecmp(t->to, "https://", 8) == 0));
	assert(t->https || strchr(t->to, '@'));
}

static void read_text(const char *text)
{
	struct tlsrpt_tally t = {0}, again = {0};
	struct buf first = {0}, second = {0};
	tlsrpt_text_read(&t, text);
	tlsrpt_text_write(&t, &first);
	tlsrpt_text_read(&again, buf_cstr(&first));
	tlsrpt_text_write(&again, &second);
	assert(strcmp(buf_cstr(&first), buf_cstr(&second)) == 0);
	tlsrpt_tally_fini(&t);
	tlsrpt_tally_fini(&again);
	buf_fini(&first);
	buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { MOST = 4 };
	struct tlsrpt_target to[MOST];
	char *text = mem_strndup((const char *)data, size);
	int n = tlsrpt_record_parse(text, to, MOST);
	assert(n >= 0 && n <= MOST && (n == 0 || tlsrpt_record_is(text)));
	for (int i = 0; i < n; i++) {
		check_target(&to[i]);
		free(to[i].to);
	}
	read_text(text);
	free(text);
	return 0;
}
