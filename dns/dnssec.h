/* dnssec.h - channel or validator for a question, and what is believed of the answer.
 *
 *	dnssec =     the servers ...           question goes to      answer is
 *	validate     are not known yet         waits                 -
 *	validate     hand on signatures        validators            secure, insecure, bogus
 *	validate     do not                    channel               indeterminate
 *	validate     are silent                channel               asked anew, once there is one
 *	trust        are all of this machine   channel               secure with AD, else indeterminate
 *	trust, off   else                      channel               indeterminate
 *
 * DIFFERS: without the AD bit a trusted server's answer is not called insecure: a server that does not
 * validate says the same.
 *
 * OWNERSHIP  Holds a reference of the configuration. The channel is only lent.
 * THREAD     dns.
 * ERRORS     A validator that can't be set up fails every question.
 * SEE        probe.h; validators.h; RFC 6840 5.7, 5.8 (AD).
 */
#ifndef DNS_DNSSEC_H
#define DNS_DNSSEC_H

#include "dns/probe.h"
#include "dns/validators.h"

enum dnssec_way { DNSSEC_WAIT, DNSSEC_VALIDATOR, DNSSEC_CHANNEL };

struct dnssec;

struct dnssec *dnssec_new(struct loop *, struct conf *, const struct channel *,
			  void (*changed)(void *owner), void *owner);
/* changed(): dnssec_way() is another; what was believed before need not be true. It is not called from within
 * another function of dnssec. */

void dnssec_free(struct dnssec **);
/* Not from within a callback. Questions under way get CHANNEL_CLOSED. */

enum dnssec_way dnssec_way(struct dnssec *);

enum query_edns dnssec_edns(const struct dnssec *);
/* DNSSEC_CHANNEL: how to ask. */

bool dnssec_believes(struct dnssec *);
/* A reply has come by the channel: does it count? Else the question is to be asked anew. */

enum resolve_security dnssec_security(const struct dnssec *, bool authentic);
/* Of a reply that has come by the channel, with or without the AD bit. */

void dnssec_ask(struct dnssec *, const char *name, enum answer_type, struct validation *);
/* DNSSEC_VALIDATOR. */

#endif
