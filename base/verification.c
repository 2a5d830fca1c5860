/* SPDX-License-Identifier: ISC */
#include "base/verification.h"

#include "base/conf_value.h"
#include "base/mem.h"

#include <stdlib.h>

struct verify *verify_new(const char *address, const char *sender, struct loop *reply_to)
{
	struct verify *v = mailbox_note(sizeof *v, VERIFY_ASK);
	v->reply_to = reply_to;
	v->address = mem_strdup(address);
	v->sender = sender ? mem_strdup(sender) : NULL;
	return v;
}

void verify_free(struct verify **vp)
{
	struct verify *v = *vp;
	verdict_unref(v->verdict);
	conf_list_free(&v->servers);
	free(v->address);
	free(v->sender);
	free(v->from);
	free(v);
	*vp = NULL;
}
