/* SPDX-License-Identifier: ISC */
#include "smtpd/header_rewrite.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Goes over the field once. What lies before `copied` is in out already. */
struct walk {
	const char *at, *end, *copied;
	const char *from, *to; /* the words of what may be an address; NULL: none so far */
	bool whole;	       /* nothing lies between them */
	enum header_class class;
	header_become *become;
	void *owner;
	struct buf *out;
};

enum header_class header_class(const char *name, size_t len)
{
	static const struct {
		const char *name;
		enum header_class class;
	} fields[] = {
		{"From", HEADER_SENDER},  {"Sender", HEADER_SENDER}, {"Reply-To", HEADER_SENDER},
		{"To", HEADER_RECIPIENT}, {"Cc", HEADER_RECIPIENT},  {"Bcc", HEADER_RECIPIENT},
	};
	static const char resent[] = "Resent-";
	if (len > sizeof resent - 1 && strncasecmp(name, resent, sizeof resent - 1) == 0) {
		name += sizeof resent - 1;
		len -= sizeof resent - 1;
	}
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (len == strlen(fields[i].name) && strncasecmp(name, fields[i].name, len) == 0)
			return fields[i].class;
	return HEADER_OTHER;
}

static void copy_to(struct walk *w, const char *to)
{
	buf_append(w->out, w->copied, (size_t)(to - w->copied));
	w->copied = to;
}

static void forget_address(struct walk *w)
{
	w->from = w->to = NULL;
	w->whole = true;
}

/* An element of the list, or what stood in angle brackets, has ended. */
static void finish_address(struct walk *w)
{
	bool address = w->from && w->whole && memchr(w->from, '@', (size_t)(w->to - w->from));
	char *to =
		address ? w->become(w->owner, w->class, w->from, (size_t)(w->to - w->from)) : NULL;
	if (to) {
		copy_to(w, w->from);
		buf_puts(w->out, to);
		w->copied = w->to;
		free(to);
	}
	forget_address(w);
}

static void take_bytes(struct walk *w, const char *end)
{
	w->whole &= !w->from || w->to == w->at;
	if (!w->from)
		w->from = w->at;
	w->to = w->at = end;
}

/* Behind the byte that closes what begins at the cursor, or the end of the field. */
static const char *behind_closing(const struct walk *w, char close)
{
	for (const char *p = w->at + 1; p < w->end; p++) {
		if (*p == '\\' && p + 1 < w->end)
			p++;
		else if (*p == close)
			return p + 1;
	}
	return w->end;
}

static const char *behind_comment(const struct walk *w)
{
	int depth = 0;
	for (const char *p = w->at; p < w->end; p++) {
		if (*p == '\\' && p + 1 < w->end)
			p++;
		else if (*p == '(')
			depth++;
		else if (*p == ')' && --depth == 0)
			return p + 1;
	}
	return w->end;
}

static const char *behind_atom(const struct walk *w)
{
	const char *p = w->at;
	while (p < w->end && *p && !strchr(" \t\r\n()<>[]:;,\"", *p))
		p++;
	return p > w->at ? p : p + 1;
}

/* The text before "<" was a name; a route before ":" is none of the address's. */
static void step_walk(struct walk *w)
{
	switch (*w->at) {
	case ' ':
	case '\t':
	case '\r':
	case '\n':
		w->at++;
		break;
	case '(':
		w->at = behind_comment(w);
		break;
	case '"':
		take_bytes(w, behind_closing(w, '"'));
		break;
	case '[':
		take_bytes(w, behind_closing(w, ']'));
		break;
	case '<':
	case ':':
		w->at++;
		forget_address(w);
		break;
	case '>':
	case ',':
	case ';':
		finish_address(w);
		w->at++;
		break;
	default:
		take_bytes(w, behind_atom(w));
	}
}

void header_rewrite(const char *field, size_t len, enum header_class class, header_become *become,
		    void *owner, struct buf *out)
{
	const char *colon = memchr(field, ':', len);
	struct walk w = {.at = colon ? colon + 1 : field + len,
			 .end = field + len,
			 .copied = field,
			 .whole = true,
			 .class = class,
			 .become = become,
			 .owner = owner,
			 .out = out};
	while (w.at < w.end)
		step_walk(&w);
	finish_address(&w);
	copy_to(&w, w.end);
}
