/* SPDX-License-Identifier: ISC */
/* sink_command - the verbs of `sluice sink`. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cmd/sink/sink_session.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The address in "<address> parameters", with a tab between the two; NULL: there is none. */
static char *take_path(const char *text)
{
	while (*text == ' ')
		text++;
	if (*text++ != '<')
		return NULL;
	const char *end = text;
	for (bool quoted = false; *end && (quoted || *end != '>'); end++) {
		if (*end == '\\' && end[1])
			end++;
		else if (*end == '"')
			quoted = !quoted;
	}
	if (!*end)
		return NULL;
	const char *rest = end + 1 + strspn(end + 1, " ");
	size_t len = strlen(text) + 2;
	char *path = mem_printf("%.*s%s%s", (int)(end - text), text, *rest ? "\t" : "", rest);
	char *clean = mem_alloc(len);
	/* Only the tab between the two stays a control. */
	size_t address = utf8_clean(clean, path, (size_t)(end - text));
	if (path[end - text] == '\t') {
		clean[address] = '\t';
		utf8_clean(clean + address + 1, path + (end - text) + 1, strlen(rest));
	}
	free(path);
	return clean;
}

static int find_refusal(const struct sink_session *s, enum sink_stage stage, const char *path)
{
	const struct sink_options *o = s->sink->options;
	char *address = mem_strndup(path, strcspn(path, "\t"));
	int code = 0;
	for (int i = 0; i < o->nrefusal && !code; i++)
		if (o->refusal[i].stage == stage &&
		    fnmatch(o->refusal[i].pattern, address, FNM_CASEFOLD) == 0)
			code = o->refusal[i].code;
	free(address);
	return code;
}

static void reply_refused(struct sink_session *s, int code)
{
	s->sink->refused++;
	sink_session_reply(s, "%d %d.0.0 Refused, as told", code, code / 100);
}

/* Beyond the rate: refused as told; after 421 nothing more is heard. */
static bool beyond_rate(struct sink_session *s, enum sink_stage stage)
{
	const struct sink_rate *r = &s->sink->options->rate;
	if (r->stage != stage || !sink_mood_beyond(&s->sink->mood, &r->rate, clock_steady_us()))
		return false;
	s->sink->refused++;
	sink_session_reply(s, "%d %d.7.0 Too much for now", r->code, r->code / 100);
	if (r->code == 421)
		s->state = SINK_CLOSING;
	return true;
}

static bool needs_login(const struct sink_session *s)
{
	return s->sink->options->nlogin > 0 && !s->login;
}

static void announce_security(struct sink_session *s)
{
	if (s->sink->tls && !s->tls)
		sink_session_reply(s, "250-STARTTLS");
	else if (s->sink->options->nlogin > 0)
		sink_session_reply(s, "250-AUTH " SINK_AUTH_MECHANISMS);
}

static void verb_ehlo(struct sink_session *s, char *rest)
{
	(void)rest;
	const struct sink_options *o = s->sink->options;
	sink_session_reset(s);
	s->greeted = true;
	sink_session_reply(s, "250-%s", o->name);
	announce_security(s);
	if (o->pipelining)
		sink_session_reply(s, "250-PIPELINING");
	if (o->chunking)
		sink_session_reply(s, "250-CHUNKING");
	sink_session_reply(s, "250-8BITMIME\r\n250-SMTPUTF8\r\n250-DSN\r\n250-ENHANCEDSTATUSCODES");
	sink_session_reply(s, "250 SIZE %" PRId64, o->size_max);
}

static void verb_helo(struct sink_session *s, char *rest)
{
	(void)rest;
	sink_session_reset(s);
	s->greeted = true;
	sink_session_reply(s, "250 %s", s->sink->options->name);
}

static void end_session(struct sink_session *s, const char *why)
{
	s->sink->refused++;
	sink_session_reply(s, "421 4.7.0 %s %s", s->sink->options->name, why);
	s->state = SINK_CLOSING;
}

/* The session has carried all that it may. */
static bool is_worn_out(struct sink_session *s)
{
	int64_t most = s->sink->options->per_connection;
	if (most == 0 || s->taken < most)
		return false;
	end_session(s, "Enough for one connection");
	return true;
}

/* All messages have come for which the program was started; it ends when the last replies have gone out. */
static bool has_all(struct sink_session *s)
{
	int64_t most = s->sink->options->count;
	if (most == 0 || s->sink->messages < most)
		return false;
	end_session(s, "Enough messages");
	return true;
}

static void begin_mail(struct sink_session *s, char *path)
{
	int code = find_refusal(s, SINK_MAIL, path);
	if (code) {
		reply_refused(s, code);
	} else if (!has_all(s) && !is_worn_out(s) && !beyond_rate(s, SINK_MAIL)) {
		sink_session_reply(s, "250 2.1.0 Ok");
		s->from = path;
		return;
	}
	free(path);
}

