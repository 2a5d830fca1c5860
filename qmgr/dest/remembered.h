/* remembered.h - how wide the window of a site was, its pace or that of a provider, and until when its source is refused there, for when
 * it is known again.
 *
 * A site is collected when nothing is left to do for it, and the process ends; what its window had
 * found out holds for a day, and that a source is refused for as long again as it was to be.
 *
 * OWNERSHIP  destdb's table, by the keys of sites, which have a blank, and the names of providers, which have none.
 * THREAD     qmgr.
 * ERRORS     None: what is too much is forgotten.
 */
#ifndef QMGR_DEST_REMEMBERED_H
#define QMGR_DEST_REMEMBERED_H

#include "qmgr/dest/site.h"

enum { REMEMBERED_MS = 24 * 3600000, REMEMBERED_MAX = 10000 };

struct remembered {
	char *key; /* of the site, or provider */
	bool mixed; /* read of a version in which relays had the same key as hosts of their name: of either */
	int concurrency;
	int64_t at_ms;		      /* wall clock */
	double pace;		      /* deliveries a second that its hosts let through; 0: any */
	int64_t since_ms, refused_ms; /* wall clock: of the first and the last refusal */
	struct verdict *why;	      /* what was said then; or NULL */
	int64_t shut_ms;	      /* wall clock: its source is refused until then, */
	int64_t shut_for_ms;	      /* which is so long; 0: it is not */
	UT_hash_handle hh;
};

void remembered_keep(const struct site *);
/* The site goes, or is to be written down; what it is not any more is forgotten. */

void remembered_recall(struct site *);			/* it is new: its window is as it was */
void remembered_keep_provider(const struct provider *); /* the same, of its pace */
void remembered_recall_provider(struct provider *);
bool remembered_is_provider(const struct remembered *);

struct remembered *remembered_add(struct destdb *, const char *key, int concurrency, int64_t at_ms);
/* Of this key: concurrency 0 is not known. What it has of a pace and a source is for the caller. */

void remembered_age(struct destdb *);
/* Records that are worth nothing any more are forgotten. */

int remembered_forget_site(struct destdb *, const char *name);
/* Of this name or key, from any source where it names none: so many. */

void remembered_forget_provider(struct destdb *, const char *name); /* of all sources */
void remembered_free(struct destdb *);

#endif
