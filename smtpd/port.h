/* port.h - one listening address: its sockets, and its listener in the configuration.
 *
 * Main keeps a descriptor of each socket, and gives each worker another one of the same socket. So
 * the sockets outlive the workers, and can be handed to the program that takes our place: whoever
 * connects meanwhile waits in the kernel.
 *
 * New sockets are one a worker, with SO_REUSEPORT: the kernel shares connections out. Inherited ones
 * may be fewer or more; a worker may have several, and several workers one.
 *
 * OWNERSHIP  smtpd.c owns ports and sections; a section stays to the end, for its sessions.
 * THREAD     Main. Of a section, connections is shared.
 * ERRORS     port_new() returns NULL and says why.
 */
#ifndef SMTPD_PORT_H
#define SMTPD_PORT_H

#include "smtpd/inherited.h"
#include "smtpd/service.h"

/* A listener of the configuration, by its title; it may come and go, and come again. */
struct section {
	struct section *next;
	char *title;
	int number;
	atomic_long connections; /* in all workers */
};

struct port {
	struct port *next;
	int id;		       /* never given twice */
	union address address; /* as configured */
	struct section *section;
	bool wanted; /* by the configuration that is looked at */
	bool own;    /* bound by us: nobody else has these sockets */
	int nfd;
	int *fd;
};

struct port *port_new(const char *address, int workers, struct inherited *, struct buf *error);
/* inherited may be NULL. */

void port_free(struct port **);
/* Sockets of our own cease to listen at once, whatever descriptors workers still have of them, so
 * that the address can be had again. */

int port_share(const struct port *, int workers, int worker, int k);
/* A descriptor of the k-th socket of this worker; -1: it has no more of them. */

#endif
