/* queue_sites.h - does a recipient's mail go to a site that was named?
 *
 *	its route, by the transport of its flow --> named by the configuration:  is it that name?
 *	          --> by MX:  is its domain a next hop that leads there (qmgr says so), or
 *	                      was the last attempt at one of the hosts in the site's name?
 *
 * So it can be told of mail that was never tried, and without a relay of mail that was.
 *
 * OWNERSHIP  The names are the caller's, and outlive it, as does the configuration.
 * THREAD     One.
 * ERRORS     None: of a site that nobody knows there is no mail.
 */
#ifndef CMD_TEXT_QUEUE_SITES_H
#define CMD_TEXT_QUEUE_SITES_H

#include "base/conf.h"
#include "base/envelope.h"
#include "qmgr/dest_command.h"

struct queue_sites;

struct queue_sites *queue_sites_new(const struct conf *, const char *const *name, int n);
void queue_sites_free(struct queue_sites **);

void queue_sites_learn(struct queue_sites *, const struct dest_command *);
/* One of the names, as qmgr knows it. */

bool queue_sites_lead(struct queue_sites *, const struct envelope *, const struct recipient *);

#endif
