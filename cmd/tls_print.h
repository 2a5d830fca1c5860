/* tls_print.h - what `sluice tls` tells, as text, or as JSON: one object a host.
 *
 * THREAD     Main.
 */
#ifndef CMD_TLS_PRINT_H
#define CMD_TLS_PRINT_H

#include "cmd/route_trace.h"
#include "cmd/tls_probe.h"

struct tls_told {	   /* of one host, or of a hop that has none */
	const char *asked; /* what the user typed */
	const struct route_way *way;
	const struct route_hop *hop;
	const struct resolve_host *host; /* NULL: it has none */
	const union address *address;
	struct verdict *barred;	       /* why it must not get mail, whatever it says; or NULL */
	const struct tls_probe *probe; /* NULL: it was not tried */
};

void tls_print_hop(struct buf *, const struct tls_told *); /* the head, as text */
void tls_print_host(struct buf *, const struct tls_told *);
void tls_print_json(struct buf *, const struct tls_told *);

#endif
