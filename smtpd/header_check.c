/* SPDX-License-Identifier: ISC */
#include "smtpd/header_check.h"

#include "base/author_list.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/users.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 200 }; /* bytes of what a client has sent, or of its login, in a reply */

bool header_check_wanted(const struct conf *c, const char *login)
{
	return login && c->sender_header == SENDER_HEADER_REJECT && c->sender_logins.n > 0;
}

static bool may_send_as(const struct passage *p, const char *text)
{
	struct mailaddr a;
	return mailaddr_mailbox(text, strlen(text), true, &a) == MAILADDR_OK && a.text[a.at] &&
	       users_may_send(p->conf, p->login, a.text);
}

/* A reply is ASCII for whoever has not asked for more. */
static void put_shown(struct buf *to, const char *text)
{
	for (size_t i = 0; text[i] && i < SHOWN; i++)
		buf_printf(to, "%c", text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
}

static void judge_authors(const struct passage *p, const char *name, const struct address_list *l,
			  struct buf *why)
{
	if (l->n == 0)
		buf_printf(why, "%s names nobody", name);
	for (int i = 0; i < l->n && buf_len(why) == 0; i++) {
		if (may_send_as(p, l->item[i]))
			continue;
		buf_puts(why, "The login ");
		put_shown(why, p->login);
		buf_puts(why, " may not send as ");
		put_shown(why, l->item[i]);
		buf_printf(why, ", which is in %s", name);
	}
}

static void check_field(const struct passage *p, const struct draft_field *f, const char *name,
			struct buf *why)
{
	struct address_list list = {0};
	struct buf fault = {0};
	const char *value = (const char *)memchr(f->text, ':', f->len) + 1;
	if (author_list(value, (size_t)(f->text + f->len - value), &list, &fault))
		judge_authors(p, name, &list, why);
	else
		buf_printf(why, "%s can not be read: %s", name, buf_cstr(&fault));
	address_list_free(&list);
	buf_fini(&fault);
}

static void check_header(const struct passage *p, struct buf *why)
{
	static const char *const names[] = {"From", "Sender"};
	const struct draft *d = &p->draft;
	bool seen[sizeof names / sizeof *names] = {false};
	for (int i = 0; i < d->nfield; i++)
		for (size_t k = 0; k < sizeof names / sizeof *names && buf_len(why) == 0; k++) {
			if (!draft_field_is(&d->field[i], names[k]))
				continue;
			if (seen[k])
				buf_printf(why, "%s stands there twice", names[k]);
			else
				check_field(p, &d->field[i], names[k], why);
			seen[k] = true;
		}
	if (buf_len(why) == 0 && d->broken)
		buf_puts(why, "A line of the header is no field");
	if (buf_len(why) == 0 && !seen[0])
		buf_printf(why, "%s is missing", names[0]);
}

static void begin_stage(struct passage *p)
{
	struct buf why = {0};
	if (!draft_open(&p->draft)) {
		if (errno == EMSGSIZE)
			passage_refuse(p, "552 5.3.4 The header is too long");
		else
			passage_fail(p, errno);
		return;
	}
	check_header(p, &why);
	if (buf_len(&why) > 0) {
		char *reply = mem_printf("550 5.7.1 %s", buf_cstr(&why));
		buf_fini(&why);
		passage_refuse(p, reply);
		free(reply);
	} else {
		passage_next(p);
	}
}

const struct passage_stage header_check_stage = {.begin = begin_stage};
