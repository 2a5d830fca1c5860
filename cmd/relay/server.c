/* SPDX-License-Identifier: ISC */
#include "cmd/relay/server.h"

#include "base/dkim_rows.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cmd/cmd.h"
#include "cmd/watch/kept_file.h"
#include "cmd/confine/privileges.h"
#include "cmd/control/control_path.h"
#include "cmd/relay/node_job.h"
#include "cmd/relay/report_passage.h"
#include "cmd/relay/requests.h"
#include "cmd/relay/server_reload.h"
#include "cmd/confine/sandbox.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { POOL_THREADS_MAX = 16, POOL_QUEUE = 256 };
enum {
	ORDER_LOOK_MS = 50,
	ORDER_WAIT_MS = 15000
}; /* systemd gives a stop 20 s, and this heeds no signal */

static void receive_note(void *owner, struct note *note)
{
	requests_receive(owner, note);
}

static void to_main(void *context, struct note *note)
{
	struct server *s = context;
	loop_post(s->loop, note);
}

static void to_spool(void *context, struct note *note)
{
	struct server *s = context;
	spool_post(s->spool, note);
}

static void to_dns(void *context, struct note *note)
{
	struct server *s = context;
	struct resolve *question = (struct resolve *)note;
	/* At the end the queue may still hand over messages that waited: nobody asks for them now. */
	if (s->dns)
		loop_post(dns_loop(s->dns), note);
	else
		resolve_free(&question);
}

static void to_sts(void *context, struct note *note)
{
	struct server *s = context;
	struct sts_ask *question = (struct sts_ask *)note;
	if (s->sts)
		loop_post(sts_loop(s->sts), note);
	else
		sts_ask_free(&question);
}

static void store_report(void *context, struct conf *conf, struct spool_store *store)
{
	struct server *s = context;
	if (dkim_rows_signs(conf))
		report_passage(conf, s->pool, s->spool, store);
	else
		loop_post(spool_loop(s->spool), &store->note);
}

static void to_worker(void *context, int worker, struct note *note)
{
	struct server *s = context;
	loop_post(smtpc_worker(s->smtpc, worker), note);
}

static void to_events(void *context, struct note *note)
{
	struct server *s = context;
	loop_post(events_loop(s->events), note);
}

static void to_cluster(void *context, struct note *note)
{
	struct server *s = context;
	assert(s->cluster); /* it is there when threads begin */
	loop_post(cluster_loop(s->cluster), note);
}

/* The lines that were kept are the events' now: a crash would have them told again, and the next one too. */
static void recall_events(struct server *s)
{
	struct buf text = {0};
	kept_file_read(&kept_events, s->conf->spool, &text);
	if (buf_len(&text) > 0) {
		events_recall(s->events, buf_cstr(&text));
		kept_file_write(&kept_events, s->conf->spool, "");
	}
	buf_fini(&text);
}

static const char *read_kept(const struct server *s, const struct kept_file *f, struct buf *text)
{
	buf_clear(text);
	kept_file_read(f, s->conf->spool, text);
	return buf_cstr(text);
}

/* Read the facts that were learnt about hosts before, without which some are tried once more; who is suspended. */
static void recall_learnt(struct server *s)
{
	struct buf text = {0};
	qmgr_recall(s->qmgr, read_kept(s, &kept_destdb, &text));
	qmgr_recall_suppressed(s->qmgr, read_kept(s, &kept_suppressed, &text));
	limiter_recall(s->limiter, read_kept(s, &kept_suspended, &text));
	limiter_recall_figures(s->limiter, read_kept(s, &kept_logins, &text));
	qmgr_recall_flows(s->qmgr, read_kept(s, &kept_flows, &text));
	sts_recall(s->sts, read_kept(s, &kept_sts, &text));
	tlsrpt_recall(s->tlsrpt, read_kept(s, &kept_tlsrpt, &text));
	buf_fini(&text);
	recall_events(s);
}

static void keep_last(struct server *s, enum kept_which which, struct buf *text)
{
	kept_text_write(&s->kept[which], buf_cstr(text));
	buf_clear(text);
}

