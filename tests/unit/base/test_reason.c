/* SPDX-License-Identifier: ISC */
#include "replies_seen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct said {
	int code;
	const char *dsn, *text, *word;
};

static void check(enum verdict_stage stage, enum verdict_class class, const char *host,
		  const struct said *s)
{
	struct verdict *v = verdict_answering(stage, class, s->code, s->dsn, host, s->text);
	const char *word = reason_word(reason_of(v));
	if (strcmp(word, s->word) != 0)
		printf("%d %s %s %s\n", s->code, s->dsn ? s->dsn : "", s->text, word);
	assert_string_equal(word, s->word);
	verdict_unref(v);
}

static enum verdict_class class_of(const struct said *s)
{
	char first = s->dsn ? s->dsn[0] : (char)('0' + s->code / 100);
	return first == '4' ? VERDICT_DEFERRED : VERDICT_FAILED;
}

static void words_at_rcpt_are_as_they_were(void **state)
{
	static const struct said said[] = {
		{550, "5.1.1", "The email account that you tried to reach does not exist.",
		 "invalid-recipient"},
		{550, "5.1.1", "<a@b.test>: Recipient address rejected: User unknown",
		 "invalid-recipient"},
		{550, NULL, "No such user here", "invalid-recipient"},
		{550, NULL, "Requested action not taken: mailbox unavailable", "invalid-recipient"},
		{550, "5.5.1", "Recipient rejected", "policy"},
		{553, NULL, "sorry", "other"},
		{550, "5.4.1", "Recipient address rejected: Access denied.", "invalid-recipient"},
		{452, "4.2.2", "The recipient's inbox is out of storage space.", "mailbox-full"},
		{552, "5.2.2", "Over quota", "mailbox-full"},
		{554, "5.0.0", "Mailbox is full", "mailbox-full"},
		{550, "5.2.1", "The email account that you tried to reach is disabled.",
		 "mailbox-disabled"},
		{550, "5.2.1", "Mailbox not active", "mailbox-disabled"},
		{450, "4.2.1",
		 "The user you are trying to contact is receiving mail at a rate limit",
		 "rate-limited"},
		{421, "4.7.28", "Our system has detected an unusual rate of unsolicited mail",
		 "rate-limited"},
		{421, "4.7.0", "Too many connections from your host.", "rate-limited"},
		{452, "4.5.3", "Too many recipients", "rate-limited"},
		{450, "4.2.0", "<a@b.test>: Recipient address rejected: Greylisted", "greylisted"},
		{451, "4.7.1", "Greylisting in action, please come back later", "greylisted"},
		{550, "5.7.26", "This mail has been blocked because the sender is unauthenticated.",
		 "sender-authentication"},
		{550, "5.7.1", "rejected by the domain's DMARC policy", "sender-authentication"},
		{550, "5.7.1", "Service unavailable, client host blocked using Spamhaus",
		 "reputation"},
		{554, "5.7.1", "Your IP is on our blocklist", "reputation"},
		{550, "5.7.25", "The IP address does not have a PTR record", "reputation"},
		{554, "5.7.1", "Message scored too high for spam", "spam-content"},
		{550, "5.7.1", "This message has been identified as SPAM", "spam-content"},
		{554, "5.6.0", "Message contains a virus", "virus"},
		{554, "5.7.1", "<a@b.test>: Relay access denied", "relaying-denied"},
		{554, "5.7.1", "We do not want this", "policy"},
		{550, "5.7.1", "Delivery not authorized", "policy"},
		{552, "5.3.4", "Message size exceeds fixed limit", "message-too-large"},
		{530, "5.7.0", "Must issue a STARTTLS command first", "tls"},
		{530, "5.7.0", "Authentication required", "login"},
		{535, "5.7.8", "Error: authentication failed", "login"},
		{550, "5.1.8", "Sender address rejected", "invalid-sender"},
		{553, "5.1.7", "bad sender", "invalid-sender"},
		{556, "5.1.10", "Recipient address has null MX", "invalid-domain"},
		{554, "5.4.6", "Too many hops", "loop"},
		{421, NULL, "Service not available, closing transmission channel", "system"},
		{451, "4.3.0", "Temporary lookup failure", "system"},
		{452, "4.3.1", "Insufficient system storage", "system"},
		{503, "5.5.1", "Bad sequence of commands", "protocol"},
		{554, "5.6.3", "Conversion required but not supported", "content"},
		{450, NULL, "later", "other"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof said / sizeof *said; i++)
		check(VERDICT_AT_RCPT, class_of(&said[i]), "mx.test[192.0.2.1]:25", &said[i]);
}

static struct verdict *refusal(enum verdict_stage stage, int code, const char *dsn,
			       const char *text)
{
	return verdict_answering(stage, code / 100 == 4 ? VERDICT_DEFERRED : VERDICT_FAILED, code,
				 dsn, "mx.test[192.0.2.1]:25", text);
}

static bool is_as_seen(const struct reply_seen *s)
{
	struct verdict *v = refusal(s->stage, s->code, s->dsn, s->text);
	enum reason reason = reason_of(v);
	enum reason_whose whose = reason_whose(v);
	verdict_unref(v);
	if (reason != s->reason || whose != s->whose)
		printf("%s: %d %s %s: %s, %d\n", s->of, s->code, s->dsn ? s->dsn : "", s->text,
		       reason_word(reason), (int)whose);
	return reason == s->reason && whose == s->whose;
}

static int count_wrong(const struct reply_seen *seen, size_t n)
{
	int wrong = 0;
	for (size_t i = 0; i < n; i++)
		wrong += !is_as_seen(&seen[i]);
	return wrong;
}

#define N(table) (sizeof(table) / sizeof *(table))

static void what_hosts_say_has_one_word_and_is_somebodys(void **state)
{
	(void)state;
	assert_int_equal(count_wrong(seen_before, N(seen_before)), 0);
	assert_int_equal(count_wrong(seen_after, N(seen_after)), 0);
}

static bool is_gone_for_good(enum reason r)
{
	return r == REASON_INVALID_RECIPIENT || r == REASON_INVALID_DOMAIN ||
	       r == REASON_MAILBOX_DISABLED;
}

static void check_nobody_is_gone(enum verdict_stage stage, const struct reply_seen *seen, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct verdict *v = refusal(stage, seen[i].code, seen[i].dsn, seen[i].text);
		assert_false(is_gone_for_good(reason_of(v)));
		verdict_unref(v);
	}
}

