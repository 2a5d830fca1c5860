/* SPDX-License-Identifier: ISC */
#include "smtpc/connection_impl.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { KEY_MAX = 512 };

static const char *session_key(const struct connection *c, char key[KEY_MAX])
{
	snprintf(key, KEY_MAX, "%s:%d/%s", c->open->host, address_port(&c->open->address),
		 c->open->transport->title);
	return key;
}

/* RFC 6066 3: a name, never an address. */
static const char *server_name(const struct connection *c)
{
	const char *host = c->open->host;
	size_t len = strlen(host);
	bool name = len > 0 && len < 256 && !strchr(host, ':') &&
		    !isdigit((unsigned char)host[len - 1]);
	return name ? host : NULL;
}

void connection_start_tls(struct connection *c)
{
	char key[KEY_MAX];
	SSL_SESSION *session = sessions_get(&c->worker->sessions, session_key(c, key));
	c->handshaking = true;
	stream_start_tls(c->stream, c->worker->tls, false, server_name(c), session);
	if (stream_ssl(c->stream))
		SSL_set_app_data(stream_ssl(c->stream), c);
}

int connection_new_session(SSL *ssl, SSL_SESSION *session)
{
	char key[KEY_MAX];
	struct connection *c = SSL_get_app_data(ssl);
	if (!c || !c->open || !SSL_SESSION_is_resumable(session))
		return 0;
	sessions_put(&c->worker->sessions, session_key(c, key), session);
	return 1; /* the reference is ours */
}

void connection_forget_session(struct connection *c)
{
	char key[KEY_MAX];
	sessions_drop(&c->worker->sessions, session_key(c, key));
}