static void verb_mail(struct sink_session *s, char *rest)
{
	char *path = strncasecmp(rest, "FROM:", 5) == 0 ? take_path(rest + 5) : NULL;
	if (path && s->greeted && !s->from && !needs_login(s)) {
		begin_mail(s, path);
		return;
	}
	sink_session_reply(s, s->from	       ? "503 5.5.1 Nested MAIL command"
			      : !s->greeted    ? "503 5.5.1 Send EHLO first"
			      : needs_login(s) ? "530 5.7.0 Authentication required"
					       : "501 5.5.4 Syntax: MAIL FROM:<address>");
	free(path);
}

/* Sender and recipient have not been known for long enough. */
static bool is_greylisted(struct sink_session *s, const char *path)
{
	int64_t most_ms = s->sink->options->greylist_ms;
	int64_t left_ms = most_ms ? sink_mood_grey_ms(&s->sink->mood, most_ms, s->from, path,
						      clock_steady_ms())
				  : 0;
	if (left_ms > 0) {
		s->sink->refused++;
		sink_session_reply(s, "450 4.7.1 Greylisted, try again in %" PRId64 " seconds",
				   (left_ms + 999) / 1000);
	}
	return left_ms > 0;
}

static void verb_rcpt(struct sink_session *s, char *rest)
{
	char *path = strncasecmp(rest, "TO:", 3) == 0 ? take_path(rest + 3) : NULL;
	int code = path ? find_refusal(s, SINK_RCPT, path) : 0;
	if (!s->from) {
		sink_session_reply(s, "503 5.5.1 Need MAIL before RCPT");
	} else if (!path || !*path) {
		sink_session_reply(s, "501 5.5.4 Syntax: RCPT TO:<address>");
	} else if (code) {
		reply_refused(s, code);
	} else if (s->nto >= SINK_RECIPIENTS_MAX) {
		sink_session_reply(s, "452 4.5.3 Too many recipients");
	} else if (!is_greylisted(s, path) && !beyond_rate(s, SINK_RCPT)) {
		if ((s->nto & (s->nto - 1)) == 0) /* full at each power of two */
			s->to = mem_realloc(s->to,
					    (size_t)(s->nto ? 2 * s->nto : 1) * sizeof *s->to);
		s->to[s->nto++] = path;
		path = NULL;
		sink_session_reply(s, "250 2.1.5 Ok");
	}
	free(path);
}

static void verb_data(struct sink_session *s, char *rest)
{
	(void)rest;
	if (!s->from || s->size > 0) {
		sink_session_reply(s, "503 5.5.1 Need MAIL and RCPT first");
	} else if (s->nto == 0) {
		sink_session_reply(s, "554 5.5.1 No valid recipients");
	} else {
		s->state = SINK_DATA;
		sink_session_reply(s, "354 Start mail input; end with <CRLF>.<CRLF>");
	}
}

static void verb_bdat(struct sink_session *s, char *rest)
{
	char *end;
	errno = 0;
	uint64_t n = strtoull(rest, &end, 10);
	bool last = strcasecmp(end, " LAST") == 0;
	if (!isdigit((unsigned char)*rest) || errno != 0 || (*end && !last)) {
		/* How much would follow is not known, so what follows can not be told from
		 * commands. */
		sink_session_reply(s, "501 5.5.4 Syntax: BDAT size [LAST]");
		s->state = SINK_CLOSING;
		return;
	}
	s->chunk_left = n;
	s->chunk_last = last;
	s->chunk_void = !s->from || s->nto == 0 || !s->sink->options->chunking;
	s->state = SINK_BDAT;
	if (s->chunk_void)
		sink_session_reply(s, s->from ? "554 5.5.1 No valid recipients"
					      : "503 5.5.1 Need MAIL and RCPT first");
}

static void verb_starttls(struct sink_session *s, char *rest)
{
	(void)rest;
	if (!s->sink->tls || s->tls) {
		sink_session_reply(s, s->tls ? "503 5.5.1 TLS is already active"
					     : "502 5.5.1 Command not implemented");
		return;
	}
	sink_session_reply(s, "220 2.0.0 Ready to start TLS");
	s->state = SINK_HANDSHAKE;
}

static void auth_ends(struct sink_session *s, const char *reply)
{
	sink_auth_free(&s->auth);
	s->state = SINK_COMMANDS;
	sink_session_reply(s, "%s", reply);
}

static void auth_line(struct sink_session *s, const char *line)
{
	struct buf challenge = {0};
	if (strcmp(line, "*") == 0) {
		auth_ends(s, "501 5.7.0 Authentication cancelled");
		return;
	}
	switch (sink_auth_step(s->auth, line, &challenge)) {
	case SINK_AUTH_MORE:
		s->state = SINK_AUTH;
		sink_session_reply(s, "334 %s", buf_cstr(&challenge));
		break;
	case SINK_AUTH_DONE:
		s->login = mem_strdup(sink_auth_login(s->auth));
		auth_ends(s, "235 2.7.0 Authentication successful");
		break;
	case SINK_AUTH_FAILED:
		s->sink->refused++;
		auth_ends(s, "535 5.7.8 Authentication failed");
	}
	buf_fini(&challenge);
}

