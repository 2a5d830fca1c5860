/* SPDX-License-Identifier: ISC */
#include "cmd/maildrop/submit.h"

#include "cmd/maildrop/submit_talk.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

struct offers {
	bool chunking, dsn, eightbit, size, smtputf8;
	int recipients; /* of a transaction; 0: any number */
};

const struct conf_listener *submit_listener(const struct conf *c)
{
	for (int i = 0; i < c->nlistener; i++) {
		const struct conf_listener *l = &c->listener[i];
		if (l->tls != LISTENER_TLS_IMPLICIT && l->tls != LISTENER_TLS_REQUIRED &&
		    l->auth != LISTENER_AUTH_REQUIRED && l->proxy_protocol.n == 0 &&
		    l->address.n > 0)
			return l;
	}
	return NULL;
}

/* A refusal is told with the relay's own words. */
static int put_refusal(const struct talk *t, int permanent, const char *what, struct buf *error)
{
	struct buf text = t->reply;
	buf_printf(error, "%s: %s", what, buf_cstr(&text));
	return t->code >= 500 ? permanent : EX_TEMPFAIL;
}

static bool has_utf8(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text > 0x7f)
			return true;
	return false;
}

static bool needs_utf8(const struct submission *s)
{
	bool utf8 = has_utf8(s->sender);
	for (int i = 0; i < s->to->n; i++)
		utf8 = utf8 || has_utf8(s->to->item[i]);
	return utf8;
}

static int recipients_at_once(const struct talk *t)
{
	static const char keyword[] = "LIMITS RCPTMAX=";
	struct buf text = t->reply;
	const char *at = strstr(buf_cstr(&text), keyword);
	return at ? atoi(at + strlen(keyword)) : 0;
}

static int greet_relay(struct talk *t, const char *hostname, struct offers *o, struct buf *error)
{
	if (talk_read(t) != 220 || talk_say(t, "EHLO %s", hostname) != 250)
		return put_refusal(t, EX_UNAVAILABLE, "the relay does not serve us", error);
	*o = (struct offers){talk_offers(t, "CHUNKING"), talk_offers(t, "DSN"),
			     talk_offers(t, "8BITMIME"), talk_offers(t, "SIZE"),
			     talk_offers(t, "SMTPUTF8"), recipients_at_once(t)};
	return EX_OK;
}

/* The maildrop has no such limit, and there the message stays one: parts of it might be refused when others are sent. */
static int judge_recipients(const struct submission *s, const struct offers *o, struct buf *error)
{
	if (o->recipients == 0 || s->to->n <= o->recipients)
		return EX_OK;
	buf_printf(error, "the relay takes no more than %d recipients at once by SMTP",
		   o->recipients);
	return EX_TEMPFAIL;
}

static int send_sender(struct talk *t, const struct submission *s, const struct offers *o,
		       struct buf *error)
{
	struct buf line = {0};
	buf_printf(&line, "MAIL FROM:<%s>", s->sender);
	if (o->size)
		buf_printf(&line, " SIZE=%zu", buf_len(s->content));
	if (o->eightbit && s->eightbit)
		buf_puts(&line, " BODY=8BITMIME");
	if (o->smtputf8 && needs_utf8(s))
		buf_puts(&line, " SMTPUTF8");
	if (o->dsn && s->ret)
		buf_printf(&line, " RET=%s", s->ret);
	if (o->dsn && s->envid)
		buf_printf(&line, " ENVID=%s", s->envid);
	int code = talk_say(t, "%s", buf_cstr(&line));
	buf_fini(&line);
	return code / 100 == 2 ? EX_OK : put_refusal(t, EX_UNAVAILABLE, s->sender, error);
}

static int send_recipients(struct talk *t, const struct submission *s, const struct offers *o,
			   struct buf *error)
{
	bool notify = o->dsn && s->notify;
	for (int i = 0; i < s->to->n; i++) {
		int code = talk_say(t, "RCPT TO:<%s>%s%s", s->to->item[i], notify ? " NOTIFY=" : "",
				    notify ? s->notify : "");
		if (code / 100 != 2)
			return put_refusal(t, EX_NOUSER, s->to->item[i], error);
	}
	return EX_OK;
}

/* Each line that begins with a dot gets another one. */
static bool send_stuffed(struct talk *t, const char *data, size_t len)
{
	const char *end = data + len;
	while (data < end) {
		const char *lf = memchr(data, '\n', (size_t)(end - data));
		const char *next = lf ? lf + 1 : end;
		/* Lines without one go together. */
		while (next < end && *next != '.' &&
		       (lf = memchr(next, '\n', (size_t)(end - next))))
			next = lf + 1;
		if ((*data == '.' && !talk_send(t, ".", 1)) ||
		    !talk_send(t, data, (size_t)(next - data)))
			return false;
		data = next;
	}
	return talk_send(t, ".\r\n", 3);
}

static int send_content(struct talk *t, const struct submission *s, const struct offers *o,
			struct buf *error)
{
	const char *data = buf_data(s->content);
	size_t len = buf_len(s->content);
	if (o->chunking) {
		talk_say_chunk(t, data, len);
	} else {
		if (talk_say(t, "DATA") != 354)
			return put_refusal(t, EX_UNAVAILABLE, "the relay takes no content", error);
		if (send_stuffed(t, data, len))
			talk_read(t);
	}
	return t->code / 100 == 2 ? EX_OK
				  : put_refusal(t, EX_DATAERR, "the message was not taken", error);
}

int submit(const struct conf *c, const struct submission *s, struct buf *error)
{
	struct talk t;
	struct offers o = {0};
	const struct conf_listener *listener = submit_listener(c);
	if (!listener) {
		buf_puts(error, "no listener of the configuration takes mail without TLS");
		return EX_CONFIG;
	}
	const char *address = listener->address.item[0];
	int status = EX_TEMPFAIL;
	bool open = talk_open(&t, address);
	t.shown = s->verbose;
	if (!open)
		buf_printf(error, "the relay cannot be reached at %s: %s", address,
			   buf_cstr(&t.reply));
	else
		status = greet_relay(&t, *c->hostname ? c->hostname : "localhost", &o, error);
	if (status == EX_OK)
		status = judge_recipients(s, &o, error);
	if (status == EX_OK)
		status = send_sender(&t, s, &o, error);
	if (status == EX_OK)
		status = send_recipients(&t, s, &o, error);
	if (status == EX_OK)
		status = send_content(&t, s, &o, error);
	if (t.code != 0)
		talk_say(&t, "QUIT");
	talk_close(&t);
	return status;
}
