/* SPDX-License-Identifier: ISC */
#include "smtpd/filter_mail.h"

#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of mail that did not come by SMTP. */
static const char *own_macro(const struct filter_mail *m, const char *name)
{
	char id[IDENT_TEXT];
	if (strcmp(name, "i") == 0)
		return log_text("%s", ident_text(m->id, id));
	if (strcmp(name, "j") == 0)
		return m->owner.hostname;
	if (strcmp(name, "_") == 0)
		return "localhost [127.0.0.1]";
	if (strcmp(name, "v") == 0)
		return "sluice";
	return strcmp(name, "{daemon_name}") == 0 ? m->owner.daemon : NULL;
}

static const char *macro_value(void *owner, const char *name)
{
	const struct filter_mail *m = owner;
	return m->owner.macro ? m->owner.macro(m->owner.owner, name) : own_macro(m, name);
}

static void log_filter(void *owner, const char *filter, const char *action, const char *reason)
{
	const struct filter_mail *m = owner;
	metric_cell_add(metric_cell(FAMILY_filtered, filter, action), 1);
	log_event(LOG_LEVEL_INFO, "filter", "id", m->id ? log_id(m->id) : NULL, "session",
		  m->session ? log_id(m->session) : NULL, "milter", filter, "action", action,
		  "reason", reason, NULL);
}

static const char *take_change(void *owner, const struct milter_answer *a)
{
	struct filter_mail *m = owner;
	const char *wrong = filter_changes_add(&m->changes, a);
	if (!wrong && a->change == MILTER_CHANGE_TO_QUARANTINE) {
		free(m->quarantine);
		m->quarantine = mem_strdup(a->text[0]);
	}
	return wrong;
}

static void undo_changes(void *owner)
{
	struct filter_mail *m = owner;
	mem_free(&m->quarantine);
	filter_changes_forget(&m->changes);
}

/* Whatever becomes of the message: a change that was not made is not left for the next one. */
static struct passage *leave_passage(struct filter_mail *m)
{
	struct passage *p = m->passage;
	undo_changes(m);
	m->passage = NULL;
	return p;
}

static void settle_passage(struct passage *p)
{
	p->error = draft_settle(&p->draft) && draft_open(&p->draft) ? 0 : errno;
}

/* Whoever looks next is to see another body as the body. */
static int settle_body(struct passage *p)
{
	if (draft_settles_slowly(&p->draft))
		return passage_give(p, settle_passage) ? EINPROGRESS : ECANCELED;
	settle_passage(p);
	return p->error;
}

static int make_changes(struct filter_mail *m, const char *filter)
{
	struct buf what = {0};
	bool body = filter_changes_make(&m->changes, &what);
	m->changed = true;
	if (m->quarantine) {
		log_filter(m, filter, "quarantine", m->quarantine);
		free(m->held_why);
		m->held_why = m->quarantine;
		m->by = filter;
	}
	log_filter(m, filter, "change", buf_cstr(&what));
	buf_fini(&what);
	m->quarantine = NULL;
	alias_learn_end(&m->aliases);
	return body ? settle_body(m->passage) : 0;
}

static bool knows_added(void *owner)
{
	const struct filter_mail *m = owner;
	return filter_changes_known(&m->changes);
}

static void learnt_added(void *owner, bool failed);

/* Who is added may be an alias that a server has. */
static int filter_has_changed(void *owner, const char *filter)
{
	struct filter_mail *m = owner;
	const struct alias_learner by = {.maps = m->owner.maps,
					 .conf = m->changes.conf,
					 .session = m->session,
					 .id = m->id,
					 .known = knows_added,
					 .learnt = learnt_added,
					 .owner = m,
					 .patient = m->owner.patient};
	m->adds = filter;
	switch (alias_learn(&m->aliases, &by)) {
	case ALIAS_WAITS:
		return EINPROGRESS;
	case ALIAS_FAILED:
		m->unheard = true;
		return EAGAIN;
	case ALIAS_KNOWN:
		break;
	}
	return make_changes(m, filter);
}

/* Without the end of its last line. */
static void refuse_mail(struct passage *p, const char *reply)
{
	char *lines = mem_strdup(reply);
	size_t len = strlen(lines);
	while (len > 0 && (lines[len - 1] == '\r' || lines[len - 1] == '\n'))
		lines[--len] = '\0';
	passage_refuse(p, lines);
	free(lines);
}

/* Afterwards the passage, and whoever owns all this, may be gone. */
static void end_filtering(struct filter_mail *m, const struct milter_verdict *v)
{
	struct passage *p = leave_passage(m);
	if (v->filter)
		m->by = v->filter;
	if (milter_chain_holds(m->chain))
		p->draft.envelope->held = true;
	if (v->outcome == MILTER_REFUSE)
		refuse_mail(p, v->reply);
	else if (v->outcome == MILTER_DISCARD)
		passage_discard(p, log_text("milter %s", v->filter));
	else if (v->outcome == MILTER_FAIL && m->unheard)
		alias_learn_refuse(p);
	else if (v->outcome == MILTER_FAIL)
		passage_fail(p, v->error);
	else
		passage_next(p);
}

