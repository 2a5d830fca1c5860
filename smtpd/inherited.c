/* SPDX-License-Identifier: ISC */
#include "smtpd/inherited.h"

#include "base/address.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

static bool describe_socket(struct inherited_socket *s)
{
	socklen_t size = sizeof s->address;
	int only6 = 1;
	if (sd_is_socket(s->fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0 ||
	    getsockname(s->fd, &s->address.sa, &size) != 0)
		return false;
	size = sizeof only6;
	if (s->address.sa.sa_family == AF_INET6)
		getsockopt(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, &only6, &size);
	else if (s->address.sa.sa_family != AF_INET)
		return false;
	s->both = !only6;
	return true;
}

void inherited_init(struct inherited *in)
{
	int n = sd_listen_fds(1);
	*in = (struct inherited){0};
	if (n <= 0)
		return;
	in->socket = mem_zalloc((size_t)n * sizeof *in->socket);
	for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + n; fd++) {
		struct inherited_socket *s = &in->socket[in->n];
		s->fd = fd;
		if (describe_socket(s)) {
			fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
			in->n++;
		} else {
			log_event(LOG_LEVEL_WARNING, "socket_unusable", "descriptor",
				  log_number(fd), NULL);
			close(fd);
		}
	}
}

void inherited_fini(struct inherited *in)
{
	for (int i = 0; i < in->n; i++) {
		struct inherited_socket *s = &in->socket[i];
		char text[64];
		if (s->fd < 0)
			continue;
		log_event(LOG_LEVEL_WARNING, "socket_unused", "address",
			  address_text(&s->address, text), "port",
			  log_number(address_port(&s->address)), NULL);
		close(s->fd);
	}
	free(in->socket);
	*in = (struct inherited){0};
}

static bool serves_address(const struct inherited_socket *s, const union address *a)
{
	if (address_port(&s->address) != address_port(a))
		return false;
	if (s->address.sa.sa_family == AF_INET)
		return a->sa.sa_family == AF_INET &&
		       s->address.in.sin_addr.s_addr == a->in.sin_addr.s_addr;
	if (s->both && a->sa.sa_family == AF_INET)
		return address_is_unspecified(a) && address_is_unspecified(&s->address);
	return a->sa.sa_family == AF_INET6 &&
	       memcmp(&s->address.in6.sin6_addr, &a->in6.sin6_addr, 16) == 0;
}

int inherited_take(struct inherited *in, const union address *a)
{
	for (int i = 0; i < in->n; i++) {
		struct inherited_socket *s = &in->socket[i];
		if (s->fd >= 0 && serves_address(s, a)) {
			int fd = s->fd;
			s->fd = -1;
			return fd;
		}
	}
	return -1;
}
