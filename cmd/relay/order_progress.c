/* SPDX-License-Identifier: ISC */
#include "cmd/relay/order_progress.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

void order_progress_begun(struct order_progress *p)
{
	p->under_way++;
}

void order_progress_ended(struct order_progress *p)
{
	assert(p->under_way > 0);
	p->under_way--;
}

void order_progress_said(struct order_progress *p, const char *text)
{
	free(p->text);
	p->text = mem_strdup(text);
}

char *order_progress_take(struct order_progress *p, bool kept)
{
	if (p->under_way > 0 || !kept)
		return NULL;
	char *text = p->text;
	p->text = NULL;
	return text;
}

void order_progress_fini(struct order_progress *p)
{
	mem_free(&p->text);
}
