/* SPDX-License-Identifier: ISC */
#include "smtpd/milter/milter_content.h"

#include "base/header_field.h"

#include <assert.h>
#include <string.h>

static void find_field(struct milter_content *c)
{
	if (c->field == c->hidden)
		c->field++;
	if (c->field >= c->draft->nfield)
		c->at = MILTER_END_OF_HEADER;
}

static void find_body(struct milter_content *c)
{
	c->at = c->offset < draft_body_size(c->draft) ? MILTER_BODY : MILTER_END_OF_BODY;
}

void milter_content_begin(struct milter_content *c, const struct draft *d, int hidden)
{
	buf_clear(&c->data);
	c->draft = d;
	c->hidden = hidden;
	c->at = MILTER_HEADER;
	c->field = 0;
	c->offset = 0;
	find_field(c);
}

void milter_content_fini(struct milter_content *c)
{
	buf_fini(&c->data);
	*c = (struct milter_content){.at = MILTER_EVENT_COUNT};
}

/* Lines end with LF only, the last one with none. */
static void put_value(struct buf *to, const char *value, size_t len)
{
	while (len > 0 && (value[len - 1] == '\n' || value[len - 1] == '\r'))
		len--;
	while (len > 0 && buf_len(to) + 1 < MILTER_BODY_CHUNK) {
		const char *cr = memchr(value, '\r', len);
		size_t n = cr ? (size_t)(cr - value) : len,
		       room = MILTER_BODY_CHUNK - 1 - buf_len(to);
		buf_append(to, value, n < room ? n : room);
		n += cr != NULL;
		value += n;
		len -= n;
	}
	buf_append(to, "", 1);
}

static void put_field(struct milter_content *c, bool leading_space)
{
	const struct draft_field *f = &c->draft->field[c->field];
	size_t name = header_field_name(f->text, f->len);
	const char *colon = memchr(f->text + name, ':', f->len - name);
	assert(name > 0 && colon);
	size_t at = (size_t)(colon + 1 - f->text);
	if (at < f->len && f->text[at] == ' ' && !leading_space)
		at++;
	size_t shown = name < MILTER_BODY_CHUNK / 2 ? name : MILTER_BODY_CHUNK / 2;
	buf_append(&c->data, f->text, shown);
	buf_append(&c->data, "", 1);
	put_value(&c->data, f->text + at, f->len - at);
}

static bool put_body(struct milter_content *c)
{
	char *to = buf_reserve(&c->data, MILTER_BODY_CHUNK);
	ssize_t n = draft_body(c->draft, c->offset, to, MILTER_BODY_CHUNK);
	buf_commit(&c->data, n > 0 ? (size_t)n : 0);
	return n >= 0;
}

const struct buf *milter_content_data(struct milter_content *c, enum milter_event event,
				      bool leading_space)
{
	assert(event == c->at);
	buf_clear(&c->data);
	if (event == MILTER_HEADER)
		put_field(c, leading_space);
	if (event == MILTER_BODY && !put_body(c))
		return NULL;
	return &c->data;
}

void milter_content_told(struct milter_content *c, enum milter_event event)
{
	assert(event == c->at);
	switch (event) {
	case MILTER_HEADER:
		c->field++;
		find_field(c);
		break;
	case MILTER_END_OF_HEADER:
		find_body(c);
		break;
	case MILTER_BODY:
		c->offset += buf_len(&c->data);
		assert(buf_len(&c->data) > 0);
		find_body(c);
		break;
	default:
		c->at = MILTER_EVENT_COUNT;
	}
}

void milter_content_skip(struct milter_content *c, enum milter_event event)
{
	c->at = event == MILTER_HEADER ? MILTER_END_OF_HEADER : MILTER_END_OF_BODY;
}
