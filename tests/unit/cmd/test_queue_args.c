/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "base/mem.h"
#include "cmd/queue_args.c"

/* Words in one string; getopt changes their order, so they live until the next call. */
static bool parse(struct queue_args *a, const char *line)
{
	static char text[400];
	static char *argv[40];
	int argc = 0;
	struct buf error;
	buf_init(&error);
	snprintf(text, sizeof text, "%s", line);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	bool ok = queue_args_parse(a, argc, argv, &error);
	assert_int_equal(ok, buf_len(&error) == 0);
	buf_fini(&error);
	return ok;
}

static void verbs_and_ids_are_read(void **state)
{
	(void)state;
	struct queue_args a;
	assert_true(parse(&a, "queue list"));
	assert_int_equal(a.verb, QUEUE_LIST);
	assert_int_equal(a.nid, 0);
	assert_true(parse(&a, "queue delete A B -c file"));
	assert_int_equal(a.verb, QUEUE_DELETE);
	assert_int_equal(a.nid, 2);
	assert_string_equal(a.id[1], "B");
	assert_string_equal(a.conf_file, "file");
	assert_true(parse(&a, "queue -c file flush --all"));
	assert_true(a.all);
	assert_true(parse(&a, "queue check --repair --json"));
	assert_int_equal(a.verb, QUEUE_CHECK);
	assert_true(a.repair && a.json);
	assert_true(parse(&a, "queue list --help"));
	assert_true(a.help);
}

static void show_sends_all_unless_told(void **state)
{
	(void)state;
	struct queue_args a;
	assert_true(parse(&a, "queue show A"));
	assert_true(a.envelope && a.header && a.body);
	assert_true(parse(&a, "queue show A --headers"));
	assert_true(!a.envelope && a.header && !a.body);
}

static void what_makes_no_sense_is_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"queue",
		"queue frobnicate A",
		"queue hold",
		"queue flush",
		"queue check A",
		"queue check --older 5d",
		"queue check --all",
		"queue list --repair",
		"queue delete",
		"queue show",
		"queue show A B",
		"queue show --all",
		"queue delete A --all",
		"queue flush A --to b",
		"queue list --body",
		"queue list --queue nowhere",
		"queue list --older x",
		"queue list --older",
		"queue list --unknown",
		"queue flush A --json",
		"queue list --json=no",
		"queue show A --json --body",
	};
	struct queue_args a;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (parse(&a, wrong[i]))
			fail_msg("taken: %s", wrong[i]);
}

struct sample {
	struct spool_row row;
	struct envelope *envelope;
};

static void make(struct sample *s)
{
	struct envelope *e = s->envelope = envelope_new();
	e->sender = mem_strdup("Me@here.test");
	e->arrived_ms = 1000000;
	envelope_add(e, "done@first.test")->done = true;
	struct recipient *r = envelope_add(e, "open@second.test");
	r->last = verdict_new(VERDICT_DEFERRED, 451, "4.3.0", "mx.second.test", "Greylisted");
	s->row = (struct spool_row){.queue = SPOOL_DEFERRED, .envelope = e};
}

static bool matches(const struct sample *s, const char *line)
{
	struct queue_args a;
	assert_true(parse(&a, line));
	return queue_filter_match(&a.filter, &s->row, 1000000 + 60000);
}

static void filters_look_at_the_message(void **state)
{
	(void)state;
	struct sample s;
	make(&s);
	assert_true(matches(&s, "queue list"));
	assert_true(matches(&s, "queue list --queue deferred --from me@HERE.test --older 1m"));
	assert_false(matches(&s, "queue list --queue active"));
	assert_false(matches(&s, "queue list --from <>"));
	assert_false(matches(&s, "queue list --older 61s"));
	envelope_free(&s.envelope);
}

static void filters_look_at_recipients_still_to_be_reached(void **state)
{
	(void)state;
	struct sample s;
	make(&s);
	assert_true(matches(&s, "queue list --to OPEN@second.test"));
	assert_true(matches(&s, "queue list --domain @Second.test --reason greylist"));
	assert_true(matches(&s, "queue list --reason 4.3.0"));
	assert_false(matches(&s, "queue list --to done@first.test"));
	assert_false(matches(&s, "queue list --domain first.test"));
	assert_false(matches(&s, "queue list --domain second.test --reason other"));
	envelope_free(&s.envelope);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verbs_and_ids_are_read),
		cmocka_unit_test(show_sends_all_unless_told),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(filters_look_at_the_message),
		cmocka_unit_test(filters_look_at_recipients_still_to_be_reached),
	};
	return RUN(tests);
}
