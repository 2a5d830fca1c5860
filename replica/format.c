/* SPDX-License-Identifier: ISC */
#include "replica/format.h"

#include "base/crc32c.h"
#include "base/ident.h"
#include "base/mem.h"
#include "spool/bytes.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t magic[4] = {'s', 'R', 'P', '1'};

#define STREAM "sluice-"

enum { CLAIM_FIELDS = 9, CLAIM_STATE = 15 };
#define CLAIM_ALONE " alone=1"

void replica_head_put(uint8_t head[REPLICA_HEAD], const struct replica_head *h)
{
	assert(h->length <= REPLICA_PIECE);
	memset(head, 0, REPLICA_HEAD);
	memcpy(head, magic, sizeof magic);
	head[4] = (uint8_t)h->type;
	put_le(head + 8, h->epoch, 8);
	put_le(head + 16, h->number, 8);
	put_le(head + 24, h->of, 8);
	put_le(head + 32, h->offset, 8);
	put_le(head + 40, h->size, 8);
	put_le(head + 48, h->length, 4);
	put_le(head + 52, h->crc, 4);
	put_le(head + 56, h->beat, 4);
	put_le(head + REPLICA_HEAD - 4, crc32c(0, head, REPLICA_HEAD - 4), 4);
}

bool replica_message_get(const void *message, size_t len, struct replica_head *h,
			 const uint8_t **payload)
{
	const uint8_t *head = message;
	if (len < REPLICA_HEAD || memcmp(head, magic, sizeof magic) != 0 ||
	    get_le(head + REPLICA_HEAD - 4, 4) != crc32c(0, head, REPLICA_HEAD - 4))
		return false;
	h->type = (enum replica_type)head[4];
	h->epoch = get_le(head + 8, 8);
	h->number = get_le(head + 16, 8);
	h->of = get_le(head + 24, 8);
	h->offset = get_le(head + 32, 8);
	h->size = get_le(head + 40, 8);
	h->length = (uint32_t)get_le(head + 48, 4);
	h->crc = (uint32_t)get_le(head + 52, 4);
	h->beat = (uint32_t)get_le(head + 56, 4);
	*payload = head + REPLICA_HEAD;
	return h->type >= REPLICA_BEGIN && h->type <= REPLICA_SPARE &&
	       h->length == len - REPLICA_HEAD && crc32c(0, *payload, h->length) == h->crc;
}

static bool is_plain(unsigned char c)
{
	return isalnum(c) || c == '-' || c == '_';
}

const char *replica_token(const char *node, char token[REPLICA_TOKEN])
{
	char *to = token;
	for (size_t i = 0; node[i] && i < REPLICA_NODE_MAX; i++) {
		unsigned char c = (unsigned char)node[i];
		if (is_plain(c))
			*to++ = (char)c;
		else
			to += sprintf(to, "=%02X", c);
	}
	*to = '\0';
	assert(to < token + REPLICA_TOKEN);
	return token;
}

bool replica_token_parse(const char *token, char node[REPLICA_NODE_MAX + 1])
{
	char again[REPLICA_TOKEN];
	size_t n = 0;
	for (const char *p = token; *p; n++) {
		unsigned c = (unsigned char)*p;
		if (n == REPLICA_NODE_MAX || (*p == '=' && sscanf(p + 1, "%2X", &c) != 1))
			return false;
		p += *p == '=' ? strnlen(p, 3) : 1;
		node[n] = (char)c;
	}
	node[n] = '\0';
	return n > 0 && strcmp(replica_token(node, again), token) == 0;
}

char *replica_stream(const char *node)
{
	char token[REPLICA_TOKEN];
	return mem_printf(STREAM "%s", replica_token(node, token));
}

bool replica_stream_parse(const char *stream, char node[REPLICA_NODE_MAX + 1])
{
	return strncmp(stream, STREAM, strlen(STREAM)) == 0 &&
	       replica_token_parse(stream + strlen(STREAM), node);
}

char *replica_subjects(const char *node, uint64_t epoch)
{
	char token[REPLICA_TOKEN];
	return mem_printf("sluice.%s.%" PRIu64 ".>", replica_token(node, token), epoch);
}

char *replica_subject(const char *node, uint64_t epoch, enum replica_type type, uint64_t of)
{
	char token[REPLICA_TOKEN], name[IDENT_TEXT];
	replica_token(node, token);
	switch (type) {
	case REPLICA_LOG:
	case REPLICA_MARKS:
		return mem_printf("sluice.%s.%" PRIu64 ".log.%016" PRIx64, token, epoch, of);
	case REPLICA_LARGE:
	case REPLICA_LARGE_END:
		return mem_printf("sluice.%s.%" PRIu64 ".large.%s", token, epoch,
				  ident_text(of, name));
	case REPLICA_BEGIN:
	case REPLICA_COMPLETE:
	case REPLICA_CHECKPOINT:
	case REPLICA_BEAT:
		break;
	case REPLICA_SPARE:
		return mem_printf("sluice.%s.%" PRIu64 REPLICA_SPARE_END, token, epoch);
	}
	return mem_printf("sluice.%s.%" PRIu64 ".state", token, epoch);
}

