/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "cmd/maildrop/maildrop_access.c"
#include "cmd/maildrop/maildrop_form.c"
#include "cmd/maildrop/submit.c"
#include "cmd/maildrop/submit_talk.c"

static struct conf *conf;
static struct buf first, head, content;

static int begin(void **state)
{
	(void)state;
	conf = conf_defaults();
	buf_init(&first);
	buf_init(&head);
	buf_init(&content);
	return 0;
}

static int end(void **state)
{
	(void)state;
	conf_unref(conf);
	buf_fini(&first);
	buf_fini(&head);
	buf_fini(&content);
	return 0;
}

static void put(void)
{
	char one[] = "a@dest.test", two[] = "b@dest.test";
	char *item[] = {one, two};
	const struct address_list to = {2, item};
	const struct submission s = {.sender = "me@sender.test",
				     .to = &to,
				     .notify = "SUCCESS,DELAY",
				     .ret = "HDRS",
				     .envid = "x+2By",
				     .eightbit = true,
				     .content = &content};
	buf_puts(&content, "Subject: x\r\n\r\n");
	maildrop_form_put(&first, &head, &s);
}

static enum response read_text(const char *text, size_t len)
{
	struct envelope *e = envelope_new();
	struct maildrop_access said = {0};
	const struct maildrop_with with = {.said = &said};
	enum response why = maildrop_form_read(conf, &with, text, len, e);
	maildrop_access_fini(&said);
	envelope_free(&e);
	return why;
}

static void what_is_put_is_read_again(void **state)
{
	(void)state;
	struct maildrop_first f;
	put();
	assert_true(maildrop_form_first(buf_data(&first), buf_len(&first), &f));
	assert_int_equal(f.length, buf_len(&first));
	assert_int_equal(f.size, buf_len(&head) + buf_len(&content));
	struct envelope *e = envelope_new();
	struct maildrop_access said = {0};
	const struct maildrop_with with = {.said = &said};
	assert_int_equal(maildrop_form_read(conf, &with, buf_data(&head), buf_len(&head), e),
			 RESPONSE_OK);
	assert_string_equal(e->sender, "me@sender.test");
	assert_string_equal(e->envid, "x+2By");
	assert_int_equal(e->ret, RET_HDRS);
	assert_int_equal(e->body, BODY_8BITMIME);
	assert_int_equal(e->nrcpt, 2);
	assert_string_equal(e->rcpt[1].address, "b@dest.test");
	assert_int_equal(e->rcpt[1].notify, NOTIFY_SUCCESS | NOTIFY_DELAY);
	envelope_free(&e);
}

static void the_end_of_the_head_is_found_in_pieces_of_any_size(void **state)
{
	(void)state;
	put();
	size_t len = buf_len(&head);
	buf_puts(&head, "more\n\n");
	for (size_t cut = 1; cut < len; cut++) {
		assert_int_equal(maildrop_form_head_end(buf_data(&head), cut, 0), 0);
		assert_int_equal(maildrop_form_head_end(buf_data(&head), buf_len(&head), cut), len);
	}
}

static void a_head_cut_short_anywhere_is_none(void **state)
{
	(void)state;
	put();
	assert_int_equal(read_text(buf_data(&head), buf_len(&head)), RESPONSE_OK);
	for (size_t cut = 0; cut < buf_len(&head); cut++) {
		char *copy = mem_alloc(cut + 1);
		memcpy(copy, buf_data(&head), cut);
		assert_int_not_equal(read_text(copy, cut), RESPONSE_OK);
		free(copy);
	}
}

/* What the sender's row says of all recipients would come too late for that one. */
static void a_recipient_before_the_sender_is_none(void **state)
{
	(void)state;
	static const char early[] = "to a@dest.test\nfrom me@sender.test\nto b@dest.test\n\n";
	static const char late[] = "from me@sender.test\nto a@dest.test\nto b@dest.test\n\n";
	assert_int_equal(read_text(early, sizeof early - 1), RESPONSE_BAD_PARAMETER);
	assert_int_equal(read_text(late, sizeof late - 1), RESPONSE_OK);
}

static void a_first_line_that_is_no_such_line_is_refused(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"",
		"sluice maildrop 1 00000000 5",
		"sluice maildrop 2 00000000 5\n",
		"sluice maildrop 1  0000000 5\n",
		"sluice maildrop 1 -0000001 5\n",
		"sluice maildrop 1 000000000 5\n",
		"sluice maildrop 1 00000000 \n",
		"sluice maildrop 1 00000000 -5\n",
		"sluice maildrop 1 00000000 5 \n",
		"sluice maildrop 1 00000000 99999999999999999999\n",
	};
	struct maildrop_first f;
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		assert_false(maildrop_form_first(lines[i], strlen(lines[i]), &f));
	assert_true(maildrop_form_first("sluice maildrop 1 0000000a 5\nx", 31, &f));
	assert_int_equal(f.crc, 10);
	assert_int_equal(f.size, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_put_is_read_again, begin, end),
		cmocka_unit_test_setup_teardown(the_end_of_the_head_is_found_in_pieces_of_any_size,
						begin, end),
		cmocka_unit_test_setup_teardown(a_head_cut_short_anywhere_is_none, begin, end),
		cmocka_unit_test_setup_teardown(a_recipient_before_the_sender_is_none, begin, end),
		cmocka_unit_test_setup_teardown(a_first_line_that_is_no_such_line_is_refused, begin,
						end),
	};
	return RUN(tests);
}
