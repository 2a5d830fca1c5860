/* SPDX-License-Identifier: ISC */
#include "base/reason.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

const char *reason_word(enum reason r)
{
	static const char *const words[] = {
#define R(name, word, ...) [REASON_##name] = word,
		REASONS(R)
#undef R
	};
	return words[r];
}

/* What stands behind the class: "1.1" of 5.1.1. loose: hosts say it of much else, and the text knows
 * better. */
struct detail {
	const char *code;
	enum reason reason;
	bool loose;
};

static const struct detail details[] = {
	{"1.0", REASON_INVALID_RECIPIENT, true},
	{"1.1", REASON_INVALID_RECIPIENT, true},
	{"1.2", REASON_INVALID_DOMAIN, false},
	{"1.3", REASON_INVALID_RECIPIENT, false},
	{"1.4", REASON_INVALID_RECIPIENT, false},
	{"1.6", REASON_INVALID_RECIPIENT, false},
	{"1.7", REASON_INVALID_SENDER, false},
	{"1.8", REASON_INVALID_SENDER, true},
	{"1.9", REASON_CONTENT, false},
	{"1.10", REASON_INVALID_DOMAIN, false},
	{"2.0", REASON_OTHER, true},
	{"2.1", REASON_MAILBOX_DISABLED, true},
	{"2.2", REASON_MAILBOX_FULL, false},
	{"2.3", REASON_MESSAGE_TOO_LARGE, false},
	{"2.4", REASON_OTHER, true},
	{"3.0", REASON_SYSTEM, true},
	{"3.1", REASON_SYSTEM, false},
	{"3.2", REASON_SYSTEM, true},
	{"3.3", REASON_CONTENT, false},
	{"3.4", REASON_MESSAGE_TOO_LARGE, false},
	{"3.5", REASON_SYSTEM, true},
	{"4.0", REASON_CONNECTION, true},
	{"4.1", REASON_CONNECTION, true},
	{"4.2", REASON_CONNECTION, true},
	{"4.3", REASON_DNS, true},
	{"4.4", REASON_DNS, true},
	{"4.5", REASON_RATE_LIMITED, true},
	{"4.6", REASON_LOOP, false},
	{"4.7", REASON_EXPIRED, true},
	{"5.0", REASON_PROTOCOL, true},
	{"5.1", REASON_PROTOCOL, true},
	{"5.2", REASON_PROTOCOL, true},
	{"5.3", REASON_RATE_LIMITED, true},
	{"5.4", REASON_PROTOCOL, true},
	{"5.5", REASON_PROTOCOL, false},
	{"6.0", REASON_CONTENT, true},
	{"6.1", REASON_CONTENT, false},
	{"6.2", REASON_CONTENT, false},
	{"6.3", REASON_CONTENT, false},
	{"6.6", REASON_CONTENT, false},
	{"6.7", REASON_CONTENT, false},
	{"7.0", REASON_POLICY, true},
	{"7.1", REASON_POLICY, true},
	{"7.2", REASON_POLICY, true},
	{"7.4", REASON_TLS, true},
	{"7.5", REASON_TLS, true},
	{"7.8", REASON_LOGIN, false},
	{"7.9", REASON_LOGIN, false},
	{"7.10", REASON_TLS, false},
	{"7.11", REASON_TLS, false},
	{"7.13", REASON_MAILBOX_DISABLED, false},
	{"7.17", REASON_INVALID_RECIPIENT, false},
	{"7.18", REASON_INVALID_DOMAIN, false},
	{"7.20", REASON_SENDER_AUTHENTICATION, false},
	{"7.21", REASON_SENDER_AUTHENTICATION, false},
	{"7.22", REASON_SENDER_AUTHENTICATION, false},
	{"7.23", REASON_SENDER_AUTHENTICATION, false},
	{"7.24", REASON_SENDER_AUTHENTICATION, false},
	{"7.25", REASON_REPUTATION, false},
	{"7.26", REASON_SENDER_AUTHENTICATION, false},
	{"7.27", REASON_INVALID_SENDER, false},
	{"7.28", REASON_RATE_LIMITED, false},
	{"7.29", REASON_SENDER_AUTHENTICATION, false},
	{"7.30", REASON_TLS, false},
};

