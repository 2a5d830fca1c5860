/* SPDX-License-Identifier: ISC */
#include "cmd/relay/ending.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"
#include "base/metrics.h"
#include "cmd/cmd.h"
#include "cmd/confine/sandbox.h"
#include "cmd/relay/handover.h"
#include "cmd/relay/server.h"
#include "cmd/relay/server_reload.h"
#include "replica/membership.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <systemd/sd-daemon.h>

enum {
	FAREWELL_MS = 500, /* for sessions and deliveries under way, once asked to stop */
	ANSWER_MS = 5000,  /* for the answer to a message; who runs containers kills after ten */
	LOOK_MS = 10,
	DRAIN_LOOK_MS = 100,
	QUIET_LOOKS = 3, /* a message may be between two threads at one of them */
	TELL_MS = 1000,
};

static int64_t at_work(void)
{
	return metrics_sum(METRIC_queue_incoming) + metrics_sum(METRIC_queue_active);
}

static void look_again(struct server *s, int64_t in_ms)
{
	timer_start(&s->loop->timers, &s->ending.look, clock_steady_ms() + in_ms);
}

/* A message that is cut off when all of it has been sent is in doubt, and goes out a second time: its answer is waited for. */
static bool deliveries_have_ended(struct server *s, int64_t waited_ms)
{
	struct ending *e = &s->ending;
	if (metrics_sum(METRIC_under_way) <= 0 || waited_ms >= ANSWER_MS || e->hurries)
		return true;
	if (waited_ms >= FAREWELL_MS && !e->parting) {
		e->parting = true;
		smtpc_part(s->smtpc);
	}
	return false;
}

static void look_at_farewells(struct server *s)
{
	int64_t waited_ms = clock_steady_ms() - s->ending.closed_ms;
	bool sessions = metrics_sum(METRIC_server_connections) > 0 && waited_ms < FAREWELL_MS;
	if (deliveries_have_ended(s, waited_ms) && (!sessions || s->ending.hurries))
		ev_break(s->loop->ev, EVBREAK_ALL);
	else
		look_again(s, LOOK_MS);
}

static void tell_waiter(struct ending *e, int64_t now_ms)
{
	if (!e->waiter || now_ms - e->told_ms < TELL_MS)
		return;
	e->told_ms = now_ms;
	control_progress(e->waiter,
			 "%" PRId64 " messages are being worked on, %" PRId64 " deferred",
			 at_work(), metrics_sum(METRIC_queue_deferred));
}

static void end_drain(struct server *s, bool late)
{
	struct ending *e = &s->ending;
	log_event(late ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "drain", "result",
		  late ? "out of time" : "done", "working", log_number(at_work()), "deferred",
		  log_number(metrics_sum(METRIC_queue_deferred)), NULL);
	if (e->waiter && late)
		control_complain(e->waiter,
				 "sluice: out of time, with %" PRId64 " messages still being "
				 "worked on; they stay in the queue\n",
				 at_work());
	ending_now(s);
}

static void look_at_work(struct server *s)
{
	struct ending *e = &s->ending;
	int64_t now_ms = clock_steady_ms();
	bool busy = at_work() > 0 || metrics_sum(METRIC_server_connections) > 0;
	bool late = e->until_ms && now_ms >= e->until_ms;
	e->quiet = busy ? 0 : e->quiet + 1;
	tell_waiter(e, now_ms);
	if (late || e->quiet >= QUIET_LOOKS)
		end_drain(s, late);
	else
		look_again(s, DRAIN_LOOK_MS);
}

static void waiter_gone(struct request *r)
{
	struct server *s = r->job;
	s->ending.waiter = NULL;
}

static bool is_restarting(const struct ending *e)
{
	return e->restart || e->trial.pid;
}

static void let_wait(struct server *s, struct request *waiter)
{
	assert(!s->ending.waiter);
	s->ending.waiter = waiter;
	waiter->job = s;
	waiter->gone = waiter_gone;
}

static void answer_waiter(struct ending *e, int status)
{
	struct request *r = e->waiter;
	e->waiter = NULL;
	if (!r)
		return;
	r->gone = NULL;
	control_finish_last(r, status);
}

static void close_relay(struct server *s)
{
	struct ending *e = &s->ending;
	assert(e->state != ENDING_CLOSED);
	smtpd_close(s->smtpd, e->restart);
	qmgr_rest(s->qmgr);
	e->state = ENDING_CLOSED;
	e->closed_ms = clock_steady_ms();
	if (!e->restart)
		answer_waiter(e, STATUS_DONE);
	/* Not at once: the order may have come by the control socket, which is to be answered. */
	look_again(s, LOOK_MS);
}

void ending_await_restart(struct server *s, struct request *waiter)
{
	assert(is_restarting(&s->ending) && !s->ending.waiter);
	let_wait(s, waiter);
}

static const char replaced_text[] =
	"the program was replaced after it had been tried: the one that ran until now goes on; "
	"restart it again";

void ending_answer_restart(struct server *s, bool comes)
{
	struct ending *e = &s->ending;
	bool replaced = comes && !handover_is_what_was_tried();
	if (replaced)
		log_event(LOG_LEVEL_ERROR, "restart", "result", "refused", "reason", replaced_text,
			  NULL);
	if (e->waiter && (replaced || !comes))
		control_complain(e->waiter, "sluice: %s\n",
				 replaced ? replaced_text
					  : "the restart is called off, since the relay was "
					    "told to stop meanwhile");
	answer_waiter(e, comes && !replaced ? STATUS_DONE : STATUS_REFUSED);
}

