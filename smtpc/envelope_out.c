/* SPDX-License-Identifier: ISC */
#include "smtpc/envelope_out.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "smtpc/seven_bit.h"
#include "spool/spool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a content in a file that are searched for 8-bit text: all that may lie in the log. */
enum { PROBE = SPOOL_CONTENT_INLINE_MAX };

static bool has_eightbit(const char *s)
{
	return s && utf8_beyond_ascii(s, strlen(s));
}

/* Between the angle brackets: no control anywhere, no blank or bracket outside quotes. */
static bool address_safe(const char *s)
{
	bool quoted = false;
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c < ' ' || c == 0x7f)
			return false;
		if (quoted && c == '\\' && s[1])
			s++; /* the loop has not looked at it */
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && strchr(" <>", c))
			return false;
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return false;
	}
	return !quoted;
}

/* The value of a parameter: printable ASCII without blanks. */
static bool parameter_safe(const char *s)
{
	for (; s && *s; s++)
		if (*s <= ' ' || *s >= 0x7f)
			return false;
	return true;
}

static bool all_safe(const struct delivery *d)
{
	bool safe = address_safe(d->sender) && parameter_safe(d->envid);
	for (uint32_t i = 0; safe && i < d->nrcpt; i++)
		safe = d->rcpt[i].address[0] && address_safe(d->rcpt[i].address) &&
		       parameter_safe(d->rcpt[i].orcpt);
	return safe;
}

/* The part of a content that is looked at: all of it, where it is in memory or could be. */
struct sample {
	const char *text;
	size_t len;
	char *read; /* or NULL */
};

static struct sample sample_of(const struct content *c)
{
	if (c->memory)
		return (struct sample){.text = c->memory, .len = (size_t)c->size};
	size_t most = c->size < PROBE ? (size_t)c->size : PROBE;
	char *read = mem_alloc(most + 1);
	ssize_t n = content_read(c, 0, read, most);
	return (struct sample){.text = read, .len = n > 0 ? (size_t)n : 0, .read = read};
}

/* unseen: what was not looked at counts as such. */
static bool found_eightbit(const struct content *c, bool unseen)
{
	struct sample s = sample_of(c);
	bool is = (unseen && s.len < c->size) || utf8_beyond_ascii(s.text, s.len);
	free(s.read);
	return is;
}

/* The header alone. What lies in a file and has a long one is taken for it. */
static bool header_is_eightbit(const struct content *c)
{
	struct sample s = sample_of(c);
	const char *end = memmem(s.text, s.len, "\r\n\r\n", 4);
	bool whole = end || s.len == c->size;
	bool is = !whole || utf8_beyond_ascii(s.text, end ? (size_t)(end - s.text) : s.len);
	free(s.read);
	return is;
}

/* SMTPUTF8 that the sender has declared and made no use of is not asked of the next host (RFC 6531 3.6:
 * what makes a message international is addresses and fields beyond ASCII). */
static bool header_needs_smtputf8(const struct delivery *d)
{
	return d->smtputf8 && !d->verification && header_is_eightbit(d->content);
}

static bool needs_smtputf8(const struct delivery *d)
{
	bool needs = has_eightbit(d->sender) || header_needs_smtputf8(d);
	for (uint32_t i = 0; !needs && i < d->nrcpt; i++)
		needs = has_eightbit(d->rcpt[i].address);
	return needs;
}

/* Whole seconds that are left of its time. */
static int64_t seconds_left(const struct delivery *d)
{
	int64_t ms = d->by_ms - clock_wall_ms();
	return ms < 0 ? -((999 - ms) / 1000) : ms / 1000;
}

/* Who takes on to deliver it in time, or to return it; RFC 2852 4.1. */
static bool keeps_to_time(const struct delivery *d, const struct capability *can)
{
	if (!(d->by & ENVELOPE_BY_RETURN) || can->final || d->verification)
		return true;
	return can->deliverby && seconds_left(d) >= (can->by_min > 0 ? can->by_min : 1);
}

/* RFC 6531 3.5, 4.2: an address is told from a header. */
static struct verdict *without_smtputf8(const struct delivery *d, const char *host)
{
	if (has_eightbit(d->sender))
		return verdict_printf(
			VERDICT_FAILED, 553, "5.6.7", NULL,
			"%s does not offer SMTPUTF8, which the sender's address needs", host);
	if (header_needs_smtputf8(d))
		return verdict_printf(
			VERDICT_FAILED, 550, "5.6.9", NULL,
			"%s does not offer SMTPUTF8, which the header of this message needs", host);
	return NULL;
}

/* Of what this host can't do: final, unless a host that goes before it may. RFC 6531 3.2. */
static struct verdict *refuse_or_wait(const struct delivery *d, struct verdict *lacks)
{
	char dsn[sizeof lacks->dsn];
	if (!d->second)
		return lacks;
	memcpy(dsn, lacks->dsn, sizeof dsn);
	dsn[0] = '4';
	struct verdict *waits = verdict_printf(VERDICT_DEFERRED, 0, dsn, NULL,
					       "%s; it waits for another host", lacks->text);
	verdict_unref(lacks);
	return waits;
}

struct verdict *envelope_out_rcpt_refusal(const struct delivery *d, uint32_t i,
					  const struct capability *can, const char *host)
{
	if (can->smtputf8 || !has_eightbit(d->rcpt[i].address))
		return NULL;
	return refuse_or_wait(
		d, verdict_printf(VERDICT_FAILED, 553, "5.6.7", NULL,
				  "%s does not offer SMTPUTF8, which this address needs", host));
}

