/* SPDX-License-Identifier: ISC */
#include "cmd/local/check_sources.h"

#include "base/address.h"
#include "base/mem.h"
#include "base/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void mark_used(const struct conf *c, const struct conf_uses *u, bool *used)
{
	for (int i = 0; i < u->n; i++)
		used[u->of[i].source - c->source] = true;
}

/* By their place among the sources; the caller's to free(). */
static bool *mark_all_used(const struct conf *c)
{
	bool *used = mem_zalloc((size_t)(c->nsource + 1) * sizeof *used);
	for (int i = 0; i < c->ntransport; i++)
		mark_used(c, &c->transport[i].uses, used);
	for (int i = 0; i < c->nflow; i++)
		mark_used(c, &c->flow[i].uses, used);
	return used;
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
	bool *used = mark_all_used(c);
	for (const struct conf_source *s = c->source; s < c->source + c->nsource; s++) {
		if (!used[s - c->source]) {
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
	free(used);
}
