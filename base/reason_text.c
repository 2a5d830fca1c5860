/* SPDX-License-Identifier: ISC */
#include "base/reason_text.h"

#include <assert.h>
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { GAP_MAX = 60 /* bytes that a "*" stands for, at most */ };

#define AT(stage) (1u << VERDICT_AT_##stage)

enum {
	ANY = (1u << VERDICT_STAGES) - 1,
	BEFORE_RCPT = AT(UNKNOWN) | AT(GREETING) | AT(MAIL),
	FROM_RCPT = AT(UNKNOWN) | AT(RCPT) | AT(DATA) | AT(END),
};

static const char rate_of_mailbox[] =
	"receiving mail at a rate|receiving mail too|user*receiving*rate|"
	"recipient*rate limit|recipient*receive limit|recipient thread limit|"
	"mailbox*rate limit";

static const char greylisting[] =
	"greylist|graylist|grey-list|gray-list|grey list|gray list|greyed|postgrey|"
	"not yet authorized to deliver mail";

static const char hops[] =
	"too many hops|hop count|mail loop|mail is looping|loops back|routing loop|"
	"loop detected|too many received";

static const char rate[] =
	"rate limit|rate-limit|ratelimit|rate exceeded|rate control|throttl|"
	"too many connections|too many concurrent|too many simultaneous|too many sessions|"
	"too many messages|too many mails|too many emails|too many errors|too many invalid|"
	"too many unknown|too many bad|too many smtp|too many sender|too many spam|"
	"too many attempts|too many requests|too many from|too much mail|too much traffic|"
	"too fast|too frequent|too quick|slow down|frequency|frequently|sending limit|"
	"sending quota|sending rate|message limit|connection limit|connection rate|"
	"connections from|concurrent connection|concurrency|hourly|per hour|per minute|"
	"daily limit|unusual rate|unusual amount|unexpected volume|unusual volume|"
	"high volume|volume of|user complaints|exceeded*limit*from|"
	"deferred due to*unexpected|too many recipients from|too many recipients received|"
	"too many recipients per|try again later from|messages from*temporarily deferred|"
	"send limit|messages per connection|message per connection|"
	"maximum number of connections|unusual traffic|relay limit|"
	"mail from % was deferred";

static const char transaction_full[] = "4.5.3|5.5.3|too many recipients|one recipient at a time";

static const char limits[] =
	"limit exceeded|limit reached|exceeded*limit|exceeds*limit|reached*limit|"
	"maximum number of";

static const char busy[] = "server busy|server is busy|too busy|overload";

static const char viruses[] = "virus|malware|infected|trojan|clamav|malicious|phish|security issue|"
			      "security threat";

static const char authentication[] =
	"dmarc|dkim|domainkeys|spf|openspf|sender policy framework|"
	"sender is unauthenticated|sender*not authenticated|unauthenticated email|"
	"unauthenticated sender|authentication checks|required authentication level|"
	"sender id|spoof";

static const char listed[] =
	"spamhaus|zen.spamhaus|spamcop|sorbs|barracudacentral|barracuda reputation|"
	"blacklist|black list|black-list|blocklist|block list|block-list|denylist|"
	"deny list|dnsbl|reputation|rbl|rbls|uribl|listed in|listed on|listed at|listed by|"
	"is listed|reverse dns|reverse-dns|reverse lookup|reverse hostname|reverse host|"
	"rdns|ptr record|ptr|banned sending ip|senderbase|senderscore|sender score|"
	"cloudmark|proofpoint dynamic|ip*blocked|ip*rejected|ip*banned|ip*not allowed|"
	"ip address*denied|host*blocked|network*blocked|client host rejected|"
	"connection refused from|dynamic ip|dynamic address|dynamically assigned|bad host|"
	"helo|ehlo|permanently deferred|banned send|not accepted from this ip|your ip|"
	"your server|your mail server|your host|your network|sending mta|sending ip|"
	"sending server|from this ip|whitelist|access denied, please try again later|"
	"mail from %|messages from %|connections from %|open relay|residential|dynamic or|"
	"invalid ip|ip is|network not allowed|your access to";

static const char door[] = "blocked|banned|ip=";

static const char form_said[] =
	"rfc 5322|rfc5322|rfc 2822|rfc2822|bare lf|bare cr|bare newline|bare <|"
	"multiple from";

