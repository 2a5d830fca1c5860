/* dns.h - the front page of dns/: which hosts take the mail for a domain, and their addresses.
 *
 *	any thread                    the thread "dns"                              name servers
 *
 *	RESOLVE_ASK ----> [ lookup ] -- question_ask --> [ question ] -- packet --> [ channel ] <-->
 *	                   |    ^                          |  ^    ^                    |
 *	                   |    +------ struct answer -----+  |    +---- bytes ---------+
 *	                   v                                  |  v              |
 *	RESOLVE_ANSWER <- [ mx ]                              | [ cache ]    [ answer ]
 *	                                                      +---- name ----> [ validators ] <-->
 *
 *	lookup.c    one struct resolve from its question to its answer
 *	mx.c        MX and address answers to hosts or a verdict; pure
 *	tlsa.c      which TLSA records count for a host
 *	question.c  equal questions asked once; CNAME followed; the cache asked first
 *	dnssec.c    channel or validator for a question, and what is believed of the answer
 *	validators.c a few threads with a validator each
 *	validator.c libunbound: answers validated from the root
 *	ub_loop.c   libunbound's events on the loop
 *	probe.c     which name servers pass on signatures
 *	cache.c     answers as long as they are valid
 *	channel.c   c-ares on the loop: servers, repeats, TCP
 *	cares.c     what c-ares calls differently from release to release
 *	query.c     the bytes of a question; pure
 *	answer.c    the bytes of a reply to values; pure
 *	dnsname.c   names and literals; pure
 *	ourself.c   our own name and addresses
 *	dns.c       the thread
 *
 * OWNERSHIP  A struct resolve that is posted comes back by itself, or is freed by dns_free().
 * THREAD     dns_loop() is for posting from any thread; all else: main.
 * ERRORS     As verdicts in the answer. No server, or none that answers: 4.4.3.
 * SEE        base/resolve.h; RFC 5321 5.1.
 */
#ifndef DNS_DNS_H
#define DNS_DNS_H

#include "base/conf.h"

enum dns_note {
	DNS_CONF = NOTES_FROM(NOTES_OF_DNS),
	DNS_VALIDATE,  /* validators.h: to a thread that validates, */
	DNS_VALIDATED, /* and back */
};

struct dns;

struct dns *dns_new(struct conf *);
/* Takes a reference of its own. Notes may be posted from now on. */

void dns_start(struct dns *);
void dns_stop(struct dns *);
void dns_free(struct dns **);
/* After dns_stop(), and before the loops that wait for answers are freed. */

struct loop *dns_loop(struct dns *);
/* Where to post RESOLVE_ASK. */

void dns_reload(struct dns *, struct conf *);
/* New settings, from the next question on; the cache starts empty. Takes a reference of its own. */

#endif