/* Whoever stops the relay on its way to its successor means that one too. */
static void call_off_restart(struct server *s)
{
	if (s->ending.restart)
		smtpd_close_sockets(s->smtpd);
	s->ending.restart = false;
	trial_forget(&s->ending.trial);
	log_event(LOG_LEVEL_INFO, "restart", "result", "called off", "reason",
		  "the relay is to stop", NULL);
	log_flush();
	ending_answer_restart(s, false);
}

void ending_now(struct server *s)
{
	struct ending *e = &s->ending;
	if (!e->restart && e->state == ENDING_CLOSED) {
		e->hurries = true;
		return;
	}
	sd_notify(0, "STOPPING=1");
	bool closed = e->restart;
	if (is_restarting(e))
		call_off_restart(s);
	if (!closed)
		close_relay(s);
}

void ending_drain(struct server *s, int64_t most_ms, struct request *waiter)
{
	struct ending *e = &s->ending;
	if (is_restarting(e)) {
		control_complain(waiter,
				 "sluice: the relay is restarting; ask again when it is back\n");
		control_finish(waiter, STATUS_UNREACHABLE);
		return;
	}
	if (e->state == ENDING_NONE) {
		e->state = ENDING_DRAIN;
		sd_notify(0, "STOPPING=1\nSTATUS=draining");
		smtpd_close(s->smtpd, false);
		maildrop_rest(s->maildrop);
		spool_drain(s->spool);
		condition_set(CONDITION_draining, "", NULL);
		log_event(LOG_LEVEL_INFO, "drain", "working", log_number(at_work()), NULL);
		log_flush();
	}
	e->until_ms = most_ms ? clock_steady_ms() + most_ms : 0;
	answer_waiter(e, STATUS_DONE);
	if (e->state == ENDING_CLOSED) {
		control_finish_last(waiter, STATUS_DONE);
		return;
	}
	let_wait(s, waiter);
	e->told_ms = clock_steady_ms();
	look_again(s, LOOK_MS);
}

/* The successor has all that the file says, also what a reload leaves as it was. */
static bool start_allowed(const char *file, struct buf *says)
{
	struct buf faults = {0};
	struct conf *next = conf_read_with(file, 0, &faults);
	bool allowed = next && sandbox_reaches(next, true, &faults) && handover_possible(&faults);
	if (allowed &&
	    !(membership_would_start(next, &faults) && spool_would_open(next->spool, &faults))) {
		buf_puts(&faults, "\n");
		allowed = false;
	}
	if (!allowed)
		log_event(LOG_LEVEL_ERROR, "restart", "result", "refused", "reason",
			  buf_cstr(&faults), NULL);
	buf_append(says, buf_data(&faults), buf_len(&faults));
	buf_fini(&faults);
	conf_unref(next);
	return allowed;
}

/* Faults that would keep the successor from starting must be found while we still serve: so the new
 * settings are put in force here first, and new addresses opened with the rights that we have. */
static bool restart_allowed(struct server *s, struct buf *says)
{
	const struct ending *e = &s->ending;
	if (e->state != ENDING_NONE || e->trial.pid) {
		buf_printf(says, "sluice: the relay is %s\n",
			   is_restarting(e) ? "restarting" : "stopping");
		return false;
	}
	if (!server_reload(s, says) || !start_allowed(s->conf->file, says))
		return false;
	buf_clear(says); /* what waits for the next start waits no longer */
	return true;
}

static void begin_restart(struct server *s)
{
	s->ending.restart = true;
	sd_notify(0, "RELOADING=1\nSTATUS=restarting");
	log_event(LOG_LEVEL_INFO, "restart", NULL);
	close_relay(s);
}

static void refuse_restart(struct ending *e, const char *why)
{
	struct request *r = e->waiter;
	log_event(LOG_LEVEL_ERROR, "restart", "result", "refused", "reason", why, NULL);
	log_flush();
	e->waiter = NULL;
	if (!r)
		return;
	r->gone = NULL;
	control_complain(r, "sluice: %s", why);
	control_finish(r, STATUS_REFUSED);
}

static void look_at_trial(struct server *s)
{
	struct ending *e = &s->ending;
	struct buf says = {0};
	if (!trial_over(&e->trial)) {
		look_again(s, LOOK_MS);
		return;
	}
	bool passed = handover_passed(&e->trial, &says);
	trial_forget(&e->trial);
	if (passed)
		begin_restart(s);
	else
		refuse_restart(e, buf_cstr(&says));
	buf_fini(&says);
}

bool ending_restart(struct server *s, struct buf *says)
{
	trial_forget(&s->ending.trial); /* whoever waits for it is answered with this one */
	if (!restart_allowed(s, says))
		return false;
	begin_restart(s);
	return true;
}

bool ending_try_restart(struct server *s, struct buf *says)
{
	if (!restart_allowed(s, says))
		return false;
	if (handover_try(&s->ending.trial)) {
		look_again(s, LOOK_MS);
		return true;
	}
	log_event(LOG_LEVEL_WARNING, "restart", "result", "not tried before", "reason",
		  strerror(errno), NULL);
	begin_restart(s);
	return true;
}

static void look_on(void *owner)
{
	struct server *s = owner;
	assert(s->ending.trial.pid || s->ending.state != ENDING_NONE);
	if (s->ending.trial.pid)
		look_at_trial(s);
	else if (s->ending.state == ENDING_DRAIN)
		look_at_work(s);
	else
		look_at_farewells(s);
}

void ending_init(struct server *s)
{
	timer_init(&s->ending.look, look_on, s);
}

void ending_fini(struct server *s)
{
	trial_forget(&s->ending.trial);
	timer_stop(&s->loop->timers, &s->ending.look);
}
