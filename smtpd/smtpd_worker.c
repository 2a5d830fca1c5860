/* SPDX-License-Identifier: ISC */
#include "smtpd/smtpd_worker.h"

#include "base/conf_note.h"
#include "base/mem.h"
#include "base/verification.h"
#include "smtpd/dovecot.h"
#include "smtpd/milter/milter_link.h"
#include "smtpd/sasl.h"
#include "smtpd/session.h"
#include "smtpd/session_run.h"
#include "smtpd/socketmap.h"
#include "stages/stages.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void close_all(struct smtpd_worker *w)
{
	w->closing = true;
	list_each (link, tmp, &w->listeners)
		listener_stop(list_entry(link, struct listener, link));
	list_each (link, tmp, &w->sessions)
		session_hurry(list_entry(link, struct session, link));
}

static void use_dovecot(struct smtpd_worker *w)
{
	const struct conf *c = w->conf;
	bool wanted = false;
	for (int i = 0; i < c->nlistener; i++)
		wanted = wanted || c->listener[i].auth;
	dovecot_use(w->dovecot, wanted ? c->auth.dovecot : "", c->auth.timeout);
}

static void use_conf(struct smtpd_worker *w, struct conf *conf)
{
	conf_unref(w->conf);
	w->conf = conf;
	use_dovecot(w);
	socketmaps_use(w->socketmaps, conf);
}

static const struct smtpd_worker_port *find_port(const struct smtpd_worker_reload *r, int port)
{
	for (int i = 0; i < r->n; i++)
		if (r->of[i].port == port)
			return &r->of[i];
	return NULL;
}

/* Sessions keep the service that they began with, also those of a listener that goes. */
static void reload_listeners(struct smtpd_worker *w, struct smtpd_worker_reload *r)
{
	list_each_entry (struct listener, l, link, &w->listeners) {
		const struct smtpd_worker_port *now = find_port(r, l->port);
		if (!now) {
			listener_free(&l);
			continue;
		}
		service_unref(l->service);
		l->service = service_ref(now->service);
		l->number = now->number;
		l->connections = now->connections;
	}
	for (int i = 0; i < r->n; i++)
		service_unref(r->of[i].service);
	use_conf(w, r->conf);
	free(r);
}

static void listen_too(struct smtpd_worker *w, struct smtpd_worker_listen *note)
{
	listener_start(note->listener);
	if (w->closing)
		listener_stop(note->listener);
	free(note);
}

static void answer_verified(struct smtpd_worker *w, struct verify *v)
{
	wait_answered(w, v->cookie, v);
	verify_free(&v);
}

static void receive_note(void *owner, struct note *note)
{
	struct smtpd_worker *w = owner;
	switch (note->type) {
	case SPOOL_STORED:
		wait_answered(w, ((struct spool_store *)note)->cookie, note);
		free(note);
		break;
	case VERIFY_ANSWER:
		answer_verified(w, (struct verify *)note);
		break;
	case SOCKETMAP_HEARD:
		socketmap_receive(w->socketmaps, note);
		break;
	case PASSAGE_RESUME:
		passage_resume((struct passage *)note);
		break;
	case SMTPD_WORKER_ANSWER:
		wait_receive(w, (struct wait_answer *)note);
		break;
	case SMTPD_WORKER_TABLES:
		use_conf(w, conf_note_take(note));
		break;
	case SMTPD_WORKER_LISTEN:
		listen_too(w, (struct smtpd_worker_listen *)note);
		break;
	case SMTPD_WORKER_RELOAD:
		reload_listeners(w, (struct smtpd_worker_reload *)note);
		break;
	default:
		assert(note->type == SMTPD_WORKER_CLOSE);
		free(note);
		close_all(w);
	}
}

struct smtpd_worker *smtpd_worker_new(struct conf *conf, struct spool *spool,
				      struct clients *clients)
{
	struct smtpd_worker *w = mem_zalloc(sizeof *w);
	w->conf = conf_ref(conf);
	w->spool = spool;
	w->clients = clients;
	list_init(&w->sessions);
	list_init(&w->listeners);
	w->loop = loop_new("smtpd", receive_note, NULL, w);
	w->dovecot = dovecot_new(w->loop);
	w->milters = milters_new(w->loop);
	w->socketmaps = socketmaps_new(w->loop);
	use_dovecot(w);
	socketmaps_use(w->socketmaps, conf);
	w->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return w;
}

void smtpd_worker_end_sessions(struct smtpd_worker *w)
{
	list_each (link, tmp, &w->sessions)
		session_abandon(list_entry(link, struct session, link));
}

void smtpd_worker_free(struct smtpd_worker **wp)
{
	struct smtpd_worker *w = *wp;
	if (!w)
		return;
	smtpd_worker_end_sessions(w);
	mailbox_drain(&w->loop->mailbox); /* in it, a reload uses the connection to Dovecot */
	dovecot_free(&w->dovecot);
	socketmaps_free(&w->socketmaps);
	milters_free(&w->milters);
	list_each_entry (struct listener, l, link, &w->listeners)
		listener_free(&l);
	loop_free(&w->loop);
	assert(list_empty(&w->sessions)); /* the spool has answered all */
	waits_fini(&w->waits);
	sasl_library_free(&w->gsasl);
	if (w->reserve_fd >= 0)
		close(w->reserve_fd);
	conf_unref(w->conf);
	free(w);
	*wp = NULL;
}
