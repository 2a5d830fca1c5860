/* SPDX-License-Identifier: ISC */
#include "cmd/operator/offline.h"

#include "base/log.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/control/control.h"
#include "cmd/confine/privileges.h"
#include "cmd/control/queue_job.h"
#include "cmd/control/shape_job.h"
#include "cmd/maildrop/maildrop_count.h"
#include "cmd/watch/clock_watch.h"
#include "replica/membership.h"
#include "spool/spool_look.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct offline {
	struct conf *conf;
	struct loop *loop;
	struct control *control;
	struct spool_look *look; /* or else */
	struct spool *spool;
	bool ended;
};

/* A message that another node has is sent all the same, whatever becomes of it here. */
static bool open_to_change(struct offline *o, struct buf *error)
{
	if (!membership_is_alone(o->conf->spool, error))
		buf_puts(error, ": start the relay, and ask it");
	else if (privileges_become(o->conf->user, error))
		o->spool = spool_new(o->conf, o->loop, error);
	if (o->spool)
		spool_start(o->spool);
	return o->spool;
}

static bool open_to_look(struct offline *o, struct buf *error)
{
	o->look = spool_look_new(o->conf, o->conf->spool, error);
	return o->look;
}

static struct loop *queue_loop(const struct offline *o)
{
	return o->spool ? spool_loop(o->spool) : spool_look_loop(o->look);
}

/* The job that the words want done; of words that are wrong it says so. One that only a relay can do comes as
 * FLUSH. */
static enum queue_verb verb_of(const struct request *r)
{
	struct queue_args args;
	struct buf unused = {0};
	char **words = mem_zalloc(((size_t)r->argc + 1) * sizeof *words);
	memcpy(words, r->argv, (size_t)r->argc * sizeof *words);
	bool ok = queue_args_parse(&args, r->argc, words, &unused);
	queue_args_fini(&args);
	buf_fini(&unused);
	free(words);
	if (!ok)
		return QUEUE_LIST;
	return args.refilter ? QUEUE_FLUSH : args.verb;
}

/* Tables say who goes to a site, too; whoever may read the queue may read them, or does without. */
static struct conf *with_tables(struct conf *conf)
{
	struct buf unused = {0};
	struct conf *full = conf_read_with(conf->file, CONF_WITH_TABLES, &unused);
	buf_fini(&unused);
	return full ? full : conf_ref(conf);
}

static void refuse_request(struct request *r, const char *why)
{
	control_complain(r, "sluice: the relay cannot be reached, and %s\n", why);
	control_finish(r, STATUS_UNREACHABLE);
}

/* None, too, for who may not read it. */
static int64_t count_maildrop(const struct conf *conf)
{
	struct shape *s = shape_new();
	s->senders = true; /* one of each message */
	if (maildrop_count(conf->spool, s))
		shape_rank(s);
	int64_t n = s->all.total;
	shape_free(&s);
	return n;
}

static void say_offline(struct request *r, const struct conf *conf)
{
	struct buf why = {0};
	int64_t left = count_maildrop(conf);
	control_complain(r, "sluice: the relay does not run; this is its queue on disk\n");
	if (left > 0)
		control_complain(r,
				 "sluice: %" PRId64 " more wait%s in the maildrop for the relay: "
				 "see sluice shape maildrop\n",
				 left, left == 1 ? "s" : "");
	if (!membership_is_alone(conf->spool, &why))
		control_complain(r, "sluice: %s\n", buf_cstr(&why));
	buf_fini(&why);
}

static void handle_request(void *owner, struct request *r)
{
	struct offline *o = owner;
	bool shape = strcmp(r->argv[0], "shape") == 0;
	enum queue_verb verb = shape ? QUEUE_LIST : verb_of(r);
	struct buf error = {0};
	if (verb == QUEUE_FLUSH) {
		refuse_request(r, "nothing can be tried, and no filter asked, without it");
	} else if (!(verb > QUEUE_FLUSH ? open_to_change : open_to_look)(o, &error)) {
		refuse_request(r, buf_cstr(&error));
	} else {
		say_offline(r, o->conf);
		if (shape)
			shape_job_start(r, &(struct shape_job_asks){.loop = o->loop,
								    .spool = queue_loop(o),
								    .folder = o->conf->spool});
		else
			queue_job_start(r, &(struct queue_job_asks){.loop = o->loop,
								    .spool = queue_loop(o),
								    .conf = o->conf});
	}
	buf_fini(&error);
}

static void receive_note(void *owner, struct note *note)
{
	struct spool_command *c = (struct spool_command *)note;
	(void)owner;
	assert(note->type == SPOOL_COMMAND);
	if (c->op == SPOOL_SHAPE)
		shape_job_answer(c);
	else
		queue_job_answer(c);
}

static void on_ended(void *owner)
{
	struct offline *o = owner;
	o->ended = true;
}

/* Until the client has read all of the answer, or has gone. */
static void serve_client(struct conf *conf, int fd)
{
	struct offline o = {.conf = with_tables(conf)};
	log_set_level(LOG_LEVEL_WARNING);
	clock_watch_read(conf->spool);
	privileges_raise_limits();
	o.loop = loop_new("offline", receive_note, NULL, &o);
	o.control = control_new_at(o.loop, fd, handle_request, on_ended, &o);
	while (!o.ended || !list_empty(&o.loop->lingering))
		ev_run(o.loop->ev, EVRUN_ONCE);
	if (o.spool)
		spool_stop(o.spool);
	log_flush();
	control_free(&o.control);
	spool_free(&o.spool);
	spool_look_free(&o.look);
	loop_free(&o.loop);
	conf_unref(o.conf);
}

static bool has_entry(const struct conf *conf, const char *name)
{
	char *path = mem_printf("%s/%s", conf->spool, name);
	bool there = access(path, F_OK) == 0;
	free(path);
	return there;
}

/* A start takes up a log without a format, too, as a backup may have it. */
static bool may_be_queue(const struct conf *conf)
{
	return has_entry(conf, "format") || has_entry(conf, "log");
}

int offline_begin(struct conf *conf, pid_t *child)
{
	int pair[2];
	if (!may_be_queue(conf) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return -1;
	*child = fork();
	if (*child == 0) {
		close(pair[0]);
		fcntl(pair[1], F_SETFL, O_NONBLOCK);
		serve_client(conf, pair[1]);
		_exit(0);
	}
	close(pair[1]);
	if (*child < 0) {
		close(pair[0]);
		return -1;
	}
	return pair[0];
}

void offline_end(pid_t child)
{
	int status;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
}
