/* SPDX-License-Identifier: ISC */
#include "base/reason.h"

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

/* As large providers and common servers word them. */
static void what_hosts_say_has_one_word(void **state)
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

static void doubt_is_a_word_of_its_own(void **state)
{
	static const struct said said = {0, "4.4.2", "the reply never came", "in-doubt"};
	(void)state;
	check(VERDICT_AT_NONE, VERDICT_IN_DOUBT, "mx.test[192.0.2.1]:25", &said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_hosts_say_has_one_word),
		cmocka_unit_test(what_we_say_is_known_by_its_code),
		cmocka_unit_test(doubt_is_a_word_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
