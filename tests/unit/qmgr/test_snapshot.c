/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "qmgr/snapshot.h"

#include <stdio.h>

static struct loop *asker;
static struct snapshot *got;

static void receive(void *owner, struct note *note)
{
	(void)owner;
	assert_int_equal(note->type, QMGR_SNAPSHOT);
	got = (struct snapshot *)note;
}

static int let_go(void **state)
{
	snapshot_free(&got);
	return finish(state);
}

static void look(void)
{
	snapshot_free(&got);
	if (!asker)
		asker = loop_new("asker", receive, NULL, NULL);
	post(&snapshot_new(asker)->note);
	settle();
	mailbox_drain(&asker->mailbox);
	assert_non_null(got);
}

static void send_to(int domain, int messages)
{
	static uint64_t id = 1000;
	char to[60], name[40], host[60];
	snprintf(name, sizeof name, "d%03d.test", domain);
	snprintf(to, sizeof to, "x@%s", name);
	snprintf(host, sizeof host, "10 mx%03d.test 192.0.2.%d", domain, domain % 250 + 1);
	for (int i = 0; i < messages; i++)
		send_mail(++id, to);
	answer(name, host);
}

static void what_is_not_known_is_not_shown(void **state)
{
	(void)state;
	begin("");
	look();
	assert_int_equal(got->nsite, 0);
	assert_int_equal(got->sites, 0);
}

static void the_busiest_twenty_come_first_and_always_the_same(void **state)
{
	(void)state;
	begin("");
	for (int i = 0; i < 60; i++)
		send_to(i, i % 30 + 1);
	look();
	assert_int_equal(got->sites, 60);
	assert_int_equal(got->nsite, SNAPSHOT_SITES_MAX);
	assert_int_equal(got->site[0].waiting, 30);
	for (int i = 1; i < got->nsite; i++)
		assert_true(got->site[i].waiting <= got->site[i - 1].waiting);
	assert_int_equal(got->site[SNAPSHOT_SITES_MAX - 1].waiting, 21);
	char *names[SNAPSHOT_SITES_MAX];
	for (int i = 0; i < SNAPSHOT_SITES_MAX; i++)
		names[i] = mem_strdup(got->site[i].name);
	look();
	for (int i = 0; i < SNAPSHOT_SITES_MAX; i++) {
		assert_string_equal(got->site[i].name, names[i]);
		free(names[i]);
	}
}

static void a_site_tells_its_window_and_what_waits(void **state)
{
	(void)state;
	begin("");
	send_to(1, 3);
	look();
	const struct snapshot_site *s = &got->site[0];
	assert_int_equal(got->nsite, 1);
	assert_string_equal(s->transport, "smtp");
	assert_string_equal(s->state, "alive");
	assert_int_equal(s->window, 5);
	assert_int_equal(s->waiting, 3);
	assert_int_equal(s->connecting, opened.n);
	assert_true(opened.n > 0);
	assert_null(s->last);
}

static void a_site_tells_its_domains_its_attempts_and_the_age_of_what_waits(void **state)
{
	(void)state;
	begin("");
	struct envelope *old = mail(1, "a@b.test", "x@d001.test");
	old->arrived_ms = clock_wall_ms() - 5000;
	send_to(1, 2);
	arrive(old);
	settle();
	for (int i = 0; i < 4; i++) {
		char name[40], to[60];
		snprintf(name, sizeof name, "other%d.test", i);
		snprintf(to, sizeof to, "x@%s", name);
		send_mail(100 + (uint64_t)i, to);
		answer(name, "10 mx001.test 192.0.2.2");
	}
	q->db.sites->unreached = 7;
	site_hour_verdict(q->db.sites, VERDICT_SENT);
	pass_time(2000);
	look();
	const struct snapshot_site *s = &got->worst[0];
	assert_int_equal(got->nsite, 1);
	assert_int_equal(s->domains, 5);
	assert_string_equal(s->domain[0], "d001.test");
	assert_non_null(s->domain[SNAPSHOT_DOMAINS - 1]);
	assert_int_equal(s->unreached, 7);
	assert_int_equal(s->sent_lately, 1);
	assert_int_equal(s->lately_ms, 2000);
	assert_int_equal(s->oldest_ms, clock_wall_ms() - 7000);
}

static void the_worst_come_first_also_those_that_take_no_mail(void **state)
{
	(void)state;
	begin("");
	for (int i = 1; i < 30; i++)
		send_to(i, i);
	look();
	assert_int_equal(got->nsite, SNAPSHOT_SITES_MAX);
	assert_int_equal(got->worst[0].waiting, 29); /* all alive: the most mail */
	for (struct site *s = q->db.sites; s; s = s->hh.next)
		if (s->queue.waiting == 3)
			s->health = SITE_OUT;
		else if (s->queue.waiting == 2)
			s->health = SITE_SUSPENDED;
	look();
	assert_int_equal(got->dead, 1);
	assert_string_equal(got->worst[0].state, "out");
	assert_int_equal(got->worst[0].waiting, 3);
	assert_string_equal(got->worst[1].state, "suspended");
	assert_string_equal(got->worst[2].state, "alive");
	assert_int_equal(got->worst[2].waiting, 29);
	assert_int_equal(got->site[0].waiting, 29); /* the busiest are as they were */
}

static void those_without_tls_as_it_must_be_are_told_apart(void **state)
{
	static const char *const dsn[] = {"4.7.5", "4.4.1", "4.7.4", "4.7.10", "4.7.30", "4.7.1"};
	int i = 0;
	(void)state;
	begin("");
	for (int n = 1; n <= 6; n++)
		send_to(n, n);
	for (struct site *s = q->db.sites; s; s = s->hh.next, i++) {
		verdict_unref(s->last_failure);
		s->last_failure = verdict_new(VERDICT_DEFERRED, 0, dsn[i], "mx", "says so");
	}
	look();
	assert_int_equal(got->nunproven, 4);
	for (i = 0; i < 4; i++)
		assert_string_not_equal(got->unproven[i].last->dsn, "4.4.1");
	assert_true(got->unproven[0].waiting > got->unproven[3].waiting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_is_not_known_is_not_shown, let_go),
		cmocka_unit_test_teardown(the_busiest_twenty_come_first_and_always_the_same,
					  let_go),
		cmocka_unit_test_teardown(a_site_tells_its_window_and_what_waits, let_go),
		cmocka_unit_test_teardown(
			a_site_tells_its_domains_its_attempts_and_the_age_of_what_waits, let_go),
		cmocka_unit_test_teardown(the_worst_come_first_also_those_that_take_no_mail,
					  let_go),
		cmocka_unit_test_teardown(those_without_tls_as_it_must_be_are_told_apart, let_go),
	};
	int status = RUN(tests);
	loop_free(&asker);
	return status;
}
