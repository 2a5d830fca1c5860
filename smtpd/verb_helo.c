/* SPDX-License-Identifier: ISC */
/*	ehlo = "EHLO" SP ( Domain / address-literal ) CRLF
 *	helo = "HELO" SP Domain CRLF			RFC 5321 4.1.1.1; what more is taken is in base/mailaddr.h
 */
#include "smtpd/auth.h"
#include "smtpd/command.h"
#include "smtpd/filtering.h"
#include "smtpd/policy.h"
#include "smtpd/reception.h"
#include "smtpd/session.h"

#include "base/date.h"
#include "base/internet_time.h"
#include "base/mailaddr.h"
#include "base/mem.h"

#include <stdlib.h>

static bool take_name(struct session *s, const char *name, bool esmtp)
{
	if (!mailaddr_hello_valid(name)) {
		session_refuse(s, RESPONSE_BAD_NAME, NULL);
		return false;
	}
	free(s->helo);
	s->helo = mem_strdup(name);
	s->esmtp = esmtp;
	reception_reset(s); /* RFC 5321 4.1.4: as RSET */
	return true;
}

static void forget_name(struct session *s)
{
	mem_free(&s->helo);
	if (s->state != SESSION_CLOSED)
		session_move(s, SESSION_GREETED);
}

static void answer_helo(struct session *s, bool passed)
{
	if (passed)
		session_reply(s, RESPONSE_HELLO, s->service->hostname);
	else
		forget_name(s);
}

void verb_helo(struct session *s, char *argument)
{
	if (take_name(s, argument, false))
		filtering_helo(s, s->helo, answer_helo);
}

/* RFC 9422 4.3 has room for six digits. */
static void announce_limits(const struct conf_listener *l, struct buf *out)
{
	enum { RCPTMAX_MOST = 999999 };
	int64_t most = l->recipient_limit < RCPTMAX_MOST ? l->recipient_limit : RCPTMAX_MOST;
	if (most)
		buf_printf(out, "250-LIMITS RCPTMAX=%lld\r\n", (long long)most);
}

/* RFC 4865 3: the longest time from now, in seconds and as a date. */
static void announce_release(const struct conf_listener *l, struct buf *out)
{
	char latest[INTERNET_TIME_TEXT];
	internet_time_text(date_ms() + l->future_release_limit, latest);
	buf_printf(out, "250-FUTURERELEASE %lld %s\r\n",
		   (long long)(l->future_release_limit / 1000), latest);
}

/* The shortest time that can be asked for is a second; priorities are those of RFC 6710's default profile. */
static void announce_times(const struct session *s, struct buf *out)
{
	if (policy_may_defer(s))
		buf_puts(out, "250-DELIVERBY 1\r\n250-MT-PRIORITY\r\n");
	if (policy_may_schedule(s))
		announce_release(s->service->listener, out);
}

static void answer_ehlo(struct session *s, bool passed)
{
	const struct service *service = s->service;
	struct buf *out = stream_out(s->stream);
	if (!passed) {
		forget_name(s);
		return;
	}
	buf_printf(out, "250-%s\r\n250-PIPELINING\r\n", service->hostname);
	if (service->conf->message_size_limit)
		buf_printf(out, "250-SIZE %lld\r\n", (long long)service->conf->message_size_limit);
	else
		buf_puts(out, "250-SIZE\r\n");
	if (service->tls && !s->tls)
		buf_puts(out, "250-STARTTLS\r\n");
	auth_announce(s, out);
	if (s->proxy)
		buf_puts(out, "250-XCLIENT NAME ADDR PORT PROTO HELO LOGIN DESTADDR DESTPORT\r\n");
	if (service->listener->chunking)
		buf_puts(out, "250-CHUNKING\r\n");
	announce_limits(service->listener, out);
	if (s->tls)
		buf_puts(out, "250-REQUIRETLS\r\n");
	announce_times(s, out);
	buf_puts(out, "250-8BITMIME\r\n250-ENHANCEDSTATUSCODES\r\n250-DSN\r\n250 SMTPUTF8\r\n");
}

void verb_ehlo(struct session *s, char *argument)
{
	if (take_name(s, argument, true))
		filtering_helo(s, s->helo, answer_ehlo);
}
