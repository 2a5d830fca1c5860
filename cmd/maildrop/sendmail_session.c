/* SPDX-License-Identifier: ISC */
#include "cmd/maildrop/sendmail_session.h"

#include "cmd/maildrop/submit.h"
#include "cmd/maildrop/submit_talk.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

enum { PIECE = 16 << 10 };

struct session {
	struct talk talk;
	char *line; /* of standard input, without its end */
	size_t cap, len;
	bool ended; /* there are no more */
};

static bool offers_tls(const char *line)
{
	size_t len = strcspn(line, "\n");
	return len == strlen("250-STARTTLS") && strncasecmp(line + 4, "STARTTLS", len - 4) == 0;
}

static void print_line(const char *line, char sign)
{
	size_t len = strcspn(line, "\n");
	printf("%.3s%c%.*s\r\n", line, sign, len > 4 ? (int)len - 4 : 0, line + 4);
}

/* All of it but an offer of TLS, which nobody can take up here. */
static void print_reply(const char *text)
{
	const char *last = NULL;
	for (const char *line = text; *line;) {
		if (last && !offers_tls(line))
			print_line(last, '-');
		last = offers_tls(line) ? last : line;
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	if (last)
		print_line(last, ' ');
	fflush(stdout);
}

/* The relay's answer, passed on. False: it has gone. */
static bool pass_on_reply(struct session *s)
{
	bool answered = talk_read(&s->talk) != 0;
	if (answered)
		print_reply(buf_cstr(&s->talk.reply));
	return answered;
}

static bool read_line(struct session *s)
{
	ssize_t n = getline(&s->line, &s->cap, stdin);
	s->ended = n <= 0;
	s->len = n > 0 ? (size_t)n : 0;
	s->len -= s->len > 0 && s->line[s->len - 1] == '\n';
	s->len -= s->len > 0 && s->line[s->len - 1] == '\r';
	return !s->ended;
}

static bool send_line(struct session *s)
{
	return talk_send(&s->talk, s->line, s->len) && talk_send(&s->talk, "\r\n", 2);
}

static bool is_verb(const struct session *s, const char *verb)
{
	size_t len = strlen(verb);
	return s->len >= len && strncasecmp(s->line, verb, len) == 0 &&
	       (s->len == len || s->line[len] == ' ');
}

/* Up to the dot. A program that ends before it has changed its mind. */
static bool send_content(struct session *s)
{
	while (read_line(s)) {
		if (!send_line(s))
			return false;
		if (s->len == 1 && s->line[0] == '.')
			return pass_on_reply(s);
	}
	return false;
}

/* The bytes that BDAT has announced. */
static bool send_chunk(struct session *s, unsigned long long left)
{
	char piece[PIECE];
	while (left > 0) {
		size_t n = fread(piece, 1, left < PIECE ? (size_t)left : PIECE, stdin);
		if (n == 0 || !talk_send(&s->talk, piece, n))
			return false;
		left -= n;
	}
	return true;
}

/* One command and its answer. False: the session is over. */
static bool serve_command(struct session *s)
{
	if (!read_line(s))
		return false;
	if (is_verb(s, "STARTTLS")) {
		print_reply("502 5.5.1 STARTTLS is not available on a pipe");
		return true;
	}
	bool data = is_verb(s, "DATA"), quit = is_verb(s, "QUIT"), chunk = is_verb(s, "BDAT");
	unsigned long long size = chunk && s->len > 5 ? strtoull(s->line + 5, NULL, 10) : 0;
	if (!send_line(s) || (chunk && !send_chunk(s, size)) || !pass_on_reply(s))
		return false;
	if (data && s->talk.code == 354)
		return send_content(s);
	return !quit && s->talk.code != 421;
}

int sendmail_session(const struct conf *conf)
{
	const struct conf_listener *listener = submit_listener(conf);
	struct session s = {.len = 0};
	if (!listener) {
		fprintf(stderr,
			"sendmail: no listener of the configuration takes mail without TLS\n");
		return EX_CONFIG;
	}
	bool open = talk_open(&s.talk, listener->address.item[0]) && pass_on_reply(&s);
	while (open && serve_command(&s))
		;
	if (s.talk.code == 0)
		printf("421 4.3.2 The relay cannot be reached: %s\r\n", buf_cstr(&s.talk.reply));
	bool told = fflush(stdout) == 0 && !ferror(stdout);
	int status = s.talk.code == 0 || !told ? EX_TEMPFAIL : EX_OK;
	talk_close(&s.talk);
	free(s.line);
	return status;
}
