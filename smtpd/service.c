/* SPDX-License-Identifier: ISC */
#include "smtpd/service.h"

#include "base/mem.h"
#include "base/refs.h"
#include "base/tls_certificates.h"

#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

/* "true" is everybody, "false" nobody. */
static bool set_proxies(struct service *s, struct buf *error)
{
	char four[] = "0.0.0.0/0", six[] = "::/0", *everybody[] = {four, six};
	const struct conf_list all = {2, everybody};
	const struct conf_list *given = &s->listener->proxy_protocol;
	const char *bad;
	bool word = given->n == 1 && !strchr(given->item[0], '.') && !strchr(given->item[0], ':');
	s->proxied = given->n > 0 && !(word && strcmp(given->item[0], "false") == 0);
	if (!s->proxied || netlist_init(&s->proxies, word ? &all : given, &bad))
		return true;
	buf_printf(error, "\"%s\" is no network", bad);
	return false;
}

static bool set_tls(struct service *s, struct buf *error)
{
	const struct conf_listener *l = s->listener;
	if (l->tls == LISTENER_TLS_NONE)
		return true;
	if (l->certificate.n == 0) {
		if (l->tls == LISTENER_TLS_OPTIONAL)
			return true;
		buf_printf(error, "listener \"%s\" wants TLS and has no certificate", l->title);
		return false;
	}
	s->tls = tls_certificates_context(l, &s->conf->tls.groups, error);
	/* Bytes that a session has read are wiped by OpenSSL, where there may be a password in it. */
	if (s->tls && l->auth)
		SSL_CTX_set_options(s->tls, SSL_OP_CLEANSE_PLAINTEXT);
	bool asks = *l->client_ca || (l->auth && s->conf->client_certificates.n > 0);
	return s->tls && (!asks || tls_certificates_ask_client(s->tls, l->client_ca, error));
}

struct service *service_new(struct conf *conf, const struct conf_listener *l, struct buf *error)
{
	struct service *s = mem_zalloc(sizeof *s);
	const char *bad = "";
	atomic_init(&s->refs, 1);
	s->conf = conf_ref(conf);
	s->listener = l;
	s->hostname = conf->own_name;
	if (!netlist_init(&s->networks, &l->networks, &bad) ||
	    !netlist_init(&s->xclient, &conf->xclient, &bad)) {
		buf_printf(error, "\"%s\" is no network", bad);
		service_unref(s);
		return NULL;
	}
	if (!set_proxies(s, error) || !set_tls(s, error)) {
		service_unref(s);
		return NULL;
	}
	return s;
}

struct service *service_ref(struct service *s)
{
	refs_take(&s->refs);
	return s;
}

void service_unref(struct service *s)
{
	if (!s || !refs_drop(&s->refs))
		return;
	SSL_CTX_free(s->tls);
	netlist_fini(&s->networks);
	netlist_fini(&s->xclient);
	netlist_fini(&s->proxies);
	conf_unref(s->conf);
	free(s);
}