static const char spam[] =
	"spam|unsolicited|junk|bulk mail|bulk email|content filter|content rejected|"
	"message content|message rejected due to content|unacceptable content|"
	"blocked using content|content denied|content*rejected|complaints";

static const char sender_check[] =
	"sender verif|sender callout|sender*could not be verified|verify*sender|"
	"callback verif";

static const char sender_at_mail[] =
	"user unknown|unknown user|no such user|not exist|doesn't exist|domain not found|"
	"domain of|domain name|domain must|address rejected|invalid address|bad address|"
	"not found|unroutable|unrouteable|undeliverable|syntax error in|mailbox|"
	"resource record|mx record|sender";

static const char sender[] =
	"sender address|sender domain|sender rejected|sender denied|sender refused|"
	"sender not|sender unknown|sender blocked|sender*does not exist|sender*not found|"
	"sender*invalid|invalid sender|unknown sender|bad sender|envelope sender|"
	"envelope-from|domain of sender|domain of the sender|sender's domain|"
	"sender's address|return path|return-path|mail from|from address|bad return|"
	"backscatter|callout|callback|null sender|blocked sender|sender is|fake sender";

static const char full[] =
	"quota|over-quota|overquota|mailbox full|mailbox is full|mailbox*full|"
	"inbox is full|inbox full|out of storage|exceeded storage|storage allocation|"
	"storage limit|mailbox size limit|mailbox*exceed|"
	"insufficient disk space in mailbox|user*full|recipient*full";

static const char disabled[] =
	"user*disabled|account*disabled|mailbox*disabled|recipient*disabled|"
	"address*disabled|disabled recipient|disabled user|disabled mailbox|"
	"mailbox not active|not active|inactive|deactivated|account*suspended|"
	"user*suspended|mailbox*suspended|account*locked|mailbox*locked|account*expired|"
	"account*closed";

static const char restriction[] =
	"resolver.rst|delivery restriction|recipient's blacklist|recipient's block|"
	"user in blacklist|by recipient|recipient's list";

static const char firm_rules[] =
	"due to policy|policy restrictions|policy reasons|local policy|security polic";

static const char relaying[] =
	"relay access|relay denied|relay not permitted|relay is not permitted|relaying|"
	"to relay|not relay|no relay|relay for|relay restriction|don't relay|not a relay|"
	"not a local domain|domain isn't in my list|not in my list of allowed rcpthosts|"
	"rcpthosts|we do not accept mail for|not handled here|not hosted here|as a relay|"
	"can not deliver mail for|cannot deliver mail for|non-accepted domain|non-local";

static const char no_domain[] =
	"mx records point|recipient*domain not found|null mx|nullmx|does not accept mail";

static const char recipient[] =
	"user*unknown|unknown user|unknown*recipient|unknown*address|unknown*mailbox|"
	"unknown*account|unknown local|recipient*unknown|address*unknown|mailbox*unknown|"
	"account*unknown|no such user|no such recipient|no such mailbox|no such address|"
	"no such account|no such person|no such local|no mailbox|no user|no account|"
	"no recipient|not a valid mailbox|not a valid recipient|not a valid user|"
	"not a known user|not our customer|doesn't have a|invalid recipient|"
	"invalid mailbox|invalid user|invalid address|recipient*invalid|"
	"recipient*not valid|mailbox*invalid|address*invalid|nosuchuser|recipientnotfound|"
	"mailbox unavailable|mailbox*not available|mailbox name not allowed|"
	"unrouteable address|unroutable address|undeliverable address|bad destination|"
	"delivery to*not possible|550 5.4.1 recipient address rejected: access denied|"
	"does not like recipient|utilisateur inconnu|destinataire inconnu|no mail-box|"
	"account*not exist|user*not exist|user*doesn't exist|mailbox*not exist|"
	"recipient*not exist|address*not exist|account*not found|user*not found|"
	"mailbox*not found|recipient*not found|account that you tried to reach";

static const char recipient_at_rcpt[] =
	"does not exist|doesn't exist|do not exist|not found|not known|unknown|unbekannt|"
	"desconocido|inexistent|sconosciuto|unable to find|can't find";

