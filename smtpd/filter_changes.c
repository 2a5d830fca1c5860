/* SPDX-License-Identifier: ISC */
#include "smtpd/filter_changes.h"

#include "base/address_set.h"
#include "base/mailaddr.h"
#include "base/log.h"
#include "base/mem.h"
#include "smtpd/addressing.h"
#include "smtpd/field_order.h"
#include "stages/budget.h"
#include "smtpd/param.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct filter_change {
	enum milter_change_kind kind;
	uint32_t index;
	char *text[2];
	bool leading_space;
};

static void put_body(void *owner, const char *bytes, size_t len)
{
	struct filter_changes *f = owner;
	draft_body_put(f->draft, bytes, len);
}

void filter_changes_reset(struct filter_changes *f)
{
	for (int i = 0; i < f->ngiven; i++) {
		free(f->given[i].address);
		alias_added_fini(&f->given[i].what);
	}
	mem_free(&f->given);
	f->ngiven = 0;
	f->draft = NULL;
}

static void forget_list(struct filter_changes *f)
{
	for (int i = 0; i < f->n; i++) {
		free(f->change[i].text[0]);
		free(f->change[i].text[1]);
	}
	mem_free(&f->change);
	f->n = 0;
	f->bytes = 0;
}

void filter_changes_forget(struct filter_changes *f)
{
	if (f->body)
		draft_body_drop(f->draft);
	f->body = false;
	forget_list(f);
}

void filter_changes_fini(struct filter_changes *f)
{
	forget_list(f);
	filter_changes_reset(f);
}

void filter_changes_given(struct filter_changes *f, const char *address, struct alias_added *what)
{
	f->given = mem_realloc(f->given, (size_t)(f->ngiven + 1) * sizeof *f->given);
	f->given[f->ngiven++] = (struct filter_given){mem_strdup(address), *what, 0};
	*what = (struct alias_added){0};
}

void filter_changes_begin(struct filter_changes *f, struct draft *d)
{
	assert(f->n == 0 && !f->body);
	f->draft = d;
	f->received = -1;
	for (int i = 0; i < d->nfield && f->received < 0; i++)
		if (draft_field_is(&d->field[i], "Received"))
			f->received = i;
}

/* With angle brackets or without. */
static bool parse_address(const char *text, struct mailaddr *a)
{
	char *path = text[0] == '<' ? mem_strdup(text) : mem_printf("<%s>", text);
	const char *at = path;
	bool good = mailaddr_path(&at, true, a) == MAILADDR_OK && *at == '\0';
	free(path);
	return good;
}

static bool take_sender_parameter(const struct param *p, struct envelope *e)
{
	uint64_t size;
	if (param_is(p, "SIZE"))
		return param_number(p->value, &size);
	if (param_is(p, "AUTH"))
		return true;
	if (param_is(p, "BODY"))
		return param_body(p->value, &e->body);
	if (param_is(p, "RET"))
		return param_ret(p->value, &e->ret);
	if (param_is(p, "SMTPUTF8") && !p->value) {
		e->smtputf8 = true;
		return true;
	}
	if (param_is(p, "REQUIRETLS") && !p->value) {
		e->tls = ENVELOPE_TLS_REQUIRED;
		return true;
	}
	if (!param_is(p, "ENVID") || !param_envid(p->value))
		return false;
	free(e->envid);
	e->envid = mem_strdup(p->value);
	return true;
}

static bool take_sender_parameters(const char *text, struct envelope *e)
{
	char *copy = mem_printf(" %s", text);
	struct param p;
	enum param_result result;
	bool good = true;
	param_init(&p, copy);
	while ((result = param_next(&p)) == PARAM_NEXT)
		good = good && take_sender_parameter(&p, e);
	free(copy);
	return good && result == PARAM_END;
}

/* orcpt is the caller's to free. */
static bool take_recipient_parameters(const char *text, uint8_t *notify, char **orcpt)
{
	char *copy = mem_printf(" %s", text);
	struct param p;
	enum param_result result;
	bool good = true;
	*notify = 0;
	*orcpt = NULL;
	param_init(&p, copy);
	while ((result = param_next(&p)) == PARAM_NEXT) {
		if (param_is(&p, "NOTIFY")) {
			good = good && param_notify(p.value, notify);
		} else if (param_is(&p, "ORCPT") && !*orcpt && param_orcpt(p.value)) {
			*orcpt = mem_strdup(p.value);
		} else {
			good = false;
		}
	}
	free(copy);
	return good && result == PARAM_END;
}

