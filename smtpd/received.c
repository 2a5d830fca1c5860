/* SPDX-License-Identifier: ISC */
#include "smtpd/received.h"

#include "base/date.h"
#include "base/ident.h"
#include "base/datetime.h"
#include "smtpd/reception.h"

#include <openssl/ssl.h>
#include <stdarg.h>
#include <string.h>

enum { FOLD_AT = 70 }; /* a recipient longer than this is left out of the line before it */

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

/* One behind the other, to a NULL. */
__attribute__((sentinel)) static void put_texts(struct buf *to, ...)
{
	va_list args;
	va_start(args, to);
	for (const char *text; (text = va_arg(args, const char *));)
		buf_puts(to, text);
	va_end(args);
}

/* RFC 5321 4.4: from whom. The name that a client says is often its address, too. */
static void put_client(const struct session *s, struct buf *to)
{
	char address[64];
	bool six = strchr(address_text(&s->peer, address), ':') != NULL;
	const char *name = s->client_name;
	bool fold = strlen(s->helo) > FOLD_AT || (name && strlen(name) > FOLD_AT);
	put_texts(to, "from ", s->helo, fold ? "\r\n\t(" : " (", name ? name : "",
		  name ? " [" : "[", six ? "IPv6:" : "", address, "])\r\n\t", NULL);
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
		put_texts(to, "from ", s->service->hostname, " ", NULL);
	put_texts(to, "by ", s->service->hostname, " (sluice) with ", session_protocol(s), " id ",
		  ident_text(s->tx->id, id), NULL);
	if (s->tls) {
		const SSL *ssl = stream_ssl(s->stream);
		put_texts(to, "\r\n\t(using ", SSL_get_version(ssl), " with cipher ",
			  SSL_get_cipher_name(ssl), ")", NULL);
	}
	if (s->login && (tells == RECEIVED_LOGIN || s->service->listener->received_login))
		put_login(s->login, to);
	if (e->nrcpt == 1)
		put_texts(to, "\r\n\tfor <", e->rcpt[0].address, ">", NULL);
	put_texts(to, ";\r\n\t", datetime_text(date_ms(), date), "\r\n", NULL);
}