static const char size[] = "too large|too big|size limit|size exceeds|message size|message exceeds|"
			   "maximum size|max message size";

static const char tls[] =
	"starttls|encryption required|encryption needed|tls required|tls is required|"
	"requires tls";

static const char login[] =
	"authentication required|authentication is required|not authenticated|smtp auth|"
	"must authenticate|requires authentication|need to authenticate|log in|login|"
	"please authenticate";

static const char form[] =
	"line too long|line is too long|rfc 822|message-id|date header|from header|"
	"from: header|header*missing|missing*header|duplicate header|multiple*headers|"
	"malformed|8bit|8-bit|smtputf8|attachment|file type|mime";

static const char load[] =
	"load average|load too high|system load|server load|high load|shutting down|"
	"maintenance|not available";

static const char trouble[] =
	"temporary lookup failure|temporary failure|temporary error|temporary problem|"
	"temporary local problem|temporary server error|temporarily unavailable|"
	"temporary system problem|local error|local problem|internal error|"
	"internal server error|server error|system error|insufficient system|"
	"insufficient disk|out of memory|no space|queue file write error|"
	"server configuration|service*unavailable|resources";

static const char address_of_ours[] = "%";

static const char rules[] =
	"policy|prohibit|blocked|banned|denied|rejected|refused|not allowed|not permitted|"
	"not authorized|not accepted|unacceptable|restricted|forbidden";

static const struct group {
	const char *phrases;
	enum reason reason;
	enum reason_whose whose;
	unsigned stages;
	bool weak;
} groups[] = {
	{rate_of_mailbox, REASON_RATE_LIMITED, REASON_OF_MESSAGE, FROM_RCPT, false},
	{restriction, REASON_POLICY, REASON_OF_MESSAGE, FROM_RCPT, false},
	{greylisting, REASON_GREYLISTED, REASON_OF_MESSAGE, ANY, false},
	{hops, REASON_LOOP, REASON_OF_MESSAGE, ANY, false},
	{rate, REASON_RATE_LIMITED, REASON_OF_HOST, ANY, false},
	{busy, REASON_SYSTEM, REASON_OF_HOST, ANY, false},
	{transaction_full, REASON_RATE_LIMITED, REASON_OF_MESSAGE, FROM_RCPT, false},
	{viruses, REASON_VIRUS, REASON_OF_MESSAGE, ANY, false},
	{authentication, REASON_SENDER_AUTHENTICATION, REASON_OF_MESSAGE, ANY, false},
	{sender_check, REASON_INVALID_SENDER, REASON_OF_MESSAGE, ANY, false},
	{form_said, REASON_CONTENT, REASON_OF_MESSAGE, ANY, false},
	{listed, REASON_REPUTATION, REASON_OF_HOST, ANY, false},
	{spam, REASON_REPUTATION, REASON_OF_HOST, AT(GREETING) | AT(MAIL), false},
	{spam, REASON_SPAM_CONTENT, REASON_OF_MESSAGE, ANY, false},
	{sender, REASON_INVALID_SENDER, REASON_OF_MESSAGE, ANY, false},
	{sender_at_mail, REASON_INVALID_SENDER, REASON_OF_MESSAGE, AT(MAIL), false},
	{size, REASON_MESSAGE_TOO_LARGE, REASON_OF_MESSAGE, ANY, false},
	{full, REASON_MAILBOX_FULL, REASON_OF_MESSAGE, FROM_RCPT, false},
	{limits, REASON_RATE_LIMITED, REASON_OF_HOST, BEFORE_RCPT, false},
	{limits, REASON_RATE_LIMITED, REASON_UNCLEAR, FROM_RCPT, false},
	{door, REASON_REPUTATION, REASON_OF_HOST, AT(GREETING) | AT(MAIL), false},
	{firm_rules, REASON_POLICY, REASON_UNCLEAR, ANY, false},
	{relaying, REASON_RELAYING_DENIED, REASON_OF_MESSAGE, FROM_RCPT, false},
	{tls, REASON_TLS, REASON_OF_HOST, ANY, false},
	{login, REASON_LOGIN, REASON_OF_HOST, ANY, false},
	{disabled, REASON_MAILBOX_DISABLED, REASON_OF_MESSAGE, FROM_RCPT, false},
	{form, REASON_CONTENT, REASON_OF_MESSAGE, AT(UNKNOWN) | AT(DATA) | AT(END), false},
	{no_domain, REASON_INVALID_DOMAIN, REASON_OF_MESSAGE, FROM_RCPT, false},
	{recipient, REASON_INVALID_RECIPIENT, REASON_OF_MESSAGE, FROM_RCPT, false},
	{recipient_at_rcpt, REASON_INVALID_RECIPIENT, REASON_OF_MESSAGE, AT(RCPT), false},
	{load, REASON_SYSTEM, REASON_OF_HOST, BEFORE_RCPT, true},
	{trouble, REASON_SYSTEM, REASON_UNCLEAR, ANY, true},
	{address_of_ours, REASON_REPUTATION, REASON_OF_HOST, ANY, true},
	{rules, REASON_POLICY, REASON_UNCLEAR, ANY, true},
};

