/* service.h - the settings of one listener, as its sessions see them.
 *
 * A reload makes a new service; sessions keep the one that they began with.
 *
 * OWNERSHIP  Counted; holds a reference on the configuration.
 * THREAD     service_new(): main. The rest: any; the count is atomic and nothing else changes.
 * ERRORS     service_new() returns NULL: a certificate that can't be read, and error says which.
 */
#ifndef SMTPD_SERVICE_H
#define SMTPD_SERVICE_H

#include "base/conf.h"
#include "base/netlist.h"

#include <openssl/types.h>

struct service {
	atomic_int refs;
	struct conf *conf;
	const struct conf_listener *listener; /* in conf */
	const char *hostname;		      /* in conf */
	SSL_CTX *tls;			      /* NULL: no TLS here */
	struct netlist networks;	      /* that may relay */
	struct netlist xclient;		      /* that may say XCLIENT */
	bool proxied;			      /* each connection begins with a PROXY header, */
	struct netlist proxies;		      /* and comes from one of these */
};

struct service *service_new(struct conf *, const struct conf_listener *, struct buf *error);
struct service *service_ref(struct service *);
void service_unref(struct service *); /* NULL is allowed */

#endif
