/* SPDX-License-Identifier: ISC */
#include "smtpd/header_in.h"

#include "base/header_field.h"

#include <string.h>

/* Append what may be the value of Message-ID, or its continuation, without white space. */
static void keep_id(struct header_in *h, const char *from, size_t len)
{
	size_t n = strlen(h->id);
	for (size_t i = 0; i < len && n < HEADER_MESSAGE_ID_MAX; i++)
		if (from[i] != ' ' && from[i] != '\t' && from[i] != '\r' && from[i] != '\n')
			h->id[n++] = from[i];
	h->id[n] = '\0';
}

/* The value behind the colon on this line, without white space around it. len: of the line, then of that. */
static const char *value_of(const char *line, size_t *len)
{
	const char *value = (const char *)memchr(line, ':', *len) + 1;
	*len -= (size_t)(value - line);
	while (*len > 0 && strchr(" \t\r\n", value[*len - 1]))
		--*len;
	for (; *len > 0 && strchr(" \t", *value); --*len)
		value++;
	return value;
}

static void keep_flow(struct header_in *h, const char *value, size_t len)
{
	len = len < sizeof h->flow - 1 ? len : sizeof h->flow - 1;
	memcpy(h->flow, value, len);
	h->flow_named = true;
}

/* RFC 2156 has three words, and RFC 6710 says what numbers they are. */
static bool read_priority(const char *word, size_t len, int8_t *priority)
{
	static const struct {
		const char *word;
		int8_t priority;
	} known[] = {{"urgent", 4}, {"normal", 0}, {"non-urgent", -4}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (!header_field_is(word, len, known[i].word))
			continue;
		*priority = known[i].priority;
		return true;
	}
	return false;
}

/* No standard has these words, but programs that send to many do. */
static bool means_bulk(const char *word, size_t len)
{
	return header_field_is(word, len, "bulk") || header_field_is(word, len, "list") ||
	       header_field_is(word, len, "junk");
}

static bool names_flow(const struct header_in *h, const char *line, size_t name)
{
	return h->flow_field && header_field_is(line, name, h->flow_field);
}

static void read_field(struct header_in *h, const char *line, size_t name, size_t len)
{
	h->in_message_id = false;
	if (header_field_is(line, name, "Received")) {
		h->received++;
	} else if (header_field_is(line, name, "Date")) {
		h->date = !h->drops;
	} else if (header_field_is(line, name, "From")) {
		h->from = !h->drops;
	} else if (header_field_is(line, name, "TLS-Required")) {
		const char *value = value_of(line, &len);
		h->tls_waived |= header_field_is(value, len, "No"); /* RFC 8689 3: all it can say */
	} else if (header_field_is(line, name, "Message-ID") && !*h->id) {
		h->message_id = !h->drops;
		h->in_message_id = true;
		const char *value = value_of(line, &len);
		keep_id(h, value, len);
	} else if (names_flow(h, line, name) && !h->flow_named) {
		const char *value = value_of(line, &len);
		keep_flow(h, value, len);
	} else if (header_field_is(line, name, "Priority") && !h->prioritised) {
		const char *value = value_of(line, &len);
		h->prioritised = read_priority(value, len, &h->priority);
	} else if (header_field_is(line, name, "Precedence")) {
		const char *value = value_of(line, &len);
		h->bulk |= means_bulk(value, len);
	}
}

/* A field of this name, of which nothing stands behind the colon: the next line may have its value. */
static void open_field(struct header_in *h, const char *line, size_t name)
{
	buf_append(&h->opened, line, name);
	buf_puts(&h->opened, ":");
}

static void read_opened(struct header_in *h, const char *line, size_t len)
{
	size_t name = buf_len(&h->opened) - 1;
	buf_append(&h->opened, line, len);
	read_field(h, buf_data(&h->opened), name, buf_len(&h->opened));
	buf_clear(&h->opened);
}

/* The field so far has ended, which may have been gathered. */
static void end_field(struct header_in *h)
{
	struct buf out = {0};
	if (buf_len(&h->opened) > 0)
		read_opened(h, "", 0);
	if (h->gathers == HEADER_OTHER)
		return;
	header_rewrite(buf_data(&h->field), buf_len(&h->field), h->gathers, h->become, h->owner,
		       &out);
	h->sink(h->owner, buf_data(&out), buf_len(&out));
	buf_fini(&out);
	buf_clear(&h->field);
	h->gathers = HEADER_OTHER;
}

