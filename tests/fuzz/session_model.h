/* session_model.h - what a session must have accepted, seen from outside: from the bytes that a client
 * has sent, and the replies that it got.
 *
 *	said: bytes of the client --+
 *	                            +--> one step a reply --> messages that must have been kept
 *	heard: replies -------------+
 *
 * It knows what the RFCs say and nothing of the server: a command ends with CRLF, content with
 * CRLF.CRLF, a chunk where its size says; each has one reply; who is refused has changed nothing that
 * a client may rely on.
 *
 * OWNERSHIP  Embedded; model_fini() frees all. Kept messages are the model's.
 * THREAD     One.
 * ERRORS     What must not be asserts.
 * SEE        RFC 5321 4.1.4, 4.5.2; RFC 3030 2; RFC 3207 4.2.
 */
#ifndef TESTS_FUZZ_SESSION_MODEL_H
#define TESTS_FUZZ_SESSION_MODEL_H

#include "base/buf.h"
#include "base/mem.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MODEL_KEPT_MAX = 32, MODEL_LINE_MAX = 4096, MODEL_TEXT_LINE = 998 };

/* What the spool was given. */
struct kept {
	char *sender, *content;
	size_t len;
	uint32_t nrcpt;
	bool refused; /* the spool said no */
};

struct model {
	struct buf said, heard;
	enum {
		MODEL_GREETING,
		MODEL_COMMAND,
		MODEL_CONTENT,
		MODEL_CHUNK,
		MODEL_HANDSHAKE,
		MODEL_OVER, /* nothing more may be said */
	} state;
	bool normalise, offers_tls, needs_tls; /* the listener */
	uint64_t size_max;		       /* 0: none */
	bool tls, hello, mail, chunks, last, postmaster, null_sender;
	bool continues; /* the next line answers a 3xx */
	uint64_t chunk_left;
	uint32_t accepted;
	/* How many of these are different: as they were said, and at least, whatever may be written in two ways. */
	uint32_t most, least;
	struct buf names, keys; /* of them, a line each */
	struct buf content;	/* of chunks so far */
	struct kept kept[MODEL_KEPT_MAX];
	int nkept;
};

static void model_forget(struct model *m)
{
	m->mail = m->chunks = m->postmaster = false;
	m->accepted = m->most = m->least = 0;
	buf_clear(&m->names);
	buf_clear(&m->keys);
	buf_clear(&m->content);
}

static void kept_fini(struct kept *k)
{
	free(k->sender);
	free(k->content);
}

static void model_fini(struct model *m)
{
	for (int i = 0; i < m->nkept; i++)
		kept_fini(&m->kept[i]);
	buf_fini(&m->said);
	buf_fini(&m->heard);
	buf_fini(&m->names);
	buf_fini(&m->keys);
	buf_fini(&m->content);
}

/* The length of the first reply, all its lines, or 0: it has not come. */
static size_t model_reply(struct model *m, int *code)
{
	const char *text = buf_cstr(&m->heard), *line = text;
	for (;;) {
		const char *end = strstr(line, "\r\n");
		if (!end)
			return 0;
		for (const char *p = line; p < end; p++)
			assert((unsigned char)*p >= ' ' && (unsigned char)*p < 127);
		assert(end - line >= 4 && isdigit((unsigned char)line[0]) &&
		       isdigit((unsigned char)line[1]) && isdigit((unsigned char)line[2]));
		assert(strncmp(line, text, 3) == 0 && (line[3] == ' ' || line[3] == '-'));
		if (line[3] == ' ') {
			*code = atoi(text);
			assert(*code >= 200 && *code < 600);
			return (size_t)(end + 2 - text);
		}
		line = end + 2;
	}
}

/* Where the first of these bytes are found in what was said, or NULL. */
static const char *model_find(const struct model *m, const char *bytes, size_t len)
{
	size_t all = buf_len(&m->said);
	return all >= len ? memmem(buf_data(&m->said), all, bytes, len) : NULL;
}