/* Whatever the words. */
static void no_recipient_is_gone_before_one_was_named(void **state)
{
	(void)state;
	check_nobody_is_gone(VERDICT_AT_GREETING, seen_before, N(seen_before));
	check_nobody_is_gone(VERDICT_AT_GREETING, seen_after, N(seen_after));
	check_nobody_is_gone(VERDICT_AT_MAIL, seen_before, N(seen_before));
	check_nobody_is_gone(VERDICT_AT_MAIL, seen_after, N(seen_after));
}

static void nobody_is_gone_for_a_code_that_stands_for_anything(void **state)
{
	(void)state;
	for (int code = 500; code < 600; code++)
		for (int stage = 0; stage < VERDICT_STAGES; stage++) {
			struct verdict *v = refusal((enum verdict_stage)stage, code, NULL, "no");
			assert_true(!is_gone_for_good(reason_of(v)) || code == 556);
			verdict_unref(v);
		}
}

static void who_hangs_up_means_us(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(seen_after); i++) {
		struct verdict *v =
			refusal(seen_after[i].stage, 421, seen_after[i].dsn, seen_after[i].text);
		assert_int_equal(reason_whose(v), REASON_OF_HOST);
		verdict_unref(v);
	}
}

static void what_was_read_back_is_judged_by_code_and_words(void **state)
{
	static const struct reply_seen read_back[] = {
		{"", VERDICT_AT_UNKNOWN, 451, "4.7.650", "temporarily rate limited",
		 REASON_RATE_LIMITED, REASON_OF_HOST},
		{"", VERDICT_AT_UNKNOWN, 450, "4.2.0", "Greylisted", REASON_GREYLISTED,
		 REASON_OF_MESSAGE},
		{"", VERDICT_AT_UNKNOWN, 450, NULL, "later", REASON_OTHER, REASON_UNCLEAR},
		{"", VERDICT_AT_UNKNOWN, 550, "5.1.1", "User unknown", REASON_INVALID_RECIPIENT,
		 REASON_OF_MESSAGE},
	};
	(void)state;
	assert_int_equal(count_wrong(read_back, N(read_back)), 0);
}

