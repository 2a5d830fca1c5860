/* suspend.h - sites and hosts to which the operator wants nothing delivered.
 *
 *	suspend --> connections end when what they carry is done
 *	        --> what waits for a site, and what comes for it, is deferred with that reason
 *	        --> a host counts as out: mail goes to the others, and with none it is deferred
 *
 * A name stays suspended until it is resumed, through restarts (destdb_text.h), whether or not the
 * scheduler knows such a site or host at the time.
 *
 * OWNERSHIP  The scheduler's table of names; sites and hosts only carry a mark.
 * THREAD     qmgr.
 */
#ifndef QMGR_SUSPEND_H
#define QMGR_SUSPEND_H

#include "qmgr/site.h"

struct suspended {
	char *name; /* as the operator wrote it */
	bool host;  /* of a host, not of a site */
	UT_hash_handle hh;
};

bool suspend_site_is(const struct site *, const char *name);
/* It is its name, or that behind its transport's. */

bool suspend_host_is(const struct host *, const char *name);
/* It is its name, its address, address:port, or name[address]:port. */

bool suspend_begin(struct qmgr *, const char *name, bool host);
/* False: it is suspended. */

bool suspend_end(struct qmgr *, const char *name);
/* False: nothing of this name is. */

bool suspend_covers_site(const struct qmgr *, const struct site *);
bool suspend_covers_host(const struct qmgr *, const struct host *);
/* For what is new to the scheduler. */

struct verdict *suspend_verdict(const char *what); /* "site" or "host" */
void suspend_free(struct qmgr *);

#endif
