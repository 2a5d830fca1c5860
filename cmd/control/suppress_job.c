/* SPDX-License-Identifier: ISC */
#include "cmd/control/suppress_job.h"

#include "base/magic.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/control/order_job.h"
#include "cmd/text/suppress_print.h"

#include <stdlib.h>
#include <string.h>

enum { SUPPRESS_JOB_MAGIC = 0x5bb20b01 };

struct suppress_job {
	unsigned magic;
	struct request *request; /* NULL: the client has gone */
	char *const *unkept;
	bool json;
};

static bool find_order(const char *word, enum suppress_order *op)
{
	static const char *const words[] = {
		[SUPPRESS_LIST] = "list", [SUPPRESS_ADD] = "add", [SUPPRESS_FORGET] = "forget"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(words[i], word) == 0) {
			*op = (enum suppress_order)i;
			return true;
		}
	return false;
}

/* "@domain" is all that lies there. */
static bool is_address(const char *text, enum suppress_order op)
{
	struct mailaddr a;
	char *one = mem_printf("%s%s", *text == '@' && op != SUPPRESS_ADD ? "any" : "", text);
	bool good =
		mailaddr_mailbox(one, strlen(one), true, &a) == MAILADDR_OK && a.text[a.at] == '@';
	free(one);
	return good;
}

void suppress_job_start(struct request *r, const struct order_job_asks *asks)
{
	enum suppress_order op = SUPPRESS_LIST;
	bool json = r->argc == 4 && strcmp(r->argv[3], "--json") == 0;
	bool formed = (r->argc == 3 || json) && find_order(r->argv[1], &op);
	bool all = formed && op == SUPPRESS_LIST && !*r->argv[2];
	if (!formed || (!all && !is_address(r->argv[2], op))) {
		control_complain(r, "sluice: suppress: that is no address\n");
		control_finish(r, STATUS_USAGE);
		return;
	}
	struct suppress_job *j = mem_zalloc(sizeof *j);
	j->magic = SUPPRESS_JOB_MAGIC;
	j->unkept = asks->unkept;
	j->json = json;
	control_lend(r, &j->request);
	loop_post(asks->qmgr,
		  &suppress_command_new(op, all ? NULL : r->argv[2], asks->loop, j)->note);
}

static int say_answer(struct request *r, const struct suppress_command *c,
		      const struct suppress_job *j)
{
	struct buf out = {0};
	if (c->off) {
		control_complain(r, "sluice: every setting suppress is 0s: nobody is refused\n");
		return STATUS_REFUSED;
	}
	if (c->address && c->found == 0) {
		control_complain(r, "sluice: %s: not suppressed\n", c->address);
		return STATUS_REFUSED;
	}
	(j->json		  ? suppress_print_json
	 : c->op == SUPPRESS_LIST ? suppress_print_list
				  : suppress_print_done)(&out, c);
	control_say(r, buf_data(&out), buf_len(&out));
	buf_fini(&out);
	bool kept = c->op == SUPPRESS_LIST || order_job_is_written(r, *j->unkept);
	return kept ? STATUS_DONE : STATUS_REFUSED;
}

void suppress_job_answer(struct suppress_command *c)
{
	struct suppress_job *j = c->owner;
	magic_check(j, SUPPRESS_JOB_MAGIC);
	if (j->request)
		control_finish(j->request, say_answer(j->request, c, j));
	magic_free(j);
	suppress_command_free(&c);
}
