/* SPDX-License-Identifier: ISC */
/* Messages for a host that answers as the input says, and honestly when that is used up. Whatever it
 * does, each recipient comes back once, and none counts as sent whose content has not left; while the
 * host answers each command once, who was told what agrees with what the host has taken, nobody gets
 * a message twice, and all commands come in an order that a host may want.
 *
 *	byte 0	TLS, messages, sizes		byte 1	the size of pieces in which replies come
 *	then	a byte an answer: enum answer; what EHLO announces is a byte more, and a line that is
 *		said instead of an answer ends with LF
 */
#include "tests/fuzz/fuzz.h"

#include "base/clock.h"
#include "base/mem.h"
#include "smtpc/engine.h"

#include <strings.h>

enum { MESSAGES = 4, RECIPIENTS = 3, CONNECTIONS = 3, LARGE = 70000, TURNS = 4000 };

enum answer {
	ANSWER_REFUSE_NOW = 6,
	ANSWER_REFUSE,
	ANSWER_TOO_MANY,
	ANSWER_ORDER,
	ANSWER_GO_AWAY,
	ANSWER_HANG_UP,
	ANSWER_BARE,
	ANSWER_CROWD,
	ANSWER_STAY,
	ANSWER_LINES,
	/* from here on the host has lost count */
	ANSWER_NOTHING,
	ANSWER_TWICE,
	ANSWER_LINE,
	ANSWERS,
	ANSWER_SILENCE = 250, /* and above */
};

static struct {
	const uint8_t *at, *end; /* of the input */
	struct buf says;	 /* replies on their way */
	struct buf wire;	 /* all that it was sent, of all connections */
	struct buf content;
	bool counts, secure, gone, silent;
	bool in_content, last; /* last: of a chunk */
	uint64_t chunk;	       /* octets to come */
	bool mail;
	int message; /* of MAIL; -1: some other */
	bool rcpt[RECIPIENTS];
	int taken[MESSAGES][RECIPIENTS];
	bool needs_tls;
} host;

static char *text[MESSAGES], sender[MESSAGES][32], address[MESSAGES][RECIPIENTS][32];

static uint8_t next_byte(void)
{
	return host.at < host.end ? *host.at++ : 0;
}

/* --- the host */

static void announce(void)
{
	static const char *const word[] = {
		"PIPELINING", "CHUNKING", "SIZE 60000", "8BITMIME",
		"DSN",	      "STARTTLS", "SMTPUTF8",	"LIMITS RCPTMAX=2"};
	uint8_t which = host.at < host.end ? next_byte() : 0x1b;
	/* The first line announces nothing. */
	buf_puts(&host.says, "250-mx.test\r\n");
	for (int i = 0; i < 8; i++)
		if ((which >> i & 1) && !(i == 5 && host.secure))
			buf_printf(&host.says, "250-%s\r\n", word[i]);
	buf_puts(&host.says, "250 done\r\n");
}

static void say_line(void)
{
	const uint8_t *lf = memchr(host.at, '\n', (size_t)(host.end - host.at));
	const uint8_t *end = lf ? lf : host.end;
	buf_append(&host.says, host.at, (size_t)(end - host.at));
	buf_puts(&host.says, "\r\n");
	host.at = lf ? lf + 1 : host.end;
}

