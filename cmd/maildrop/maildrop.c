/* SPDX-License-Identifier: ISC */
#include "cmd/maildrop/maildrop.h"

#include "base/conf_note.h"
#include "base/mem.h"
#include "cmd/maildrop/maildrop_count.h"
#include "cmd/maildrop/maildrop_folder.h"
#include "cmd/maildrop/refilter.h"
#include "smtpd/socketmap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

enum {
	LOOK_MS = 60000,      /* between looks when the kernel tells of changes, */
	LOOK_BLIND_MS = 2000, /* or does not */
	AGAIN_MS = 1000,      /* after the queue had no room */
	PUT_OFF_MS = 5000,    /* after one could not be taken that others need not wait for, */
	PUT_OFF_MAX = 1000,   /* messages at most; then the others wait too */
	SLOW_MAX = MAILDROP_BATCH / 2, /* messages that the next batch does not wait for */
	TOLD_BYTES = 16 << 10,	       /* of changes, read at a time */
};

struct maildrop {
	struct loop *loop;
	struct spool *spool;
	struct thread_pool *pool;
	struct conf *conf;
	struct maildrop_folder folder;
	int told; /* inotify's descriptor; -1: none */
	ev_io changed;
	struct timer look;
	bool recovered;
	bool unsynced;	     /* what was claimed may be in both folders after a crash */
	struct list takes;   /* claimed, and not with the spool */
	struct list asked;   /* with the spool, or on their way through the stages */
	struct list put_off; /* that are to be tried later: others go on meanwhile */
	int nput_off;
	struct timer retry; /* of those */
	struct milters *milters;
	struct socketmaps *maps; /* servers of aliases */
	struct refilters refilters;
	bool rests;
	bool stopped; /* main's */
};

static struct take *first_take(struct list *takes)
{
	return list_entry(list_first(takes), struct take, link);
}

static void look_in(struct maildrop *m, int64_t delay_ms)
{
	loop_timer_in(m->loop, &m->look, delay_ms);
}

static struct take_means means_of(const struct maildrop *m)
{
	return (struct take_means){.conf = m->conf,
				   .spool = m->spool,
				   .pool = m->pool,
				   .loop = m->loop,
				   .milters = m->milters,
				   .maps = m->maps,
				   .folder = m->folder.taken};
}

/* True: it is to be tried again. */
static bool store_one(struct maildrop *m, struct take *t)
{
	list_remove(&t->link);
	const struct take_means with = means_of(m);
	switch (take_store(t, &with)) {
	case TAKE_ASKED:
		list_append(&m->asked, &t->link);
		return false;
	case TAKE_BAD:
		maildrop_folder_put_aside(&m->folder, t);
		take_free(&t);
		return false;
	case TAKE_LATER:
		break;
	}
	list_append(&m->takes, &t->link);
	return true;
}

/* One after the other, until the queue has no room. */
static void store_all(struct maildrop *m)
{
	struct list todo;
	bool again = false;
	list_init(&todo);
	list_move_all(&todo, &m->takes);
	while (!list_empty(&todo) && !again)
		again = store_one(m, first_take(&todo));
	list_move_all(&m->takes, &todo);
}

/* A batch has its syncs of both folders, so it is waited for; but not for what a filter or a server of aliases keeps. */
static bool most_under_way(const struct maildrop *m)
{
	int n = 0;
	list_each (link, tmp, &m->asked)
		n++;
	return n > SLOW_MAX;
}

static void claim_and_store(void *owner)
{
	struct maildrop *m = owner;
	if (!m->recovered || m->rests || most_under_way(m))
		return;
	if (list_empty(&m->takes) && m->nput_off < PUT_OFF_MAX) {
		maildrop_folder_claim(&m->folder, &m->takes);
		m->unsynced |= !list_empty(&m->takes);
	}
	if (m->unsynced)
		m->unsynced = !maildrop_folder_sync(&m->folder);
	if (!m->unsynced && spool_accepting(m->spool))
		store_all(m);
	if (!list_empty(&m->takes))
		look_in(m, AGAIN_MS);
	else
		look_in(m, m->told >= 0 ? LOOK_MS : LOOK_BLIND_MS);
}