static void keep_learnt(struct server *s)
{
	struct buf text = {0};
	assert(!s->stopped);
	qmgr_learnt(s->qmgr, &text);
	keep_last(s, KEPT_HOSTS, &text);
	qmgr_suppressed(s->qmgr, &text);
	keep_last(s, KEPT_SUPPRESSED, &text);
	sts_learnt(s->sts, &text);
	keep_last(s, KEPT_POLICIES, &text);
	tlsrpt_learnt(s->tlsrpt, &text);
	keep_last(s, KEPT_TLS_RESULTS, &text);
	limiter_figures(s->limiter, &text);
	keep_last(s, KEPT_LOGINS, &text);
	qmgr_flows(s->qmgr, &text);
	keep_last(s, KEPT_FLOWS, &text);
	kept_text_end(&s->kept[KEPT_SUSPENDED]);
	kept_text_end(&s->kept[KEPT_CLUSTER]);
	buf_fini(&text);
	if (*events_left(s->events))
		kept_file_write(&kept_events, s->conf->spool, events_left(s->events));
	s->stopped = true;
}

static void init_kept(struct server *s)
{
	static const struct kept_file *const files[] = {
#define X(which, type, file, ordered) [KEPT_##which] = &file,
		KEPT_TEXTS(X)
#undef X
	};
	for (int i = 0; i < KEPT_COUNT; i++)
		kept_text_init(&s->kept[i], files[i], s->conf->spool, s->loop);
}

static int pool_threads(void)
{
	int n = thread_workers(0);
	return n < POOL_THREADS_MAX ? n : POOL_THREADS_MAX;
}

/* Root may have no right to what was kept, which is the user's: without CAP_DAC_OVERRIDE, as in a container. */
static bool recall_as_user(struct server *s, const struct privileges *p, struct buf *orders,
			   struct buf *error)
{
	if (!privileges_lend(p, error))
		return false;
	recall_learnt(s);
	if (*s->conf->cluster.redis)
		kept_file_read(&kept_cluster, s->conf->spool, orders);
	return privileges_return(p, error);
}

static void join_cluster(struct server *s, const char *orders)
{
	struct cluster_edges edges = {.dns = dns_loop(s->dns),
				      .qmgr = qmgr_loop(s->qmgr),
				      .main = s->loop,
				      .limiter = limiter_loop(s->limiter),
				      .watcher = http_loop(s->http)};
	s->cluster = cluster_new(s->conf, SLUICE_VERSION, &edges);
	if (!s->cluster)
		return;
	limiter_share(s->limiter, to_cluster, s);
	if (s->smtpd)
		limiter_share_clients(s->limiter, smtpd_clients(s->smtpd));
	cluster_recall(s->cluster, orders);
}

