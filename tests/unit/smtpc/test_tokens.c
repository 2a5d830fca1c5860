/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/https.h"
#include "base/mem.h"
#include "smtpc/token_store.h"
#include "smtpc/tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECOND_US = 1000000, LIFE_S = 100 };

/* The endpoint: what it was asked last, and whom it is to answer. */
static struct {
	void (*answered)(void *owner, const struct https_answer *);
	void *owner;
	char form[500];
	int asked;
} endpoint;

struct https *https_new(struct loop *loop)
{
	return (struct https *)loop;
}

void https_free(struct https **h)
{
	*h = NULL;
}

struct https_request *https_begin(struct https *h, const struct https_order *order,
				  void (*answered)(void *owner, const struct https_answer *),
				  void *owner)
{
	assert_null(endpoint.answered);
	endpoint.answered = answered;
	endpoint.owner = owner;
	endpoint.asked++;
	snprintf(endpoint.form, sizeof endpoint.form, "%.*s", (int)buf_len(order->body),
		 buf_data(order->body));
	return (struct https_request *)h;
}

void https_drop(struct https_request **r)
{
	*r = NULL;
}

static char folder[] = "/tmp/test_tokens.XXXXXX";
static char file[sizeof folder + 20], kept[sizeof folder + 20];
static int64_t now_s;
static struct loop *loop;
static struct tokens *tokens;
static struct credential *credential;
static struct note question;
static char heard[100]; /* the token, or "-" and why there is none; "": nothing yet */

static void receive_note(void *owner, struct note *note)
{
	(void)owner, (void)note;
}

static void hear_answer(struct note *asked, const char *token, const char *why)
{
	assert_ptr_equal(asked, &question);
	snprintf(heard, sizeof heard, "%s%s", token ? token : "-", token ? "" : why ? why : "");
}

static void forget_question(struct note *asked)
{
	(void)asked;
}

static void pass_seconds(int64_t s)
{
	now_s += s;
	clock_stand(now_s * SECOND_US);
	loop->now_ms = now_s * 1000;
	timers_run(&loop->timers, loop->now_ms);
}

static const char *ask_token(void)
{
	heard[0] = '\0';
	question.next = NULL;
	tokens_ask(tokens, credential, &question);
	return heard;
}

static void answer_with(long status, const char *body)
{
	void (*answered)(void *, const struct https_answer *) = endpoint.answered;
	const struct https_answer a = {
		.status = status, .content_type = "", .body = body, .len = strlen(body)};
	assert_non_null(answered);
	endpoint.answered = NULL;
	answered(endpoint.owner, &a);
}

static void answer_token(const char *access, const char *refresh)
{
	char body[300];
	snprintf(body, sizeof body,
		 "{\"access_token\":\"%s\",\"expires_in\":%d,\"refresh_token\":\"%s\"}", access,
		 LIFE_S, refresh);
	answer_with(200, body);
}

static bool is_on(enum condition row)
{
	struct conditions all = {0};
	bool on = false;
	conditions_take(&all);
	for (int i = 0; i < all.n; i++)
		on |= all.row[i].is == row;
	conditions_fini(&all);
	return on;
}

static int begin_tokens(void **state)
{
	struct buf why = {0};
	char value[sizeof file + 20];
	(void)state;
	snprintf(file, sizeof file, "%s/ann", folder);
	snprintf(kept, sizeof kept, "%s/tokens", folder);
	FILE *to = fopen(file, "w");
	assert_non_null(to);
	fputs("endpoint = https://x.test/t\nclient_id = me\nrefresh_token = r0\n", to);
	fclose(to);
	snprintf(value, sizeof value, "ann refresh:%s", file);
	assert_null(credential_parse(value, &credential, &why));
	buf_fini(&why);
	pass_seconds(1000);
	tokens = tokens_new(loop, folder, hear_answer);
	return 0;
}

static int end_tokens(void **state)
{
	char command[100];
	(void)state;
	tokens_free(&tokens, forget_question);
	credential_unref(credential);
	condition_clear_all(CONDITION_token_missing);
	condition_clear_all(CONDITION_token_unsaved);
	memset(&endpoint, 0, sizeof endpoint);
	snprintf(command, sizeof command, "rm -rf %s", kept);
	return system(command) == 0 ? 0 : -1;
}

