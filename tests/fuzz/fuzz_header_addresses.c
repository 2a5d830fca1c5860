/* SPDX-License-Identifier: ISC */
/* What sendmail reads: a message of any form, and whom its header names. The content that comes of
 * it has lines with CRLF only and no Bcc; an address that was found is one, and the same again. */
#include "tests/fuzz/fuzz.h"

#include "cmd/maildrop/message_text.h"

static void check_address(const char *address)
{
	struct address_list again = {0};
	struct buf error;
	buf_init(&error);
	assert(*address && !strpbrk(address, "\r\n"));
	if (header_addresses(address, strlen(address), &again, &error))
		assert(again.n == 1 && strcmp(again.item[0], address) == 0);
	address_list_free(&again);
	buf_fini(&error);
}

static void check_field(const uint8_t *data, size_t size)
{
	struct address_list found = {0};
	struct buf error;
	buf_init(&error);
	bool good = header_addresses((const char *)data, size, &found, &error);
	assert(good == (buf_len(&error) == 0));
	for (int i = 0; i < found.n; i++)
		check_address(found.item[i]);
	address_list_free(&found);
	buf_fini(&error);
}

static void check_lines(struct buf *b)
{
	const char *p = buf_cstr(b);
	size_t len = buf_len(b);
	for (size_t i = 0; i < len; i++)
		assert(p[i] != '\n' || (i > 0 && p[i - 1] == '\r'));
}

static void check_message(const uint8_t *data, size_t size, bool dot_ends)
{
	const struct message_author author = {"me@sender.test", "Me", "host.test"};
	struct message_text m;
	struct address_list to = {0};
	struct buf error;
	const char *value;
	size_t len, cursor = 0;
	FILE *f = fmemopen((void *)data, size, "r");
	message_text_init(&m);
	buf_init(&error);
	assert(message_text_read(&m, f, dot_ends, 0));
	if (message_text_recipients(&m, &to, &error))
		for (int i = 0; i < to.n; i++)
			check_address(to.item[i]);
	message_text_complete(&m, &author);
	assert(!message_text_field(&m, "Bcc", &value, &len, &cursor));
	cursor = 0;
	assert(message_text_field(&m, "Date", &value, &len, &cursor));
	check_lines(&m.header);
	check_lines(&m.body);
	fclose(f);
	message_text_fini(&m);
	address_list_free(&to);
	buf_fini(&error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	check_field(data + 1, size - 1);
	check_message(data + 1, size - 1, data[0] & 1);
	return 0;
}
