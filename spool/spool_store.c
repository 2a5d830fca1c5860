/* SPDX-License-Identifier: ISC */
#include "spool/spool.h"

#include "base/log.h"

#include <stdlib.h>

void spool_store_free(struct spool_store **sp)
{
	struct spool_store *store = *sp;
	*sp = NULL;
	if (!store)
		return;
	spool_store_free(&store->with);
	envelope_free(&store->envelope);
	content_unref(store->content);
	spool_file_discard(&store->file);
	log_held_free(&store->log);
	free(store);
}
