/* SPDX-License-Identifier: ISC */
#include "smtpd/port.h"

#include "base/mem.h"
#include "smtpd/smtpd_worker.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void add_socket(struct port *p, int fd)
{
	p->fd = mem_realloc(p->fd, (size_t)(p->nfd + 1) * sizeof *p->fd);
	p->fd[p->nfd++] = fd;
}

static bool bind_new(struct port *p, int workers, struct buf *error)
{
	/* With port 0 the first socket finds one, and the others share it. */
	union address a = p->address;
	if (!listener_port_free(&a, error))
		return false;
	for (int i = 0; i < workers; i++) {
		int fd = listener_bind(&a, error);
		if (fd < 0)
			return false;
		add_socket(p, fd);
	}
	return true;
}

struct port *port_new(const char *address, int workers, struct inherited *inherited,
		      struct buf *error)
{
	struct port *p = mem_zalloc(sizeof *p);
	if (!listener_parse(address, &p->address)) {
		buf_printf(error, "\"%s\" is not an address and a port", address);
		port_free(&p);
		return NULL;
	}
	for (int fd; inherited && (fd = inherited_take(inherited, &p->address)) >= 0;)
		add_socket(p, fd);
	p->own = p->nfd == 0;
	if (p->own && !bind_new(p, workers, error))
		port_free(&p);
	return p;
}

void port_free(struct port **pp)
{
	struct port *p = *pp;
	if (!p)
		return;
	for (int i = 0; i < p->nfd; i++) {
		if (p->own)
			shutdown(p->fd[i], SHUT_RDWR);
		close(p->fd[i]);
	}
	free(p->fd);
	free(p);
	*pp = NULL;
}

int port_share(const struct port *p, int workers, int worker, int k)
{
	int i = worker + k * workers;
	if (k == 0)
		i %= p->nfd; /* there may be fewer sockets than workers */
	/* Nobody executes anything between the two calls; and the thread sanitizer knows dup() only. */
	int fd = i < p->nfd ? dup(p->fd[i]) : -1;
	if (fd >= 0)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}
