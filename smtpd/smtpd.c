/* SPDX-License-Identifier: ISC */
#include "smtpd/smtpd.h"

#include "base/conf_note.h"
#include "base/conf_rows.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/stream.h"
#include "base/thread.h"
#include "smtpd/failures.h"
#include "smtpd/milter/milter_health.h"
#include "smtpd/port.h"
#include "smtpd/smtpd_worker.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct smtpd {
	struct conf *conf; /* in force; NULL: none yet */
	struct clients *clients;
	struct failures *failures;
	struct section *sections;
	struct port *ports;
	int nsection, nport; /* so many there have ever been */
	int nworker;
	struct smtpd_worker **worker;
};

/* All that a configuration asks for, made before anything has changed. */
struct plan {
	int n;
	struct planned {
		struct port *port;
		struct section *section;
		struct service *service;
	} * of;
	struct port *fresh; /* those that are not among the ports yet */
	bool made_room;	    /* ports are gone that were in the way of these */
};

/* One that comes again counts the connections that it still has. */
static struct section *get_section(struct smtpd *s, const char *title)
{
	struct section *c = s->sections;
	while (c && strcmp(c->title, title) != 0)
		c = c->next;
	if (c)
		return c;
	c = mem_zalloc(sizeof *c);
	c->title = mem_strdup(title);
	c->number = s->nsection++;
	c->next = s->sections;
	return s->sections = c;
}

static struct port *find_port(struct smtpd *s, const char *address)
{
	union address a;
	struct port *p = s->ports;
	if (!listener_parse(address, &a))
		return NULL;
	while (p && (p->wanted || memcmp(&p->address, &a, sizeof a) != 0))
		p = p->next;
	return p;
}

static bool is_named(const struct conf *conf, const struct port *p)
{
	union address a;
	for (int i = 0; i < conf->nlistener; i++)
		for (int k = 0; k < conf->listener[i].address.n; k++)
			if (listener_parse(conf->listener[i].address.item[k], &a) &&
			    memcmp(&p->address, &a, sizeof a) == 0)
				return true;
	return false;
}

/* 127.0.0.1:25 and 0.0.0.0:25 exclude each other: of the one that is left out nothing may listen when the other
 * begins to. Who else has such a socket would keep the address all the same. */
static void make_room(struct smtpd *s, struct plan *plan, const struct conf *conf,
		      const char *address)
{
	union address a;
	int number = listener_parse(address, &a) ? address_port(&a) : 0;
	for (struct port **link = &s->ports, *p; number != 0 && (p = *link);) {
		if (!p->own || address_port(&p->address) != number || is_named(conf, p)) {
			link = &p->next;
			continue;
		}
		*link = p->next;
		port_free(&p);
		plan->made_room = true;
	}
}

static struct port *get_port(struct smtpd *s, const char *address, struct plan *plan,
			     const struct conf *conf, struct inherited *inherited,
			     struct buf *error)
{
	struct port *p = find_port(s, address);
	if (!p) {
		make_room(s, plan, conf, address);
		p = port_new(address, s->nworker, inherited, error);
		if (!p)
			return NULL;
		p->id = s->nport++;
		p->next = plan->fresh;
		plan->fresh = p;
	}
	p->wanted = true;
	return p;
}

static bool plan_listener(struct smtpd *s, struct plan *plan, struct conf *conf,
			  const struct conf_listener *l, struct inherited *inherited,
			  struct buf *error)
{
	struct service *service = service_new(conf, l, error);
	bool ok = service != NULL;
	for (int i = 0; ok && i < l->address.n; i++) {
		struct port *p = get_port(s, l->address.item[i], plan, conf, inherited, error);
		ok = p != NULL;
		if (!ok)
			break;
		plan->of = mem_realloc(plan->of, (size_t)(plan->n + 1) * sizeof *plan->of);
		plan->of[plan->n++] =
			(struct planned){p, get_section(s, l->title), service_ref(service)};
	}
	service_unref(service);
	return ok;
}

static void plan_fini(struct plan *plan)
{
	for (int i = 0; i < plan->n; i++)
		service_unref(plan->of[i].service);
	free(plan->of);
	while (plan->fresh) {
		struct port *p = plan->fresh;
		plan->fresh = p->next;
		port_free(&p);
	}
}