static void put_off(struct maildrop *m, struct take *t)
{
	list_append(&m->put_off, &t->link);
	m->nput_off++;
	if (!timer_active(&m->retry))
		loop_timer_in(m->loop, &m->retry, PUT_OFF_MS);
}

static void retry_put_off(void *owner)
{
	struct maildrop *m = owner;
	assert(m->nput_off > 0 && !list_empty(&m->put_off));
	list_move_all(&m->takes, &m->put_off);
	m->nput_off = 0;
	claim_and_store(m);
}

/* One that was not stored. */
static void treat_unstored(struct maildrop *m, struct take *t)
{
	switch (t->end) {
	case TAKE_AGAIN:
		list_append(&m->takes, &t->link);
		return;
	case TAKE_PUT_OFF:
		put_off(m, t);
		return;
	case TAKE_REFUSED:
		maildrop_folder_put_aside(&m->folder, t);
		break;
	case TAKE_DISCARDED:
		maildrop_folder_drop(&m->folder, t);
		break;
	}
	take_free(&t);
}

static void on_stored(struct maildrop *m, struct spool_store *answer)
{
	struct take *t = answer->owner;
	magic_check(t, TAKE_MAGIC);
	assert(m->recovered);
	list_remove(&t->link);
	if (answer->stored)
		take_free(&t);
	else
		treat_unstored(m, t);
	free(answer);
	if (!most_under_way(m))
		look_in(m, list_empty(&m->takes) ? 0 : AGAIN_MS);
}

/* A command is answered once recovery has ended, and this one has no other meaning. */
static void ask_for_recovery(struct maildrop *m)
{
	struct spool_command *c = spool_command_new(SPOOL_SHOW, m->loop, m);
	loop_post(spool_loop(m->spool), &c->note);
}

static void on_recovered(struct maildrop *m, struct spool_command *answer)
{
	assert(!m->recovered);
	spool_command_free(&answer);
	m->recovered = true;
	maildrop_folder_left(&m->folder, &m->takes);
	look_in(m, 0);
}

static void answer_shape(struct maildrop *m, struct maildrop_shape *s)
{
	s->error = maildrop_count(m->conf->spool, s->shape) ? 0 : errno;
	loop_post(s->reply_to, &s->note);
}

static void refilter_more(void *owner)
{
	struct maildrop *m = owner;
	const struct take_means with = means_of(m);
	refilters_go_on(&m->refilters, &with);
}

static void receive_note(void *owner, struct note *note)
{
	struct maildrop *m = owner;
	switch (note->type) {
	case SPOOL_STORED:
		if (((struct spool_store *)note)->replaces)
			refilters_stored((struct spool_store *)note);
		else
			on_stored(m, (struct spool_store *)note);
		break;
	case MAILDROP_REFILTER:
		refilters_take(&m->refilters, (struct refilter *)note);
		refilter_more(m);
		break;
	case SPOOL_COMMAND:
		on_recovered(m, (struct spool_command *)note);
		break;
	case MAILDROP_SHAPE:
		answer_shape(m, (struct maildrop_shape *)note);
		break;
	case SOCKETMAP_HEARD:
		socketmap_receive(m->maps, note);
		break;
	case PASSAGE_RESUME:
		passage_resume((struct passage *)note);
		break;
	case MAILDROP_REST:
		m->rests = true;
		refilters_stop(&m->refilters);
		free(note);
		break;
	default:
		assert(note->type == MAILDROP_RELOAD);
		conf_note_use(note, &m->conf);
		socketmaps_use(m->maps, m->conf);
	}
}

static void on_change(struct ev_loop *ev, ev_io *w, int revents)
{
	char events[TOLD_BYTES];
	struct maildrop *m = w->data;
	(void)ev;
	(void)revents;
	while (read(m->told, events, sizeof events) > 0)
		;
	claim_and_store(m);
}

