/* reason.h - why a recipient was deferred or refused, in one word that is the same for all hosts.
 *
 *	which command was answered --> what it can be about: MAIL knows of no recipient yet
 *	enhanced code that says it all --> its word
 *	one that says little, or none  --> what the text speaks of --> else the word of code and command
 *
 * Hosts use 5.7.1 for anything, and many have no enhanced codes; so their texts are searched for known
 * phrases (base/reason_text.h). Our own replies have exact codes, and their texts are not searched. A recipient
 * is called unknown, or a mailbox disabled, only where the host says so: 550 alone may be any rule of its.
 *
 * The words are a contract with those who count by them: sluice(8), "EVENTS", lists them. More may come;
 * none changes its meaning.
 *
 * OWNERSHIP  Constant.
 * THREAD     Any.
 * ERRORS     None; an unknown reply is "other".
 * SEE        RFC 3463 3; RFC 5248; RFC 7372; RFC 7505 4; RFC 5321 4.2.
 */
#ifndef BASE_REASON_H
#define BASE_REASON_H

#include "base/verdict.h"

/* R(name, word, sentence) */
#define REASONS(R)                                                                                 \
	R(INVALID_RECIPIENT, "invalid-recipient", "there is no such mailbox, or it has moved")     \
	R(INVALID_DOMAIN, "invalid-domain", "the domain does not exist, or takes no mail")         \
	R(INVALID_SENDER, "invalid-sender", "the sender's address or domain is refused")           \
	R(MAILBOX_FULL, "mailbox-full", "the mailbox has no room")                                 \
	R(MAILBOX_DISABLED, "mailbox-disabled", "the mailbox is there, and takes no mail")         \
	R(MESSAGE_TOO_LARGE, "message-too-large", "for the host or for the mailbox")               \
	R(SPAM_CONTENT, "spam-content", "the message is taken for spam")                           \
	R(VIRUS, "virus", "the message is taken for malicious")                                    \
	R(SENDER_AUTHENTICATION, "sender-authentication", "SPF, DKIM, DMARC or ARC fails")         \
	R(REPUTATION, "reputation", "our address or the sender's domain is on a list of theirs")   \
	R(POLICY, "policy", "refused by a rule of theirs, without more")                           \
	R(RATE_LIMITED, "rate-limited", "too much in a time, for them")                            \
	R(GREYLISTED, "greylisted", "put off because it comes for the first time")                 \
	R(RELAYING_DENIED, "relaying-denied", "the host does not take mail for that domain")       \
	R(LOGIN, "login", "logging in at the next hop failed, or is asked for")                    \
	R(TLS, "tls", "TLS failed, is missing, or proves less than is wanted")                     \
	R(DNS, "dns", "the domain or its hosts cannot be looked up, for now")                      \
	R(CONNECTION, "connection", "no host answers, or the connection ended")                    \
	R(SYSTEM, "system", "the host has a trouble of its own")                                   \
	R(CONTENT, "content", "the form of the message is refused, or cannot be sent there")       \
	R(PROTOCOL, "protocol", "a command was refused, or the host loses count")                  \
	R(LOOP, "loop", "the message goes round")                                                  \
	R(EXPIRED, "expired", "it was tried until its lifetime ended")                             \
	R(IN_DOUBT, "in-doubt", "it was sent as a whole, and never answered")                      \
	R(SUSPENDED, "suspended", "the operator has suspended the destination")                    \
	R(OPERATOR, "operator", "the operator or the configuration wants it returned")             \
	R(OTHER, "other", "nothing of the above")

enum reason {
#define R(name, ...) REASON_##name,
	REASONS(R)
#undef R
		REASON_COUNT
};

enum reason reason_of(const struct verdict *);
/* Of one that is not VERDICT_SENT. */

enum reason_whose {
	REASON_OF_HOST, /* it would say so to other mail of ours too, now: rate, volume, reputation, our address */
	REASON_OF_MESSAGE, /* it speaks of this sender, recipient or content: other mail may be welcome */
	REASON_UNCLEAR, /* it does not say, or nobody answered: our own words */
};

enum reason_whose reason_whose(const struct verdict *);
/* Whose refusal it is. Of one that is not VERDICT_SENT. */

const char *reason_word(enum reason);

#endif