/* One reply; code is the honest one. True: that is what it said. */
static bool answer(int code)
{
	static const struct {
		const char *text;
		bool gone;
	} refusals[] = {[ANSWER_REFUSE_NOW] = {"450 4.2.0 later\r\n", false},
			[ANSWER_REFUSE] = {"550 5.1.1 no\r\n", false},
			[ANSWER_TOO_MANY] = {"452 4.5.3 too many\r\n", false},
			[ANSWER_ORDER] = {"503 5.5.1 not now\r\n", false},
			[ANSWER_GO_AWAY] = {"421 4.3.2 bye\r\n", true},
			[ANSWER_HANG_UP] = {"", true},
			[ANSWER_BARE] = {"451 later\r\n", false},
			[ANSWER_CROWD] = {"554 too many recipients\r\n", false},
			[ANSWER_STAY] = {"421 4.3.2 bye\r\n", false}};
	uint8_t b = next_byte();
	host.silent = b >= ANSWER_SILENCE;
	if (host.silent)
		return false;
	b %= ANSWERS;
	if (b >= ANSWER_REFUSE_NOW && b <= ANSWER_STAY) {
		buf_puts(&host.says, refusals[b].text);
		host.gone = refusals[b].gone;
		return false;
	}
	host.counts &= b < ANSWER_NOTHING;
	if (b == ANSWER_LINES)
		buf_printf(&host.says, "%d-one\r\n", code);
	if (b == ANSWER_TWICE)
		buf_printf(&host.says, "%d once\r\n", code);
	if (b == ANSWER_LINE)
		say_line();
	else if (b != ANSWER_NOTHING)
		buf_printf(&host.says, "%d ok\r\n", code);
	return true;
}

static void forget(void)
{
	host.mail = false;
	memset(host.rcpt, 0, sizeof host.rcpt);
	buf_clear(&host.content);
}

/* A message has come whole, and was answered: true, it was taken. */
static void end_message(bool taken)
{
	bool any = false;
	for (int i = 0; i < RECIPIENTS; i++)
		any |= host.rcpt[i];
	if (taken && host.mail && any && host.message >= 0) {
		if (host.counts)
			assert(strcmp(buf_cstr(&host.content), text[host.message]) == 0);
		for (int i = 0; i < RECIPIENTS; i++)
			host.taken[host.message][i] += host.rcpt[i];
	}
	forget();
}

static void hear_mail(const char *line)
{
	assert(!host.counts || (!host.mail && (host.secure || !host.needs_tls)));
	const char *from = strstr(line, "<s");
	forget();
	host.message = from ? from[2] - '0' : -1;
	if (host.message >= MESSAGES)
		host.message = -1;
	host.mail = answer(250);
}

static void hear_rcpt(const char *line)
{
	const char *to = strstr(line, "<r");
	int n = to && to[2] == host.message + '0' ? to[3] - 'a' : -1;
	assert(!host.counts || !host.mail || n >= 0);
	if (!host.mail)
		buf_puts(&host.says, "503 5.5.1 no MAIL\r\n");
	else if (answer(250) && n >= 0 && n < RECIPIENTS)
		host.rcpt[n] = true;
}

static void hear_data(void)
{
	if (!host.mail)
		buf_puts(&host.says, "503 5.5.1 no MAIL\r\n");
	else
		host.in_content = answer(354);
}

static void hear(const char *line)
{
	if (strncmp(line, "EHLO ", 5) == 0 || strncmp(line, "HELO ", 5) == 0) {
		size_t before = buf_len(&host.says);
		forget();
		if (answer(250) && host.counts && line[0] == 'E') {
			buf_consume(&host.says, buf_len(&host.says) - before);
			announce();
		}
	} else if (strncmp(line, "MAIL FROM:<", 11) == 0) {
		hear_mail(line);
	} else if (strncmp(line, "RCPT TO:<", 9) == 0) {
		hear_rcpt(line);
	} else if (strcmp(line, "DATA") == 0) {
		hear_data();
	} else if (sscanf(line, "BDAT %lu", &host.chunk) == 1) {
		host.last = strstr(line, " LAST");
		assert(!host.counts || host.last);
	} else if (strcmp(line, "RSET") == 0) {
		forget();
		answer(250);
	} else if (strcmp(line, "STARTTLS") == 0) {
		answer(220);
	} else {
		assert(!host.counts || strcmp(line, "QUIT") == 0);
		answer(221);
		host.gone = true;
	}
}

