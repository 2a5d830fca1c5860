/* SPDX-License-Identifier: ISC */
#include "harness.h"

#include "spool/sample.h"

enum { MANY = 60000, LATER_MS = 100000000 };

static void store(const char *sender, const char *to)
{
	struct spool_store *s = harness_new_store(&h, 0, 1);
	free(s->envelope->sender);
	s->envelope->sender = mem_strdup(sender);
	envelope_add(s->envelope, to);
	loop_post(spool_loop(h.spool), &s->note);
}

/* Ask for all parts; each question is the caller's again, with its answer. */
static int ask(struct sample *s)
{
	uint64_t after = 0;
	int parts = 0;
	for (bool more = true; more; parts++) {
		int n = h.ncommand + 1, had = s->n;
		struct spool_command *c = spool_command_new(SPOOL_SAMPLE, h.loop, NULL);
		c->sample = s;
		c->after = after;
		loop_post(spool_loop(h.spool), &c->note);
		harness_wait(&h, &h.ncommand, n);
		assert_true(s->n - had <= 32);
		after = c->after;
		more = c->more;
		c->sample = NULL;
		spool_command_free(&c);
	}
	return parts;
}

static int64_t stood_for(const struct sample *s)
{
	int64_t n = 0;
	for (int i = 0; i < s->n; i++)
		n += s->row[i].stands_for;
	return n;
}

static void a_long_queue_is_read_thinly_and_all_of_it_stood_for(void **state)
{
	(void)state;
	for (int i = 0; i < MANY; i++)
		store("s@a.test", i == MANY - 1 ? "x@last.test" : "x@first.test");
	struct sample *s = sample_new();
	s->apart = true;
	s->first = 8;
	s->dense = 4;
	s->most = 1000;
	assert_true(ask(s) >= MANY / 20000);
	assert_int_equal(s->fit, MANY);
	assert_false(s->cut);
	assert_in_range(s->n, 30, 70);
	assert_int_equal(stood_for(s), MANY);
	for (int i = 0; i < 8; i++)
		assert_int_equal(s->row[i].stands_for, 1);
	assert_string_equal(s->row[s->n - 1].envelope->rcpt[0].address, "x@last.test");
	for (int i = 1; i < s->n; i++)
		assert_true(s->row[i].envelope->id > s->row[i - 1].envelope->id);
	sample_free(&s);
}

static void what_does_not_fit_is_not_read(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		store("s@a.test", "x@b.test");
		store("", "x@a.test");
		store("s@c.test", "x@d.test");
	}
	struct sample *s = sample_new();
	sample_want_domain(s, "A.test");
	sample_want_domain(s, "nobody.test");
	s->most = 1000;
	s->dense = 0;
	ask(s);
	assert_int_equal(s->fit, 50);
	assert_int_equal(s->n, 50);
	assert_string_equal(s->row[0].envelope->rcpt[0].address, "x@a.test");
	sample_free(&s);
	s = sample_new();
	sample_want_domain(s, "a.test");
	s->senders = true;
	s->most = 70;
	s->dense = 0;
	ask(s);
	assert_int_equal(s->n, 70);
	assert_true(s->cut);
	assert_int_equal(s->fit, 70);
	sample_free(&s);
}

static void mail_for_a_domain_is_found_in_every_spelling(void **state)
{
	static const char *const asked[] = {"xn--bcher-kva.test", "bücher.test", "BÜCHER.test"};
	(void)state;
	store("s@a.test", "x@bücher.test");
	store("s@a.test", "x@xn--bcher-kva.test");
	store("s@bücher.test", "x@bucher.test");
	store("s@a.test", "x@mücher.test");
	for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
		for (int senders = 0; senders < 2; senders++) {
			struct sample *s = sample_new();
			sample_want_domain(s, asked[i]);
			s->senders = senders;
			s->most = 1000;
			ask(s);
			assert_int_equal(s->fit, 2 + senders);
			sample_free(&s);
		}
}

static void the_mail_of_a_site_is_found_by_its_number(void **state)
{
	(void)state;
	harness_credit(&h, 6);
	for (int i = 0; i < 6; i++)
		store("s@a.test", "x@b.test");
	for (int i = 0; i < 6; i++) {
		struct envelope *e = harness_take(&h);
		e->due_ms = clock_wall_ms() + LATER_MS;
		e->rounds++;
		harness_park(&h, e, i < 4 ? 7 : 8);
	}
	struct sample *s = sample_new();
	s->site = 7;
	s->dense = 0;
	s->most = 100;
	ask(s);
	assert_int_equal(s->n, 4);
	assert_int_equal(s->row[0].queue, SPOOL_DEFERRED);
	assert_true(s->row[0].envelope->due_ms > clock_wall_ms());
	sample_free(&s);
	s = sample_new();
	s->apart = true; /* the two sites */
	s->first = 1;
	s->most = 100;
	ask(s);
	assert_int_equal(s->fit, 6);
	assert_int_equal(stood_for(s), 6);
	assert_in_range(s->n, 4, 5);
	sample_free(&s);
}

/* Six domains have not much in common. */
static void what_waits_for_names_is_apart_by_where_it_goes(void **state)
{
	(void)state;
	harness_credit(&h, 6);
	for (int i = 0; i < 6; i++) {
		char to[40];
		snprintf(to, sizeof to, "x@d%d.test", i);
		store("s@a.test", to);
	}
	for (int i = 0; i < 6; i++) {
		struct envelope *e = harness_take(&h);
		e->due_ms = clock_wall_ms() + LATER_MS;
		harness_park(&h, e, SPOOL_SITE_NAMES);
	}
	struct sample *s = sample_new();
	s->apart = true;
	s->first = s->dense = 1;
	s->most = 100;
	ask(s);
	assert_int_equal(s->n, 6);
	sample_free(&s);
}

static void long_envelopes_end_it_sooner(void **state)
{
	(void)state;
	enum { RCPTS = 45000 };
	for (int i = 0; i < 7; i++)
		harness_store(&h, RCPTS, 1);
	struct sample *s = sample_new();
	s->dense = 0;
	s->most = 1000;
	assert_int_equal(ask(s), 5); /* one a part */
	assert_int_equal(s->n, 5);
	assert_true(s->cut);
	sample_free(&s);
}

static void an_empty_queue_has_nothing(void **state)
{
	(void)state;
	struct sample *s = sample_new();
	sample_want_domain(s, "a.test");
	assert_int_equal(ask(s), 1);
	assert_int_equal(s->fit + s->n, 0);
	assert_false(s->cut);
	sample_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(a_long_queue_is_read_thinly_and_all_of_it_stood_for),
		HARNESS_TEST(what_does_not_fit_is_not_read),
		HARNESS_TEST(mail_for_a_domain_is_found_in_every_spelling),
		HARNESS_TEST(the_mail_of_a_site_is_found_by_its_number),
		HARNESS_TEST(what_waits_for_names_is_apart_by_where_it_goes),
		HARNESS_TEST(long_envelopes_end_it_sooner),
		HARNESS_TEST(an_empty_queue_has_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