static struct smtpd_worker_port worker_port(const struct planned *of)
{
	return (struct smtpd_worker_port){of->port->id, of->section->number, of->service,
					  &of->section->connections};
}

static void give_listeners(struct smtpd *s, int worker, const struct planned *of)
{
	struct smtpd_worker *w = s->worker[worker];
	struct smtpd_worker_port port = worker_port(of);
	int fd;
	for (int k = 0; (fd = port_share(of->port, s->nworker, worker, k)) >= 0; k++) {
		struct smtpd_worker_listen *note = mailbox_note(sizeof *note, SMTPD_WORKER_LISTEN);
		note->listener = listener_new(w, fd, &port);
		loop_post(w->loop, &note->note);
	}
}

static void tell_worker(struct smtpd *s, int worker, const struct plan *plan, struct conf *conf)
{
	struct smtpd_worker_reload *r = mem_zalloc(sizeof *r + (size_t)plan->n * sizeof r->of[0]);
	r->note.type = SMTPD_WORKER_RELOAD;
	r->n = plan->n;
	r->conf = conf_ref(conf);
	for (int i = 0; i < plan->n; i++) {
		r->of[i] = worker_port(&plan->of[i]);
		service_ref(r->of[i].service);
	}
	loop_post(s->worker[worker]->loop, &r->note);
}

static void drop_unwanted(struct smtpd *s)
{
	for (struct port **link = &s->ports, *p; (p = *link);) {
		if (p->wanted) {
			link = &p->next;
		} else {
			*link = p->next;
			port_free(&p);
		}
	}
}

static void carry_out(struct smtpd *s, struct plan *plan, struct conf *conf)
{
	for (int i = 0; i < plan->n; i++) {
		const struct planned *of = &plan->of[i];
		bool fresh = !of->port->section;
		of->port->section = of->section;
		for (int w = 0; fresh && w < s->nworker; w++)
			give_listeners(s, w, of);
	}
	for (int w = 0; w < s->nworker; w++)
		tell_worker(s, w, plan, conf);
	while (plan->fresh) {
		struct port *p = plan->fresh;
		plan->fresh = p->next;
		p->next = s->ports;
		s->ports = p;
	}
	drop_unwanted(s);
}

/* One that mail passes; else NULL. */
static const struct conf_milter *find_filter(const struct conf *c, const char *name)
{
	const struct conf_milter *m = c ? conf_find(c, CONF_KIND_MILTER, name) : NULL;
	return m && conf_milter_passed(c, m) ? m : NULL;
}

/* A filter works, until it is found not to. What is known of it is known of where it was. */
static void tell_of_filters(const struct conf *old, const struct conf *new)
{
	for (int i = 0; old && i < old->nmilter; i++)
		if (!find_filter(new, old->milter[i].title))
			milter_health_forget(old->milter[i].title);
	for (int i = 0; i < new->nmilter; i++) {
		const struct conf_milter *m = &new->milter[i], *was = find_filter(old, m->title);
		if (was && strcmp(was->address, m->address) == 0)
			continue;
		milter_health_forget(m->title);
		if (find_filter(new, m->title))
			milter_health_begin(m);
	}
}

/* False: made_room says whether something that was listened on is gone. */
static bool listen_as(struct smtpd *s, struct conf *conf, struct inherited *inherited,
		      bool *made_room, struct buf *error)
{
	struct plan plan = {0};
	bool ok = true;
	for (struct port *p = s->ports; p; p = p->next)
		p->wanted = false;
	for (int i = 0; ok && i < conf->nlistener; i++)
		ok = plan_listener(s, &plan, conf, &conf->listener[i], inherited, error);
	if (ok)
		carry_out(s, &plan, conf);
	*made_room = plan.made_room;
	plan_fini(&plan);
	return ok;
}

static bool adopt_conf(struct smtpd *s, struct conf *conf, struct inherited *inherited,
		       struct buf *error)
{
	bool made_room;
	if (!listen_as(s, conf, inherited, &made_room, error)) {
		if (made_room)
			listen_as(s, s->conf, NULL, &made_room, error);
		return false;
	}
	tell_of_filters(s->conf, conf);
	conf_unref(s->conf);
	s->conf = conf_ref(conf);
	return true;
}

