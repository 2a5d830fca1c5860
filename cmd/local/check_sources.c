/* SPDX-License-Identifier: ISC */
#include "cmd/local/check_sources.h"

#include "base/address.h"
#include "base/mem.h"
#include "base/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_used(const struct conf *c, const struct conf_source *s)
{
	for (int i = 0; i < c->ntransport; i++)
		if (conf_uses_has(&c->transport[i].uses, s))
			return true;
	for (int i = 0; i < c->nflow; i++)
		if (conf_uses_has(&c->flow[i].uses, s))
			return true;
	return false;
}

/* As the relay will find out. */
static bool is_lacking(const union address *a)
{
	int fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return errno == EAFNOSUPPORT;
	bool lacks = bind(fd, &a->sa, address_size(a)) != 0 && errno == EADDRNOTAVAIL;
	close(fd);
	return lacks;
}

void check_sources(const struct conf *c, void (*warn)(void *context, int line, const char *text),
		   void *context)
{
	for (const struct conf_source *s = c->source; s < c->source + c->nsource; s++) {
		if (!is_used(c, s)) {
			char *text = mem_printf(
				"source \"%s\" is named by no transport, and by no flow", s->title);
			warn(context, s->line, text);
			free(text);
		}
		for (int i = 0; i < s->nbind; i++) {
			char where[ADDRESS_WHERE_MAX];
			if (!is_lacking(&s->bind[i]))
				continue;
			char *text = mem_printf("source \"%s\": this machine does not have %s",
						s->title, address_where(&s->bind[i], where));
			warn(context, s->line, text);
			free(text);
		}
	}
}