static void a_token_that_a_host_refuses_is_fetched_anew(void **state)
{
	(void)state;
	ask_token();
	answer_token("one", "r1");
	assert_string_equal(ask_token(), "one");
	tokens_spoiled(tokens, credential);
	assert_string_equal(ask_token(), "");
	assert_non_null(strstr(endpoint.form, "refresh_token=r1"));
	answer_token("two", "r2");
	assert_string_equal(heard, "two");
	assert_int_equal(endpoint.asked, 2);
}

static void an_endpoint_that_fails_is_asked_less_and_less_often(void **state)
{
	int64_t most_s = 0;
	(void)state;
	for (int i = 0; i < 12; i++) {
		ask_token();
		answer_with(500, "");
		assert_non_null(strstr(heard, "-https://x.test/t: "));
		int64_t waited_s = 0;
		for (int asked = endpoint.asked; endpoint.asked == asked; waited_s++) {
			pass_seconds(1);
			ask_token();
		}
		assert_true(waited_s >= most_s);
		most_s = waited_s;
		answer_with(500, "");
		pass_seconds(400);
	}
	assert_int_equal(most_s, 300);
	assert_true(is_on(CONDITION_token_missing));
	ask_token();
	answer_token("one", "r1");
	assert_string_equal(heard, "one");
	assert_false(is_on(CONDITION_token_missing));
}

/* Mail goes on with the one that there is, and nobody need look at anything yet. */
static void a_token_that_still_holds_is_not_missed(void **state)
{
	(void)state;
	ask_token();
	answer_token("one", "r1");
	pass_seconds(LIFE_S - 10);
	for (int wait_s = 1; wait_s <= 8; wait_s *= 2) {
		assert_string_equal(ask_token(), "one");
		answer_with(500, "");
		assert_false(is_on(CONDITION_token_missing));
		assert_string_equal(ask_token(), "one");
		pass_seconds(wait_s < 8 ? wait_s : 2);
	}
	assert_string_equal(ask_token(), "one");
	pass_seconds(1); /* its end; the endpoint is not asked yet */
	assert_string_equal(ask_token(), "-https://x.test/t: it answers 500");
	assert_true(is_on(CONDITION_token_missing));
	pass_seconds(400);
	ask_token();
	answer_token("two", "r2");
	assert_string_equal(heard, "two");
	assert_false(is_on(CONDITION_token_missing));
}

static void while_another_process_fetches_one_nobody_asks(void **state)
{
	(void)state;
	int lock = token_store_lock(file, true);
	assert_true(lock >= 0);
	assert_non_null(strstr(ask_token(), "another process fetches one"));
	assert_int_equal(endpoint.asked, 0);
	close(lock);
	pass_seconds(2);
	ask_token();
	answer_token("one", "r1");
	assert_string_equal(heard, "one");
}

/* What is on the disk is older than what is known here: it would be refused. */
static void a_grant_that_could_not_be_written_is_used_and_written_later(void **state)
{
	struct token_grant g;
	struct buf why = {0};
	struct token_source source = {.endpoint = (char *)"https://x.test/t",
				      .client_id = (char *)"me",
				      .refresh_token = (char *)"r0"};
	(void)state;
	FILE *in_the_way = fopen(kept, "w");
	assert_non_null(in_the_way);
	fclose(in_the_way);
	ask_token();
	answer_token("one", "r1");
	assert_true(is_on(CONDITION_token_unsaved));
	pass_seconds(LIFE_S + 1);
	ask_token();
	assert_non_null(strstr(endpoint.form, "refresh_token=r1"));
	answer_token("two", "r2");
	assert_string_equal(heard, "two");
	assert_true(is_on(CONDITION_token_unsaved));
	unlink(kept);
	pass_seconds(6);
	assert_false(is_on(CONDITION_token_unsaved));
	assert_true(token_store_read(folder, file, &source, &g, &why));
	assert_string_equal(g.newest, "r2");
	token_grant_fini(&g);
	buf_fini(&why);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_tokens, end_tokens)
	const struct CMUnitTest tests[] = {
		TEST(a_token_that_a_host_refuses_is_fetched_anew),
		TEST(an_endpoint_that_fails_is_asked_less_and_less_often),
		TEST(a_token_that_still_holds_is_not_missed),
		TEST(while_another_process_fetches_one_nobody_asks),
		TEST(a_grant_that_could_not_be_written_is_used_and_written_later),
	};
	if (!mkdtemp(folder))
		return 1;
	loop = loop_new("test", receive_note, NULL, NULL);
	int failed = RUN(tests);
	loop_free(&loop);
	unlink(file);
	rmdir(folder);
	return failed;
}
