/* flow_sites.h - where the mail of a flow goes that is being worked on.
 *
 * OWNERSHIP  flow_sites_find() makes it. It refers to sites, and is good until they change.
 * THREAD     qmgr.
 * ERRORS     None.
 */
#ifndef QMGR_FLOW_SITES_H
#define QMGR_FLOW_SITES_H

#include <stdbool.h>

struct qmgr;
struct site;
struct flow_sites;

struct flow_sites *flow_sites_find(const struct qmgr *, const char *flow);
bool flow_sites_have(const struct flow_sites *, const struct site *);
/* Does some of it wait for that site, or is it on one of its connections? */

void flow_sites_free(struct flow_sites **); /* NULL is allowed */

#endif
