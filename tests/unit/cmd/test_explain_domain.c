/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "cmd/control/explain_domain.c"
#include "cmd/text/json_put.c"
#include "cmd/text/moment.c"

static const int64_t now_ms = INT64_C(1700000000000);
static struct buf said;

void explain_print_last(struct buf *to, const struct verdict *v)
{
	if (v)
		buf_printf(to, ": %s", v->text);
}

bool explain_print_of_suspension(const struct verdict *v)
{
	return v && strcmp(v->text, "suspended") == 0;
}

bool explain_print_of_flow(const struct verdict *v)
{
	return v && strcmp(v->text, "flow suspended") == 0;
}

static int teardown(void **state)
{
	(void)state;
	buf_fini(&said);
	return 0;
}

static struct verdict *refused(void)
{
	return verdict_at(VERDICT_DEFERRED, 0, "4.4.1", "mx.test[192.0.2.1]:25", "refused", now_ms);
}

static struct verdict *by_operator(void)
{
	return verdict_at(VERDICT_DEFERRED, 0, "4.3.2", NULL, "suspended", now_ms);
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

static void has(const char *part)
{
	if (!strstr(buf_cstr(&said), part))
		print_error("no \"%s\" in: %s\n", part, buf_cstr(&said));
	assert_non_null(strstr(buf_cstr(&said), part));
}

/* Two parts of the queue, of two messages each. */
static struct explain_domain *of_two_parts(struct verdict *(*last)(void))
{
	struct explain_domain *d = explain_domain_new("dest.test");
	for (uint64_t part = 0; part < 2; part++) {
		struct spool_row row[2] = {{.queue = SPOOL_DEFERRED}, {.queue = SPOOL_DEFERRED}};
		struct spool_command listed = {.nrow = 2, .row = row};
		for (uint64_t i = 0; i < 2; i++)
			row[i].envelope = mail(1 + 2 * part + i, "b@dest.test", last());
		envelope_add(row[1].envelope, "c@DEST.test");
		row[1].envelope->rcpt[1].last = last();
		explain_domain_add(d, &listed);
		for (int i = 0; i < 2; i++)
			envelope_free(&row[i].envelope);
	}
	return d;
}

static void mail_for_later_is_told_from_mail_that_was_put_off(void **state)
{
	(void)state;
	struct explain_domain *d = explain_domain_new("dest.test");
	struct spool_row row[2] = {{.queue = SPOOL_DEFERRED}, {.queue = SPOOL_DEFERRED}};
	struct spool_command listed = {.nrow = 2, .row = row};
	for (uint64_t i = 0; i < 2; i++)
		row[i].envelope = mail(1 + i, "b@dest.test", NULL);
	row[1].envelope->not_before_ms = row[1].envelope->due_ms;
	explain_domain_add(d, &listed);
	buf_clear(&said);
	explain_domain_print(&said, d, false, now_ms);
	has("1 message for 1 recipient is deferred");
	has("1 message for 1 recipient is not to be sent yet, as the sender wants. It is sent ");
	has("What lets it go: that time; sluice queue release ID");
	buf_clear(&said);
	explain_domain_print(&said, d, true, now_ms);
	has("\"constraint\":\"scheduled\"");
	has("\"constraint\":\"deferred\"");
	for (int i = 0; i < 2; i++)
		envelope_free(&row[i].envelope);
	explain_domain_free(&d);
}

static void mail_for_a_domain_is_counted_part_by_part(void **state)
{
	(void)state;
	struct explain_domain *d = of_two_parts(refused);
	buf_clear(&said);
	explain_domain_print(&said, d, false, now_ms);
	has("dest.test: 4 messages for 6 recipients are deferred: ");
	has("What lets them go: that time, the destination when it lives again, sluice queue "
	    "flush\n");
	explain_domain_cut(d);
	buf_clear(&said);
	explain_domain_print(&said, d, false, now_ms);
	has("dest.test: more than 4 messages for 6 recipients are deferred: ");
	buf_clear(&said);
	explain_domain_print(&said, d, true, now_ms);
	has("\"messages\":4,\"recipients\":6,\"more\":true,");
	explain_domain_free(&d);
	d = of_two_parts(by_operator);
	buf_clear(&said);
	explain_domain_print(&said, d, false, now_ms);
	has(": suspended. ");
	has("What lets them go: sluice dest resume\n");
	explain_domain_free(&d);
}

/* What one object says of a message of this queue, which was told that. */
static void tell_one(enum spool_queue queue, struct verdict *last)
{
	struct explain_domain *d = explain_domain_new("dest.test");
	struct spool_row row = {.queue = queue, .envelope = mail(1, "b@dest.test", last)};
	explain_domain_add(d, &(struct spool_command){.nrow = 1, .row = &row});
	buf_clear(&said);
	explain_domain_print(&said, d, true, now_ms);
	envelope_free(&row.envelope);
	explain_domain_free(&d);
}

/* As sluice(8) has it, and as of a message by its id: mail on hold had a time at which nothing would happen. */
static void an_object_says_what_lets_mail_go_and_when_if_it_goes_by_itself(void **state)
{
	(void)state;
	tell_one(SPOOL_HOLD, NULL);
	has("\"constraint\":\"hold\"");
	has("\"relief\":\"sluice queue release\"");
	has("\"until\":null");
	tell_one(SPOOL_INCOMING, NULL);
	has("\"constraint\":\"credit\"");
	has("\"until\":null");
	tell_one(SPOOL_DEFERRED, refused());
	has("\"constraint\":\"deferred\"");
	has("\"relief\":\"that time, the destination when it lives again, sluice queue flush\"");
	has("\"until\":1700003600.000");
	tell_one(SPOOL_DEFERRED, by_operator());
	has("\"constraint\":\"suspended\"");
	has("\"relief\":\"sluice dest resume\"");
	tell_one(SPOOL_DEFERRED, verdict_at(VERDICT_IN_DOUBT, 0, "4.4.2", "mx", "?", now_ms));
	has("\"constraint\":\"in_doubt\"");
	buf_clear(&said);
	explain_domain_nothing(&said, "dest.test", true);
	has("\"relief\":\"mail for it\",\"until\":null,\"recipients\":0}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(mail_for_later_is_told_from_mail_that_was_put_off,
					  teardown),
		cmocka_unit_test_teardown(mail_for_a_domain_is_counted_part_by_part, teardown),
		cmocka_unit_test_teardown(
			an_object_says_what_lets_mail_go_and_when_if_it_goes_by_itself, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