/* In this order: a text that names a list of spammers speaks of spam too, and one that is full may say
 * that it denies. */
static const struct phrase {
	const char *text;
	enum reason reason;
} phrases[] = {
	{"greylist", REASON_GREYLISTED},
	{"graylist", REASON_GREYLISTED},
	{"grey-list", REASON_GREYLISTED},
	{"gray-list", REASON_GREYLISTED},
	{"grey list", REASON_GREYLISTED},
	{"postgrey", REASON_GREYLISTED},
	{"rate limit", REASON_RATE_LIMITED},
	{"rate-limit", REASON_RATE_LIMITED},
	{"ratelimit", REASON_RATE_LIMITED},
	{"throttl", REASON_RATE_LIMITED},
	{"too many", REASON_RATE_LIMITED},
	{"too much mail", REASON_RATE_LIMITED},
	{"sending limit", REASON_RATE_LIMITED},
	{"unusual rate", REASON_RATE_LIMITED},
	{"virus", REASON_VIRUS},
	{"malware", REASON_VIRUS},
	{"infected", REASON_VIRUS},
	{"dmarc", REASON_SENDER_AUTHENTICATION},
	{"dkim", REASON_SENDER_AUTHENTICATION},
	{"spf ", REASON_SENDER_AUTHENTICATION},
	{"unauthenticated", REASON_SENDER_AUTHENTICATION},
	{"spamhaus", REASON_REPUTATION},
	{"spamcop", REASON_REPUTATION},
	{"barracudacentral", REASON_REPUTATION},
	{"blacklist", REASON_REPUTATION},
	{"black list", REASON_REPUTATION},
	{"blocklist", REASON_REPUTATION},
	{"block list", REASON_REPUTATION},
	{"block-list", REASON_REPUTATION},
	{"denylist", REASON_REPUTATION},
	{"dnsbl", REASON_REPUTATION},
	{"reputation", REASON_REPUTATION},
	{"rbl", REASON_REPUTATION},
	{"listed", REASON_REPUTATION},
	{"reverse dns", REASON_REPUTATION},
	{"ptr record", REASON_REPUTATION},
	{"spam", REASON_SPAM_CONTENT},
	{"unsolicited", REASON_SPAM_CONTENT},
	{"quota", REASON_MAILBOX_FULL},
	{"mailbox full", REASON_MAILBOX_FULL},
	{"mailbox is full", REASON_MAILBOX_FULL},
	{"inbox is full", REASON_MAILBOX_FULL},
	{"out of storage", REASON_MAILBOX_FULL},
	{"exceeded storage", REASON_MAILBOX_FULL},
	{"user unknown", REASON_INVALID_RECIPIENT},
	{"unknown user", REASON_INVALID_RECIPIENT},
	{"unknown recipient", REASON_INVALID_RECIPIENT},
	{"recipient unknown", REASON_INVALID_RECIPIENT},
	{"no such user", REASON_INVALID_RECIPIENT},
	{"no such recipient", REASON_INVALID_RECIPIENT},
	{"no such mailbox", REASON_INVALID_RECIPIENT},
	{"no mailbox", REASON_INVALID_RECIPIENT},
	{"does not exist", REASON_INVALID_RECIPIENT},
	{"doesn't exist", REASON_INVALID_RECIPIENT},
	{"not found", REASON_INVALID_RECIPIENT},
	{"invalid recipient", REASON_INVALID_RECIPIENT},
	{"mailbox unavailable", REASON_INVALID_RECIPIENT},
	{"address unknown", REASON_INVALID_RECIPIENT},
	{"recipient address rejected: access denied", REASON_INVALID_RECIPIENT},
	{"disabled", REASON_MAILBOX_DISABLED},
	{"inactive", REASON_MAILBOX_DISABLED},
	{"deactivated", REASON_MAILBOX_DISABLED},
	{"suspended", REASON_MAILBOX_DISABLED},
	{"relay", REASON_RELAYING_DENIED},
	{"too large", REASON_MESSAGE_TOO_LARGE},
	{"too big", REASON_MESSAGE_TOO_LARGE},
	{"size limit", REASON_MESSAGE_TOO_LARGE},
	{"starttls", REASON_TLS},
	{"encryption required", REASON_TLS},
	{"authentication required", REASON_LOGIN},
	{"policy", REASON_POLICY},
	{"blocked", REASON_POLICY},
	{"banned", REASON_POLICY},
	{"denied", REASON_POLICY},
	{"rejected", REASON_POLICY},
};