struct verdict *envelope_out_refusal(const struct delivery *d, const struct capability *can,
				     const char *host)
{
	if (!all_safe(d)) {
		log_event(LOG_LEVEL_ERROR, "unsafe_address", "id", log_id(d->id), "host", host,
			  NULL);
		return verdict_printf(VERDICT_FAILED, 501, "5.6.0", NULL,
				      "an address or parameter that cannot be sent in a command");
	}
	struct verdict *international = can->smtputf8 ? NULL : without_smtputf8(d, host);
	if (international)
		return refuse_or_wait(d, international);
	if (!keeps_to_time(d, can))
		return verdict_printf(VERDICT_FAILED, 554, "5.4.7", NULL,
				      can->deliverby ? "%s may take longer than is left of the "
						       "time that its sender has set"
						     : "%s does not offer DELIVERBY, which this "
						       "message needs",
				      host);
	if (d->body == BODY_BINARYMIME && can->withheld)
		return verdict_printf(VERDICT_DEFERRED, 0, "4.5.0", NULL,
				      "%s cannot do CHUNKING at present, which this message needs",
				      host);
	if (d->body == BODY_BINARYMIME && !(can->chunking && can->binarymime))
		return refuse_or_wait(
			d, verdict_printf(VERDICT_FAILED, 554, "5.6.3", NULL,
					  "%s does not offer BINARYMIME, which this message needs",
					  host));
	if (can->size_max > 0 && d->content->size > can->size_max)
		return refuse_or_wait(d, verdict_printf(VERDICT_FAILED, 552, "5.3.4", NULL,
							"message of %" PRIu64
							" bytes is above the limit of %" PRIu64
							" that %s announces",
							d->content->size, can->size_max, host));
	return NULL;
}

/* Declared or found. A host that does not offer 8BITMIME gets 8-bit content undeclared, where it can't be
 * converted: to bounce it helps nobody. */
static bool is_eightbit(const struct delivery *d)
{
	return d->body != BODY_7BIT || found_eightbit(d->content, false);
}

bool envelope_out_converts(const struct delivery *d, const struct capability *can)
{
	if (can->eightbit || d->body == BODY_BINARYMIME || d->verification)
		return false;
	return found_eightbit(d->content, d->body != BODY_7BIT) && seven_bit_may(d->content);
}

static void put_by(struct buf *to, const struct delivery *d, const struct capability *can)
{
	enum { BY_MOST = 999999999 };
	int64_t left = seconds_left(d);
	if (!d->by || !can->deliverby || d->verification)
		return;
	left = left < -BY_MOST ? -BY_MOST : left > BY_MOST ? BY_MOST : left;
	buf_printf(to, " BY=%" PRId64 ";%s%s", left, d->by & ENVELOPE_BY_RETURN ? "R" : "N",
		   d->by & ENVELOPE_BY_TRACE ? "T" : "");
}

void envelope_out_mail(struct buf *to, const struct delivery *d, const struct capability *can,
		       bool converted)
{
	buf_printf(to, "MAIL FROM:<%s>", d->sender);
	if (can->size && !d->verification && !converted)
		buf_printf(to, " SIZE=%" PRIu64, d->content->size);
	if (d->body == BODY_BINARYMIME)
		buf_puts(to, " BODY=BINARYMIME");
	else if (can->eightbit && is_eightbit(d))
		buf_puts(to, " BODY=8BITMIME");
	if (can->smtputf8 && needs_smtputf8(d))
		buf_puts(to, " SMTPUTF8");
	if (d->requiretls && can->requiretls)
		buf_puts(to, " REQUIRETLS");
	put_by(to, d, can);
	if (can->priority && d->priority != 0 && !d->verification)
		buf_printf(to, " MT-PRIORITY=%d", d->priority);
	if (can->dsn && d->ret != RET_NONE)
		buf_puts(to, d->ret == RET_FULL ? " RET=FULL" : " RET=HDRS");
	if (can->dsn && d->envid)
		buf_printf(to, " ENVID=%s", d->envid);
	buf_puts(to, "\r\n");
}

static void put_notify(struct buf *to, unsigned notify)
{
	static const struct {
		unsigned bit;
		const char *word;
	} words[] = {
		{NOTIFY_SUCCESS, "SUCCESS"}, {NOTIFY_FAILURE, "FAILURE"}, {NOTIFY_DELAY, "DELAY"}};
	if (notify == 0)
		return;
	if (notify & NOTIFY_NEVER) {
		buf_puts(to, " NOTIFY=NEVER");
		return;
	}
	const char *before = " NOTIFY=";
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (!(notify & words[i].bit))
			continue;
		buf_printf(to, "%s%s", before, words[i].word);
		before = ",";
	}
}

void envelope_out_rcpt(struct buf *to, const struct delivery *d, uint32_t i,
		       const struct capability *can)
{
	const struct delivery_recipient *r = &d->rcpt[i];
	buf_printf(to, "RCPT TO:<%s>", r->address);
	if (can->dsn) {
		put_notify(to, r->notify);
		if (r->orcpt)
			buf_printf(to, " ORCPT=%s", r->orcpt);
	}
	buf_puts(to, "\r\n");
}
