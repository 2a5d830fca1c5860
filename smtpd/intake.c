/* SPDX-License-Identifier: ISC */
#include "smtpd/intake.h"

#include "base/date.h"
#include "base/ident.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/datetime.h"
#include "smtpd/rewrite.h"

#include <stdio.h>

void intake_put(struct intake *in, const char *bytes, size_t len)
{
	content_writer_put(&in->out, bytes, len);
}

static void put_header(void *owner, const char *bytes, size_t len)
{
	struct intake *in = owner;
	header_in_feed(&in->header, bytes, len);
}

static void put_bytes(void *owner, const char *bytes, size_t len)
{
	intake_put(owner, bytes, len);
}

static void add_missing(void *owner, bool blank_line)
{
	struct intake *in = owner;
	struct buf fields = {0};
	char date[DATETIME_TEXT], id[IDENT_TEXT];
	if (!in->header.date)
		buf_printf(&fields, "Date: %s\r\n", datetime_text(date_ms(), date));
	if (!in->header.message_id) {
		ident_text(in->out.id, id);
		buf_printf(&fields, "Message-ID: <%s@%s>\r\n", id, in->hostname);
		if (!in->header.id[0]) /* its sender knows one that was dropped */
			snprintf(in->header.id, sizeof in->header.id, "<%s@%s>", id, in->hostname);
	}
	if (!in->header.from && in->sender[0])
		buf_printf(&fields, "From: <%s>\r\n", in->sender);
	if (blank_line)
		buf_puts(&fields, "\r\n");
	intake_put(in, buf_data(&fields), buf_len(&fields));
	buf_fini(&fields);
}

void intake_init(struct intake *in, struct spool *spool, uint64_t id, uint64_t expected)
{
	*in = (struct intake){0};
	content_writer_init(&in->out, spool, id);
	in->decoder.sink = put_header;
	in->decoder.owner = in;
	in->header.sink = put_bytes;
	in->header.owner = in;
	if (expected > 0 && expected < SPOOL_CONTENT_INLINE_MAX)
		buf_reserve(&in->out.memory, (size_t)expected + 1024); /* and a Received field */
}

void intake_add_missing(struct intake *in, const char *hostname, const char *sender)
{
	in->hostname = hostname;
	in->sender = sender;
	in->header.missing = add_missing;
}

static char *rewrite_address(void *owner, enum header_class class, const char *address, size_t len)
{
	const struct intake *in = owner;
	struct mailaddr a;
	struct rewrite r;
	if (mailaddr_mailbox(address, len, true, &a) != MAILADDR_OK)
		return NULL;
	/* A circle of the tables is refused where the envelope comes to it; here nothing is lost. */
	bool ok =
		(class == HEADER_SENDER ? rewrite_sender : rewrite_recipient)(in->conf, a.text, &r);
	char *to = ok && r.n > 0 ? mem_strdup(rewrite_result(&r, a.text)) : NULL;
	rewrite_fini(&r);
	return to;
}

void intake_use(struct intake *in, struct conf *conf)
{
	in->conf = conf_ref(conf);
	in->header.drop = &conf->drop_headers;
	in->header.flow_field = *conf->flow_header ? conf->flow_header : NULL;
	if (conf->rewrite_header)
		in->header.become = rewrite_address;
}

void intake_fini(struct intake *in)
{
	conf_unref(in->conf);
	header_in_fini(&in->header);
	content_writer_fini(&in->out);
}

void intake_finish(struct intake *in)
{
	if (!content_in_ended(&in->decoder))
		content_in_finish(&in->decoder);
	header_in_finish(&in->header);
	content_writer_finish(&in->out);
}

/* RFC 8689 4.1: REQUIRETLS goes before what the header says. */
void intake_mark(const struct intake *in, struct envelope *e)
{
	if (in->header.tls_waived && e->tls == ENVELOPE_TLS_USUAL)
		e->tls = ENVELOPE_TLS_WAIVED;
}

int8_t intake_priority(const struct intake *in)
{
	return header_in_priority(&in->header);
}

int intake_error(const struct intake *in)
{
	return in->out.error;
}

uint64_t intake_take(struct intake *in, struct content **content, struct spool_file **file)
{
	return content_writer_take(&in->out, content, file);
}

enum response intake_judge(const struct content_in *c, const struct header_in *h,
			   int64_t hopcount_limit)
{
	if (c->faults & CONTENT_TOO_LARGE)
		return RESPONSE_TOO_LARGE;
	if (content_in_refused(c))
		return c->faults & CONTENT_NUL || !(c->faults & CONTENT_LONG_LINE)
			       ? RESPONSE_BAD_CONTENT
			       : RESPONSE_LONG_CONTENT_LINE;
	return h->received >= hopcount_limit ? RESPONSE_LOOP : RESPONSE_OK;
}
