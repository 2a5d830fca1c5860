/* site_domains.h - the domains whose mail was seen to go to a site by relays: some by name, all by number.
 *
 *	a recipient gets its entry --> the name of its domain, for `sluice dest` and the page
 *
 * All mail of a route with relays shares a next hop, which has no domain in its key as one by MX has. Named are
 * the first SITE_DOMAINS_NAMED; told apart, by a hash, no more than SITE_DOMAINS_MOST: 64 KB a site.
 *
 * OWNERSHIP  A site has its own, or none.
 * THREAD     qmgr.
 * ERRORS     None.
 */
#ifndef QMGR_DEST_SITE_DOMAINS_H
#define QMGR_DEST_SITE_DOMAINS_H

#include <stdint.h>

enum { SITE_DOMAINS_NAMED = 100, SITE_DOMAINS_MOST = 4096 };

struct site_domains {
	int n; /* seen; SITE_DOMAINS_MOST: that many, or more */
	int nname;
	char *name[SITE_DOMAINS_NAMED];
	uint32_t room;	/* of the hashes: a power of two, at most half of it used */
	uint64_t *hash; /* 0: free */
};

void site_domains_add(struct site_domains **, const char *domain);
/* Makes it where it is NULL. */

void site_domains_free(struct site_domains **);

#endif