static bool relay_answers(const char *folder)
{
	int fd = control_path_connect(folder);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Who gives an order while no relay runs has the queue until it is carried out: a start, or the successor at a
 * restart, must not end for that. Another relay would keep it. */
static void wait_for_order(const char *folder)
{
	int64_t end_ms = clock_steady_ms() + ORDER_WAIT_MS;
	bool told = false;
	while (spool_is_taken(folder) && !relay_answers(folder) && clock_steady_ms() < end_ms) {
		if (!told)
			fprintf(stderr,
				"sluice: %s: waiting for another process that has this queue\n",
				folder); /* nothing writes the log yet */
		told = true;
		usleep(ORDER_LOOK_MS * 1000);
	}
}

static bool wire_parts(struct server *s, const struct privileges *p, struct buf *error)
{
	struct conf *c = s->conf;
	struct buf orders = {0};
	struct qmgr_edges edges = {.to_spool = to_spool,
				   .to_dns = to_dns,
				   .to_sts = to_sts,
				   .reports = tlsrpt_loop(s->tlsrpt),
				   .to_worker = to_worker,
				   .to_main = to_main,
				   .report = store_report,
				   .to_events = to_events,
				   .to_cluster = *c->cluster.redis ? to_cluster : NULL,
				   .context = s,
				   .workers = smtpc_workers(s->smtpc)};
	qmgr_wire(s->qmgr, &edges);
	glance_init(&s->glance, s->loop, qmgr_loop(s->qmgr));
	s->limiter = limiter_new(c, s->loop);
	s->events = events_new(c);
	if (!recall_as_user(s, p, &orders, error))
		return false;
	struct smtpd_edges smtpd_edges = {s->spool, s->pool, s->limiter, qmgr_loop(s->qmgr)};
	s->smtpd = smtpd_new(s->conf, &smtpd_edges, error);
	struct http_asks http_asks = {s->spool, s->qmgr, s->maildrop};
	s->http = http_new(c, &http_asks, s->started_ms);
	limiter_watch(s->limiter, s->loop);
	limiter_watch(s->limiter, http_loop(s->http));
	node_watch(s->node, http_loop(s->http));
	join_cluster(s, buf_cstr(&orders));
	buf_fini(&orders);
	return s->smtpd && http_move(s->http, c, error);
}

/* The queue belongs to the user, ports and keys to root. */
static bool open_parts(struct server *s, const struct privileges *p, struct buf *error)
{
	struct conf *c = s->conf;
	if (!privileges_own_folder(p, c->spool, error) || !privileges_lend(p, error))
		return false;
	wait_for_order(c->spool);
	if (!life_put_aside(c->spool, error) || !membership_may_start(c, error))
		return false;
	s->clock = clock_watch_new(s->loop, c->spool);
	init_kept(s);
	s->dns = dns_new(s->conf);
	s->tlsrpt = tlsrpt_new(s->conf, &(struct tlsrpt_edges){.to_dns = to_dns,
							       .store = store_report,
							       .context = s,
							       .main = s->loop});
	s->sts = sts_new(s->conf, &(struct sts_edges){.to_dns = to_dns,
						      .context = s,
						      .main = s->loop,
						      .reports = tlsrpt_loop(s->tlsrpt)});
	s->smtpc = smtpc_new(s->conf);
	s->qmgr = qmgr_new(s->conf);
	s->spool = spool_new(s->conf, qmgr_loop(s->qmgr), error);
	s->replica = s->spool ? replica_new(s->conf, s->spool) : NULL;
	s->node = node_new(s->conf, s->spool, s->replica, s->loop, error);
	if (s->replica && !s->node)
		return false;
	s->pool = thread_pool_new("pool", pool_threads(), POOL_QUEUE);
	thread_pool_give_way(s->pool);
	s->maildrop = s->spool ? maildrop_new(c, s->spool, s->pool, error) : NULL;
	s->control = s->maildrop ? control_new(s->loop, c->spool, requests_handle, s, error) : NULL;
	return s->control && privileges_return(p, error) && wire_parts(s, p, error);
}

/* With the user's rights also where root has none, as to a file that is the user's, without CAP_DAC_OVERRIDE. */
static bool start_log(const struct conf *c, const struct privileges *p, struct buf *error)
{
	enum log_format format = (enum log_format)c->log_format;
	enum log_level level = (enum log_level)c->log_level;
	struct buf unused = {0};
	if (c->log[0] != '/')
		return log_open(c->log, format, level, error);
	bool opened = privileges_may_touch(p, c->log) && log_open(c->log, format, level, &unused);
	buf_fini(&unused);
	if (opened)
		privileges_own_file(p, c->log);
	return opened || (privileges_lend(p, error) && log_open(c->log, format, level, error) &&
			  privileges_return(p, error));
}

static bool become_user(struct server *s, struct buf *error)
{
	struct privileges p;
	bool ok = privileges_find(&p, s->conf->user, error) && start_log(s->conf, &p, error);
	loop_turn_log_slower(s->conf->log_slow);
	ok = ok && open_parts(s, &p, error) && privileges_drop(&p, error);
	privileges_fini(&p);
	return ok;
}

struct server *server_new(struct conf *conf, struct buf *error)
{
	struct server *s = mem_zalloc(sizeof *s);
	s->conf = conf_ref(conf);
	conf_fixed(conf, &s->fixed);
	s->started_ms = clock_steady_ms();
	s->loop = loop_new("main", receive_note, NULL, s);
	ending_init(s);
	s->tables = table_watch_new(s->loop, server_use_tables, s);
	s->certificates = certificate_watch_new(s->loop, server_use_certificates, s);
	s->filters = milter_watch_new(s->loop);
	s->memory = memory_room_find();
	tzset(); /* while its file can be read, and before another thread has a use for it */
	if (!become_user(s, error) || !sandbox_enter(conf, error) || !log_start(error))
		server_free(&s);
	else
		descriptors_limit(conf->descriptor_limit);
	return s;
}

static void warn_of_memory(const struct server *s)
{
	struct buf says = {0};
	if (memory_room_lacks(&s->memory, s->conf, &says))
		log_event(LOG_LEVEL_WARNING, "memory", "reason", buf_cstr(&says), NULL);
	buf_fini(&says);
}

static void say_ready(const struct server *s)
{
	struct buf listeners = {0};
	server_listeners(s->conf, &listeners);
	log_event(LOG_LEVEL_INFO, "ready", "version", SLUICE_VERSION, "listeners",
		  buf_cstr(&listeners), NULL);
	log_flush();
	server_tell_manager(s->conf);
	buf_fini(&listeners);
}

void server_start(struct server *s)
{
	dns_start(s->dns);
	sts_start(s->sts);
	tlsrpt_start(s->tlsrpt);
	replica_start(s->replica);
	node_start(s->node);
	spool_start(s->spool);
	smtpc_start(s->smtpc);
	events_start(s->events);
	if (s->cluster)
		cluster_start(s->cluster);
	qmgr_start(s->qmgr);
	limiter_start(s->limiter);
	thread_pool_start(s->pool);
	node_wait(s->node);
	smtpd_start(s->smtpd);
	s->disk = disk_watch_new(http_loop(s->http), s->spool);
	http_start(s->http);
	maildrop_start(s->maildrop);
	table_watch_start(s->tables, s->conf);
	certificate_watch_start(s->certificates, s->conf);
	milter_watch_start(s->filters, s->conf);
	clock_watch_start(s->clock);
	warn_of_memory(s);
	say_ready(s);
}

void server_run(struct server *s)
{
	ev_run(s->loop->ev, 0);
}

void server_look(struct server *s)
{
	ev_run(s->loop->ev, EVRUN_NOWAIT);
}

int server_stop(struct server *s, int **sockets)
{
	http_stop(s->http);
	smtpd_stop(s->smtpd);
	limiter_stop(s->limiter);
	thread_pool_stop(s->pool);
	maildrop_stop(s->maildrop);
	smtpc_stop(s->smtpc);
	qmgr_stop(s->qmgr);
	spool_settle(s->spool);
	qmgr_conclude(s->qmgr);
	if (s->cluster)
		cluster_stop(s->cluster);
	events_stop(s->events);
	sts_stop(s->sts);
	tlsrpt_stop(s->tlsrpt);
	keep_learnt(s);
	spool_stop(s->spool);
	node_interrupt(s->node);
	node_job_drained(s, node_stop(s->node, replica_stop(s->replica, node_drains(s->node))));
	dns_stop(s->dns);
	control_close(
		s->control); /* while the queue is locked: the next relay has a socket of that name */
	conditions_end();
	log_event(LOG_LEVEL_INFO, "stopped", NULL);
	log_flush();
	return smtpd_take_sockets(s->smtpd, sockets);
}

void server_free(struct server **sp)
{
	struct server *s = mem_take(sp);
	if (!s)
		return;
	/* First those that hold what others gave them; the loops that it comes back to are last. Whoever asks is forgotten by
	 * what would have answered. */
	if (s->control)
		control_drop(s->control);
	if (s->cluster)
		cluster_stop(s->cluster);
	disk_watch_free(&s->disk);
	limiter_free(&s->limiter); /* it answers sessions */
	thread_pool_free(&s->pool);
	smtpd_free(&s->smtpd);
	maildrop_free(&s->maildrop);
	smtpc_free(&s->smtpc);
	sts_free(&s->sts);
	dns_free(&s->dns);
	qmgr_free(&s->qmgr);
	events_free(&s->events);
	node_free(&s->node);
	replica_free(&s->replica);
	spool_free(&s->spool);
	tlsrpt_free(&s->tlsrpt);
	http_free(&s->http);
	mailbox_drain(&s->loop->mailbox); /* what was asked by other nodes is answered to cluster */
	cluster_free(&s->cluster);
	log_close();
	/* Who waits for the end sees it now. */
	control_free(&s->control);
	/* Notes that the threads posted last are kept, and freed with the rest. */
	mailbox_drain(&s->loop->mailbox);
	glance_fini(&s->glance);
	limiter_top_free(&s->top);
	cluster_view_free(&s->nodes);
	node_view_free(&s->epochs);
	table_watch_free(&s->tables);
	certificate_watch_free(&s->certificates);
	milter_watch_free(&s->filters);
	clock_watch_free(&s->clock);
	ending_fini(s);
	order_progress_fini(&s->progress);
	for (int i = 0; i < KEPT_COUNT; i++)
		kept_text_fini(&s->kept[i]);
	loop_free(&s->loop);
	conf_unref(s->conf);
	buf_fini(&s->fixed);
	free(s);
}
