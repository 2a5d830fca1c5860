/* SPDX-License-Identifier: ISC */
/* sluice serve: run the relay in the foreground, until SIGTERM. */
#include "base/descriptors.h"
#include "base/keyed_hash.h"
#include "base/thread.h"
#include "base/tls_keys.h"
#include "cmd/cmd.h"
#include "cmd/relay/handover.h"
#include "cmd/options.h"
#include "cmd/confine/privileges.h"
#include "cmd/confine/sandbox.h"
#include "cmd/relay/server.h"
#include "cmd/relay/server_reload.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char usage[] =
	"usage: sluice serve [-c FILE] [--try]\n"
	"Run the relay in the foreground. It accepts mail once it has logged \"ready\".\n"
	"SIGTERM and SIGINT stop it; SIGHUP works like sluice reload, and SIGUSR2 like\n"
	"sluice restart.\n"
	"  --try  only say, by the exit status, whether it would start: a relay that runs is\n"
	"         left alone, and its restart asks the new program so\n";

enum { OPTION_TRY = OPTION_OWN };

static const struct option longs[] = {
	{"try", no_argument, NULL, OPTION_TRY},
	OPTIONS_COMMON,
};

/* Of the queue and the threads that there is one of; of the two kinds of workers. */
enum { START_DESCRIPTORS = 64, START_DESCRIPTORS_WORKER = 8 };

struct signals {
	ev_signal term, interrupt, hangup, restart;
};

static void on_end(struct ev_loop *ev, ev_signal *w, int revents)
{
	(void)ev;
	(void)revents;
	ending_now(w->data);
}

static void on_hangup(struct ev_loop *ev, ev_signal *w, int revents)
{
	(void)ev;
	(void)revents;
	struct buf says = {0};
	server_reload(w->data, &says); /* it has logged what it says */
	buf_fini(&says);
}

static void on_restart(struct ev_loop *ev, ev_signal *w, int revents)
{
	(void)ev;
	(void)revents;
	struct buf says = {0};
	ending_try_restart(w->data, &says);
	buf_fini(&says);
}

/* Orders would kill the program while nobody watches for them: they wait. On the way to a successor the ends wait for that one. */
static const int orders[] = {SIGHUP, SIGUSR2}, ends[] = {SIGTERM, SIGINT};

static void mask_signals(int how, const int number[2])
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, number[0]);
	sigaddset(&set, number[1]);
	pthread_sigmask(how, &set, NULL);
}

/* A sandbox that was inherited from an older version may not let it be asked. */
static bool is_to_end(void)
{
	sigset_t held;
	return sigpending(&held) == 0 &&
	       (sigismember(&held, SIGTERM) || sigismember(&held, SIGINT));
}

static void watch_signal(struct server *s, ev_signal *w, int number,
			 void (*react)(struct ev_loop *, ev_signal *, int))
{
	ev_signal_init(w, react, number);
	w->data = s;
	ev_signal_start(s->loop->ev, w);
}

static void unwatch_signals(struct server *s, struct signals *w)
{
	ev_signal_stop(s->loop->ev, &w->term);
	ev_signal_stop(s->loop->ev, &w->interrupt);
	ev_signal_stop(s->loop->ev, &w->hangup);
	ev_signal_stop(s->loop->ev, &w->restart);
}

static int run_server(struct conf *conf)
{
	struct buf error = {0};
	struct signals signals;
	struct server *s = server_new(conf, &error);
	if (!s) {
		fprintf(stderr, "sluice: %s\n", buf_cstr(&error));
		buf_fini(&error);
		return STATUS_REFUSED;
	}
	buf_fini(&error);
	watch_signal(s, &signals.term, SIGTERM, on_end);
	watch_signal(s, &signals.interrupt, SIGINT, on_end);
	watch_signal(s, &signals.hangup, SIGHUP, on_hangup);
	watch_signal(s, &signals.restart, SIGUSR2, on_restart);
	server_start(s);
	mask_signals(SIG_UNBLOCK, orders);
	mask_signals(SIG_UNBLOCK, ends);
	server_run(s);
	mask_signals(SIG_BLOCK, orders);
	if (s->ending.restart) {
		mask_signals(SIG_BLOCK, ends);
		server_look(s); /* at one that was caught before */
	}
	int *sockets, n = server_stop(s, &sockets);
	bool restart = s->ending.restart && !is_to_end();
	const bool failed = s->ending.failed;
	ending_answer_restart(s, restart);
	unwatch_signals(s, &signals);
	server_free(&s);
	restart = restart && !is_to_end();
	if (restart)
		handover_exec(sockets, n);
	free(sockets);
	return restart || failed ? STATUS_REFUSED : STATUS_DONE;
}

/* Of one that is missing later it is told which it was, and not why. */
static bool enough_descriptors(const struct conf *conf)
{
	int64_t most = descriptors_of_system();
	int64_t least = START_DESCRIPTORS +
			START_DESCRIPTORS_WORKER * (int64_t)thread_workers(conf->workers);
	if (most == 0 || most >= least)
		return true;
	fprintf(stderr,
		"sluice: this process may have only %" PRId64
		" file descriptors (ulimit -Hn, LimitNOFILE), and needs %" PRId64 " to start\n",
		most, least);
	return false;
}

/* As far as can be told while another relay has the queue and the ports. */
static int try_to_start(const struct conf *conf)
{
	struct buf why = {0};
	struct privileges p;
	bool good = enough_descriptors(conf) && privileges_find(&p, conf->user, &why) &&
		    membership_would_start(conf, &why) && spool_would_open(conf->spool, &why);
	privileges_fini(&p);
	if (buf_len(&why) > 0)
		fprintf(stderr, "sluice: %s\n", buf_cstr(&why));
	buf_fini(&why);
	return good ? STATUS_DONE : STATUS_REFUSED;
}

int cmd_serve(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:", .longs = longs};
	bool try = false;
	while (options_next(&o, argc, argv) != -1)
		try = true;
	if (optind < argc)
		options_wrong(&o, "serve takes no argument %s", argv[optind]);
	mask_signals(SIG_BLOCK, orders); /* long tables take a while to read */
	sandbox_hide_memory();
	tls_keys_prepare();
	keyed_hash_choose();
	struct conf *conf = options_conf_with(&o, CONF_WITH_KEYS | CONF_WITH_TABLES);
	if (!conf)
		return STATUS_REFUSED;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file as large as ulimit -f allows: its write says EFBIG */
	handover_prepare(argv);
	umask(027);
	privileges_raise_limits();
	int status = try			? try_to_start(conf)
		     : enough_descriptors(conf) ? run_server(conf)
						: STATUS_REFUSED;
	conf_unref(conf);
	return status;
}
