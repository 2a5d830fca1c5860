/* inherited.h - listening sockets that the program was started with.
 *
 *	systemd, or the program that ran before us -- LISTEN_FDS --> [ table ] -- by address --> port.c
 *
 * Several may have one address: then each has connections waiting that only it can accept.
 *
 * OWNERSHIP  Sockets that nobody has taken are closed by inherited_fini().
 * THREAD     Main.
 * ERRORS     What is no listening socket of an Internet address is closed, and logged.
 * SEE        sd_listen_fds(3).
 */
#ifndef SMTPD_INHERITED_H
#define SMTPD_INHERITED_H

#include "base/resolve.h"

#include <stdbool.h>

struct inherited_socket {
	int fd; /* -1: taken */
	union address address;
	bool both; /* an IPv6 socket that takes IPv4 too */
};

struct inherited {
	int n;
	struct inherited_socket *socket;
};

void inherited_init(struct inherited *); /* reads the environment, and clears it */
void inherited_fini(struct inherited *);

int inherited_take(struct inherited *, const union address *);
/* A socket that listens there, which is the caller's now; -1: there is none left. One of [::] that
 * takes both families is taken for 0.0.0.0 as well. */

#endif
