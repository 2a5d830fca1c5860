/* SPDX-License-Identifier: ISC */
/* queue_show - one whole message, sent piece by piece; lines end with LF, as in a local file. */
#include "cmd/control/queue_job.h"

#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/text/queue_print.h"

#include <errno.h>

enum { PIECE = 64 << 10 };

static bool is_part_wanted(const struct queue_job *j)
{
	return j->in_body ? j->args.body : j->args.header;
}

/* The empty line that ends the header belongs to neither part, and parts the two when both are
 * sent. */
static void put_byte(struct queue_job *j, char byte, struct buf *out)
{
	if (j->last_cr && byte != '\n' && is_part_wanted(j))
		buf_append(out, "\r", 1);
	j->last_cr = byte == '\r';
	if (j->last_cr)
		return;
	j->newlines = byte == '\n' ? j->newlines + 1 : 0;
	bool parting = !j->in_body && j->newlines == 2;
	if (parting ? j->args.header && j->args.body : is_part_wanted(j))
		buf_append(out, &byte, 1);
	j->in_body = j->in_body || parting;
}

static void complain_of_content(struct queue_job *j, int error)
{
	control_complain(j->request, "sluice: the content cannot be read: %s\n",
			 queue_print_error(error));
	j->status = STATUS_REFUSED;
}

bool queue_show_more(struct queue_job *j)
{
	const struct content *content = j->shown->row[0].content;
	char piece[PIECE];
	struct buf out = {0};
	bool all = !content || j->args.json || (!j->args.header && !j->args.body);
	while (!all && !control_full(j->request)) {
		ssize_t n = content_read(content, j->sent, piece, sizeof piece);
		all = n <= 0 || (j->in_body && !j->args.body);
		if (n < 0)
			complain_of_content(j, errno);
		for (ssize_t i = 0; i < n; i++)
			put_byte(j, piece[i], &out);
		j->sent += n > 0 ? (uint64_t)n : 0;
		control_say(j->request, buf_data(&out), buf_len(&out));
		buf_clear(&out);
	}
	buf_fini(&out);
	return all;
}

void queue_show_begin(struct queue_job *j, struct spool_command *c)
{
	struct buf out = {0};
	j->shown = c;
	j->newlines = 1; /* a message may begin with the empty line */
	if (j->args.json)
		queue_print_json(&out, &c->row[0]);
	else if (j->args.envelope)
		queue_print_envelope(&out, &c->row[0], clock_wall_ms());
	if (!j->args.json && j->args.envelope && (j->args.header || j->args.body))
		buf_puts(&out, "\n");
	control_say(j->request, buf_data(&out), buf_len(&out));
	buf_fini(&out);
	if (!c->row[0].content && !j->args.json && (j->args.header || j->args.body))
		complain_of_content(j, c->row[0].error);
}
