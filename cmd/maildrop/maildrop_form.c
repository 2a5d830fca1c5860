/* SPDX-License-Identifier: ISC */
#include "cmd/maildrop/maildrop_form.h"

#include "base/address.h"
#include "base/crc32c.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/netlist.h"
#include "smtpd/addressing.h"
#include "smtpd/param.h"
#include "smtpd/policy.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "sluice maildrop 1 "

enum { CRC_DIGITS = 8, ENVID_MAX = 100 };

struct line {
	const char *key, *value;
	size_t key_len, len;
};

static const struct conf_listener *listener_of(const struct conf *c)
{
	const struct conf_listener *l = submit_listener(c);
	return l ? l : &c->listener[0];
}

static void put_line(struct buf *to, const char *key, const char *value)
{
	if (value)
		buf_printf(to, "%s %s\n", key, value);
}

void maildrop_form_put(struct buf *first, struct buf *head, const struct submission *s)
{
	put_line(head, "from", s->sender);
	put_line(head, "notify", s->notify);
	put_line(head, "ret", s->ret);
	put_line(head, "envid", s->envid);
	put_line(head, "body", s->eightbit ? "8BITMIME" : NULL);
	for (int i = 0; i < s->to->n; i++)
		put_line(head, "to", s->to->item[i]);
	buf_puts(head, "\n");
	uint32_t crc = crc32c(0, buf_data(head), buf_len(head));
	crc = crc32c(crc, buf_data(s->content), buf_len(s->content));
	buf_printf(first, MAGIC "%08x %zu\n", crc, buf_len(head) + buf_len(s->content));
}

bool maildrop_form_first(const char *bytes, size_t len, struct maildrop_first *f)
{
	char line[MAILDROP_FIRST_MAX + 1], *rest;
	const size_t digits = strlen(MAGIC);
	const char *lf = memchr(bytes, '\n', len < MAILDROP_FIRST_MAX ? len : MAILDROP_FIRST_MAX);
	size_t n = lf ? (size_t)(lf - bytes) : 0;
	if (n <= digits + CRC_DIGITS + 1 || memcmp(bytes, MAGIC, digits) != 0)
		return false;
	memcpy(line, bytes, n);
	line[n] = '\0';
	f->length = n + 1;
	f->crc = (uint32_t)strtoul(line + digits, &rest, 16);
	return isxdigit((unsigned char)line[digits]) && rest == line + digits + CRC_DIGITS &&
	       *rest == ' ' && param_number(rest + 1, &f->size);
}

size_t maildrop_form_head_end(const char *bytes, size_t len, size_t from)
{
	const char *end = bytes + len;
	for (const char *p = bytes + (from > 0 ? from - 1 : 0);
	     (p = memchr(p, '\n', (size_t)(end - p))); p++)
		if (p + 1 < end && p[1] == '\n')
			return (size_t)(p + 2 - bytes);
	return 0;
}

static bool has_key(const struct line *l, const char *key)
{
	return strlen(key) == l->key_len && memcmp(l->key, key, l->key_len) == 0;
}

static bool has_value(const struct line *l, const char *value)
{
	return strlen(value) == l->len && memcmp(l->value, value, l->len) == 0;
}

static enum response take_sender(const struct conf *c, struct maildrop_access *said,
				 struct envelope *e, const struct line *l)
{
	struct mailaddr a = {.utf8 = false};
	if (e->sender)
		return RESPONSE_BAD_PARAMETER;
	if (l->len > 0 && mailaddr_mailbox(l->value, l->len, true, &a) != MAILADDR_OK)
		return RESPONSE_BAD_SENDER;
	if (!maildrop_access_sender(said, c, e, a.text))
		return RESPONSE_ACCESS_DENIED;
	e->smtputf8 |= a.utf8;
	return addressing_sender(c, a.text, &e->sender);
}

static enum response take_recipient(const struct conf *c, const struct maildrop_with *with,
				    struct envelope *e, const struct line *l, uint8_t notify)
{
	struct mailaddr a;
	bool dropped;
	if (!e->sender)
		return RESPONSE_BAD_PARAMETER;
	if (mailaddr_mailbox(l->value, l->len, true, &a) != MAILADDR_OK)
		return RESPONSE_BAD_RECIPIENT;
	if (policy_leads_here(&a))
		return RESPONSE_LOOPBACK;
	if (!maildrop_access_recipient(with->said, c, e, a.text, &dropped))
		return RESPONSE_ACCESS_DENIED;
	if (dropped)
		return RESPONSE_OK;
	e->smtputf8 |= a.utf8;
	return addressing_recipient(c, with->heard, e, a.text, notify, NULL, NULL);
}

