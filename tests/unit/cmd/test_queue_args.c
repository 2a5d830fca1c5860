/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "base/mem.h"
#include "cmd/options.c"
#include "cmd/text/queue_args.c"
#include "cmd/text/queue_filter.c"
#include "cmd/text/queue_sites.c"

static char said[400]; /* of what is wrong */

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
	snprintf(said, sizeof said, "%s", ok ? "" : buf_cstr(&error));
	buf_fini(&error);
	if (!ok)
		queue_args_fini(a);
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
	r->last = verdict_new(VERDICT_DEFERRED, 451, "4.3.0", "mx.second.test[192.0.2.7]:25",
			      "Greylisted");
	s->row = (struct spool_row){.queue = SPOOL_DEFERRED, .envelope = e};
}

static bool matches(const struct sample *s, const char *line)
{
	struct queue_args a;
	assert_true(parse(&a, line));
	struct conf *conf = conf_defaults();
	const struct queue_values *v = &a.filter.values[QUEUE_BY_SITE];
	struct queue_sites *sites = queue_sites_new(conf, v->of, v->n);
	bool fits = queue_filter_match(&a.filter, sites, &s->row, 1000000 + 60000);
	queue_sites_free(&sites);
	conf_unref(conf);
	queue_args_fini(&a);
	return fits;
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

static void filters_look_at_who_sent_it(void **state)
{
	(void)state;
	struct sample s;
	make(&s);
	assert_true(matches(&s, "queue list --flow here.test"));
	assert_false(matches(&s, "queue list --login ann"));
	assert_false(matches(&s, "queue list --client 192.0.2.7"));
	s.envelope->flow = mem_strdup("news");
	envelope_came_from(s.envelope, "ann", "192.0.2.7");
	assert_false(matches(&s, "queue list --flow here.test"));
	assert_true(matches(&s, "queue list --flow news --login ann"));
	assert_false(matches(&s, "queue list --flow news --login bert"));
	assert_true(matches(&s, "queue list --login bert --login ann"));
	assert_true(matches(&s, "queue list --login Ann"));
	assert_false(matches(&s, "queue list --login Anna"));
	envelope_came_from(s.envelope, "j\xc3\xb6rg", "192.0.2.7");
	assert_true(matches(&s, "queue list --login j\x6f\xcc\x88RG --login bert"));
	envelope_came_from(s.envelope, "Www-Data",
			   "192.0.2.7"); /* a local user, as the system has it */
	assert_true(matches(&s, "queue list --login Www-Data"));
	assert_false(matches(&s, "queue list --login www-data"));
	assert_true(matches(&s, "queue list --client 192.0.2.7"));
	assert_true(matches(&s, "queue list --client 2001:db8::/32 --client 192.0.2.0/24"));
	assert_false(matches(&s, "queue list --client 198.51.100.0/24"));
	envelope_free(&s.envelope);
}

static void patterns_and_several_values_choose(void **state)
{
	(void)state;
	struct sample s;
	make(&s);
	assert_true(matches(&s, "queue list --from *@here.test"));
	assert_true(matches(&s, "queue list --from @here.test"));
	assert_true(matches(&s, "queue list --from me@*"));
	assert_true(matches(&s, "queue list --from .test"));
	assert_false(matches(&s, "queue list --from .ere.test"));
	assert_false(matches(&s, "queue list --from ere.test"));
	assert_true(matches(&s, "queue list --from <> --from m*@here.test"));
	assert_true(matches(&s, "queue list --to *@second.test"));
	assert_true(matches(&s, "queue list --domain .second.test"));
	assert_true(matches(&s, "queue list --domain .test"));
	assert_true(matches(&s, "queue list --domain third.test --domain sec*"));
	assert_false(matches(&s, "queue list --domain third.test --domain first.test"));
	assert_false(matches(&s, "queue list --domain .test --to x*"));
	assert_true(matches(&s, "queue list --queue hold --queue deferred"));
	assert_true(matches(&s, "queue list --reason nothing --reason 4.3."));
	assert_true(matches(&s, "queue list --older 5m --older 10s"));
	envelope_free(&s.envelope);
}

static void a_site_is_known_by_its_hosts(void **state)
{
	(void)state;
	struct sample s;
	make(&s);
	assert_true(matches(&s, "queue list --site mx.second.test"));
	assert_true(matches(&s, "queue list --site mx.first.test,MX.second.test;backup.test"));
	assert_true(matches(&s, "queue list --site 192.0.2.7"));
	assert_false(matches(&s, "queue list --site second.test"));
	envelope_free(&s.envelope);
}

/* A relay that was asked for the site knows the domain as it was written first. */
static void a_site_has_mail_of_its_domains_in_each_spelling(void **state)
{
	(void)state;
	static const char *const names[] = {"mx.test"};
	static char domain[] = "xn--bcher-kva.test", transport[] = "smtp";
	char *domains[] = {domain};
	struct dest_site site = {.transport = transport, .ndomain = 1, .domain = domains};
	const struct dest_command known = {.nsite = 1, .site = &site};
	struct conf *conf = conf_defaults();
	struct queue_sites *sites = queue_sites_new(conf, names, 1);
	struct envelope *e = envelope_new();
	e->sender = mem_strdup("");
	queue_sites_learn(sites, &known);
	assert_true(queue_sites_lead(sites, e, envelope_add(e, "x@XN--bcher-KVA.test")));
	assert_true(queue_sites_lead(sites, e,
				     envelope_add(e, "x@b\xc3\xbc"
						     "cher.test")));
	assert_false(queue_sites_lead(sites, e, envelope_add(e, "x@bucher.test")));
	envelope_free(&e);
	queue_sites_free(&sites);
	conf_unref(conf);
}

/* As dest list prints it: with what the mail of the site has in common. */
static void what_stands_behind_the_name_of_a_site_is_no_part_of_it(void **state)
{
	(void)state;
	static const char *const ends[] = {"",
					   " as ann",
					   " tls=required",
					   " from=a",
					   " as ann tls=dane requiretls from=a",
					   " requiretls"};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		char *relay = mem_printf("smtp [192.0.2.7]:25%s", ends[i]);
		char *hosts = mem_printf("smtp mx1.test,mx2.test%s", ends[i]);
		assert_true(names_site(relay + 5, "[192.0.2.7]:25"));
		assert_true(names_site(skip_transport(relay, "SMTP"), "[192.0.2.7]:25"));
		assert_false(names_site(relay + 5, "[192.0.2.7]"));
		assert_true(names_host(hosts + 5, "mx2.test[192.0.2.7]:25"));
		assert_true(names_host(skip_transport(hosts, "smtp"), "mx1.test[192.0.2.7]:25"));
		assert_false(names_host(hosts + 5, "from=a[192.0.2.7]:25"));
		free(relay);
		free(hosts);
	}
}

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	static const char *const wrong[][2] = {
		{"queue hold --bogus", "there is no option --bogus"},
		{"queue hold -xc", "there is no option -x"},
		{"queue hold A --older", "--older wants a value"},
		{"queue hold A -c", "-c wants a value"},
		{"queue list --json=5", "--json takes no value"},
		{"queue flush A --fresh", "queue flush: --fresh belongs to release"},
		{"queue delete A --headers", "queue delete: --headers belongs to show"},
	};
	struct queue_args a;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_false(parse(&a, wrong[i][0]));
		assert_string_equal(said, wrong[i][1]);
	}
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
		cmocka_unit_test(filters_look_at_who_sent_it),
		cmocka_unit_test(patterns_and_several_values_choose),
		cmocka_unit_test(a_site_is_known_by_its_hosts),
		cmocka_unit_test(a_site_has_mail_of_its_domains_in_each_spelling),
		cmocka_unit_test(what_stands_behind_the_name_of_a_site_is_no_part_of_it),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(filters_look_at_recipients_still_to_be_reached),
	};
	return RUN(tests);
}
