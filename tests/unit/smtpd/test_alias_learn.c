/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/tables.h"
#include "smtpd/addressing.h"
#include "smtpd/alias.h"
#include "smtpd/alias_learn.h"
#include "smtpd/socketmap.h"
#include "stages/budget.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The server, in place of socketmap.c: who asks last is answered by answer(). */
static socketmap_answered *answered;
static void *asker;
static char *asked;
static const char *known; /* at once: it is an alias of this; NULL: it has to be asked */
static int forgotten;

bool socketmap_known(struct socketmaps *m, const struct socketmap_name *n, const char *key,
		     char **value)
{
	(void)m;
	(void)n;
	(void)key;
	if (known)
		*value = mem_strdup(known);
	return known != NULL;
}

uint64_t socketmap_ask_for(struct socketmaps *m, const struct socketmap_name *n, const char *key,
			   socketmap_answered *done, void *owner)
{
	(void)m;
	(void)n;
	answered = done;
	asker = owner;
	free(asked);
	asked = mem_strdup(key);
	return 7;
}

void socketmap_forget(struct socketmaps *m, uint64_t number)
{
	(void)m;
	assert_int_equal(number, 7);
	forgotten++;
}

static void answer(const char *value)
{
	struct socketmap_answer a = {.result = SOCKETMAP_NONE, .text = (char *)(size_t)value};
	if (value)
		a.result = strncmp(value, "TEMP", 4) == 0 ? SOCKETMAP_FAILED : SOCKETMAP_FOUND;
	answered(asker, &a);
}

static struct conf *conf;
static struct alias_learning learning;
static const char *address;
static int ended; /* 0: not yet; 1: learnt; 2: failed */

static int start(void **state)
{
	char file[] = "/tmp/sluice-conf-XXXXXX";
	struct buf errors = {0};
	(void)state;
	FILE *f = fdopen(mkstemp(file), "w");
	fputs("aliases = { \"socketmap:unix:/nowhere:m\" }\nalias \"own@here.test\" { to = { "
	      "\"x@here.test\" } }\n",
	      f);
	fclose(f);
	conf = conf_read(file, &errors);
	if (!conf)
		fail_msg("%s", buf_cstr(&errors));
	unlink(file);
	return 0;
}

static int end(void **state)
{
	(void)state;
	conf_unref(conf);
	free(asked);
	return 0;
}

static bool is_known(void *owner)
{
	return addressing_recipient_known(conf, owner, address);
}

static void learnt(void *owner, bool failed)
{
	(void)owner;
	ended = failed ? 2 : 1;
}

static enum alias_learnt learn(const char *of)
{
	const struct alias_learner by = {
		.conf = conf, .known = is_known, .learnt = learnt, .owner = &learning.heard};
	address = of;
	ended = 0;
	return alias_learn(&learning, &by);
}

/* What comes of it, "a b c", or the name of the reply. */
static const char *members(const char *of)
{
	static char text[1000];
	struct envelope *e = envelope_new();
	enum response why = addressing_recipient(conf, &learning.heard, e, of, 0, NULL, NULL);
	text[0] = '\0';
	for (uint32_t i = 0; i < e->nrcpt; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
			 e->rcpt[i].address);
	envelope_free(&e);
	return why == RESPONSE_OK ? text : why == RESPONSE_ALIAS_LOOP ? "loop" : "unheard";
}

static int forget(void **state)
{
	(void)state;
	alias_learn_end(&learning);
	known = NULL;
	return 0;
}

static void nothing_is_added_until_all_is_heard(void **state)
{
	(void)state;
	assert_int_equal(learn("own@here.test"), ALIAS_WAITS); /* the section is known */
	assert_string_equal(asked, "x@here.test");
	assert_string_equal(members("own@here.test"), "unheard");
	answer("a@dest.test, y@here.test");
	assert_string_equal(asked, "a@dest.test");
	answer(NULL);
	assert_string_equal(asked, "y@here.test");
	assert_string_equal(members("own@here.test"), "unheard");
	answer("Y@here.test, b@dest.test");
	assert_string_equal(asked, "b@dest.test");
	assert_int_equal(ended, 0);
	answer(NULL);
	assert_int_equal(ended, 1);
	assert_string_equal(members("own@here.test"), "a@dest.test Y@here.test b@dest.test");
}

static void what_could_not_be_said_ends_it(void **state)
{
	static const char *const no[] = {"TEMP no",   "",   "nobody",	   "a@b.test c@d.test",
					 "a@b.test>", "a@", "a\001@b.test"};
	(void)state;
	for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
		assert_int_equal(learn("x@here.test"), ALIAS_WAITS);
		answer(no[i]);
		assert_int_equal(ended, 2);
		assert_string_equal(members("x@here.test"), "unheard");
		alias_learn_end(&learning);
	}
}