static bool good_recipient(const struct milter_answer *a)
{
	uint8_t notify;
	char *orcpt;
	bool good = take_recipient_parameters(a->text[1], &notify, &orcpt);
	free(orcpt);
	return good;
}

/* With its parameters, which may say that it is beyond ASCII. */
static bool good_sender(const struct filter_changes *f, const struct milter_answer *a)
{
	struct mailaddr address;
	struct envelope *said = envelope_new();
	said->smtputf8 = f->draft->envelope->smtputf8;
	bool good = parse_address(a->text[0], &address) &&
		    (!address.text[0] || address.text[address.at]) &&
		    take_sender_parameters(a->text[1], said) && (!address.utf8 || said->smtputf8);
	envelope_free(&said);
	return good;
}

static const char *check_change(const struct filter_changes *f, const struct milter_answer *a)
{
	struct mailaddr address;
	bool good;
	switch (a->change) {
	case MILTER_CHANGE_TO_SENDER:
		return good_sender(f, a) ? NULL : "the sender it wants is none";
	case MILTER_CHANGE_TO_RECIPIENT_ADD:
	case MILTER_CHANGE_TO_RECIPIENT_ADD_ARGS:
		good = parse_address(a->text[0], &address) && address.text[address.at] &&
		       good_recipient(a) && (!address.utf8 || f->draft->envelope->smtputf8);
		return good ? NULL : "the recipient it wants is none";
	default:
		return NULL;
	}
}

static const char *add_body(struct filter_changes *f, const struct milter_answer *a)
{
	if (!f->body) {
		draft_body_begin(f->draft);
		f->draft->body->spills = budget_spent(f->conf);
		f->lines = (struct content_in){
			.sink = put_body,
			.owner = f,
			.normalise = true,
			.size_limit = (uint64_t)f->conf->message_size_limit,
		};
	}
	f->body = true;
	content_in_feed(&f->lines, a->body, a->body_len);
	return content_in_refused(&f->lines) ? "the body it wants is too large" : NULL;
}

const char *filter_changes_add(struct filter_changes *f, const struct milter_answer *a)
{
	if (a->change == MILTER_CHANGE_TO_BODY)
		return add_body(f, a);
	f->bytes += sizeof *f->change + strlen(a->text[0]) + strlen(a->text[1]);
	const char *wrong =
		f->bytes > FILTER_CHANGES_BYTES ? "it changes too much" : check_change(f, a);
	if (wrong)
		return wrong;
	f->change = mem_room(f->change, (size_t)f->n, sizeof *f->change);
	f->change[f->n++] =
		(struct filter_change){.kind = a->change,
				       .index = a->index,
				       .text = {mem_strdup(a->text[0]), mem_strdup(a->text[1])},
				       .leading_space = a->leading_space};
	return NULL;
}

/* Its lines end with LF, or with CRLF. Behind the first, those that have only blanks are left out: some reader takes them
 * for the end of the header. */
static char *field_text(const struct filter_change *c)
{
	struct buf text = {0};
	buf_puts(&text, c->text[0]);
	buf_puts(&text, c->leading_space ? ":" : ": ");
	for (const char *at = c->text[1]; *at;) {
		size_t len = strcspn(at, "\r\n");
		bool first = at == c->text[1];
		if (!first && strspn(at, " \t") < len)
			buf_puts(&text, "\r\n");
		if (first || strspn(at, " \t") < len)
			buf_append(&text, at, len);
		at += len;
		at += strspn(at, "\r\n");
	}
	buf_puts(&text, "\r\n");
	return buf_steal(&text, NULL);
}

static void insert_field(struct field_order *o, int at, const struct filter_change *c)
{
	char *text = field_text(c);
	field_order_insert(o, at, &(struct draft_field){text, strlen(text), text});
}

static void change_field(struct field_order *o, const struct filter_change *c)
{
	int at = field_order_find(o, c->text[0], c->index);
	if (at >= 0)
		free(field_order_remove(o, at).own);
	if (*c->text[1])
		insert_field(o, at >= 0 ? at : field_order_len(o), c);
}

static void change_sender(struct filter_changes *f, const struct filter_change *c)
{
	struct envelope *e = f->draft->envelope;
	struct mailaddr a;
	parse_address(c->text[0], &a);
	free(e->sender);
	e->sender = mem_strdup(a.text);
	take_sender_parameters(c->text[1], e);
}

