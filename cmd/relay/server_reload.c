/* SPDX-License-Identifier: ISC */
#include "cmd/relay/server_reload.h"

#include "base/condition.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/log_place.h"
#include "base/words.h"
#include "cmd/confine/sandbox.h"
#include "cmd/relay/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

void server_listeners(const struct conf *c, struct buf *to)
{
	for (int i = 0; i < c->nlistener; i++) {
		const struct conf_list *address = &c->listener[i].address;
		for (int k = 0; k < address->n; k++)
			buf_printf(to, "%s%s", buf_len(to) ? "," : "", address->item[k]);
	}
}

void server_tell_manager(const struct conf *c)
{
	struct buf listeners = {0};
	server_listeners(c, &listeners);
	sd_notifyf(0, "READY=1\nSTATUS=listening on %s", buf_cstr(&listeners));
	buf_fini(&listeners);
}

/* The text of a file has changed: the same settings go round with it. */
void server_use_tables(void *owner)
{
	struct server *s = owner;
	struct conf *new = table_watch_renew(s->conf);
	smtpd_tables(s->smtpd, new);
	maildrop_reload(s->maildrop, new);
	qmgr_reload(s->qmgr, new);
	limiter_reload(s->limiter, new);
	table_watch_start(s->tables, new);
	condition_clear_all(CONDITION_dkim_key_unreadable); /* the rows may name others */
	conf_unref(s->conf);
	s->conf = new;
}

/* Sessions to come have them; those that are open keep what they began with. */
void server_use_certificates(void *owner)
{
	struct server *s = owner;
	struct buf says = {0};
	if (s->ending.state != ENDING_NONE)
		return;
	bool done = certificate_watch_good(s->certificates, s->conf, &says) &&
		    smtpd_reload(s->smtpd, s->conf, &says);
	if (done)
		certificate_watch_used(s->certificates);
	condition_turn(CONDITION_certificate_kept, !done, "", buf_cstr(&says));
	log_event(done ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "certificate", "message",
		  done ? "read anew" : log_text("%s; what there was before stays", buf_cstr(&says)),
		  NULL);
	buf_fini(&says);
}

static void say_lines(enum log_level level, const char *text)
{
	for (char *line; (line = words_line(&text)); free(line))
		log_event(level, "reload", "message", line, NULL);
}

static bool move_log(const struct conf *old, const struct conf *new, struct buf *says)
{
	const char *where = strcmp(old->log, new->log) == 0 ? NULL : new->log;
	if (!where &&
	    !log_place_try(new->log, says)) /* as after a rotation: no reason to stay as it was */
		buf_puts(says, "; what was open before is written on\n");
	return log_move(where, (enum log_format) new->log_format, says);
}

/* The page leaves the old address first: the new one may be the same port. */
static bool move_http(struct server *s, const struct conf *old, struct conf *new, struct buf *says)
{
	if (strcmp(old->http, new->http) != 0)
		return http_move(s->http, new, says);
	http_reload(s->http, new);
	return true;
}

/* A port that is a listener's now, at whatever address. */
static bool is_port_of_listener(const struct conf *c, const char *where)
{
	const char *port = strrchr(where, ':');
	for (int i = 0; port && i < c->nlistener; i++)
		for (int k = 0; k < c->listener[i].address.n; k++) {
			const char *other = strrchr(c->listener[i].address.item[k], ':');
			if (other && strcmp(port, other) == 0)
				return true;
		}
	return false;
}

/* The page goes first, since a listener may come to where it was, and comes last where a listener must have gone. */
static bool move_listeners(struct server *s, struct conf *old, struct conf *new, struct buf *says)
{
	struct buf unused = {0};
	bool last = strcmp(old->http, new->http) != 0 && is_port_of_listener(old, new->http);
	if (last)
		http_leave(s->http);
	bool done = (last || move_http(s, old, new, says)) && smtpd_reload(s->smtpd, new, says);
	if (last && done && !http_move(s->http, new, says)) {
		smtpd_reload(s->smtpd, old, says);
		done = false;
	}
	if (!done)
		move_http(s, new, old, &unused);
	buf_fini(&unused);
	return done;
}

