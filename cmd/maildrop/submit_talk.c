/* SPDX-License-Identifier: ISC */
#include "cmd/maildrop/submit_talk.h"

#include "base/address.h"
#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { SILENCE_SECONDS = 300, REPLY_LINES_MAX = 200 };

static bool fail_talk(struct talk *t, const char *why)
{
	t->code = 0;
	buf_clear(&t->reply);
	buf_puts(&t->reply, why);
	return false;
}

/* Of an address to listen on, one to connect to. */
static bool parse_address(const char *text, union address *to)
{
	const char *colon = strrchr(text, ':');
	char *host = mem_strndup(text, colon ? (size_t)(colon - text) : strlen(text));
	size_t len = strlen(host);
	char *bare = host;
	if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		bare = host + 1;
	}
	if (!*bare || strcmp(bare, "0.0.0.0") == 0 || strcmp(bare, "*") == 0)
		bare = "127.0.0.1";
	else if (strcmp(bare, "::") == 0)
		bare = "::1";
	bool ok = address_parse(bare, colon ? atoi(colon + 1) : 25, to);
	free(host);
	return ok;
}

bool talk_open(struct talk *t, const char *address)
{
	return talk_open_within(t, address, NULL, SILENCE_SECONDS);
}

bool talk_open_within(struct talk *t, const char *address, const union address *from, int seconds)
{
	union address to;
	struct timeval silence = {.tv_sec = seconds};
	int on = 1;
	*t = (struct talk){.fd = -1};
	if (!parse_address(address, &to))
		return fail_talk(t, "it listens on no address that one can connect to");
	t->fd = socket(to.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (t->fd < 0)
		return fail_talk(t, strerror(errno));
	setsockopt(t->fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
	setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(t->fd, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof silence);
	if (from && bind(t->fd, &from->sa, address_size(from)) != 0)
		return fail_talk(t, strerror(errno));
	if (connect(t->fd, &to.sa, address_size(&to)) != 0)
		return fail_talk(t, strerror(errno));
	t->from = fdopen(dup(t->fd), "r");
	return t->from || fail_talk(t, strerror(errno));
}

void talk_close(struct talk *t)
{
	if (t->from)
		fclose(t->from);
	if (t->fd >= 0)
		close(t->fd);
	buf_fini(&t->reply);
}

int talk_read(struct talk *t)
{
	char line[2048];
	buf_clear(&t->reply);
	for (int i = 0; i < REPLY_LINES_MAX; i++) {
		if (!fgets(line, sizeof line, t->from)) {
			fail_talk(t, "the connection broke off");
			return 0;
		}
		size_t len = strcspn(line, "\r\n");
		line[len] = '\0';
		if (len < 3 || !isdigit((unsigned char)line[0]) ||
		    !isdigit((unsigned char)line[1]) || !isdigit((unsigned char)line[2]))
			break;
		buf_printf(&t->reply, "%s%s", buf_len(&t->reply) ? "\n" : "", line);
		if (t->shown)
			fprintf(stderr, "<<< %s\n", line);
		if (line[3] != '-')
			return t->code = atoi(line);
	}
	fail_talk(t, "what it answers is not SMTP");
	return 0;
}

bool talk_send(struct talk *t, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(t->fd, data, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail_talk(t, strerror(errno));
		data += n;
		len -= (size_t)n;
	}
	return true;
}

int talk_say(struct talk *t, const char *fmt, ...)
{
	struct buf line = {0};
	va_list args;
	va_start(args, fmt);
	buf_vprintf(&line, fmt, args);
	va_end(args);
	if (t->shown)
		fprintf(stderr, ">>> %s\n", buf_cstr(&line));
	buf_puts(&line, "\r\n");
	bool sent = talk_send(t, buf_data(&line), buf_len(&line));
	buf_fini(&line);
	return sent ? talk_read(t) : 0;
}

int talk_say_chunk(struct talk *t, const char *data, size_t len)
{
	char head[64];
	int n = snprintf(head, sizeof head, "BDAT %zu LAST\r\n", len);
	if (t->shown)
		fprintf(stderr, ">>> BDAT %zu LAST\n", len);
	return talk_send(t, head, (size_t)n) && talk_send(t, data, len) ? talk_read(t) : 0;
}

bool talk_offers(const struct talk *t, const char *keyword)
{
	struct buf text = t->reply;
	size_t len = strlen(keyword);
	for (const char *line = buf_cstr(&text); line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strlen(line) >= 4 + len && strncasecmp(line + 4, keyword, len) == 0 &&
		    strchr(" \n", line[4 + len]))
			return true;
	}
	return false;
}
