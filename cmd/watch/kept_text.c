/* SPDX-License-Identifier: ISC */
#include "cmd/watch/kept_text.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

enum { AGAIN_MS = 5000 };

static void forget_text(struct kept_text *k)
{
	mem_free(&k->text);
}

static void try_again(void *owner)
{
	struct kept_text *k = owner;
	assert(k->text);
	if (kept_file_try(k->file, k->spool, k->text))
		forget_text(k);
	else
		loop_timer_in(k->loop, &k->again, AGAIN_MS);
}

void kept_text_init(struct kept_text *k, const struct kept_file *f, const char *spool,
		    struct loop *loop)
{
	*k = (struct kept_text){.file = f, .spool = mem_strdup(spool), .loop = loop};
	timer_init(&k->again, try_again, k);
}

void kept_text_write(struct kept_text *k, const char *text)
{
	assert(k->loop);
	forget_text(k);
	timer_stop(&k->loop->timers, &k->again);
	if (kept_file_write(k->file, k->spool, text))
		return;
	k->text = mem_strdup(text);
	loop_timer_in(k->loop, &k->again, AGAIN_MS);
}

void kept_text_end(struct kept_text *k)
{
	if (k->text)
		kept_file_write(k->file, k->spool, k->text);
}

void kept_text_fini(struct kept_text *k)
{
	if (k->loop)
		timer_stop(&k->loop->timers, &k->again);
	forget_text(k);
	mem_free(&k->spool);
}