/* Length of the content with its end, or 0: it has not come. */
static size_t model_content(const struct model *m)
{
	if (buf_len(&m->said) >= 3 && memcmp(buf_data(&m->said), ".\r\n", 3) == 0)
		return 3;
	const char *end = model_find(m, "\r\n.\r\n", 5);
	return end ? (size_t)(end + 5 - buf_data(&m->said)) : 0;
}

/* A dot in front of a line, and the last line, are no content. */
static void model_decode(struct buf *to, const char *wire, size_t len)
{
	bool line_begins = true;
	for (size_t i = 0; i < len - 3; i++) {
		if (!line_begins || wire[i] != '.')
			buf_append(to, &wire[i], 1);
		line_begins = wire[i] == '\n' && i > 0 && wire[i - 1] == '\r';
	}
}

struct model_faults {
	bool bare, nul, long_line, large, received;
};

static struct model_faults model_judge(const struct model *m, struct buf *content)
{
	struct model_faults f = {0};
	const char *p = buf_cstr(content);
	size_t len = buf_len(content), line = 0;
	for (size_t i = 0; i < len; i++) {
		f.nul |= p[i] == '\0';
		f.bare |= p[i] == '\r' && p[i + 1] != '\n';
		f.bare |= p[i] == '\n' && (i == 0 || p[i - 1] != '\r');
		line = p[i] == '\n' ? 0 : line + 1;
		f.long_line |= line > MODEL_TEXT_LINE;
		f.received |= strncasecmp(p + i, "received", 8) == 0;
	}
	f.large = m->size_max && len > m->size_max;
	return f;
}

static void model_normalise(struct buf *content)
{
	struct buf to;
	const char *p = buf_cstr(content);
	buf_init(&to);
	for (size_t i = 0; i < buf_len(content); i++) {
		if (p[i] != '\r' && p[i] != '\n') {
			buf_append(&to, &p[i], 1);
			continue;
		}
		i += p[i] == '\r' && p[i + 1] == '\n';
		buf_puts(&to, "\r\n");
	}
	buf_fini(content);
	*content = to;
}

/* Is the oldest that was kept this one, behind a Received field? */
static bool model_is(const struct model *m, struct buf *content)
{
	const struct kept *k = &m->kept[0];
	size_t len = buf_len(content);
	return m->nkept > 0 && k->nrcpt > 0 && k->nrcpt <= m->most && k->nrcpt >= m->least &&
	       (*k->sender == '\0') == m->null_sender && k->len > len &&
	       memcmp(k->content + k->len - len, buf_cstr(content), len) == 0;
}

static void model_take(struct model *m, struct buf *content)
{
	struct kept *k = &m->kept[0];
	size_t field = k->len - buf_len(content);
	assert(strncmp(k->content, "Received: ", 10) == 0);
	for (size_t i = 1; i + 1 < field; i++)
		if (k->content[i] == '\n')
			assert(k->content[i - 1] == '\r' && k->content[i + 1] == '\t');
	assert(memcmp(k->content + field - 2, "\r\n", 2) == 0);
	kept_fini(k);
	memmove(m->kept, m->kept + 1, (size_t)--m->nkept * sizeof *k);
}

/* All content of a transaction has come, and this was the answer; 0: none yet. Behind it others may
 * have been kept already. */
static void model_end(struct model *m, struct buf *content, int code)
{
	struct model_faults f = model_judge(m, content);
	bool bad = f.nul || f.large || (f.bare && !m->normalise);
	assert(m->mail && m->accepted > 0);
	if (f.bare && m->normalise && !f.nul)
		model_normalise(content);
	if (code / 100 == 2 || code == 0) {
		assert(!bad && model_is(m, content) && !(code && m->kept[0].refused));
		model_take(m, content);
	} else if (code == 452) {
		if (!bad && model_is(m, content) && m->kept[0].refused)
			model_take(m, content);
	} else {
		assert(bad || f.long_line || f.received);
	}
	if (code > 0)
		model_forget(m);
}

static bool model_verb(const char *line, const char *verb)
{
	size_t len = strlen(verb);
	return strncasecmp(line, verb, len) == 0 &&
	       (isblank((unsigned char)line[len]) || line[len] == '\0');
}