static bool take_envid(struct envelope *e, const char *value)
{
	char decoded[ENVID_MAX + 1];
	if (e->envid || !xtext_decode(value, strlen(value), decoded, sizeof decoded))
		return false;
	e->envid = mem_strdup(value);
	return true;
}

static bool take_ret(struct envelope *e, const struct line *l)
{
	if (e->ret != RET_NONE || (!has_value(l, "FULL") && !has_value(l, "HDRS")))
		return false;
	e->ret = has_value(l, "FULL") ? RET_FULL : RET_HDRS;
	return true;
}

static bool take_parameter(struct envelope *e, const struct line *l, uint8_t *notify)
{
	char *value = mem_strndup(l->value, l->len);
	bool good = strlen(value) == l->len; /* there is no NUL in it */
	if (good && has_key(l, "notify"))
		good = e->nrcpt == 0 && param_notify(value, notify);
	else if (good && has_key(l, "ret"))
		good = take_ret(e, l);
	else if (good && has_key(l, "envid"))
		good = take_envid(e, value);
	else if (good && has_key(l, "body") && has_value(l, "8BITMIME"))
		e->body = BODY_8BITMIME;
	else
		good = false;
	free(value);
	return good;
}

/* The next line, cut at its first blank. False: there is none, or it has no blank. */
static bool next_line(const char **at, const char *end, struct line *l)
{
	const char *lf = memchr(*at, '\n', (size_t)(end - *at));
	const char *blank = lf ? memchr(*at, ' ', (size_t)(lf - *at)) : NULL;
	if (!blank)
		return false;
	*l = (struct line){*at, blank + 1, (size_t)(blank - *at), (size_t)(lf - blank - 1)};
	*at = lf + 1;
	return true;
}

/* A program on this machine might do so by SMTP. */
static bool may_relay(const struct conf *c)
{
	const struct conf_listener *l = listener_of(c);
	struct netlist networks;
	union address four, six;
	if (!netlist_init(&networks, &l->networks, NULL))
		return false;
	bool may = (address_parse("127.0.0.1", 25, &four) && netlist_match(&networks, &four)) ||
		   (address_parse("::1", 25, &six) && netlist_match(&networks, &six));
	netlist_fini(&networks);
	return may;
}

/* All lines are read, so that all that servers must be asked is known at once. */
static enum response take_lines(const struct conf *c, const struct maildrop_with *with,
				const char **at, const char *end, struct envelope *e)
{
	struct line l;
	uint8_t notify = 0;
	bool unheard = false;
	enum response why = may_relay(c) ? RESPONSE_OK : RESPONSE_NO_RELAY;
	while (why == RESPONSE_OK && next_line(at, end, &l)) {
		if (has_key(&l, "from"))
			why = take_sender(c, with->said, e, &l);
		else if (has_key(&l, "to"))
			why = take_recipient(c, with, e, &l, notify);
		else if (!take_parameter(e, &l, &notify))
			why = RESPONSE_BAD_PARAMETER;
		if (why == RESPONSE_LOOKUP_FAILED) {
			unheard = true;
			why = RESPONSE_OK;
		}
	}
	return why == RESPONSE_OK && unheard ? RESPONSE_LOOKUP_FAILED : why;
}

enum response maildrop_form_read(const struct conf *c, const struct maildrop_with *with,
				 const char *head, size_t len, struct envelope *e)
{
	const char *at = head, *end = head + len;
	enum response why = take_lines(c, with, &at, end, e);
	bool unheard = why == RESPONSE_LOOKUP_FAILED, dropped = with->said->dropped.n > 0;
	if (why != RESPONSE_OK && !unheard)
		return why;
	if (!e->sender || (e->nrcpt == 0 && !unheard && !dropped))
		return RESPONSE_BAD_PARAMETER;
	if (at + 1 != end || *at != '\n')
		return RESPONSE_BAD_PARAMETER;
	if (unheard) {
		addressing_copies_known(c, with->heard, e->sender);
		return why;
	}
	return e->nrcpt > 0 ? addressing_copies(c, with->heard, e) : RESPONSE_OK;
}

void maildrop_form_limits(const struct conf *c, struct content_in *in)
{
	const struct conf_listener *l = listener_of(c);
	in->dots = false;
	in->normalise = l->bare_newline == BARE_NEWLINE_NORMALISE;
	in->line_limit = (uint64_t)l->line_limit;
	in->size_limit = (uint64_t)c->message_size_limit;
}
