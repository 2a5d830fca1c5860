/* SPDX-License-Identifier: ISC */
#include "stages/archive_report.h"

#include "base/datetime.h"
#include "base/ident.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <errno.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64 << 10, BOUNDARY_BYTES = 16, BOUNDARY_TEXT = 2 * BOUNDARY_BYTES + 3, VALUE = 400 };

static void put_text(struct content_writer *to, struct buf *text)
{
	content_writer_put(to, buf_data(text), buf_len(text));
	buf_clear(text);
}

/* Nobody who writes a message can know it, so that none can end its own part. */
static bool make_boundary(char text[BOUNDARY_TEXT])
{
	unsigned char bytes[BOUNDARY_BYTES];
	if (RAND_bytes(bytes, sizeof bytes) != 1)
		return false;
	strcpy(text, "=_");
	for (int i = 0; i < BOUNDARY_BYTES; i++)
		snprintf(text + 2 + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

static bool put_header(const struct archive_report *r, const char *boundary, struct buf *text)
{
	const struct conf *c = r->passage->conf;
	const struct envelope *e = r->to;
	char id[IDENT_TEXT], date[DATETIME_TEXT];
	ident_text(e->id, id);
	datetime_text(r->now_ms, date);
	buf_printf(text, "Received: by %s (sluice) id %s;\r\n\t%s\r\n", r->hostname, id, date);
	if (*c->archive.sender)
		buf_printf(text, "From: <%s>\r\n", c->archive.sender);
	else
		buf_printf(text, "From: Mail Archive <MAILER-DAEMON@%s>\r\n", r->hostname);
	for (uint32_t i = 0; i < e->nrcpt; i++)
		buf_printf(text, "%s<%s>", i > 0 ? ",\r\n\t" : "To: ", e->rcpt[i].address);
	buf_printf(text, "\r\nSubject: Copy of message %s\r\nDate: %s\r\n",
		   ident_text(r->passage->draft.id, id), date);
	buf_printf(text, "Message-ID: <%s@%s>\r\n", ident_text(e->id, id), r->hostname);
	bool marked = archive_mark_put(text, e);
	buf_append(text, buf_data(&r->marks->text), buf_len(&r->marks->text));
	buf_printf(text,
		   "Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
		   "Content-Type: multipart/mixed;\r\n\tboundary=\"%s\"\r\n",
		   boundary);
	return marked;
}

static void put_value(struct buf *text, const char *value)
{
	char clean[VALUE + 1];
	utf8_clean(clean, value, VALUE);
	buf_puts(text, clean);
}

static void put_line(struct buf *text, const char *name, const char *value)
{
	buf_printf(text, "%s: ", name);
	put_value(text, value);
	buf_puts(text, "\r\n");
}

/* With the address that it was given as, where the client or an alias has named another. */
static void put_recipient(struct buf *text, const struct recipient *r)
{
	char original[MAILADDR_MAX];
	const char *at = r->orcpt ? strchr(r->orcpt, ';') : NULL;
	bool other = at && xtext_decode(at + 1, strlen(at + 1), original, sizeof original) &&
		     strcasecmp(original, r->address) != 0;
	buf_puts(text, "Recipient: ");
	put_value(text, r->address);
	if (other) {
		buf_puts(text, ", Original: ");
		put_value(text, original);
	}
	buf_puts(text, "\r\n");
}

static void put_envelope(const struct archive_report *r, struct content_writer *to)
{
	const struct passage *p = r->passage;
	const struct envelope *e = p->draft.envelope;
	char id[IDENT_TEXT], date[DATETIME_TEXT];
	struct buf text = {0};
	put_line(&text, "Sender", *e->sender ? e->sender : "<>");
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		put_recipient(&text, &e->rcpt[i]);
		put_text(to, &text);
	}
	if (p->login)
		put_line(&text, "Login", p->login);
	if (p->client)
		put_line(&text, "Client", p->client);
	put_line(&text, "Id", ident_text(p->draft.id, id));
	put_line(&text, "Time", datetime_text(r->now_ms, date));
	put_text(to, &text);
	buf_fini(&text);
}

static int put_message(const struct draft *d, struct content_writer *to)
{
	char *piece = mem_alloc(PIECE);
	ssize_t n;
	for (uint64_t at = 0; (n = draft_content(d, at, piece, PIECE)) > 0; at += (uint64_t)n)
		content_writer_put(to, piece, (size_t)n);
	int error = n < 0 ? errno : 0;
	free(piece);
	return error;
}

int archive_report_write(const struct archive_report *r, struct content_writer *to)
{
	const struct draft *d = &r->passage->draft;
	const struct envelope *e = d->envelope;
	char boundary[BOUNDARY_TEXT];
	struct buf text = {0};
	if (!make_boundary(boundary) || !put_header(r, boundary, &text)) {
		buf_fini(&text);
		return EIO;
	}
	buf_printf(&text,
		   "\r\n--%s\r\nContent-Type: text/plain; charset=utf-8\r\n"
		   "Content-Transfer-Encoding: 8bit\r\n\r\n",
		   boundary);
	put_text(to, &text);
	put_envelope(r, to);
	buf_printf(&text,
		   "\r\n--%s\r\nContent-Type: message/%s\r\nContent-Transfer-Encoding: %s\r\n"
		   "Content-Disposition: attachment\r\n\r\n",
		   boundary, e->smtputf8 ? "global" : "rfc822",
		   e->body == BODY_BINARYMIME ? "binary" : "8bit");
	put_text(to, &text);
	int error = put_message(d, to);
	buf_printf(&text, "\r\n--%s--\r\n", boundary);
	put_text(to, &text);
	buf_fini(&text);
	content_writer_finish(to);
	return error ? error : to->error;
}
