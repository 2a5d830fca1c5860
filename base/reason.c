/* SPDX-License-Identifier: ISC */
#include "base/reason_text.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const char *reason_word(enum reason r)
{
	static const char *const words[] = {
#define R(name, word, ...) [REASON_##name] = word,
		REASONS(R)
#undef R
	};
	assert(r < REASON_COUNT);
	return words[r];
}

/* The rest of a code behind its class: "1.1" of 5.1.1. loose: hosts say it of much else, and strong words know
 * better. */
struct detail {
	const char *code;
	enum reason reason;
	bool loose;
};

static const struct detail details[] = {
	{"1.0", REASON_INVALID_RECIPIENT, true},
	{"1.1", REASON_INVALID_RECIPIENT, true},
	{"1.2", REASON_INVALID_DOMAIN, true},
	{"1.3", REASON_INVALID_RECIPIENT, true},
	{"1.4", REASON_INVALID_RECIPIENT, true},
	{"1.6", REASON_INVALID_RECIPIENT, true},
	{"1.7", REASON_INVALID_SENDER, false},
	{"1.8", REASON_INVALID_SENDER, true},
	{"1.9", REASON_CONTENT, false},
	{"1.10", REASON_INVALID_DOMAIN, true},
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
	{"6.9", REASON_CONTENT, false},
	{"7.0", REASON_POLICY, true},
	{"7.1", REASON_POLICY, true},
	{"7.2", REASON_POLICY, true},
	{"7.4", REASON_TLS, true},
	{"7.5", REASON_TLS, true},
	{"7.8", REASON_LOGIN, false},
	{"7.9", REASON_LOGIN, false},
	{"7.10", REASON_TLS, false},
	{"7.11", REASON_TLS, false},
	{"7.13", REASON_LOGIN, false},
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
	{"7.57", REASON_LOGIN, false},
};

#define AT(stage) (1u << VERDICT_AT_##stage)

enum {
	ANY = (1u << VERDICT_STAGES) - 1,
	FROM_RCPT = AT(UNKNOWN) | AT(RCPT) | AT(DATA) | AT(END),
};

/* Without an enhanced code, and with a text that says nothing. 550, 551 and 553 stand for anything, at RCPT too:
 * no address is called dead for the sake of them alone. */
static const struct {
	int code;
	unsigned stages;
	enum reason reason;
} codes[] = {
	{421, ANY, REASON_SYSTEM},
	{431, ANY, REASON_SYSTEM},
	{432, ANY, REASON_SYSTEM},
	{451, ANY, REASON_SYSTEM},
	{452, ANY, REASON_SYSTEM},
	{454, ANY, REASON_TLS},
	{455, ANY, REASON_CONTENT},
	{500, ANY, REASON_PROTOCOL},
	{501, ANY, REASON_PROTOCOL},
	{502, ANY, REASON_PROTOCOL},
	{503, ANY, REASON_PROTOCOL},
	{504, ANY, REASON_PROTOCOL},
	{521, ANY, REASON_POLICY},
	{523, ANY, REASON_MESSAGE_TOO_LARGE},
	{530, ANY, REASON_LOGIN},
	{535, ANY, REASON_LOGIN},
	{538, ANY, REASON_TLS},
	{550, ANY & ~AT(RCPT), REASON_POLICY},
	{552, ANY & ~AT(RCPT), REASON_MESSAGE_TOO_LARGE},
	{552, AT(RCPT), REASON_MAILBOX_FULL},
	{553, AT(MAIL), REASON_INVALID_SENDER},
	{554, ANY, REASON_POLICY},
	{555, ANY, REASON_CONTENT},
	{556, FROM_RCPT, REASON_INVALID_DOMAIN},
};

static const struct detail *find_detail(const char *dsn)
{
	for (size_t i = 0; dsn[0] && i < sizeof details / sizeof *details; i++)
		if (strcmp(details[i].code, dsn + 2) == 0)
			return &details[i];
	return NULL;
}

static bool speaks_of_recipient(enum reason r)
{
	return r == REASON_INVALID_RECIPIENT || r == REASON_INVALID_DOMAIN ||
	       r == REASON_MAILBOX_FULL || r == REASON_MAILBOX_DISABLED;
}