static bool take_line(struct buf *out)
{
	char *crlf = buf_len(out) > 0 ? memmem(buf_data(out), buf_len(out), "\r\n", 2) : NULL;
	if (!crlf)
		return false;
	size_t len = (size_t)(crlf - buf_data(out));
	char *line = mem_strndup(buf_data(out), len);
	buf_append(&host.wire, line, len);
	buf_puts(&host.wire, "\r\n");
	buf_consume(out, len + 2);
	if (host.in_content && strcmp(line, ".") == 0) {
		host.in_content = false;
		end_message(answer(250));
	} else if (host.in_content) {
		buf_puts(&host.content, *line == '.' ? line + 1 : line);
		buf_puts(&host.content, "\r\n");
	} else {
		hear(line);
	}
	free(line);
	return true;
}

static bool take_chunk(struct buf *out)
{
	size_t n = buf_len(out) < host.chunk ? buf_len(out) : (size_t)host.chunk;
	buf_append(&host.content, buf_data(out), n);
	buf_append(&host.wire, buf_data(out), n);
	buf_consume(out, n);
	host.chunk -= n;
	if (host.chunk == 0) {
		bool any = false;
		for (int i = 0; i < RECIPIENTS; i++)
			any |= host.rcpt[i];
		if (any && host.mail)
			end_message(answer(250));
		else
			buf_puts(&host.says, "503 5.5.1 nobody to send to\r\n");
	}
	return n > 0;
}

/* One command; or of content all that has come. */
static bool host_turn(struct buf *out)
{
	bool taken = false, more = !host.gone && !host.silent;
	while (more) {
		more = host.chunk > 0 ? take_chunk(out) : take_line(out);
		taken |= more;
		more = more && host.in_content;
	}
	return taken;
}

/* --- what is asked of the engine */

static struct delivery *message(int i, uint8_t how)
{
	struct delivery *d = delivery_new(RECIPIENTS);
	snprintf(sender[i], sizeof sender[i], "s%d@test", i);
	d->owner = &sender[i];
	d->id = (uint64_t)i;
	d->sender = sender[i];
	d->ahead = how & 16;
	d->content = content_in_memory(mem_strdup(text[i]), strlen(text[i]));
	for (int j = 0; j < RECIPIENTS; j++) {
		snprintf(address[i][j], sizeof address[i][j], "r%d%c@test", i, 'a' + j);
		d->rcpt[j].address = address[i][j];
	}
	return d;
}

static void write_texts(uint8_t how)
{
	static char *large;
	static const char *const small[] = {"x\r\n", ".dot\r\n..\r\n\r\n.\r\n",
					    "Subject: s\r\n\r\nb\r\n", "\r\n"};
	if (!large) {
		large = mem_zalloc(LARGE + 1);
		for (int i = 0; i < LARGE; i++)
			large[i] = "a line\r\n"[i % 8];
	}
	for (int i = 0; i < MESSAGES; i++)
		text[i] = i == 1 && (how & 32) ? large : (char *)small[i];
}

static bool has_left(int message)
{
	struct buf stuffed;
	const char *p = text[message];
	buf_init(&stuffed);
	for (const char *line = p; *line; line = strchr(line, '\n') + 1)
		buf_printf(&stuffed, "%s%.*s\n", *line == '.' ? "." : "", (int)strcspn(line, "\n"),
			   line);
	bool left = memmem(buf_cstr(&host.wire), buf_len(&host.wire), p, strlen(p)) ||
		    memmem(buf_cstr(&host.wire), buf_len(&host.wire), buf_cstr(&stuffed),
			   buf_len(&stuffed));
	buf_fini(&stuffed);
	return left;
}

static void check(const struct delivery *d)
{
	int i = (int)d->id;
	for (int j = 0; j < RECIPIENTS; j++) {
		const struct verdict *v = d->rcpt[j].verdict;
		assert(!d->returned || !v);
		if (v && v->class == VERDICT_SENT)
			assert(has_left(i));
		if (!host.counts)
			continue;
		assert(host.taken[i][j] <= 1);
		if (host.taken[i][j] > 0)
			assert(v && (v->class == VERDICT_SENT || v->class == VERDICT_IN_DOUBT));
		else
			assert(!v || v->class != VERDICT_SENT);
	}
}

