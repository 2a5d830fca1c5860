/* tls_print.h - the output of `sluice tls`, as text, or as JSON: one object for each host.
 *
 * THREAD     Main.
 */
#ifndef CMD_LOCAL_TLS_PRINT_H
#define CMD_LOCAL_TLS_PRINT_H

#include "base/sts_ask.h"
#include "cmd/local/route_trace.h"
#include "cmd/local/tls_probe.h"

struct tls_told {	   /* of one host, or of a hop that has none */
	const char *asked; /* what the user typed */
	const struct route_way *way;
	const struct route_hop *hop;
	const struct resolve_host *host; /* NULL: it has none */
	const union address *address;
	struct verdict *barred;	       /* why it must not get mail, whatever it says; or NULL */
	const struct tls_probe *probe; /* NULL: it was not tried */
	const struct sts_ask *sts;     /* MTA-STS of the hop; NULL: it can have none */
};

bool tls_print_left_out(const struct tls_told *);
/* MTA-STS is enforced, and does not have this host. */

void tls_print_hop(struct buf *, const struct tls_told *); /* the head, as text */
void tls_print_host(struct buf *, const struct tls_told *);
void tls_print_json(struct buf *, const struct tls_told *);

#endif
