/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpc/script.h"

#include "base/fence.h"

static void begin_large(void)
{
	enum { SIZE = 1 << 20 };
	char *text = mem_alloc(SIZE + 1);
	memset(text, 'x', SIZE);
	text[SIZE] = '\0';
	greet(PIPELINED);
	give(mail(text, TO("a@test")));
	give(mail("y\r\n", TO("b@test")));
	free(text);
	says("250 ok\r\n250 ok\r\n354 go\r\n");
	assert_true(engine_sending(&engine));
}

static void a_refusal_during_the_content_counts_and_ends_it(void **state)
{
	(void)state;
	begin_large();
	says("552 5.3.4 too big\r\n");
	assert_verdict(back(), 0, VERDICT_FAILED, 552);
	assert_returned(back());
	assert_closed_orderly();
	hears("");
}

static void a_421_during_the_content_returns_it(void **state)
{
	(void)state;
	begin_large();
	says("421 bye\r\n");
	assert_returned(back());
	assert_returned(back());
	assert_closed(421, "4.0.0");
}

static void consent_during_the_content_is_out_of_step(void **state)
{
	(void)state;
	begin_large();
	says("250 ok\r\n");
	assert_returned(back());
	assert_closed(0, "4.5.0");
	assert_true(engine.confused);
}

static void who_takes_no_more_content_is_too_late(void **state)
{
	(void)state;
	begin_large();
	engine_expired(&engine);
	assert_returned(back());
	assert_closed(0, "4.4.2");
}

static void content_that_can_not_be_read_is_a_deferral(void **state)
{
	(void)state;
	greet(PIPELINED);
	struct delivery *d = mail("", TO("a@test"));
	struct content_file *none = content_file_new(-1);
	content_unref(d->content);
	d->content = content_in_file(none, 0, 100);
	content_file_unref(none);
	give(d);
	says("250 ok\r\n250 ok\r\n354 go\r\n");
	assert_verdict(back(), 0, VERDICT_DEFERRED, 0);
	assert_string_equal(taken->rcpt[0].verdict->dsn, "4.3.0");
	assert_closed_orderly();
	hears("");
}

/* Another node may have taken it up: what was begun ends without a dot. */
static void content_ends_where_the_fence_closes(void **state)
{
	(void)state;
	begin_large();
	fence_set(0);
	buf_clear(&out); /* the host has it: there is room for the next piece */
	engine_resume(&engine);
	fence_set(FENCE_NEVER);
	assert_verdict(back(), 0, VERDICT_DEFERRED, 0);
	assert_string_equal(taken->rcpt[0].verdict->dsn, "4.3.0");
	assert_int_equal(engine.state, ENGINE_CLOSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_refusal_during_the_content_counts_and_ends_it),
		T(a_421_during_the_content_returns_it),
		T(consent_during_the_content_is_out_of_step),
		T(who_takes_no_more_content_is_too_late),
		T(content_that_can_not_be_read_is_a_deferral),
		T(content_ends_where_the_fence_closes),
	};
	return RUN_TWICE(tests);
}
