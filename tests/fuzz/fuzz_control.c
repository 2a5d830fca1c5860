/* SPDX-License-Identifier: ISC */
/* What a client says on the control socket, for the commands that ask spool and scheduler. Whatever
 * it is, it is answered as control_wire.h says, or closed; and nothing is left of it.
 *
 * The first byte is the size of the pieces in which it comes, and whether the client waits for its
 * answer. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/neighbours.h"

#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/control/control.h"
#include "cmd/control/control_wire.h"
#include "cmd/control/dest_job.h"
#include "cmd/control/explain_job.h"
#include "cmd/control/order_job.h"
#include "cmd/control/queue_job.h"
#include "cmd/control/shape_job.h"
#include "cmd/control/user_job.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { GOES = 128, MINUTE_US = 60000000 };

static struct loop *loop;
static struct control *control;
static struct conf *conf;
static int64_t now_us = 1000000000;

static void handle(void *owner, struct request *r)
{
	(void)owner;
	struct queue_job_asks queue = {
		.loop = loop, .spool = neighbours, .qmgr = neighbours, .conf = conf};
	struct user_job_asks user = {.loop = loop, .limiter = neighbours, .spool = neighbours};
	static char *unkept;
	struct order_job_asks orders = {.loop = loop, .qmgr = neighbours, .unkept = &unkept};
	struct shape_job_asks shape = {.loop = loop, .spool = neighbours};
	const char *word = r->argc > 0 ? r->argv[0] : "";
	for (int i = 0; i < r->argc; i++)
		assert(r->argv[i]);
	assert(!r->argv[r->argc]);
	if (strcmp(word, "queue") == 0)
		queue_job_start(r, &queue);
	else if (strcmp(word, "dest") == 0)
		dest_job_start(r, &orders);
	else if (strcmp(word, "user") == 0)
		user_job_start(r, &user);
	else if (strcmp(word, "shape") == 0)
		shape_job_start(r, &shape);
	else if (strcmp(word, "explain") == 0)
		explain_job_start(r, loop, neighbours, neighbours);
	else
		control_finish(r, STATUS_REFUSED);
}

static void receive(void *owner, struct note *note)
{
	(void)owner;
	if (note->type == DEST_COMMAND) {
		struct dest_command *c = (struct dest_command *)note;
		if (c->filters)
			queue_job_sites(c);
		else
			dest_job_answer(c);
		return;
	}
	if (note->type == LIMITER_ORDER) {
		user_job_answer((struct limiter_order *)note);
		return;
	}
	if (note->type == QMGR_EXPLAIN) {
		explain_job_answer((struct explain_question *)note);
		return;
	}
	assert(note->type == SPOOL_COMMAND);
	struct spool_command *c = (struct spool_command *)note;
	if (c->op == SPOOL_SHAPE)
		shape_job_answer(c);
	else if (c->asker == CONTROL_ASKS_EXPLAIN)
		explain_job_shown(c);
	else if (c->asker == CONTROL_ASKS_USER)
		user_job_counted(c);
	else
		queue_job_answer(c);
}

static void begin(void)
{
	struct buf error;
	fuzz_quiet();
	clock_stand(now_us);
	signal(SIGPIPE, SIG_IGN);
	buf_init(&error);
	fuzz_folder_make("control");
	loop = loop_new("main", receive, NULL, NULL);
	neighbours_begin();
	conf = conf_defaults();
	control = control_new(loop, fuzz_folder()->path, handle, NULL, &error);
	assert(control);
	buf_fini(&error);
}

static void run(void)
{
	for (int quiet = 0; quiet < 2; quiet++) {
		ev_run(loop->ev, EVRUN_NOWAIT);
		if (neighbours_turn() || mailbox_drain(&loop->mailbox))
			quiet = 0;
	}
}

/* Where the socket was full, what is taken from it makes room for more. False: closed. */
static bool hear(int fd, struct buf *answer)
{
	char bytes[4096];
	size_t before;
	ssize_t n;
	do {
		before = buf_len(answer);
		run();
		while ((n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
			buf_append(answer, bytes, (size_t)n);
	} while (n < 0 && buf_len(answer) > before);
	return n < 0;
}

/* Frames, the last of them empty; then the status; or nothing at all. */
static void check(const struct buf *answer)
{
	const unsigned char *p = (const unsigned char *)buf_data(answer);
	size_t len = buf_len(answer);
	uint32_t n = 1;
	while (len > 0 && n > 0) {
		assert(len >= CONTROL_HEAD);
		n = control_head_read(p) & ~CONTROL_ERROR_BIT;
		assert(n <= CONTROL_FRAME_MAX && len >= CONTROL_HEAD + n);
		p += CONTROL_HEAD + n;
		len -= CONTROL_HEAD + n;
	}
	assert(n == 1 || len == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct buf answer;
	if (size < 1)
		return 0;
	if (!loop)
		begin();
	size_t piece = data[0] % GOES ? data[0] % GOES : size;
	memcpy(to.sun_path, fuzz_folder()->file, strlen(fuzz_folder()->file) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
		abort();
	buf_init(&answer);
	bool open = hear(fd, &answer);
	for (size_t at = 1; at < size && open; at += piece) {
		size_t n = size - at < piece ? size - at : piece;
		if (send(fd, data + at, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
		open = data[0] & GOES || hear(fd, &answer);
	}
	if (open && !(data[0] & GOES)) {
		/* Who says no more is not waited for for ever. */
		clock_stand(now_us += MINUTE_US);
		open = hear(fd, &answer);
		assert(!open);
	}
	check(&answer);
	close(fd);
	run();
	clock_stand(now_us += MINUTE_US);
	run();
	assert(list_empty(&loop->lingering));
	buf_fini(&answer);
	return 0;
}