static void open_host(void)
{
	buf_clear(&host.says);
	host.secure = host.gone = host.silent = host.in_content = host.last = false;
	host.chunk = 0;
	forget();
	answer(220);
}

static void take_back(struct engine *e, struct delivery **waiting)
{
	struct delivery *d;
	while ((d = engine_take(e))) {
		check(d);
		if (d->returned && !waiting[d->id])
			waiting[d->id] = d;
		else
			delivery_free(&d);
	}
}

static void shake_hands(struct engine *e)
{
	assert(!host.counts || buf_len(&host.says) == 0);
	buf_clear(&host.says);
	if (next_byte() & 1) {
		engine_lost(e, "TLS: no");
		return;
	}
	host.secure = true;
	forget();
	engine_secured(e);
}

static void give(struct engine *e, struct delivery **waiting, int depth)
{
	int under_way = 0;
	list_each (link, tmp, &e->transactions)
		under_way++;
	for (int i = 0; i < MESSAGES && e->state == ENGINE_READY && under_way < depth; i++) {
		struct delivery *d = waiting[i];
		if (!d)
			continue;
		waiting[i] = NULL;
		under_way++;
		engine_give(e, d);
	}
}

/* One connection, to its end. */
static void play(struct engine_setup *setup, struct delivery **waiting, size_t piece)
{
	struct engine e;
	struct buf in, out;
	buf_init(&in);
	buf_init(&out);
	open_host();
	engine_init(&e, setup, &out);
	for (int i = 0; i < TURNS && e.state != ENGINE_CLOSED; i++) {
		if (e.state == ENGINE_HANDSHAKE) {
			shake_hands(&e);
			continue;
		}
		give(&e, waiting, engine_depth_most(&e));
		if (e.state == ENGINE_READY && engine_sending(&e) && buf_len(&out) == 0)
			engine_resume(&e);
		bool taken = host_turn(&out);
		size_t n = buf_len(&host.says) < piece ? buf_len(&host.says) : piece;
		if (n > 0) {
			buf_append(&in, buf_data(&host.says), n);
			buf_consume(&host.says, n);
			engine_input(&e, &in);
		} else if (host.gone) {
			engine_lost(&e, "connection closed");
		} else if (!taken && engine_idle(&e)) {
			engine_quit(&e);
		} else if (!taken) {
			engine_expired(&e);
		}
	}
	assert(e.state == ENGINE_CLOSED);
	setup->mode |= e.setup.mode | e.mode;
	if (e.try_plain)
		setup->tls = TRANSPORT_TLS_NONE;
	take_back(&e, waiting);
	engine_fini(&e);
	buf_fini(&in);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct conf_transport transport = {.pipeline_depth = 3};
	struct delivery *waiting[MESSAGES] = {NULL};
	if (size < 2)
		return 0;
	fuzz_quiet();
	memset(&host, 0, sizeof host);
	host.at = data + 2;
	host.end = data + size;
	host.counts = true;
	enum transport_tls tls = data[0] % 3;
	host.needs_tls = tls == TRANSPORT_TLS_REQUIRED;
	struct engine_setup setup = {.hostname = "me.test",
				     .peer = "mx.test[192.0.2.1]:25",
				     .transport = &transport,
				     .tls = tls,
				     .mode = CONNECTION_FULL};
	write_texts(data[0]);
	for (int i = 0; i < MESSAGES; i++)
		waiting[i] = message(i, data[0]);
	for (int i = 0; i < CONNECTIONS; i++)
		play(&setup, waiting, data[1] ? data[1] : 100000);
	for (int i = 0; i < MESSAGES; i++)
		delivery_free(&waiting[i]);
	buf_fini(&host.says);
	buf_fini(&host.wire);
	buf_fini(&host.content);
	return 0;
}
