/* SPDX-License-Identifier: ISC */
#include "dns/cares.h"

#include "base/address.h"
#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if ARES_VERSION < 0x012200 /* 1.34 */

/* c-ares leaves all options to who makes its sockets. */
static ares_socket_t make_socket(int family, int type, int protocol, void *unused)
{
	(void)unused;
	const int size = CARES_SOCKET_BUFFER, on = 1;
	int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return ARES_SOCKET_BAD;
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	if (type == SOCK_STREAM)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	return fd;
}

static int close_socket(ares_socket_t fd, void *unused)
{
	(void)unused;
	return close(fd);
}

static int connect_socket(ares_socket_t fd, const struct sockaddr *to, ares_socklen_t len,
			  void *unused)
{
	(void)unused;
	return connect(fd, to, len);
}

static ares_ssize_t receive_bytes(ares_socket_t fd, void *to, size_t size, int flags,
				  struct sockaddr *from, ares_socklen_t *len, void *unused)
{
	(void)unused;
	return recvfrom(fd, to, size, flags, from, len);
}

/* That nobody listens at a server is said once, and here it would be of a question before: with the error c-ares sends this one
 * elsewhere at once, and lets those before wait for the whole of their time. Sent again, it has the error come to who reads, with
 * which all of them go elsewhere. */
static ares_ssize_t send_bytes(ares_socket_t fd, const struct iovec *bytes, int n, void *unused)
{
	(void)unused;
	struct msghdr message = {.msg_iov = (struct iovec *)bytes, .msg_iovlen = (size_t)n};
	ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
	if (sent < 0 && errno == ECONNREFUSED)
		sent = sendmsg(fd, &message, MSG_NOSIGNAL);
	return sent;
}

static void use_own_sockets(ares_channel ares)
{
	static const struct ares_socket_functions functions = {
		make_socket, close_socket, connect_socket, receive_bytes, send_bytes};
	ares_set_socket_functions(ares, &functions, NULL);
}

#else

static void use_own_sockets(ares_channel ares)
{
	(void)ares;
}

#endif

int cares_init(ares_channel *ares, struct ares_options *options, int mask)
{
#ifdef ARES_OPT_QUERY_CACHE
	options->qcache_max_ttl = 0;
	mask |= ARES_OPT_QUERY_CACHE;
#endif
	int rc = ares_init_options(ares, options, mask);
	if (rc == ARES_SUCCESS)
		use_own_sockets(*ares);
	return rc;
}

enum { SERVER_TEXT_MAX = 64 }; /* "[", the longest IPv6 address, "]:65535", a comma and NUL */

/* In hexadecimal throughout: c-ares takes no IPv6 address that ends as an IPv4 one. */
static void write_ipv6(const union address *a, char text[SERVER_TEXT_MAX])
{
	const unsigned char *b = a->in6.sin6_addr.s6_addr;
	size_t len = 0;
	for (int i = 0; i < 16; i += 2)
		len += (size_t)snprintf(text + len, SERVER_TEXT_MAX - len, "%s%x", i > 0 ? ":" : "",
					(unsigned)b[i] << 8 | b[i + 1]);
}

int cares_use_servers(ares_channel ares, const union address *server, int n)
{
	char list[CARES_SERVERS_MAX * SERVER_TEXT_MAX] = "", where[ADDRESS_WHERE_MAX];
	char ipv6[SERVER_TEXT_MAX];
	size_t len = 0;
	assert(n > 0 && n <= CARES_SERVERS_MAX);
	for (int i = 0; i < n; i++) {
		bool v6 = server[i].sa.sa_family == AF_INET6;
		if (v6)
			write_ipv6(&server[i], ipv6);
		int got = snprintf(list + len, sizeof list - len, v6 ? "%s[%s]:%d" : "%s%s:%d",
				   i > 0 ? "," : "", v6 ? ipv6 : address_where(&server[i], where),
				   address_port(&server[i]));
		assert(got > 0 && (size_t)got < sizeof list - len);
		len += (size_t)got;
	}
	return ares_set_servers_ports_csv(ares, list);
}

struct asked {
	cares_replied *replied;
	void *owner;
};

static void tell_asker(struct asked *asked, int status, int timeouts, const unsigned char *bytes,
		       size_t len)
{
	struct asked a = *asked;
	free(asked);
	a.replied(a.owner, status, timeouts, bytes, len);
}

static struct asked *asked_by(cares_replied *replied, void *owner)
{
	struct asked *asked = mem_alloc(sizeof *asked);
	*asked = (struct asked){.replied = replied, .owner = owner};
	return asked;
}

#if ARES_VERSION >= 0x011c00 /* 1.28 */

/* "192.0.2.1:53,[2001:db8::1]:53"; an address of a link has its interface behind a percent sign. */
static bool read_server(char *text, union address *server)
{
	char *interface = strchr(text, '%');
	char *rest = interface ? interface + strcspn(interface, "]:") : NULL;
	if (interface)
		memmove(interface, rest, strlen(rest) + 1);
	return address_parse_with_port(text, server);
}

int cares_servers(ares_channel ares, union address server[CARES_SERVERS_MAX])
{
	char *list = ares_get_servers_csv(ares), *next = NULL;
	int n = 0;
	for (char *one = list ? strtok_r(list, ",", &next) : NULL; one && n < CARES_SERVERS_MAX;
	     one = strtok_r(NULL, ",", &next))
		n += read_server(one, &server[n]);
	ares_free_string(list);
	return n;
}

static void on_record(void *arg, ares_status_t status, size_t timeouts,
		      const ares_dns_record_t *record)
{
	unsigned char *bytes = NULL;
	size_t len = 0;
	if (status == ARES_SUCCESS)
		status = ares_dns_write(record, &bytes, &len);
	tell_asker(arg, (int)status, (int)timeouts, bytes, len);
	ares_free_string(bytes);
}

void cares_send(ares_channel ares, const void *bytes, size_t len, cares_replied *replied,
		void *owner)
{
	ares_dns_record_t *record = NULL;
	ares_status_t status = ares_dns_parse(bytes, len, 0, &record);
	if (status == ARES_SUCCESS)
		ares_send_dnsrec(ares, record, on_record, asked_by(replied, owner), NULL);
	else
		replied(owner, (int)status, 0, NULL, 0);
	ares_dns_record_destroy(record);
}

#else

static void take_server(const struct ares_addr_port_node *s, union address *server)
{
	*server = (union address){.sa.sa_family = (sa_family_t)s->family};
	if (s->family == AF_INET)
		server->in.sin_addr = s->addr.addr4;
	else
		memcpy(&server->in6.sin6_addr, &s->addr.addr6, sizeof server->in6.sin6_addr);
	address_set_port(server, s->udp_port);
}

int cares_servers(ares_channel ares, union address server[CARES_SERVERS_MAX])
{
	struct ares_addr_port_node *found = NULL;
	int n = 0;
	if (ares_get_servers_ports(ares, &found) != ARES_SUCCESS)
		return 0;
	for (struct ares_addr_port_node *s = found; s && n < CARES_SERVERS_MAX; s = s->next)
		take_server(s, &server[n++]);
	ares_free_data(found);
	return n;
}

static void on_bytes(void *arg, int status, int timeouts, unsigned char *bytes, int len)
{
	tell_asker(arg, status, timeouts, bytes, len > 0 ? (size_t)len : 0);
}

void cares_send(ares_channel ares, const void *bytes, size_t len, cares_replied *replied,
		void *owner)
{
	ares_send(ares, bytes, (int)len, on_bytes, asked_by(replied, owner));
}

#endif