static const char *const state_names[REPLICA_STATES] = {
	[REPLICA_UP] = "up",	       [REPLICA_ADOPTING] = "adopting",
	[REPLICA_ADOPTED] = "adopted", [REPLICA_DRAINED] = "drained",
	[REPLICA_RETIRED] = "retired",
};

const char *replica_state_name(enum replica_state state)
{
	assert(state < REPLICA_STATES);
	return state_names[state];
}

void replica_epoch_put(struct buf *b, const struct replica_epoch *e)
{
	char life[17];
	snprintf(life, sizeof life, "%016" PRIx64, e->life);
	json_t *o =
		json_pack("{s:I, s:s, s:s, s:I, s:I, s:s, s:I, s:I, s:I}", "epoch",
			  (json_int_t)e->epoch, "state", replica_state_name(e->state), "by", e->by,
			  "seen_ms", (json_int_t)e->seen_ms, "lease_ms", (json_int_t)e->lease_ms,
			  "life", life, "number", (json_int_t)e->number, "since",
			  (json_int_t)e->since, "ids_us", (json_int_t)e->ids_us);
	if (e->with[0])
		json_object_set_new(o, "with", json_string(e->with));
	if (e->ahead_ms)
		json_object_set_new(o, "ahead_ms", json_integer((json_int_t)e->ahead_ms));
	char *text = json_dumps(o, JSON_COMPACT);
	buf_puts(b, text);
	free(text);
	json_decref(o);
}

static bool state_of(const char *name, enum replica_state *state)
{
	for (int i = 0; i < REPLICA_STATES; i++) {
		*state = (enum replica_state)i;
		if (strcmp(state_names[i], name) == 0)
			return true;
	}
	return false;
}

bool replica_epoch_get(const char *json, size_t len, struct replica_epoch *e)
{
	const char *state, *by, *life, *with = "";
	json_int_t epoch, seen_ms, lease_ms, number;
	json_int_t since = 0, ids_us = 0,
		   ahead_ms = 0; /* older nodes say nothing of these, nor of with */
	json_t *o = json_loadb(json, len, 0, NULL);
	bool ok = o &&
		  json_unpack(o, "{s:I, s:s, s:s, s:I, s:I, s:s, s:I, s?I, s?I, s?s, s?I}", "epoch",
			      &epoch, "state", &state, "by", &by, "seen_ms", &seen_ms, "lease_ms",
			      &lease_ms, "life", &life, "number", &number, "since", &since,
			      "ids_us", &ids_us, "with", &with, "ahead_ms", &ahead_ms) == 0 &&
		  epoch >= 0 && ids_us >= 0 && since >= 0 && lease_ms >= 0 && number >= 0 &&
		  number < IDENT_NODES && strlen(by) <= REPLICA_NODE_MAX &&
		  strlen(with) <= REPLICA_NODE_MAX && state_of(state, &e->state) &&
		  sscanf(life, "%16" SCNx64, &e->life) == 1;
	if (ok) {
		e->epoch = (uint64_t)epoch;
		e->seen_ms = seen_ms;
		e->lease_ms = lease_ms;
		e->number = (unsigned)number;
		e->since = (uint64_t)since;
		e->ids_us = (uint64_t)ids_us;
		e->alone = ALONE_AS_BEFORE;
		e->ahead_ms = ahead_ms;
		strcpy(e->by, by);
		strcpy(e->with, with);
	}
	json_decref(o);
	return ok;
}

char *replica_claim(const struct replica_epoch *e)
{
	char token[REPLICA_TOKEN];
	return mem_printf("life=%016" PRIx64 " epoch=%" PRIu64 " state=%s by=%s since=%" PRIu64
			  " number=%u lease_ms=%" PRId64 " seen_ms=%" PRId64 " ids_us=%" PRIu64
			  "%s",
			  e->life, e->epoch, replica_state_name(e->state),
			  replica_token(e->by, token), e->since, e->number, e->lease_ms, e->seen_ms,
			  e->ids_us, e->alone == ALONE_SAID ? CLAIM_ALONE : "");
}

bool replica_claim_get(const char *text, struct replica_epoch *e)
{
	static_assert(CLAIM_STATE == 15 && REPLICA_TOKEN == 192 + 1, "the widths below");
	char state[CLAIM_STATE + 1], token[REPLICA_TOKEN];
	*e = (struct replica_epoch){.epoch = 0};
	int n = sscanf(text,
		       "life=%16" SCNx64 " epoch=%" SCNu64 " state=%15s by=%192s since=%" SCNu64
		       " number=%u lease_ms=%" SCNd64 " seen_ms=%" SCNd64 " ids_us=%" SCNu64,
		       &e->life, &e->epoch, state, token, &e->since, &e->number, &e->lease_ms,
		       &e->seen_ms, &e->ids_us);
	const char *end = strrchr(text, ' ');
	if (end && strcmp(end, CLAIM_ALONE) == 0)
		e->alone = ALONE_SAID;
	return n == CLAIM_FIELDS && state_of(state, &e->state) &&
	       replica_token_parse(token, e->by) && e->number < IDENT_NODES && e->lease_ms >= 0;
}