/* Of its own mail, each recipient is a step, behind three. True: the verdict is there. */
static bool next_step(struct filter_mail *m)
{
	const struct envelope *e = m->passage->draft.envelope;
	union address here = {.in = {.sin_family = AF_INET}};
	uint32_t step = m->step++;
	char *path;
	bool there;
	here.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!m->owner.hostname)
		step = UINT32_MAX;
	if (step == 0)
		return milter_chain_connect(m->chain, "localhost", &here);
	if (step == 1)
		return milter_chain_helo(m->chain, m->owner.hostname);
	if (step == 2) {
		path = mem_printf("<%s>", e->sender);
		there = milter_chain_mail(m->chain, path, "");
	} else if (m->owner.hostname && step - 3 < e->nrcpt) {
		path = mem_printf("<%s>", e->rcpt[step - 3].address);
		there = milter_chain_rcpt(m->chain, path, "");
	} else {
		m->step = UINT32_MAX;
		return milter_chain_content(m->chain, &m->passage->draft, &m->changes.received);
	}
	free(path);
	return there;
}

/* One event has its verdict. */
static void go_on(struct filter_mail *m)
{
	bool there = true;
	while (there) {
		const struct milter_verdict *v = milter_chain_verdict(m->chain);
		if (v->outcome != MILTER_PASS || m->step == UINT32_MAX) {
			end_filtering(m, v);
			return;
		}
		there = next_step(m);
	}
}

static void filters_are_done(void *owner)
{
	struct filter_mail *m = owner;
	if (m->passage)
		go_on(m);
	else
		m->owner.done(m->owner.owner);
}

static void begin_stage(struct passage *p)
{
	struct filter_mail *m = passage_context(p);
	m->passage = p;
	p->at_work = m;
	if (!draft_open(&p->draft)) {
		leave_passage(m);
		if (errno == EMSGSIZE)
			passage_refuse(p, "552 5.3.4 the header of the message is too large");
		else
			passage_fail(p, errno);
		return;
	}
	m->id = m->owner.id ? m->owner.id : p->draft.id;
	m->changes.conf = p->conf;
	m->changes.heard = &m->aliases.heard;
	filter_changes_begin(&m->changes, &p->draft);
	m->step = 0;
	if (next_step(m))
		go_on(m);
}

/* Changes that the filter at work wanted are made, or can't be. */
static void filtering_is_settled(struct filter_mail *m, int error)
{
	if (error) {
		struct passage *p = leave_passage(m);
		milter_chain_end(m->chain);
		passage_fail(p, error);
	} else if (milter_chain_go_on(m->chain)) {
		go_on(m);
	}
}

static void passage_has_worked(struct passage *p)
{
	filtering_is_settled(passage_context(p), p->error);
}

static void learnt_added(void *owner, bool failed)
{
	struct filter_mail *m = owner;
	if (failed) {
		struct passage *p = leave_passage(m);
		milter_chain_end(m->chain);
		alias_learn_refuse(p);
		return;
	}
	int error = make_changes(m, m->adds);
	if (error != EINPROGRESS)
		filtering_is_settled(m, error);
}

static void cancel_passage(struct passage *p)
{
	struct filter_mail *m = p->at_work;
	leave_passage(m);
	alias_learn_end(&m->aliases);
	milter_chain_end(m->chain);
}

void filter_mail_init(struct filter_mail *m, struct milters *milters, struct conf *conf,
		      const struct filter_owner *owner)
{
	static const struct milter_edges edges = {.macro = macro_value,
						  .change = take_change,
						  .changed = filter_has_changed,
						  .unchanged = undo_changes,
						  .tell = log_filter,
						  .done = filters_are_done};
	*m = (struct filter_mail){.owner = *owner};
	m->chain = milter_chain_new(milters, conf, &edges, m);
}

void filter_mail_reset(struct filter_mail *m)
{
	milter_chain_end(m->chain);
	alias_learn_end(&m->aliases);
	filter_changes_reset(&m->changes);
	mem_free(&m->held_why);
	m->by = NULL;
	m->changed = m->unheard = false;
	m->id = 0;
}

void filter_mail_fini(struct filter_mail *m)
{
	/* The pool has it, and nobody will go on with it. */
	if (m->passage)
		m->passage->at_work = NULL;
	milter_chain_free(&m->chain);
	alias_learn_end(&m->aliases);
	filter_changes_fini(&m->changes);
	free(m->quarantine);
	free(m->held_why);
}

void filter_mail_stage(struct filter_mail *m, struct passage *p)
{
	static const struct passage_stage stage = {
		.begin = begin_stage, .worked = passage_has_worked, .cancel = cancel_passage};
	passage_add(p, &stage, m);
}