static void watch_folder(struct maildrop *m)
{
	char *path = mem_printf("%s/maildrop", m->conf->spool);
	m->told = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (m->told >= 0 && inotify_add_watch(m->told, path, IN_MOVED_TO | IN_CLOSE_WRITE) < 0) {
		close(m->told);
		m->told = -1;
	}
	free(path);
	if (m->told < 0)
		return;
	ev_io_init(&m->changed, on_change, m->told, EV_READ);
	m->changed.data = m;
	ev_io_start(m->loop->ev, &m->changed);
}

struct maildrop *maildrop_new(struct conf *conf, struct spool *spool, struct thread_pool *pool,
			      struct buf *error)
{
	struct maildrop *m = mem_zalloc(sizeof *m);
	m->conf = conf_ref(conf);
	m->spool = spool;
	m->pool = pool;
	m->told = -1;
	list_init(&m->takes);
	list_init(&m->asked);
	list_init(&m->put_off);
	m->loop = loop_new("maildrop", receive_note, NULL, m);
	timer_init(&m->look, claim_and_store, m);
	timer_init(&m->retry, retry_put_off, m);
	m->milters = milters_new(m->loop);
	m->maps = socketmaps_new(m->loop);
	socketmaps_use(m->maps, conf);
	refilters_init(&m->refilters, refilter_more, m);
	if (maildrop_folder_open(&m->folder, conf->spool, error))
		watch_folder(m);
	else
		maildrop_free(&m);
	return m;
}

void maildrop_start(struct maildrop *m)
{
	ask_for_recovery(m);
	loop_start(m->loop);
}

void maildrop_rest(struct maildrop *m)
{
	loop_post(m->loop, mailbox_note(sizeof(struct note), MAILDROP_REST));
}

void maildrop_stop(struct maildrop *m)
{
	loop_stop(m->loop);
	refilters_stop(&m->refilters);
	m->stopped = true;
}

/* Those on their way to the spool wait in taken/ for the next start. */
static void end_passages(struct maildrop *m)
{
	list_each_entry (struct take, t, link, &m->asked) {
		if (!t->passage && !t->aliases.by.conf)
			continue;
		list_remove(&t->link);
		take_free(&t);
	}
}

static void free_takes(struct list *takes)
{
	while (!list_empty(takes)) {
		struct take *t = first_take(takes);
		list_remove(&t->link);
		take_free(&t);
	}
}

void maildrop_free(struct maildrop **mp)
{
	struct maildrop *m = mem_take(mp);
	if (!m)
		return;
	if (m->told >= 0) {
		ev_io_stop(m->loop->ev, &m->changed);
		close(m->told);
	}
	end_passages(m);
	refilters_stop(&m->refilters);
	/* Messages that the spool has answered for since are logged; all others wait in taken/. */
	mailbox_drain(&m->loop->mailbox);
	timer_stop(&m->loop->timers, &m->look);
	timer_stop(&m->loop->timers, &m->retry);
	refilters_fini(&m->refilters);
	socketmaps_free(&m->maps);
	milters_free(&m->milters);
	loop_free(&m->loop);
	assert(list_empty(&m->asked));
	free_takes(&m->takes);
	free_takes(&m->put_off);
	maildrop_folder_close(&m->folder);
	conf_unref(m->conf);
	free(m);
}

void maildrop_ask_shape(struct maildrop *m, struct shape *shape, struct loop *reply_to, void *owner)
{
	struct maildrop_shape *s = mailbox_note(sizeof *s, MAILDROP_SHAPE);
	s->reply_to = reply_to;
	s->owner = owner;
	s->shape = shape;
	loop_post(m->loop, &s->note);
}

void maildrop_refilter(struct maildrop *m, struct refilter *r)
{
	if (m->stopped)
		refilters_take(&m->refilters, r); /* who stops answers here */
	else
		loop_post(m->loop, &r->note);
}

void maildrop_reload(struct maildrop *m, struct conf *conf)
{
	conf_note_post(m->loop, MAILDROP_RELOAD, conf);
}