/* All steps that may fail, or none of them. */
static bool move_all(struct server *s, struct conf *new, struct buf *says)
{
	struct conf *old = s->conf;
	struct buf unused = {0};
	bool log = certificate_watch_good(s->certificates, new, says) && move_log(old, new, says);
	bool done = log && move_listeners(s, old, new, says);
	if (log && !done)
		move_log(new, old, &unused);
	buf_fini(&unused);
	if (!done && buf_len(says) > 0 && buf_cstr(says)[buf_len(says) - 1] != '\n')
		buf_puts(says, "\n");
	return done;
}

/* Settings that take effect at the next start are told, and then as they were: the queue stays where it is, and all that lies beside it. */
static void settle_fixed(const struct server *s, struct conf *new, struct buf *differs)
{
	conf_differences(&s->fixed, new, differs);
	conf_keep_fixed(new, s->conf);
}

static bool use_conf(struct server *s, struct conf *new, struct buf *says)
{
	struct buf differs = {0};
	settle_fixed(s, new, &differs);
	bool moved = move_all(s, new, says);
	if (moved)
		buf_puts(says, buf_cstr(&differs));
	if (moved && memory_room_lacks(&s->memory, new, says))
		buf_puts(says, "\n");
	buf_fini(&differs);
	if (!moved)
		return false;
	dns_reload(s->dns, new);
	sts_reload(s->sts, new);
	tlsrpt_reload(s->tlsrpt, new);
	qmgr_reload(s->qmgr, new);
	spool_reload(s->spool, new);
	node_reload(s->node, new);
	maildrop_reload(s->maildrop, new);
	limiter_reload(s->limiter, new);
	events_reload(s->events, new);
	log_set_level((enum log_level) new->log_level);
	loop_turn_log_slower(new->log_slow);
	descriptors_limit(new->descriptor_limit);
	table_watch_start(s->tables, new);
	certificate_watch_start(s->certificates, new);
	milter_watch_start(s->filters, new);
	condition_clear_all(CONDITION_tables_stale); /* all were read */
	condition_clear_all(CONDITION_secret_unreadable);
	condition_clear_all(CONDITION_token_missing); /* they are asked for again */
	condition_clear_all(CONDITION_dkim_key_unreadable);
	conf_unref(s->conf);
	s->conf = conf_ref(new);
	return true;
}

/* A file that can't be read from inside is told as such, not as a fault of the file's. */
static struct conf *read_within_reach(const struct conf *old, struct buf *says)
{
	struct buf faults = {0};
	struct conf *settings = conf_read_with(old->file, 0, &faults);
	bool reached = !settings || sandbox_reaches(settings, false, says);
	conf_unref(settings);
	buf_fini(&faults);
	return reached ? conf_read(old->file, says) : NULL;
}

/* Settings would open listeners that nobody serves any more. */
static bool refuse_reload(struct buf *says)
{
	buf_puts(says,
		 "sluice: the relay is stopping: its log was opened anew, and nothing else\n");
	say_lines(LOG_LEVEL_WARNING, buf_cstr(says));
	log_flush();
	return false;
}

/* Whoever has removed the socket has left a signal as the only order that arrives. */
static void renew_control(struct server *s, struct buf *says)
{
	if (!control_renew(s->control))
		buf_printf(says, "%s/control: %s\n", s->conf->spool, strerror(errno));
}

/* The zone stays where its file cannot be read any more, as one in the place of that of the start cannot from the sandbox: the
 * library would take universal time. */
static void renew_time_zone(void)
{
	int fd = open("/etc/localtime", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	close(fd);
	tzset();
}

bool server_reload(struct server *s, struct buf *says)
{
	log_reopen();
	renew_time_zone();
	if (s->ending.state != ENDING_NONE)
		return refuse_reload(says);
	sd_notify(0, "RELOADING=1");
	renew_control(s, says);
	struct conf *new = read_within_reach(s->conf, says);
	bool done = new &&use_conf(s, new, says);
	conf_unref(new);
	say_lines(done ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR, buf_cstr(says));
	log_event(done ? LOG_LEVEL_INFO : LOG_LEVEL_ERROR, "reload", "result",
		  done ? "done" : "kept the old settings", NULL);
	log_flush();
	server_tell_manager(s->conf);
	return done;
}