static void verb_auth(struct sink_session *s, char *rest)
{
	size_t len = strcspn(rest, " ");
	char *initial = rest + len + strspn(rest + len, " ");
	if (s->sink->options->nlogin == 0 || s->login || s->from || !s->greeted) {
		sink_session_reply(s, "503 5.5.1 Bad sequence of commands");
	} else if (s->sink->tls && !s->tls) {
		sink_session_reply(s, "538 5.7.11 Encryption required for authentication");
	} else {
		rest[len] = '\0';
		s->auth = sink_auth_new(s->sink->options, rest);
		if (s->auth)
			auth_line(s, strcmp(initial, "=") == 0 ? "" : initial);
		else
			sink_session_reply(s, "504 5.5.4 Mechanism not recognized");
	}
}

static void verb_rset(struct sink_session *s, char *rest)
{
	(void)rest;
	sink_session_reset(s);
	sink_session_reply(s, "250 2.0.0 Ok");
}

static void verb_noop(struct sink_session *s, char *rest)
{
	(void)rest;
	sink_session_reply(s, "250 2.0.0 Ok");
}

static void verb_vrfy(struct sink_session *s, char *rest)
{
	(void)rest;
	sink_session_reply(s, "252 2.0.0 Cannot VRFY user, but will accept mail");
}

static void verb_quit(struct sink_session *s, char *rest)
{
	(void)rest;
	sink_session_reply(s, "221 2.0.0 Bye");
	s->state = SINK_CLOSING;
}

/* A password is not to stand on a terminal. */
static void tell_command(const char *line)
{
	bool secret = strncasecmp(line, "AUTH ", 5) == 0;
	size_t len = secret ? 5 + strcspn(line + 5, " ") : strlen(line);
	char *clean = mem_alloc(len + 1);
	utf8_clean(clean, line, len);
	printf("command %s\n", clean);
	free(clean);
}

void sink_command(struct sink_session *s, char *line)
{
	static const struct {
		const char *verb;
		void (*take)(struct sink_session *, char *rest);
	} table[] = {{"EHLO", verb_ehlo}, {"HELO", verb_helo}, {"MAIL", verb_mail},
		     {"RCPT", verb_rcpt}, {"DATA", verb_data}, {"BDAT", verb_bdat},
		     {"RSET", verb_rset}, {"NOOP", verb_noop}, {"VRFY", verb_vrfy},
		     {"QUIT", verb_quit}, {"AUTH", verb_auth}, {"STARTTLS", verb_starttls}};
	if (s->state == SINK_AUTH) {
		auth_line(s, line);
		return;
	}
	size_t len = strcspn(line, " ");
	char *rest = line + len + strspn(line + len, " ");
	if (s->sink->options->verbose)
		tell_command(line);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		if (strlen(table[i].verb) == len && strncasecmp(line, table[i].verb, len) == 0) {
			table[i].take(s, rest);
			return;
		}
	}
	sink_session_reply(s, "500 5.5.2 Command not recognized");
}

static void tell_message(const struct sink_session *s, uint64_t number)
{
	printf("message %" PRIu64 " from=<%.*s> to=", number, (int)strcspn(s->from, "\t"), s->from);
	for (int i = 0; i < s->nto; i++)
		printf("%s<%.*s>", i ? "," : "", (int)strcspn(s->to[i], "\t"), s->to[i]);
	printf(" size=%" PRIu64 "%s%s%s\n", s->size, s->tls ? " tls" : "",
	       s->login ? " login=" : "", s->login ? s->login : "");
}

void sink_content_end(struct sink_session *s)
{
	struct sink *k = s->sink;
	uint64_t number = (uint64_t)k->messages + 1;
	int code = 0;
	for (int i = 0; i < s->nto && !code; i++)
		code = find_refusal(s, SINK_END, s->to[i]);
	if (s->size > (uint64_t)k->options->size_max) {
		sink_session_reply(s, "552 5.3.4 Message size exceeds fixed limit");
	} else if (code) {
		reply_refused(s, code);
	} else if (has_all(s) || beyond_rate(s, SINK_END)) {
		; /* it was told */
	} else if (k->folder >= 0 && !sink_store(s, &number)) {
		sink_session_reply(s, "452 4.3.1 Message could not be stored");
	} else {
		k->messages++;
		s->taken++;
		k->recipients += s->nto;
		k->bytes += (int64_t)s->size;
		if (!k->options->quiet)
			tell_message(s, number);
		sink_session_reply(s, "250 2.0.0 Ok: message %" PRIu64, number);
		sink_counted(k);
	}
	sink_session_reset(s);
}
