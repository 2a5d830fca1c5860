/* SPDX-License-Identifier: ISC */
/*	bdat = "BDAT" SP chunk-size [ SP "LAST" ] CRLF		RFC 3030 2
 *
 * The bytes of a chunk follow whatever the answer will be, so they are read away even when the
 * chunk is refused; when their number can't be known, the session ends.
 */
#include "smtpd/command.h"
#include "smtpd/reception.h"

#include "smtpd/param.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

static bool parse_chunk(char *argument, uint64_t *size, bool *last)
{
	char *rest = argument + strcspn(argument, " ");
	if (*rest)
		*rest++ = '\0';
	rest += strspn(rest, " ");
	*last = strcasecmp(rest, "LAST") == 0;
	return param_number(argument, size) && (*last || !*rest);
}

static enum response judge_chunk(const struct session *s)
{
	bool tls_required = s->service->listener->tls == LISTENER_TLS_REQUIRED;
	if (tls_required && !s->tls)
		return RESPONSE_NEEDS_TLS;
	switch (s->state) {
	case SESSION_GREETED:
		return RESPONSE_HELLO_FIRST;
	case SESSION_MAIL:
		return RESPONSE_NO_RECIPIENTS;
	case SESSION_RCPT:
		return reception_room(s);
	case SESSION_BDAT:
		return RESPONSE_OK;
	default:
		return RESPONSE_NEED_RCPT;
	}
}

void verb_bdat(struct session *s, char *argument)
{
	if (!s->service->listener->chunking) {
		session_close(s, RESPONSE_UNEXPECTED_CHUNK);
		return;
	}
	assert(s->chunk_left == 0);
	if (!parse_chunk(argument, &s->chunk_left, &s->chunk_last)) {
		session_close(s, RESPONSE_BAD_CHUNK);
		return;
	}
	s->chunk_refusal = judge_chunk(s);
	/* An empty chunk moves nothing, and costs its sender as little. */
	if (s->chunk_left == 0 && !s->chunk_last)
		session_count_junk(s);
	session_move(s, SESSION_CHUNK);
	if (s->chunk_refusal == RESPONSE_OK && !s->tx->began_ms)
		reception_begin(s, false);
}