/* qmail's way: "(#5.1.1)". */
static const struct detail *find_detail_in(const char *text)
{
	char code[12];
	const char *at = strchr(text, '#');
	if (!at || sscanf(at, "#%11[0-9.]", code) != 1 || !strchr("45", code[0]) || code[1] != '.')
		return NULL;
	return find_detail(code);
}

/* The detail where it can be meant: of an address before there is a recipient, it is the sender's; and
 * nobody logs in later. */
static const struct detail *detail_at(const struct verdict *v)
{
	static const struct detail of_sender = {"", REASON_INVALID_SENDER, true};
	const struct detail *d =
		strcmp(v->dsn + 1, ".0.0") == 0 ? find_detail_in(v->text) : find_detail(v->dsn);
	if (!d)
		return NULL;
	if (v->stage >= VERDICT_AT_RCPT)
		return d->reason == REASON_LOGIN ? NULL : d;
	if (v->stage == VERDICT_AT_UNKNOWN || !speaks_of_recipient(d->reason))
		return d;
	bool of_address = d->code[0] == '1' && v->code / 100 == 5;
	return v->stage == VERDICT_AT_MAIL && of_address ? &of_sender : NULL;
}

static enum reason of_code(const struct verdict *v)
{
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i].code == v->code && codes[i].stages & 1u << v->stage)
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

static enum reason_whose usual_owner(enum reason r)
{
	switch (r) {
	case REASON_RATE_LIMITED:
	case REASON_REPUTATION:
	case REASON_LOGIN:
	case REASON_TLS:
		return REASON_OF_HOST;
	case REASON_POLICY:
	case REASON_SYSTEM:
	case REASON_PROTOCOL:
	case REASON_CONNECTION:
	case REASON_DNS:
	case REASON_OTHER:
		return REASON_UNCLEAR;
	default:
		return REASON_OF_MESSAGE;
	}
}

static struct reason_said said_usually(enum reason r)
{
	return (struct reason_said){.reason = r, .whose = usual_owner(r)};
}

/* Trouble of its own is no reason to refuse for good. */
static bool says_little(const struct detail *d, int code)
{
	return d->reason == REASON_OTHER || d->reason == REASON_POLICY ||
	       d->reason == REASON_PROTOCOL || (d->reason == REASON_SYSTEM && code / 100 == 5);
}

/* Of a reply: the exact code, strong words, the loose code, weak words, the bare code. */
static struct reason_said judge_reply(const struct verdict *v)
{
	const struct detail *d = detail_at(v);
	struct reason_said said;
	if (d && !d->loose)
		return said_usually(d->reason);
	bool found = reason_text_find(v, &said);
	if (found && !said.weak)
		return said;
	if (d && !says_little(d, v->code))
		return said_usually(d->reason);
	if (found)
		return said;
	return said_usually(d && d->reason != REASON_OTHER ? d->reason : of_code(v));
}

static bool is_ours(const struct verdict *v)
{
	return v->stage == VERDICT_AT_NONE || !v->host[0] ||
	       (v->stage == VERDICT_AT_UNKNOWN && v->code == 0);
}

enum reason reason_of(const struct verdict *v)
{
	assert(v->class != VERDICT_SENT);
	if (v->class == VERDICT_IN_DOUBT)
		return REASON_IN_DOUBT;
	return is_ours(v) ? of_ourselves(v) : judge_reply(v).reason;
}

/* Who hangs up, or does not even take the name of a sender, would do so whatever the mail. */
static bool turns_us_away(const struct verdict *v)
{
	return v->code == 421 || v->stage == VERDICT_AT_GREETING;
}

enum reason_whose reason_whose(const struct verdict *v)
{
	assert(v->class != VERDICT_SENT);
	if (v->class == VERDICT_IN_DOUBT || is_ours(v))
		return REASON_UNCLEAR;
	if (turns_us_away(v))
		return REASON_OF_HOST;
	enum reason_whose whose = judge_reply(v).whose;
	bool later_to_mail = v->stage == VERDICT_AT_MAIL && v->code / 100 == 4;
	return whose == REASON_UNCLEAR && later_to_mail ? REASON_OF_HOST : whose;
}