/* A line that announces a chunk. */
static bool model_bdat(const char *line, uint64_t *size, bool *last)
{
	if (!model_verb(line, "BDAT"))
		return false;
	const char *p = line + 4;
	char *end;
	p += strspn(p, " \t");
	if (!isdigit((unsigned char)*p) || strspn(p, "0123456789") > 18)
		return false;
	*size = strtoull(p, &end, 10);
	if (*end != ' ' && end[strspn(end, " \t")])
		return false;
	end += strspn(end, " ");
	*last = strncasecmp(end, "LAST", 4) == 0;
	end += *last ? 4 : 0;
	return end[strspn(end, " \t")] == '\0';
}

/* 1: it was not among them yet. */
static uint32_t model_new(struct buf *all, const char *name)
{
	struct buf line = {0};
	buf_printf(&line, "\n%s\n", name);
	bool new = !strstr(buf_cstr(all), buf_cstr(&line));
	if (new)
		buf_puts(all, buf_cstr(&line));
	buf_fini(&line);
	return new;
}

/* Whoever is named twice is one recipient. Two names are of two if they differ in letters and digits, whatever their case and behind any
 * source route. <postmaster> may be anybody. */
static void model_recipient(struct model *m, const char *path, bool postmaster)
{
	struct buf key = {0};
	m->accepted++;
	m->most += model_new(&m->names, path);
	for (const char *p = path; *p && *p != '>' && !postmaster; p++) {
		char letter = (char)tolower((unsigned char)*p);
		if (*p == ':')
			buf_clear(&key);
		else if (isalnum((unsigned char)*p))
			buf_append(&key, &letter, 1);
	}
	if (!postmaster)
		m->least += model_new(&m->keys, buf_cstr(&key));
	buf_fini(&key);
}

static void model_accepts(struct model *m, const char *line, int code)
{
	if (model_verb(line, "EHLO") || model_verb(line, "HELO")) {
		m->hello = true;
		model_forget(m);
	} else if (model_verb(line, "MAIL")) {
		const char *path = line + 4 + strspn(line + 4, " \t") + 5;
		assert(m->hello && !m->mail && (m->tls || !m->needs_tls));
		m->mail = true;
		m->null_sender = strncmp(path + strspn(path, " "), "<>", 2) == 0;
	} else if (model_verb(line, "RCPT")) {
		const char *path = line + 4 + strspn(line + 4, " \t") + 3;
		assert(m->mail && !m->chunks);
		bool postmaster = strncasecmp(path + strspn(path, " "), "<postmaster>", 12) == 0;
		if (!postmaster || !m->postmaster)
			model_recipient(m, path, postmaster);
		m->postmaster |= postmaster;
	} else if (model_verb(line, "DATA")) {
		assert(code == 354 && m->mail && m->accepted > 0 && !m->chunks);
		m->state = MODEL_CONTENT;
	} else if (model_verb(line, "RSET")) {
		model_forget(m);
	} else if (model_verb(line, "STARTTLS")) {
		assert(code == 220 && m->offers_tls && !m->tls && m->hello && !m->mail);
		buf_clear(&m->said);
		m->state = MODEL_HANDSHAKE;
	} else if (model_verb(line, "QUIT")) {
		assert(code == 221);
		m->state = MODEL_OVER;
	} else {
		assert(model_verb(line, "NOOP") || model_verb(line, "VRFY") ||
		       model_verb(line, "HELP") || model_verb(line, "AUTH"));
		m->continues = code / 100 == 3;
	}
}

/* Take the first reply. */
static void model_drop_reply(struct model *m, size_t len, int code)
{
	buf_consume(&m->heard, len);
	if (code == 421 || code == 521)
		m->state = MODEL_OVER;
}

