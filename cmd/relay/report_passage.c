/* SPDX-License-Identifier: ISC */
#include "cmd/relay/report_passage.h"

#include "base/log.h"
#include "dkim/dkim.h"

/* The envelope of what is not stored goes with the passage. */
static void on_passage_over(struct passage *p)
{
	struct spool_store *store = p->owner;
	if (p->end == PASSAGE_DONE) {
		draft_give(&p->draft, store);
		loop_post(spool_loop(p->draft.spool), &store->note);
	} else {
		log_held_free(&store->log);
		store->note.type = SPOOL_STORED;
		loop_post(store->reply_to, &store->note);
	}
	passage_free(&p);
}

void report_passage(struct conf *conf, struct thread_pool *pool, struct spool *spool,
		    struct spool_store *store)
{
	struct passage *p = passage_new(conf, NULL, pool, spool, store->id);
	p->draft.envelope = store->envelope;
	p->draft.content = store->content;
	p->draft.size = store->envelope->size;
	store->envelope = NULL;
	store->content = NULL;
	passage_add(p, &dkim_stage, NULL);
	if (passage_run(p, on_passage_over, store))
		on_passage_over(p);
}