/* Where the filter says nothing of reports, that is no wish for them: RFC 3461 4.1 has those left out whom the sender
 * wants to hear nothing of, and Postfix and sendmail keep what is there, too. */
static void add_recipient(struct filter_changes *f, const struct filter_change *c, int turn)
{
	struct mailaddr a;
	uint8_t notify;
	char *orcpt;
	struct envelope *e = f->draft->envelope;
	struct alias_added added = {0};
	parse_address(c->text[0], &a);
	take_recipient_parameters(c->text[1], &notify, &orcpt);
	added.unsaid = notify == 0;
	enum response why =
		addressing_recipient(f->conf, f->heard, e, a.text, notify, orcpt, &added);
	if (why == RESPONSE_OK) {
		filter_changes_given(f, a.text, &added);
		f->given[f->ngiven - 1].turn = turn;
	} else /* the tables are at fault: nobody but their owner can do anything about it */
		log_event(LOG_LEVEL_ERROR, "filter", "id", log_id(f->draft->id), "action",
			  "recipients", "to", a.text, "reason", response_reason(why), NULL);
	alias_added_fini(&added);
	free(orcpt);
}

/* Addresses that are deleted, and with which change for the last time. */
static struct address_set *deletions_of(const struct filter_changes *f)
{
	struct address_set *deleted = NULL;
	struct mailaddr a;
	for (int i = 0; i < f->n; i++)
		if (f->change[i].kind == MILTER_CHANGE_TO_RECIPIENT_DELETE &&
		    parse_address(f->change[i].text[0], &a))
			address_set_number(&deleted, a.text, i + 1);
	return deleted;
}

static uint32_t count_of(const struct alias_added *a)
{
	return a->to - a->from + a->nagain;
}

/* Of those that it stands for. */
static uint32_t place_of(const struct alias_added *a, uint32_t k)
{
	uint32_t new = a->to - a->from;
	return k < new ? a->from + k : a->again[k - new];
}

/* Somebody who is given by several names goes if each of them does. */
static void spare_given(const struct filter_given *given, struct address_set *deleted,
			const struct envelope *e, bool *gone)
{
	bool all = address_set_number_of(&deleted, given->address) > given->turn;
	for (uint32_t k = 0; k < count_of(&given->what); k++) {
		uint32_t i = place_of(&given->what, k);
		bool goes = all && !e->rcpt[i].copy;
		if (!goes && address_set_number_of(&deleted, e->rcpt[i].address) <= given->turn)
			gone[i] = false;
	}
}

/* Which recipients are deleted after they were added, by either name. */
static void mark_deleted(const struct filter_changes *f, struct address_set *deleted, bool *gone)
{
	const struct envelope *e = f->draft->envelope;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		gone[i] = address_set_number_of(&deleted, e->rcpt[i].address) > 0;
	for (int g = 0; g < f->ngiven; g++)
		for (uint32_t k = 0; k < count_of(&f->given[g].what); k++) {
			assert(place_of(&f->given[g].what, k) < e->nrcpt);
			gone[place_of(&f->given[g].what, k)] = true;
		}
	for (int g = 0; g < f->ngiven; g++)
		spare_given(&f->given[g], deleted, e, gone);
}

/* A message that nobody gets is not copied either. */
static void mark_lone_copies(const struct envelope *e, bool *gone)
{
	bool lone = true;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		lone = lone && (gone[i] || e->rcpt[i].copy);
	for (uint32_t i = 0; i < e->nrcpt; i++)
		gone[i] = gone[i] || lone;
}

/* place: of each recipient among those that stay, and behind the last how many these are. */
static void find_places(const struct envelope *e, const bool *gone, uint32_t *place)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		place[i] = n;
		n += !gone[i];
	}
	place[e->nrcpt] = n;
}

static void move_given(struct alias_added *a, const bool *gone, const uint32_t *place)
{
	uint32_t n = 0;
	a->from = place[a->from];
	a->to = place[a->to];
	for (uint32_t k = 0; k < a->nagain; k++)
		if (!gone[a->again[k]])
			a->again[n++] = place[a->again[k]];
	a->nagain = n;
}