static void pass_bytes(struct header_in *h, const char *bytes, size_t len)
{
	if (h->drops)
		return;
	if (h->gathers == HEADER_OTHER) {
		h->sink(h->owner, bytes, len);
		return;
	}
	buf_append(&h->field, bytes, len);
	if (buf_len(&h->field) <= HEADER_FIELD_MAX)
		return;
	h->gathers = HEADER_OTHER;
	h->sink(h->owner, buf_data(&h->field), buf_len(&h->field));
	buf_clear(&h->field);
}

static bool is_incomplete(const struct header_in *h)
{
	return h->missing && !(h->date && h->message_id && h->from);
}

static void end_header(struct header_in *h, bool blank_line)
{
	end_field(h);
	h->drops = false;
	h->over = true;
	if (is_incomplete(h))
		h->missing(h->owner, blank_line);
}

static bool is_to_go(const struct header_in *h, const char *name, size_t len)
{
	for (int i = 0; h->drop && i < h->drop->n; i++)
		if (header_field_is(name, len, h->drop->item[i]))
			return true;
	return false;
}

static bool is_blank(const char *line, size_t len)
{
	size_t n = 0;
	while (n < len && strchr(" \t\r\n", line[n]))
		n++;
	return n == len;
}

static bool is_empty(const char *line, size_t len)
{
	value_of(line, &len);
	return len == 0;
}

/* A whole line, or the first bytes of a very long one. */
static void read_line(struct header_in *h, const char *line, size_t len)
{
	size_t name = header_field_name(line, len);
	if (name > 0) {
		end_field(h);
		h->drops = is_to_go(h, line, name) || names_flow(h, line, name);
		if (is_empty(line, len))
			open_field(h, line, name);
		else
			read_field(h, line, name, len);
		h->gathers = h->become && !h->drops ? header_class(line, name) : HEADER_OTHER;
	} else if (line[0] != ' ' && line[0] != '\t') {
		end_header(h, line[0] != '\r');
	} else if (buf_len(&h->opened) > 0) {
		if (!is_blank(line, len))
			read_opened(h, line, len);
	} else if (h->in_message_id) {
		keep_id(h, line, len);
	}
	pass_bytes(h, line, len);
}

static void release_held(struct header_in *h)
{
	struct buf line = h->held;
	buf_init(&h->held);
	read_line(h, buf_data(&line), buf_len(&line));
	buf_fini(&line);
}

void header_in_feed(struct header_in *h, const char *p, size_t len)
{
	const char *end = p + len;
	while (p < end && !h->over) {
		const char *lf = memchr(p, '\n', (size_t)(end - p));
		const char *stop = lf ? lf + 1 : end;
		size_t n = (size_t)(stop - p);
		if (h->in_line) {
			pass_bytes(h, p, n);
			h->in_line = lf == NULL;
		} else if (lf && buf_len(&h->held) == 0) {
			read_line(h, p, n);
		} else {
			buf_append(&h->held, p, n);
			h->in_line = !lf && buf_len(&h->held) >= HEADER_HELD_MAX;
			if (lf || h->in_line)
				release_held(h);
		}
		p = stop;
	}
	if (p < end)
		h->sink(h->owner, p, (size_t)(end - p));
}

/* A message that is all header may end without CRLF; where something is to follow, it gets one. */
void header_in_finish(struct header_in *h)
{
	bool open = buf_len(&h->held) > 0 || h->in_line;
	if (buf_len(&h->held) > 0)
		release_held(h);
	if (h->over)
		return;
	if (open && is_incomplete(h))
		pass_bytes(h, "\r\n", 2);
	end_header(h, false);
}

int8_t header_in_priority(const struct header_in *h)
{
	return h->prioritised ? h->priority : h->bulk ? HEADER_BULK_PRIORITY : 0;
}

void header_in_fini(struct header_in *h)
{
	buf_fini(&h->held);
	buf_fini(&h->field);
	buf_fini(&h->opened);
}