enum { HEARD_MAX = 1 + 16 + VERDICT_TEXT_MAX + 1 };

/* A blank, then what is searched. */
struct heard {
	char text[HEARD_MAX];
	uint16_t word[HEARD_MAX / 2]; /* where each begins */
	int nword;
};

static bool is_in_word(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* Not of the text's first byte. */
static bool begins_word(const char *at)
{
	return is_in_word(*at) && !is_in_word(at[-1]);
}

/* An address is nothing that the host says, but what it says it of. */
static bool is_address(const char *word, size_t len)
{
	return memchr(word, '@', len) != NULL;
}

static void hear_reply(struct heard *h, const struct verdict *v)
{
	size_t n = (size_t)snprintf(h->text, sizeof h->text, " %d %s", v->code, v->dsn);
	for (const char *at = v->text; *at;) {
		size_t len = strcspn(at, " "), heard = is_address(at, len) ? 0 : len;
		h->text[n++] = ' ';
		for (size_t i = 0; i < heard; i++)
			h->text[n++] = (char)tolower((unsigned char)at[i]);
		at += len + (at[len] == ' ');
	}
	assert(n < sizeof h->text);
	h->text[n] = '\0';
	h->nword = 0;
	for (size_t i = 1; i < n; i++)
		if (begins_word(h->text + i))
			h->word[h->nword++] = (uint16_t)i;
	assert(h->nword <= HEARD_MAX / 2);
}

static bool goes_on(const char *at, const char *phrase);

static bool goes_on_behind_gap(const char *at, const char *phrase)
{
	for (int gap = 0; gap < GAP_MAX && *at; gap++, at++)
		if (begins_word(at) && goes_on(at, phrase))
			return true;
	return false;
}

static bool goes_on_behind_address(const char *at, const char *phrase)
{
	unsigned n[4];
	int len = 0;
	at += *at == '[';
	if (!isdigit((unsigned char)*at))
		return false;
	return sscanf(at, "%3u.%3u.%3u.%3u%n", n, n + 1, n + 2, n + 3, &len) == 4 && len > 0 &&
	       goes_on(at + len, phrase);
}

static bool goes_on(const char *at, const char *phrase)
{
	for (; *phrase && *phrase != '|'; at++, phrase++)
		if (*phrase == '*')
			return goes_on_behind_gap(at, phrase + 1);
		else if (*phrase == '%')
			return goes_on_behind_address(at, phrase + 1);
		else if (*at != *phrase)
			return false;
	return true;
}

static bool reply_says(const struct heard *h, const char *phrase)
{
	for (int i = 0; i < h->nword; i++) {
		const char *at = h->text + h->word[i];
		if ((*at == *phrase || *phrase == '%') && goes_on(at, phrase))
			return true;
	}
	return false;
}

static bool says_any(const struct heard *h, const char *phrases)
{
	while (!reply_says(h, phrases)) {
		phrases = strchr(phrases, '|');
		if (!phrases)
			return false;
		phrases++;
	}
	return true;
}

bool reason_text_find(const struct verdict *v, struct reason_said *said)
{
	struct heard h;
	hear_reply(&h, v);
	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
		const struct group *g = &groups[i];
		if (!(g->stages & 1u << v->stage) || !says_any(&h, g->phrases))
			continue;
		*said = (struct reason_said){g->reason, g->whose, g->weak};
		return true;
	}
	return false;
}