/* Without an enhanced code, and with a text that says nothing. */
static const struct {
	int code;
	enum reason reason;
} codes[] = {
	{421, REASON_SYSTEM},
	{431, REASON_SYSTEM},
	{432, REASON_SYSTEM},
	{450, REASON_OTHER},
	{451, REASON_SYSTEM},
	{452, REASON_SYSTEM},
	{454, REASON_TLS},
	{455, REASON_CONTENT},
	{500, REASON_PROTOCOL},
	{501, REASON_PROTOCOL},
	{502, REASON_PROTOCOL},
	{503, REASON_PROTOCOL},
	{504, REASON_PROTOCOL},
	{521, REASON_INVALID_DOMAIN},
	{523, REASON_MESSAGE_TOO_LARGE},
	{530, REASON_LOGIN},
	{535, REASON_LOGIN},
	{538, REASON_TLS},
	{550, REASON_INVALID_RECIPIENT},
	{551, REASON_INVALID_RECIPIENT},
	{552, REASON_MAILBOX_FULL},
	{553, REASON_INVALID_RECIPIENT},
	{554, REASON_POLICY},
	{555, REASON_CONTENT},
	{556, REASON_INVALID_DOMAIN},
};

static const struct detail *find_detail(const char *dsn)
{
	for (size_t i = 0; dsn[0] && i < sizeof details / sizeof *details; i++)
		if (strcmp(details[i].code, dsn + 2) == 0)
			return &details[i];
	return NULL;
}

/* needle is in lower case. */
static bool holds(const char *text, const char *needle)
{
	for (; *text; text++) {
		size_t n = 0;
		while (needle[n] && tolower((unsigned char)text[n]) == needle[n])
			n++;
		if (!needle[n])
			return true;
	}
	return false;
}

static enum reason of_text(const char *text)
{
	for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
		if (holds(text, phrases[i].text))
			return phrases[i].reason;
	return REASON_OTHER;
}

static enum reason of_code(int code)
{
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i].code == code)
			return codes[i].reason;
	return REASON_OTHER;
}

/* Our own words: what the others leave open is what we use these codes for. */
static enum reason of_ourselves(const struct verdict *v)
{
	static const struct detail own[] = {
		{"0.0", REASON_OPERATOR, false},  {"3.0", REASON_SYSTEM, false},
		{"3.2", REASON_SUSPENDED, false}, {"4.2", REASON_CONNECTION, false},
		{"7.0", REASON_LOGIN, false},
	};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (strcmp(own[i].code, v->dsn + 2) == 0)
			return own[i].reason;
	/* Given up in doubt: 5.4.2; by name servers that know of no host: for good. */
	const struct detail *d = find_detail(v->dsn);
	return d ? d->reason : REASON_OTHER;
}

enum reason reason_of(const struct verdict *v)
{
	if (v->class == VERDICT_IN_DOUBT)
		return REASON_IN_DOUBT;
	if (v->code == 0 || !v->host[0])
		return of_ourselves(v);
	const struct detail *d = find_detail(v->dsn);
	if (d && !d->loose)
		return d->reason;
	enum reason said = of_text(v->text);
	if (said != REASON_OTHER)
		return said;
	return d && d->reason != REASON_OTHER ? d->reason : of_code(v->code);
}
