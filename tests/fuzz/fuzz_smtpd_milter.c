/* SPDX-License-Identifier: ISC */
/* What a filter says, of a message whose end it was told; and the message, as it would then be sent.
 *
 * The first two bytes: what it is asked, and what it may change. The rest are its words. */
#include "smtpd/filter_changes.h"
#include "tests/fuzz/fuzz.h"

static const char content[] =
	"Received: us\r\nFrom: <a@sender.test>\r\nSubject: a\r\n b\r\n\r\nbody\r\n";

static struct conf *conf(void)
{
	static struct conf *defaults;
	if (!defaults)
		defaults = conf_defaults();
	return defaults;
}

static void negotiate(struct milter_engine *e, uint32_t actions)
{
	struct buf said = {0};
	struct milter_answer a;
	milter_put_number(&said, 13, 4);
	buf_append(&said, "O", 1);
	milter_put_number(&said, MILTER_VERSION, 4);
	milter_put_number(&said, actions, 4);
	milter_put_number(&said, MILTER_SKIP, 4);
	bool ready = milter_engine_take(e, &said, &a) == MILTER_SAYS_READY;
	assert(ready);
	buf_fini(&said);
}

/* Lines that each begin with the same code, the last alone with a blank behind it. */
static void check_reply(const char *reply)
{
	assert(reply[0] == '4' || reply[0] == '5');
	for (const char *line = reply; *line;) {
		const char *end = strstr(line, "\r\n");
		assert(end && strncmp(line, reply, 3) == 0);
		assert(line[3] == (end[2] ? '-' : ' '));
		for (const char *c = line; c < end; c++)
			assert(*c >= ' ' && *c <= '~');
		line = end + 2;
	}
}

/* The header ends where it did, whatever was done to it. */
static void check_message(struct draft *d, bool body)
{
	bool settled = draft_settle(d) && draft_open(d);
	assert(settled && !d->broken && d->empty_line);
	if (!body)
		assert(draft_body_size(d) == strlen("body\r\n"));
}

static void play(struct milter_engine *e, struct buf *said, struct filter_changes *f)
{
	struct milter_answer a;
	struct buf what = {0};
	bool kept = true, body = false;
	for (;;) {
		switch (milter_engine_take(e, said, &a)) {
		case MILTER_SAYS_CHANGE:
			kept = kept && !filter_changes_add(f, &a);
			continue;
		case MILTER_SAYS_WAIT:
			continue;
		case MILTER_SAYS_ANSWER:
			if (a.kind == MILTER_ANSWER_REPLY)
				check_reply(a.reply);
			if (kept)
				body = filter_changes_make(f, &what);
			break;
		default:
			break;
		}
		break;
	}
	filter_changes_forget(f);
	check_message(f->draft, body);
	buf_fini(&what);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct milter_engine e;
	struct draft d;
	struct filter_changes f = {.conf = conf()};
	struct buf said = {0}, out = {0};
	fuzz_quiet();
	if (len < 2)
		return 0;
	milter_engine_init(&e);
	negotiate(&e, data[1] * 2U);
	draft_init(&d, NULL, 1);
	d.envelope = envelope_new();
	d.envelope->sender = mem_strdup("a@sender.test");
	envelope_add(d.envelope, "b@dest.test");
	envelope_add(d.envelope, "c@dest.test");
	d.size = strlen(content);
	d.content = content_in_memory(mem_strdup(content), d.size);
	draft_open(&d);
	filter_changes_given(&f, "list@dest.test", &(struct alias_added){.to = 2});
	filter_changes_begin(&f, &d);
	enum milter_event event = data[0] % 2
					  ? MILTER_END_OF_BODY
					  : (enum milter_event)(data[0] / 2 % MILTER_EVENT_COUNT);
	milter_engine_ask(&e, event, "x", 1, &out);
	buf_append(&said, data + 2, len - 2);
	play(&e, &said, &f);
	filter_changes_fini(&f);
	draft_fini(&d);
	milter_engine_fini(&e);
	buf_fini(&said);
	buf_fini(&out);
	return 0;
}