/* Before recipients are added, and after: who is there already is not added once more. */
static void delete_recipients(struct filter_changes *f, struct address_set *deleted, bool last)
{
	struct envelope *e = f->draft->envelope;
	bool *gone = mem_zalloc(e->nrcpt + 1);
	uint32_t *place = mem_zalloc((e->nrcpt + 1) * sizeof *place);
	mark_deleted(f, deleted, gone);
	if (last)
		mark_lone_copies(e, gone);
	find_places(e, gone, place);
	envelope_remove(e, gone);
	for (int g = 0; g < f->ngiven; g++)
		move_given(&f->given[g].what, gone, place);
	free(place);
	free(gone);
}

static void make_change(struct filter_changes *f, int turn, struct field_order *o, struct buf *what)
{
	static const char *const texts[] = {
		[MILTER_CHANGE_TO_HEADER_ADD] = "header",
		[MILTER_CHANGE_TO_HEADER_INSERT] = "header",
		[MILTER_CHANGE_TO_HEADER_CHANGE] = "header",
		[MILTER_CHANGE_TO_BODY] = "body",
		[MILTER_CHANGE_TO_SENDER] = "sender",
		[MILTER_CHANGE_TO_RECIPIENT_ADD] = "recipients",
		[MILTER_CHANGE_TO_RECIPIENT_ADD_ARGS] = "recipients",
		[MILTER_CHANGE_TO_RECIPIENT_DELETE] = "recipients",
		[MILTER_CHANGE_TO_QUARANTINE] = "hold",
	};
	const struct filter_change *c = &f->change[turn - 1];
	int n = o ? field_order_len(o) : 0, at = c->index < (uint32_t)n ? (int)c->index : n;
	if (!strstr(buf_cstr(what), texts[c->kind]))
		buf_printf(what, "%s%s", buf_len(what) ? ", " : "", texts[c->kind]);
	switch (c->kind) {
	case MILTER_CHANGE_TO_HEADER_ADD:
		insert_field(o, n, c);
		break;
	case MILTER_CHANGE_TO_HEADER_INSERT:
		insert_field(o, at, c);
		break;
	case MILTER_CHANGE_TO_HEADER_CHANGE:
		change_field(o, c);
		break;
	case MILTER_CHANGE_TO_SENDER:
		change_sender(f, c);
		break;
	case MILTER_CHANGE_TO_RECIPIENT_DELETE:
		break;
	case MILTER_CHANGE_TO_QUARANTINE:
		f->draft->envelope->held = true;
		break;
	default:
		add_recipient(f, c, turn);
	}
}

static bool changes_header(const struct filter_changes *f)
{
	for (int i = 0; i < f->n; i++)
		if (f->change[i].kind == MILTER_CHANGE_TO_HEADER_ADD ||
		    f->change[i].kind == MILTER_CHANGE_TO_HEADER_INSERT ||
		    f->change[i].kind == MILTER_CHANGE_TO_HEADER_CHANGE)
			return true;
	return false;
}

bool filter_changes_known(const struct filter_changes *f)
{
	struct mailaddr a;
	bool known = true;
	for (int i = 0; i < f->n; i++) {
		bool adds = f->change[i].kind == MILTER_CHANGE_TO_RECIPIENT_ADD ||
			    f->change[i].kind == MILTER_CHANGE_TO_RECIPIENT_ADD_ARGS;
		if (adds && parse_address(f->change[i].text[0], &a) &&
		    !addressing_recipient_known(f->conf, f->heard, a.text))
			known = false;
	}
	return known;
}

bool filter_changes_make(struct filter_changes *f, struct buf *what)
{
	bool body = f->body;
	struct draft *d = f->draft;
	struct field_order *o = NULL;
	if (changes_header(f))
		o = field_order_new(d->field, d->nfield, f->received, f->n);
	struct address_set *deleted = deletions_of(f);
	if (deleted)
		delete_recipients(f, deleted, false);
	for (int i = 0; i < f->n; i++)
		make_change(f, i + 1, o, what);
	if (deleted)
		delete_recipients(f, deleted, true);
	address_set_free(&deleted);
	for (int g = 0; g < f->ngiven; g++)
		f->given[g].turn = 0; /* to the next filter they are like the others */
	if (o) {
		field_order_put(o, draft_replace_fields(d, field_order_len(o)));
		f->received = field_order_unnamed(o);
		field_order_free(&o);
	}
	if (body) {
		content_in_finish(&f->lines);
		buf_printf(what, "%sbody", buf_len(what) ? ", " : "");
	}
	f->body = false;
	forget_list(f);
	return body;
}