static void a_loop_at_a_server_is_one(void **state)
{
	(void)state;
	assert_int_equal(learn("x@here.test"), ALIAS_WAITS);
	answer("y@here.test, z@here.test");
	answer("x@here.test");
	answer(NULL);
	assert_int_equal(ended, 1);
	assert_string_equal(members("x@here.test"), "loop");
}

/* Each address is looked up once: a tree whose leaves are all the same is no bomb. */
static void what_was_expanded_is_not_expanded_again(void **state)
{
	char row[100];
	(void)state;
	assert_int_equal(learn("n0a@here.test"), ALIAS_WAITS);
	while (ended == 0) {
		int level = atoi(asked + 1);
		snprintf(row, sizeof row, "n%da@here.test, n%db@here.test", level + 1, level + 1);
		answer(level < 18 ? row : "leaf@dest.test");
		if (strcmp(asked, "leaf@dest.test") == 0)
			answer(NULL);
	}
	assert_int_equal(ended, 1);
	assert_string_equal(members("n0a@here.test"), "leaf@dest.test");
}

/* A server that makes up members as it goes. */
static void there_is_an_end_to_questions_and_to_bytes(void **state)
{
	struct buf row = {0};
	(void)state;
	for (int i = 0; i < 4000; i++)
		buf_printf(&row, "%smember-%d@dest.test", i ? ", " : "", i);
	known = buf_cstr(&row);
	learn("x@here.test");
	assert_string_equal(members("x@here.test"), "loop");
	assert_true(learning.heard.said < 2 * ALIAS_BYTES_MAX);
	buf_fini(&row);
}

static void all_questions_together_have_their_time(void **state)
{
	(void)state;
	clock_stand(INT64_C(1000000));
	assert_int_equal(learn("x@here.test"), ALIAS_WAITS);
	clock_stand(INT64_C(1000000) + ALIAS_LEARN_MS * INT64_C(1000));
	answer("a@dest.test, b@dest.test");
	assert_int_equal(ended, 0);
	clock_stand(INT64_C(2000000) + ALIAS_LEARN_MS * INT64_C(1000));
	answer(NULL);
	assert_int_equal(ended, 2);
	clock_stand(0);
}

static void what_was_heard_is_memory_of_sessions(void **state)
{
	size_t others = 0;
	(void)state;
	assert_int_equal(learn("x@here.test"), ALIAS_WAITS);
	answer("a@dest.test, b@dest.test");
	assert_true(learning.charged >= strlen("x@here.test"
					       "a@dest.test, b@dest.test"));
	budget_charge(&others, (size_t)conf->session_memory_limit);
	answer(NULL); /* of a: b is not asked about any more */
	assert_int_equal(ended, 2);
	budget_charge(&others, 0);
	alias_learn_end(&learning);
	assert_int_equal(learning.charged, 0);
	assert_false(budget_spent(conf));
}

static void who_goes_meanwhile_is_not_answered(void **state)
{
	(void)state;
	forgotten = 0;
	assert_int_equal(learn("x@here.test"), ALIAS_WAITS);
	alias_learn_end(&learning);
	assert_int_equal(forgotten, 1);
	assert_int_equal(ended, 0);
	assert_null(learning.by.conf);
}

static void without_what_was_heard_a_server_has_nothing(void **state)
{
	struct envelope *e = envelope_new();
	(void)state;
	assert_int_equal(addressing_recipient(conf, NULL, e, "own@here.test", 0, NULL, NULL),
			 RESPONSE_OK);
	assert_string_equal(e->rcpt[0].address, "x@here.test");
	envelope_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(nothing_is_added_until_all_is_heard, forget),
		cmocka_unit_test_teardown(what_could_not_be_said_ends_it, forget),
		cmocka_unit_test_teardown(a_loop_at_a_server_is_one, forget),
		cmocka_unit_test_teardown(what_was_expanded_is_not_expanded_again, forget),
		cmocka_unit_test_teardown(there_is_an_end_to_questions_and_to_bytes, forget),
		cmocka_unit_test_teardown(all_questions_together_have_their_time, forget),
		cmocka_unit_test_teardown(what_was_heard_is_memory_of_sessions, forget),
		cmocka_unit_test_teardown(who_goes_meanwhile_is_not_answered, forget),
		cmocka_unit_test_teardown(without_what_was_heard_a_server_has_nothing, forget),
	};
	return cmocka_run_group_tests(tests, start, end);
}
