/* suspend.h - sites, hosts, domains and flows that the operator has suspended.
 *
 *	suspend --> connections end when what they carry is done
 *	        --> what waits for a site, and what comes for it, is parked with that reason
 *	        --> a host counts as out: mail goes to the others, and with none it is parked
 *	        --> mail for a domain is deferred, and other mail of its site goes on
 *	resume  --> what waits in the queue because of it is due
 *
 * A name means the sites that have it, else the hosts, else the domain if mail for it was seen. One
 * that nothing is known of, in advance, means whatever will have it. A provider is all its sites.
 *
 * A flow is one by its own name, too; what is done with its mail is for the thread (qmgr/flow_mail.h).
 *
 * It stays suspended until it is resumed, or until a time that the operator has said, through restarts
 * (destdb_text.h). What ends by itself ends as if it were resumed.
 *
 * OWNERSHIP  destdb's table of names; sites and hosts only carry a mark.
 * THREAD     qmgr.
 */
#ifndef QMGR_DEST_SUSPEND_H
#define QMGR_DEST_SUSPEND_H

#include "base/internet_time.h"
#include "qmgr/dest/site.h"

/* X(kind, text) */
#define SUSPEND_KINDS(X)                                                                           \
	X(SITE, "site")                                                                            \
	X(HOST, "host")                                                                            \
	X(DOMAIN, "domain")                                                                        \
	X(PROVIDER, "provider")                                                                    \
	X(FLOW, "flow")                                                                            \
	X(ANY, "name")

enum suspend_kind {
#define X(kind, ...) SUSPEND_##kind,
	SUSPEND_KINDS(X)
#undef X
		SUSPEND_KIND_COUNT
};

struct suspended {
	char *name; /* as the operator wrote it */
	enum suspend_kind kind;
	int64_t until_ms; /* wall clock: it ends by itself; 0: not */
	bool recalled; /* in force before this start: of mail from then the queue does not know what it waits for */
	struct destdb *db;
	struct timer end; /* then, or sooner, since that clock may be set */
	UT_hash_handle hh;
};

const char *suspend_kind_name(enum suspend_kind);

bool suspend_site_is(const struct site *, const char *name);
/* The name is the site's, or that behind its transport's, with its source or without. */

bool suspend_host_is(const struct host *, const char *name);
/* The name is the host's address, in brackets or not, with its port or without. */

bool suspend_site_host_is(const struct site_host *, const char *name);
/* The name is what the site calls the host, with address, port, both or neither, or its host is meant. */

bool suspend_means_host(const struct host *, const char *name);
/* The same of any site that has it. */

bool suspend_covers_site(const struct destdb *, const struct site *);
bool suspend_covers_domain(const struct destdb *, const char *domain);
bool suspend_covers_site_host(const struct destdb *, const struct site_host *);
bool suspend_covers_host(const struct destdb *, const struct host *);
/* For what is new to the scheduler. */

const struct suspended *suspend_of_site_host(const struct destdb *, const struct site_host *);
/* By which name it is suspended; NULL: it is not. */

bool suspend_covers_flow(const struct destdb *, const char *flow);
int64_t suspend_flow_until_ms(const struct destdb *, const char *flow);

int64_t suspend_site_until_ms(const struct destdb *, const struct site *);
int64_t suspend_domain_until_ms(const struct destdb *, const char *domain);
/* Wall clock: when the last of those that cover it ends; 0: that is for the operator to say. */

const char *suspend_end_text(int64_t until_ms, char text[INTERNET_TIME_TEXT]);
/* "2026-03-01T10:20:30Z" */

struct verdict *suspend_verdict(const char *what, int64_t until_ms);
/* what: "site", "host", "domain" or "flow"; until_ms: 0, nobody knows. */

bool suspend_verdict_is(const struct verdict *); /* of a site or host; NULL: it is not */

bool suspend_means_sites(const struct suspended *);
bool suspend_means_hosts(const struct suspended *);
bool suspend_means_domains(enum suspend_kind);

struct suspended *suspend_find(const struct destdb *, const char *name, enum suspend_kind);
/* NULL: there is none. */

void suspend_forget(struct destdb *, struct suspended *); /* and nothing else */
void suspend_free(struct destdb *);

/* suspending.c */

bool suspend_begin(struct destdb *, const char *name, enum suspend_kind, int64_t until_ms);
/* until_ms: wall clock; 0: until it is resumed. False: it was suspended, and what was said last holds; or the time is
 * over. A name that means something else than before is suspended as that, and no more as what it meant. */

bool suspend_recall(struct destdb *, const char *name, enum suspend_kind, int64_t until_ms);
/* As it was said before the start. False: its time was over meanwhile, and it ends now, or goes on in another spelling. */

bool suspend_end(struct destdb *, const char *name);
bool suspend_end_one(struct destdb *, const char *name, enum suspend_kind);
/* False: nothing of this name is. The latter: of a kind that is named apart, a provider or a flow. */

#endif