static bool model_command(struct model *m, size_t reply, int code)
{
	const char *crlf = model_find(m, "\r\n", 2);
	uint64_t size;
	if (!crlf) {
		/* Nobody has asked: it is an end. */
		if (reply > 0) {
			assert(code >= 400);
			buf_consume(&m->heard, reply);
			m->state = MODEL_OVER;
		}
		return reply > 0;
	}
	size_t len = (size_t)(crlf - buf_data(&m->said));
	char *line = mem_strndup(buf_data(&m->said), len);
	bool whole = strlen(line) == len && len < MODEL_LINE_MAX && !strpbrk(line, "\r\n");
	bool more = reply > 0;
	if (!m->continues && whole && model_bdat(line, &size, &m->last)) {
		buf_consume(&m->said, len + 2);
		m->chunk_left = size;
		m->state = MODEL_CHUNK;
		more = true;
	} else if (reply > 0) {
		buf_consume(&m->said, len + 2);
		bool continues = m->continues;
		m->continues = false;
		model_drop_reply(m, reply, code);
		if (continues)
			m->continues = code / 100 == 3;
		else if (code < 400)
			model_accepts(m, line, code);
		else if (model_verb(line, "DATA") && code == 452)
			model_forget(m);
		assert(whole || code >= 400);
	}
	free(line);
	return more;
}

static bool model_read_content(struct model *m, size_t reply, int code)
{
	size_t len = model_content(m);
	struct buf decoded;
	if (reply == 0)
		return false;
	model_drop_reply(m, reply, code);
	if (len == 0)
		m->state = MODEL_OVER;
	if (m->state == MODEL_OVER) {
		assert(code >= 400);
		return true;
	}
	buf_init(&decoded);
	model_decode(&decoded, buf_data(&m->said), len);
	buf_consume(&m->said, len);
	model_end(m, &decoded, code);
	buf_fini(&decoded);
	m->state = MODEL_COMMAND;
	return true;
}

static bool model_read_chunk(struct model *m, size_t reply, int code)
{
	if (reply == 0)
		return false;
	model_drop_reply(m, reply, code);
	if (buf_len(&m->said) < m->chunk_left)
		m->state = MODEL_OVER;
	if (m->state == MODEL_OVER) {
		assert(code >= 400);
		return true;
	}
	m->state = MODEL_COMMAND;
	if (m->mail && m->accepted > 0)
		buf_append(&m->content, buf_data(&m->said), (size_t)m->chunk_left);
	buf_consume(&m->said, (size_t)m->chunk_left);
	if (code < 400) {
		assert(code == 250 && m->mail && m->accepted > 0);
		m->chunks = true;
	}
	if (m->last && m->mail && m->accepted > 0)
		model_end(m, &m->content, code);
	else if (code >= 400)
		model_forget(m);
	return true;
}

/* Use up what was said and heard. */
static void model_run(struct model *m)
{
	bool more = true;
	while (more) {
		int code = 0;
		size_t reply = model_reply(m, &code);
		switch (m->state) {
		case MODEL_GREETING:
			more = reply > 0;
			if (more) {
				m->state = code == 220 ? MODEL_COMMAND : MODEL_OVER;
				buf_consume(&m->heard, reply);
			}
			break;
		case MODEL_COMMAND:
			more = model_command(m, reply, code);
			break;
		case MODEL_CONTENT:
			more = model_read_content(m, reply, code);
			break;
		case MODEL_CHUNK:
			more = model_read_chunk(m, reply, code);
			break;
		default:
			assert(reply == 0);
			more = false;
		}
	}
}

/* The session is gone: at most one message was kept that nobody was told of, and it had come whole. When
 * the client went without hearing the answers, more may follow that one, and nobody can tell which. */
static void model_close(struct model *m, bool unheard)
{
	struct buf decoded;
	buf_init(&decoded);
	size_t len = m->state == MODEL_CONTENT ? model_content(m) : 0;
	if (m->nkept > 0 && m->state == MODEL_CHUNK) {
		assert(m->last && buf_len(&m->said) >= m->chunk_left);
		buf_append(&m->content, buf_data(&m->said), (size_t)m->chunk_left);
		model_end(m, &m->content, 0);
	} else if (m->nkept > 0) {
		assert(len > 0);
		model_decode(&decoded, buf_data(&m->said), len);
		model_end(m, &decoded, 0);
	}
	assert(m->nkept == 0 || unheard);
	buf_fini(&decoded);
}

#endif