/* The name in an address is not what is said of it. */
static void addresses_are_not_read(void **state)
{
	static const struct reply_seen addresses[] = {
		{"", VERDICT_AT_RCPT, 550, NULL, "<spam@virus.test>: User unknown",
		 REASON_INVALID_RECIPIENT, REASON_OF_MESSAGE},
		{"", VERDICT_AT_RCPT, 550, NULL, "<user@unknown.test>: no", REASON_OTHER,
		 REASON_UNCLEAR},
	};
	(void)state;
	assert_int_equal(count_wrong(addresses, N(addresses)), 0);
}

static void what_we_say_is_known_by_its_code(void **state)
{
	static const struct said said[] = {
		{0, "4.4.1", "connect to mx.test: Connection refused", "connection"},
		{0, "4.4.2", "the host is on no blacklist, it hung up", "connection"},
		{451, "4.4.3", "no answer of any name server", "dns"},
		{550, "5.1.2", "there is no such domain", "invalid-domain"},
		{556, "5.1.10", "the domain takes no mail", "invalid-domain"},
		{550, "5.4.6", "we are the best host", "loop"},
		{0, "4.7.4", "no TLS is offered", "tls"},
		{0, "4.7.5", "not trusted", "tls"},
		{0, "4.7.0", "no password", "login"},
		{0, "4.3.2", "suspended", "suspended"},
		{0, "4.4.7", "delivery time expired", "expired"},
		{0, "5.0.0", "returned by the postmaster", "operator"},
		{552, "5.3.4", "larger than it takes", "message-too-large"},
		{0, "4.5.0", "out of step", "protocol"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof said / sizeof *said; i++)
		check(VERDICT_AT_NONE, class_of(&said[i]), NULL, &said[i]);
}

/* The last reply of a host, cited at the end of a message's lifetime, is not what ended it. */
static void our_own_words_are_ours_whomever_they_cite(void **state)
{
	static const struct said said = {452, "5.4.7", "tried for 5 days; last attempt: over quota",
					 "expired"};
	(void)state;
	check(VERDICT_AT_NONE, VERDICT_FAILED, "mx.test[192.0.2.1]:25", &said);
}

/* Without a code: each host has its own. */
static void all_hosts_that_refuse_to_talk_mean_us(void **state)
{
	static const char text[] =
		"all hosts refuse to talk: 554 5.7.1 Your IP is on our blocklist";
	(void)state;
	struct verdict *v = refusal(VERDICT_AT_GREETING, 0, "5.7.1", text);
	assert_int_equal(reason_of(v), REASON_REPUTATION);
	assert_int_equal(reason_whose(v), REASON_OF_HOST);
	verdict_unref(v);
}

static void doubt_is_a_word_of_its_own(void **state)
{
	static const struct said said = {0, "4.4.2", "the reply never came", "in-doubt"};
	(void)state;
	check(VERDICT_AT_NONE, VERDICT_IN_DOUBT, "mx.test[192.0.2.1]:25", &said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_at_rcpt_are_as_they_were),
		cmocka_unit_test(what_hosts_say_has_one_word_and_is_somebodys),
		cmocka_unit_test(no_recipient_is_gone_before_one_was_named),
		cmocka_unit_test(nobody_is_gone_for_a_code_that_stands_for_anything),
		cmocka_unit_test(who_hangs_up_means_us),
		cmocka_unit_test(what_was_read_back_is_judged_by_code_and_words),
		cmocka_unit_test(addresses_are_not_read),
		cmocka_unit_test(what_we_say_is_known_by_its_code),
		cmocka_unit_test(our_own_words_are_ours_whomever_they_cite),
		cmocka_unit_test(all_hosts_that_refuse_to_talk_mean_us),
		cmocka_unit_test(doubt_is_a_word_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