/* A counter that begins at zero shows its first step. Those of other verbs, which no client needs, come up when one is said. */
static void begin_counting(void)
{
	static const char *const stages[] = {"CONNECT", "PROXY",    "COMMAND", "EHLO",
					     "HELO",	"STARTTLS", "AUTH",    "MAIL",
					     "RCPT",	"DATA",	    "BDAT"};
	for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
		metric_cell(FAMILY_rejects, stages[i], NULL);
}

struct smtpd *smtpd_new(struct conf *conf, const struct smtpd_edges *edges, struct buf *error)
{
	struct smtpd *s = mem_zalloc(sizeof *s);
	struct inherited inherited;
	s->clients = clients_new();
	s->failures = failures_new();
	s->nworker = thread_workers(conf->workers);
	s->worker = mem_zalloc((size_t)s->nworker * sizeof(struct smtpd_worker *));
	for (int i = 0; i < s->nworker; i++) {
		s->worker[i] = smtpd_worker_new(conf, edges->spool, s->clients);
		s->worker[i]->failures = s->failures;
		s->worker[i]->pool = edges->pool;
		s->worker[i]->limiter = edges->limiter;
		s->worker[i]->qmgr = edges->qmgr;
	}
	begin_counting();
	inherited_init(&inherited);
	if (!adopt_conf(s, conf, &inherited, error))
		smtpd_free(&s);
	inherited_fini(&inherited);
	return s;
}

struct clients *smtpd_clients(struct smtpd *s)
{
	return s->clients;
}

void smtpd_start(struct smtpd *s)
{
	for (int i = 0; i < s->nworker; i++)
		loop_start(s->worker[i]->loop);
}

void smtpd_close_sockets(struct smtpd *s)
{
	for (struct port *p = s->ports; p; p = p->next)
		p->wanted = false;
	drop_unwanted(s);
}

void smtpd_close(struct smtpd *s, bool keep_sockets)
{
	if (!keep_sockets)
		smtpd_close_sockets(s);
	for (int i = 0; i < s->nworker; i++)
		loop_post(s->worker[i]->loop,
			  mailbox_note(sizeof(struct note), SMTPD_WORKER_CLOSE));
}

void smtpd_stop(struct smtpd *s)
{
	for (int i = 0; i < s->nworker; i++)
		loop_stop(s->worker[i]->loop);
	for (int i = 0; i < s->nworker; i++)
		smtpd_worker_end_sessions(s->worker[i]);
}

int smtpd_take_sockets(struct smtpd *s, int **fd)
{
	int n = 0;
	*fd = NULL;
	for (struct port *p = s->ports; p; p = p->next) {
		*fd = mem_realloc(*fd, (size_t)(n + p->nfd) * sizeof **fd);
		for (int i = 0; i < p->nfd; i++)
			(*fd)[n++] = p->fd[i];
		p->nfd = 0;
	}
	return n;
}

static void free_sections(struct smtpd *s)
{
	while (s->sections) {
		struct section *c = s->sections;
		s->sections = c->next;
		assert(c->connections == 0);
		free(c->title);
		free(c);
	}
}

void smtpd_free(struct smtpd **sp)
{
	struct smtpd *s = *sp;
	if (!s)
		return;
	for (int i = 0; i < s->nworker; i++)
		smtpd_worker_free(&s->worker[i]);
	free(s->worker);
	smtpd_close_sockets(s);
	assert(!s->ports);
	free_sections(s);
	conf_unref(s->conf);
	clients_free(&s->clients);
	failures_free(&s->failures);
	free(s);
	*sp = NULL;
}

void smtpd_tables(struct smtpd *s, struct conf *conf)
{
	for (int i = 0; i < s->nworker; i++)
		conf_note_post(s->worker[i]->loop, SMTPD_WORKER_TABLES, conf);
}

bool smtpd_reload(struct smtpd *s, struct conf *conf, struct buf *error)
{
	return adopt_conf(s, conf, NULL, error);
}
