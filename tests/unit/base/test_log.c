/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/log.h"
#include "base/log_place.h"
#include "base/mem.h"
#include "base/verdict.h"

#include <ctype.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char path[64];

static int make_path(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "/tmp/test_log.%d", (int)getpid());
	unlink(path);
	return 0;
}

static int remove_path(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static void begin(enum log_format form)
{
	struct buf error = {0};
	assert_true(log_open(path, form, LOG_LEVEL_INFO, &error));
	assert_true(log_start(&error));
	buf_fini(&error);
}

static char *written(const char *name)
{
	struct buf b = {0};
	FILE *in = fopen(name, "r");
	assert_non_null(in);
	buf_commit(&b, fread(buf_reserve(&b, 1 << 24), 1, 1 << 24, in));
	fclose(in);
	return buf_steal(&b, NULL);
}

/* Log one event in that form, and return what came of it. */
#define LOGGED(form, ...)                                                                          \
	(begin(form), log_event(LOG_LEVEL_INFO, __VA_ARGS__, NULL), log_close(), written(path))

static void a_line_is_time_level_event_and_pairs(void **state)
{
	(void)state;
	char *text =
		LOGGED(LOG_TEXT, "queued", "id", "0ABC", "left_out", NULL, "size", log_number(-12));
	assert_int_equal(strlen(text), strlen("2026-01-02T03:04:05.678Z") +
					       strlen(" info queued id=0ABC size=-12\n"));
	assert_true(isdigit((unsigned char)text[0]) && text[10] == 'T' && text[19] == '.');
	assert_string_equal(text + 23, "Z info queued id=0ABC size=-12\n");
	free(text);
}

static void what_a_peer_sent_stays_in_its_line_and_in_its_value(void **state)
{
	(void)state;
	static const struct {
		const char *value, *expected;
	} cases[] = {
		{"plain@example.com", "k=plain@example.com\n"},
		{"", "k=\"\"\n"},
		{"two words", "k=\"two words\"\n"},
		{"a\"b\\c", "k=\"a\\\"b\\\\c\"\n"},
		{"x=y", "k=\"x=y\"\n"},
		{"one\r\ntwo\t", "k=\"one\\r\\ntwo\\t\"\n"},
		{"\x1b[2J\x7f", "k=\"\\x1B[2J\\x7F\"\n"},
		{"\xc3\xa4", "k=\xc3\xa4\n"},
		{"\xff\xc2\x85", "k=\"\\xFF\\xC2\\x85\"\n"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		unlink(path);
		char *text = LOGGED(LOG_TEXT, "e", "k", cases[i].value);
		assert_string_equal(text + strlen("2026-01-02T03:04:05.678Z info e "),
				    cases[i].expected);
		free(text);
	}
}

/* Each byte at each place of values of any length: in quotes if it is none of those that need none, and read back. */
static void each_byte_is_told_wherever_it_stands(void **state)
{
	(void)state;
	begin(LOG_TEXT);
	for (int c = 1; c < 0x80; c++)
		for (int at = 0; at < 19; at++) {
			char value[20] = "abcdefghijklmnopqrs";
			value[at] = (char)c;
			value[at + (19 - at) / 2 + 1] = '\0';
			log_event(LOG_LEVEL_INFO, "e", "v", value, NULL);
		}
	log_close();
	char *text = written(path), *line = text;
	for (int c = 1; c < 0x80; c++)
		for (int at = 0; at < 19; at++) {
			bool bare = isgraph(c) && !strchr("\"=\\", c);
			char *v = strstr(line, " v=") + 3, *seen = v + !bare + at;
			assert_int_equal(*v == '"', !bare);
			assert_memory_equal(v + !bare, "abcdefghijklmnopqrs", (size_t)at);
			if (isprint(c) && !strchr("\"\\", c))
				assert_int_equal(*seen, c);
			else
				assert_int_equal(*seen, '\\');
			line = strchr(line, '\n') + 1;
		}
	assert_int_equal(*line, '\0');
	free(text);
}

static void a_long_value_is_cut_between_characters_and_that_is_said(void **state)
{
	(void)state;
	static const enum log_format forms[] = {LOG_TEXT, LOG_JSON, LOG_POSTFIX};
	char value[3001];
	for (size_t i = 0; i < sizeof value - 1; i += 3)
		memcpy(value + i, "\xe2\x82\xac",
		       3); /* a sign of three bytes: 512 is none of its ends */
	value[sizeof value - 1] = '\0';
	for (int i = 0; i < 3; i++) {
		unlink(path);
		char *text = LOGGED(forms[i], "e", "k", value, "last", "one");
		assert_non_null(strstr(text, "\xac...(cut, 3000 bytes)"));
		assert_in_range(strlen(text), 500, 700);
		assert_non_null(strstr(text, "last"));
		free(text);
	}
	value[LOG_VALUE_MAX] = '\0';
	unlink(path);
	char *whole = LOGGED(LOG_TEXT, "e", "k", value);
	assert_null(strstr(whole, "cut"));
	free(whole);
}

/* As many as an event has at most. */
#define TEN_PAIRS(v) "k", v, "k", v, "k", v, "k", v, "k", v, "k", v, "k", v, "k", v, "k", v, "k", v

static void the_longest_event_is_whole(void **state)
{
	(void)state;
	char value[LOG_VALUE_MAX + 2];
	memset(value, '"', sizeof value - 1);
	value[sizeof value - 1] = '\0';
	char *text = LOGGED(LOG_TEXT, "e", TEN_PAIRS(value), TEN_PAIRS(value), TEN_PAIRS(value),
			    TEN_PAIRS(value));
	int n = 0;
	for (const char *at = text; (at = strstr(at, "...(cut, 513 bytes)")); at++)
		n++;
	assert_int_equal(n, 40);
	free(text);
}

static void what_is_held_is_logged_once_it_is_released(void **state)
{
	(void)state;
	begin(LOG_TEXT);
	struct log_held *first = log_hold(LOG_LEVEL_INFO, "first", "k", "v", NULL);
	struct log_held *never = log_hold(LOG_LEVEL_INFO, "never", NULL);
	assert_null(log_hold(LOG_LEVEL_DEBUG, "hidden", NULL));
	log_event(LOG_LEVEL_INFO, "before", NULL);
	log_release(&first);
	log_release(&first);
	log_held_free(&never);
	log_event(LOG_LEVEL_INFO, "after", NULL);
	log_close();
	char *text = written(path), *before = strstr(text, "before\n");
	char *released = strstr(text, "first k=v\n");
	assert_non_null(before);
	assert_true(released > before && strstr(text, "after\n") > released);
	assert_null(strstr(released + 1, "first"));
	assert_null(strstr(text, "never"));
	free(text);
}

static void json_escapes_and_keeps_numbers(void **state)
{
	(void)state;
	char *text = LOGGED(LOG_JSON, "sent", "reply", "\"a\\b\"\r\n\x01\xff", "delay",
			    log_seconds(1250), "code", "250", "n", log_number(3));
	assert_non_null(strstr(text, "\"level\":\"info\",\"event\":\"sent\","));
	assert_non_null(strstr(text, "\"reply\":\"\\\"a\\\\b\\\"\\u000d\\n\\u0001\xef\xbf\xbd\""));
	assert_non_null(strstr(text, ",\"delay\":1.25,\"code\":\"250\",\"n\":3}\n"));
	assert_int_equal(text[0], '{');
	free(text);
}

static void the_lines_of_a_delivery_are_those_that_pflogsumm_reads(void **state)
{
	(void)state;
	begin(LOG_POSTFIX);
	log_event(LOG_LEVEL_INFO, "queued", "id", "0ID", "client", "192.0.2.1", "from", "a@b.c",
		  "nrcpt", "1", "size", "99", "message_id", "<x@y>", NULL);
	log_event(LOG_LEVEL_INFO, "sent", "id", "0ID", "to", "d@e.f", "relay", "mx[192.0.2.2]:25",
		  "delay", "0.5", "delays", "0.1/0/0.2/0.2", "dsn", "2.0.0", "reply",
		  "250 ok\nmore", NULL);
	log_event(LOG_LEVEL_INFO, "in_doubt", "id", "0ID", "to", "g@e.f", "dsn", "4.4.2", NULL);
	log_event(LOG_LEVEL_INFO, "reject", "client", "mx[192.0.2.1]", "stage", "RCPT", "code",
		  "554", "dsn", "5.7.1", "reason", "Relay access denied", "from", "a@b.c", "to",
		  "x@y.z", NULL);
	log_event(LOG_LEVEL_INFO, "done", "id", "0ID", NULL);
	log_close();
	char *text = written(path);
	char pid[32];
	snprintf(pid, sizeof pid, "sluice/smtp[%d]: ", (int)getpid());
	assert_non_null(strstr(text, pid));
	static const char *const lines[] = {
		": 0ID: client=unknown[192.0.2.1]\n",
		": 0ID: message-id=<x@y>\n",
		": 0ID: from=<a@b.c>, size=99, nrcpt=1 (queue active)\n",
		": 0ID: to=<d@e.f>, relay=mx[192.0.2.2]:25, delay=0.5, delays=0.1/0/0.2/0.2, "
		"dsn=2.0.0, status=sent (250 ok?more)\n",
		": 0ID: to=<g@e.f>, relay=none, delay=0, delays=0/0/0/0, dsn=4.4.2, "
		"status=deferred (no reply)\n",
		": NOQUEUE: reject: RCPT from mx[192.0.2.1]: 554 5.7.1 <x@y.z>: Relay access "
		"denied; from=<a@b.c> to=<x@y.z> proto=SMTP helo=<>\n",
		": 0ID: removed\n",
	};
	const char *at = text;
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		at = strstr(at, lines[i]);
		assert_non_null(at);
	}
	free(text);
}

static void values_are_good_until_the_eighth_next(void **state)
{
	(void)state;
	const char *first = log_number(1);
	for (int i = 2; i <= 8; i++)
		log_number(i);
	assert_string_equal(first, "1");
	assert_string_equal(log_seconds(0), "0");
	assert_string_equal(log_seconds(100), "0.1");
	assert_string_equal(log_seconds(12005), "12.005");
	assert_string_equal(log_seconds(-1500), "-1.5");
	assert_string_equal(log_seconds_each((const int64_t[]){2, 0, -1250, 10000}, 4),
			    "0.002/0/-1.25/10");
	assert_string_equal(log_reply(250, "2.0.0 ok"), "250 2.0.0 ok");
	assert_string_equal(log_reply(0, "connection refused"), "connection refused");
	assert_string_equal(log_text("%s-%d", "a", 7), "a-7");
	assert_string_equal(log_id(0), "0000000000000");
}

static const char *long_reply(char *text, size_t len)
{
	memset(text, 'x', len);
	text[len] = '\0';
	return log_reply(421, text);
}

static void a_reply_is_cut_where_its_room_ends(void **state)
{
	(void)state;
	char text[4 * VERDICT_TEXT_MAX];
	assert_int_equal(strlen(long_reply(text, VERDICT_TEXT_MAX)), 4 + VERDICT_TEXT_MAX);
	const char *reply = long_reply(text, sizeof text - 1);
	assert_in_range(strlen(reply), 4 + VERDICT_TEXT_MAX, 100 + VERDICT_TEXT_MAX);
	assert_memory_equal(reply, "421 xxx", 7);
}

static void of_a_long_reply_it_is_said_that_it_was_cut(void **state)
{
	(void)state;
	char text[601];
	begin(LOG_TEXT);
	log_event(LOG_LEVEL_INFO, "deferred", "reply", long_reply(text, 600), NULL);
	log_close();
	char *line = written(path);
	assert_non_null(strstr(line, "xxx...(cut, 604 bytes)\"\n"));
	free(line);
}

static void what_is_below_the_level_is_not_logged(void **state)
{
	(void)state;
	begin(LOG_TEXT);
	log_event(LOG_LEVEL_DEBUG, "hidden", NULL);
	log_set_level(LOG_LEVEL_ERROR);
	log_event(LOG_LEVEL_WARNING, "hidden", NULL);
	log_event(LOG_LEVEL_ERROR, "shown", NULL);
	log_close();
	char *text = written(path);
	assert_null(strstr(text, "hidden"));
	assert_non_null(strstr(text, "error shown\n"));
	free(text);
}

enum { THREADS = 4, LINES = 5000 };

static void *close_log(void *arg)
{
	(void)arg;
	log_close();
	return NULL;
}

static void *log_many(void *arg)
{
	for (int i = 0; i < LINES; i++)
		log_event(LOG_LEVEL_INFO, "many", "thread", arg, "n", log_number(i), NULL);
	return NULL; /* the end of the thread flushes */
}

static void no_line_of_many_threads_is_lost_or_torn(void **state)
{
	(void)state;
	pthread_t threads[THREADS];
	static char names[THREADS][2] = {"a", "b", "c", "d"};
	begin(LOG_TEXT);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, log_many, names[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	log_close();
	int next[THREADS] = {0}, n;
	char *text = written(path), *rest = text, *line, name;
	while ((line = strsep(&rest, "\n")) && *line) {
		assert_int_equal(sscanf(line + 25, "info many thread=%c n=%d", &name, &n), 2);
		assert_in_range(name, 'a', 'd');
		assert_int_equal(n, next[name - 'a']++);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(next[i], LINES);
	assert_int_equal(metrics_sum(METRIC_log_dropped), 0);
	free(text);
}

static void after_a_rotation_lines_go_to_the_new_file(void **state)
{
	(void)state;
	char *old = mem_printf("%s.1", path);
	begin(LOG_TEXT);
	log_event(LOG_LEVEL_INFO, "before", NULL);
	log_flush();
	for (int i = 0; i < 30000 && access(path, F_OK) != 0; i++)
		usleep(1000);
	char *text = NULL;
	do { /* until the log thread has written it */
		free(text);
		usleep(1000);
		text = written(path);
	} while (!strstr(text, "before\n"));
	free(text);
	assert_int_equal(rename(path, old), 0);
	log_reopen();
	log_event(LOG_LEVEL_INFO, "after", NULL);
	log_close();
	text = written(path);
	assert_non_null(strstr(text, "after\n"));
	free(text);
	unlink(old);
	free(old);
}

/* Nobody has come to the first move when the second is made. */
static void a_log_that_is_moved_twice_has_the_last_form_in_the_last_place(void **state)
{
	(void)state;
	struct buf error = {0};
	char *other = mem_printf("%s.other", path);
	assert_true(log_open(path, LOG_TEXT, LOG_LEVEL_INFO, &error));
	log_event(LOG_LEVEL_INFO, "e", NULL);
	assert_true(log_move(other, LOG_TEXT, &error));
	assert_true(log_move(NULL, LOG_JSON, &error));
	assert_false(log_move("/nowhere/at/all", LOG_TEXT, &error));
	log_close();
	char *text = written(other);
	assert_non_null(strstr(text, "\"event\":\"e\""));
	free(text);
	unlink(other);
	free(other);
	buf_fini(&error);
}

/* The disk is full, the line is written in part; then there is room, and the relay is told to reload. */
static void a_torn_line_stays_one_of_its_own_when_the_file_is_opened_anew(void **state)
{
	(void)state;
	struct buf error = {0};
	struct log_place p;
	struct rlimit all, few;
	_Atomic int64_t never = 0;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	few = (struct rlimit){10, all.rlim_max};
	assert_true(log_place_open(&p, path, &error));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
	int lost = log_place_write(&p, "the line is torn\n", 17, &never);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	assert_int_equal(lost, 1);
	log_place_reopen(&p);
	assert_int_equal(log_place_write(&p, "next\n", 5, &never), 0);
	log_place_close(&p);
	char *text = written(path);
	assert_string_equal(text, "the line i\nnext\n");
	free(text);
	buf_fini(&error);
}

static void a_log_that_can_t_be_opened_is_said(void **state)
{
	(void)state;
	struct buf error = {0};
	assert_false(log_open("/nowhere/at/all", LOG_TEXT, LOG_LEVEL_INFO, &error));
	assert_non_null(strstr(buf_cstr(&error), "/nowhere/at/all"));
	buf_fini(&error);
}

/* Last: what was dropped stays counted. A pipe that nobody reads holds up the log thread. */
static void a_log_that_stands_still_costs_lines_but_never_waits(void **state)
{
	(void)state;
	struct buf error = {0};
	char value[LOG_VALUE_MAX + 1], name[64], away[65536];
	int ends[2];
	memset(value, 'x', sizeof value - 1);
	value[sizeof value - 1] = '\0';
	assert_int_equal(pipe(ends), 0);
	snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
	assert_true(log_open(name, LOG_TEXT, LOG_LEVEL_INFO, &error));
	assert_true(log_start(&error));
	for (int i = 0; i < (LOG_BACKLOG_MAX + (4 << 20)) / LOG_VALUE_MAX; i++)
		log_event(LOG_LEVEL_INFO, "e", "k", value, NULL);
	log_flush();
	assert_true(metrics_sum(METRIC_log_dropped) > 1000);
	close(ends[1]);
	pthread_t closer;
	pthread_create(&closer, NULL, close_log, NULL);
	bool told = false;
	ssize_t n;
	while ((n = read(ends[0], away, sizeof away - 1)) > 0) {
		away[n] = '\0';
		told = told || strstr(away, "warning log_dropped lines=");
	}
	pthread_join(closer, NULL);
	close(ends[0]);
	assert_true(told);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_path, remove_path)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_line_is_time_level_event_and_pairs),
		TEST(what_a_peer_sent_stays_in_its_line_and_in_its_value),
		TEST(each_byte_is_told_wherever_it_stands),
		TEST(a_long_value_is_cut_between_characters_and_that_is_said),
		TEST(the_longest_event_is_whole),
		TEST(what_is_held_is_logged_once_it_is_released),
		TEST(json_escapes_and_keeps_numbers),
		TEST(the_lines_of_a_delivery_are_those_that_pflogsumm_reads),
		TEST(values_are_good_until_the_eighth_next),
		TEST(a_reply_is_cut_where_its_room_ends),
		TEST(of_a_long_reply_it_is_said_that_it_was_cut),
		TEST(what_is_below_the_level_is_not_logged),
		TEST(no_line_of_many_threads_is_lost_or_torn),
		TEST(after_a_rotation_lines_go_to_the_new_file),
		TEST(a_log_that_is_moved_twice_has_the_last_form_in_the_last_place),
		TEST(a_torn_line_stays_one_of_its_own_when_the_file_is_opened_anew),
		TEST(a_log_that_can_t_be_opened_is_said),
		TEST(a_log_that_stands_still_costs_lines_but_never_waits),
	};
	return RUN(tests);
}
