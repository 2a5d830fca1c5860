/* SPDX-License-Identifier: ISC */
#include "smtpc/connection_impl.h"

#include "base/tls.h"

#include <ctype.h>
#include <gsasl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
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
	if (stream_ssl(c->stream) && c->open->transport->identity)
		tls_show_identity(stream_ssl(c->stream), c->open->transport->identity);
}

/* RFC 9266: of TLS 1.3. */
static size_t export_binding(SSL *ssl, unsigned char bytes[EVP_MAX_MD_SIZE])
{
	static const char label[] = "EXPORTER-Channel-Binding";
	const size_t len = 32;
	return SSL_export_keying_material(ssl, bytes, len, label, strlen(label),
					  (const unsigned char *)"", 0, 1) == 1
		       ? len
		       : 0;
}

/* RFC 5929 3: the first Finished message. Without the extended master secret it proves nothing. */
static size_t unique_binding(SSL *ssl, unsigned char bytes[EVP_MAX_MD_SIZE])
{
	if (SSL_get_extms_support(ssl) != 1)
		return 0;
	return SSL_session_reused(ssl) ? SSL_get_peer_finished(ssl, bytes, EVP_MAX_MD_SIZE)
				       : SSL_get_finished(ssl, bytes, EVP_MAX_MD_SIZE);
}

struct sasl_binding connection_binding(const struct connection *c)
{
	SSL *ssl = stream_ssl(c->stream);
	unsigned char bytes[EVP_MAX_MD_SIZE];
	struct sasl_binding b = {.exporter = SSL_version(ssl) >= TLS1_3_VERSION};
	size_t len = b.exporter ? export_binding(ssl, bytes) : unique_binding(ssl, bytes);
	char *text = NULL;
	if (len > 0 && gsasl_base64_to((char *)bytes, len, &text, NULL) == GSASL_OK)
		snprintf(b.text, sizeof b.text, "%s", text);
	free(text);
	return b;
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
