/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "base/mem.h"
#include "cmd/text/explain_print.c"
#include "cmd/text/json_put.c"
#include "cmd/text/moment.c"
#include "cmd/text/reply_words.c"
#include "qmgr/dest/suspend.h"

static const int64_t now_ms = INT64_C(1700000000000);
static char site_name[] = "mx.test";
static struct buf said;

static int teardown(void **state)
{
	(void)state;
	buf_fini(&said);
	return 0;
}

static struct verdict *refused(void)
{
	return verdict_at(VERDICT_DEFERRED, 0, "4.4.1", "mx.test[192.0.2.1]:25",
			  "refused the connection", now_ms);
}

static struct verdict *by_operator(void)
{
	return suspend_verdict("site", 0);
}

/* A message of the queue to this domain, which is due in an hour and was told this. */
static struct envelope *mail(uint64_t id, const char *address, struct verdict *last)
{
	struct envelope *e = envelope_new();
	e->id = id;
	e->sender = mem_strdup("a@here.test");
	e->due_ms = now_ms + 3600000;
	envelope_add(e, address);
	e->rcpt[e->nrcpt - 1].last = last;
	return e;
}

static const char *spooled(const struct spool_row *row, const struct explain_question *x, bool json)
{
	buf_clear(&said);
	explain_print_spooled(&said, row, x, json, now_ms);
	return buf_cstr(&said);
}

static void has(const char *part)
{
	if (!strstr(buf_cstr(&said), part))
		print_error("no \"%s\" in: %s\n", part, buf_cstr(&said));
	assert_non_null(strstr(buf_cstr(&said), part));
}

static void has_not(const char *part)
{
	assert_null(strstr(buf_cstr(&said), part));
}

static void parked_mail_names_the_site_whose_return_lets_it_go(void **state)
{
	(void)state;
	struct explain_row at = {.constraint = CONSTRAINT_OUT, .site = site_name};
	struct explain_question x = {.nrow = 1, .row = &at};
	struct spool_row row = {.queue = SPOOL_DEFERRED, .site = 3};
	row.envelope = mail(7, "b@dest.test", refused());
	spooled(&row, &x, false);
	has("1 recipient: deferred until mx.test answers again: ");
	has("refused the connection");
	has(". It is looked at again ");
	has(", in 60 min. What lets it go: the answer of one of its hosts, which are tried from "
	    "time "
	    "to time; that time; sluice queue flush\n");
	spooled(&row, &x, true);
	has("\"constraint\":\"deferred\"");
	has("\"waits_for\":\"mx.test\"");
	spooled(&row, NULL, false);
	has("deferred until its destination answers again: ");
	at.constraint = CONSTRAINT_IDLE;
	spooled(&row, &x, false);
	has("deferred, and due soon, for mx.test answers again: ");
	envelope_free(&row.envelope);
}

static void mail_that_waits_for_its_time_alone_says_no_more(void **state)
{
	(void)state;
	struct explain_question x = {0};
	struct spool_row row = {.queue = SPOOL_DEFERRED};
	row.envelope = mail(7, "b@dest.test", refused());
	spooled(&row, &x, false);
	has("1 recipient: deferred: ");
	has("What lets it go: that time; sluice queue flush\n");
	has_not("answers again");
	envelope_free(&row.envelope);
}

static void mail_for_what_is_suspended_names_it_and_goes_by_an_order(void **state)
{
	(void)state;
	struct explain_row at = {.constraint = CONSTRAINT_SUSPENDED, .site = site_name};
	struct explain_question x = {.nrow = 1, .row = &at};
	struct spool_row row = {.queue = SPOOL_DEFERRED, .site = 3};
	row.envelope = mail(7, "b@dest.test", by_operator());
	spooled(&row, &x, false);
	has("1 recipient: deferred, for mx.test is suspended by the operator. It is looked at "
	    "again ");
	has(". What lets it go: sluice dest resume\n");
	has_not("flush");
	at.until_ms = now_ms + 600000;
	spooled(&row, &x, false);
	has(", in 10 min. What lets it go: sluice dest resume, or the end of the suspension\n");
	spooled(&row, &x, true);
	has("\"constraint\":\"suspended\"");
	envelope_free(&row.envelope);
}

static void what_was_put_off_before_it_was_suspended_says_both(void **state)
{
	(void)state;
	struct explain_row at = {.constraint = CONSTRAINT_SUSPENDED, .site = site_name};
	struct explain_question x = {.nrow = 1, .row = &at};
	struct spool_row row = {.queue = SPOOL_DEFERRED};
	row.envelope = mail(7, "b@dest.test", refused());
	spooled(&row, &x, false);
	has("deferred, for mx.test is suspended by the operator: ");
	has("refused the connection");
	envelope_free(&row.envelope);
}

static void the_next_message_is_named_with_what_it_still_sends(void **state)
{
	(void)state;
	struct explain_row at = {.constraint = CONSTRAINT_WINDOW,
				 .site = site_name,
				 .recipients = 2,
				 .limit = 5,
				 .first = 9,
				 .first_slots = 1};
	struct explain_question x = {.id = 7, .nrow = 1, .row = &at};
	buf_clear(&said);
	explain_print(&said, &x, false, now_ms);
	has(". The next is message ");
	has(", which has 1 delivery to begin. What lets it go: ");
	has_not("slot");
	at.first_slots = 12;
	buf_clear(&said);
	explain_print(&said, &x, false, now_ms);
	has(", which has 12 deliveries to begin. ");
}

static void mail_of_a_suspended_site_waits_until_it_is_resumed(void **state)
{
	(void)state;
	struct explain_row at = {
		.constraint = CONSTRAINT_SUSPENDED, .site = site_name, .parked = 19500};
	struct explain_question x = {.nrow = 1, .row = &at};
	buf_clear(&said);
	explain_print(&said, &x, false, now_ms);
	has("19500 messages wait in the queue until it is resumed. ");
	at.constraint = CONSTRAINT_DEAD;
	buf_clear(&said);
	explain_print(&said, &x, false, now_ms);
	has("19500 messages wait in the queue until it lives again. ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(parked_mail_names_the_site_whose_return_lets_it_go,
					  teardown),
		cmocka_unit_test_teardown(mail_that_waits_for_its_time_alone_says_no_more,
					  teardown),
		cmocka_unit_test_teardown(mail_for_what_is_suspended_names_it_and_goes_by_an_order,
					  teardown),
		cmocka_unit_test_teardown(what_was_put_off_before_it_was_suspended_says_both,
					  teardown),
		cmocka_unit_test_teardown(the_next_message_is_named_with_what_it_still_sends,
					  teardown),
		cmocka_unit_test_teardown(mail_of_a_suspended_site_waits_until_it_is_resumed,
					  teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
