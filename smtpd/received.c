/* SPDX-License-Identifier: ISC */
#include "smtpd/received.h"

#include "base/date.h"
#include "base/ident.h"
#include "base/datetime.h"
#include "smtpd/reception.h"

#include <string.h>

enum { FOLD_AT = 70 }; /* a recipient longer than this is left out of the line before it */

const char *session_protocol(const struct session *s)
{
	static const char *const names[2][2][2] = {
		{{"ESMTP", "ESMTPA"}, {"ESMTPS", "ESMTPSA"}},
		{{"UTF8SMTP", "UTF8SMTPA"}, {"UTF8SMTPS", "UTF8SMTPSA"}},
	};
	bool utf8 = s->tx && s->tx->envelope && s->tx->envelope->smtputf8;
	if (!s->esmtp)
		return "SMTP";
	return names[utf8][s->tls][s->login != NULL];
}

/* In a comment: RFC 5322 3.2.2. Beyond ASCII it would need SMTPUTF8. */
static void put_login(const char *login, struct buf *to)
{
	buf_puts(to, "\r\n\t(authenticated sender: ");
	for (const char *c = login; *c; c++)
		if (*c < ' ' || (unsigned char)*c > '~')
			buf_puts(to, "?");
		else
			buf_printf(to, strchr("()\\", *c) ? "\\%c" : "%c", *c);
	buf_puts(to, ")");
}

/* RFC 5321 4.4: from whom. The name that a client says is often its address, too. */
static void put_client(const struct session *s, struct buf *to)
{
	char address[64];
	bool six = strchr(address_text(&s->peer, address), ':') != NULL;
	const char *name = s->client_name;
	buf_printf(to, "from %s%s(%s%s[%s%s])\r\n\t", s->helo,
		   strlen(s->helo) > FOLD_AT || (name && strlen(name) > FOLD_AT) ? "\r\n\t" : " ",
		   name ? name : "", name ? " " : "", six ? "IPv6:" : "", address);
}

void received_field(const struct session *s, struct buf *to)
{
	const struct envelope *e = s->tx->envelope;
	char id[IDENT_TEXT], date[DATETIME_TEXT];
	int tells = s->service->listener->received;
	buf_puts(to, "Received: ");
	if (tells == RECEIVED_FULL || (tells == RECEIVED_LOGIN && !s->login))
		put_client(s, to);
	else /* "from" must be there; of all names this one says nothing of the client */
		buf_printf(to, "from %s ", s->service->hostname);
	buf_printf(to, "by %s (sluice) with %s id %s", s->service->hostname, session_protocol(s),
		   ident_text(s->tx->id, id));
	if (s->tls) {
		const SSL *ssl = stream_ssl(s->stream);
		buf_printf(to, "\r\n\t(using %s with cipher %s)", SSL_get_version(ssl),
			   SSL_get_cipher_name(ssl));
	}
	if (s->login && (tells == RECEIVED_LOGIN || s->service->listener->received_login))
		put_login(s->login, to);
	if (e->nrcpt == 1)
		buf_printf(to, "\r\n\tfor <%s>", e->rcpt[0].address);
	buf_printf(to, ";\r\n\t%s\r\n", datetime_text(date_ms(), date));
}
