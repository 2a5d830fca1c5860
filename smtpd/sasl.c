/* SPDX-License-Identifier: ISC */
#include "smtpd/sasl.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/users.h"

#include <gsasl.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BINDING_MAX = 64, EXPORTED = 32, NUMBER = 12 };

static const char exporter[] = "EXPORTER-Channel-Binding"; /* RFC 9266 2 */

struct sasl {
	const struct mechanism_row *mechanism;
	Gsasl_session *session; /* of SCRAM; else NULL */
	struct tables *tables;
	SSL *ssl;
	bool plus_offered;
	int answers;			 /* of LOGIN: how often the client was asked */
	bool begun, ended;		 /* ended: only the client's last, empty word is missing */
	bool foreign;			 /* it would act for another */
	bool known;			 /* SCRAM: the keys are that login's */
	char login[USERS_LOGIN_MAX + 1]; /* "": not known yet, or no login is written so */
	char *password;
	struct user_scram scram;
};

static int set_base64(Gsasl_session *session, Gsasl_property property, const unsigned char *bytes,
		      size_t len)
{
	struct buf text = {0};
	base64_encode(&text, bytes, len);
	int result = gsasl_property_set(session, property, buf_cstr(&text));
	buf_wipe(&text);
	return result;
}

bool sasl_can_bind(SSL *ssl)
{
	return SSL_version(ssl) >= TLS1_3_VERSION || SSL_get_extms_support(ssl) == 1;
}

/* TLS 1.3 has no tls-unique; before that both are there. */
static int bind_channel(struct sasl *s, Gsasl_property property)
{
	unsigned char bytes[BINDING_MAX];
	size_t len = EXPORTED;
	if (!s->ssl || !sasl_can_bind(s->ssl))
		return GSASL_NO_CALLBACK;
	if (property == GSASL_CB_TLS_EXPORTER) {
		if (SSL_export_keying_material(s->ssl, bytes, len, exporter, sizeof exporter - 1,
					       NULL, 0, 1) != 1)
			return GSASL_NO_CB_TLS_EXPORTER;
	} else {
		if (SSL_version(s->ssl) >= TLS1_3_VERSION)
			return GSASL_NO_CB_TLS_UNIQUE;
		/* RFC 5929 3.1: of the first Finished, which is ours when a session is resumed. */
		len = (SSL_session_reused(s->ssl) ? SSL_get_finished : SSL_get_peer_finished)(
			s->ssl, bytes, sizeof bytes);
	}
	return set_base64(s->session, property, bytes, len);
}

/* Who it is, and whether the authorization identity is the same. */
static void take_names(struct sasl *s, const char *authid, const char *authzid)
{
	char other[USERS_LOGIN_MAX + 1];
	if (!authid || !users_login(authid, s->login, NULL))
		s->login[0] = '\0';
	if (authzid && *authzid)
		s->foreign = !users_login(authzid, other, NULL) || strcmp(other, s->login) != 0;
}

static int find_keys(struct sasl *s)
{
	char iterations[NUMBER];
	size_t bytes = user_hash_bytes((enum user_hash)s->mechanism->hash);
	take_names(s, gsasl_property_fast(s->session, GSASL_AUTHID),
		   gsasl_property_fast(s->session, GSASL_AUTHZID));
	s->known = users_scram(s->tables, s->login, (enum user_hash)s->mechanism->hash, &s->scram);
	snprintf(iterations, sizeof iterations, "%d", s->scram.iterations);
	gsasl_property_set(s->session, GSASL_SCRAM_ITER, iterations);
	set_base64(s->session, GSASL_SCRAM_SALT, s->scram.salt, s->scram.salt_bytes);
	set_base64(s->session, GSASL_SCRAM_STOREDKEY, s->scram.stored_key, bytes);
	return set_base64(s->session, GSASL_SCRAM_SERVERKEY, s->scram.server_key, bytes);
}

static int supply_property(Gsasl *library, Gsasl_session *session, Gsasl_property property)
{
	struct sasl *s = gsasl_session_hook_get(session);
	(void)library;
	switch (property) {
	case GSASL_CB_TLS_EXPORTER:
	case GSASL_CB_TLS_UNIQUE:
		return bind_channel(s, property);
	case GSASL_SCRAM_ITER:
		return find_keys(s);
	default:
		return GSASL_NO_CALLBACK;
	}
}

static Gsasl_session *start_session(struct Gsasl **library, const char *mechanism)
{
	Gsasl_session *session;
	if (!*library) {
		if (gsasl_init(library) != GSASL_OK) {
			*library = NULL;
			return NULL;
		}
		gsasl_callback_set(*library, supply_property);
	}
	return gsasl_server_start(*library, mechanism, &session) == GSASL_OK ? session : NULL;
}

struct sasl *sasl_new(struct Gsasl **library, enum mechanism m, struct tables *tables, SSL *ssl,
		      bool plus_offered)
{
	const struct mechanism_row *row = mechanism_row(m);
	Gsasl_session *session = row->hash >= 0 ? start_session(library, row->name) : NULL;
	if (row->hash >= 0 && !session)
		return NULL;
	struct sasl *s = mem_zalloc(sizeof *s);
	s->mechanism = row;
	s->session = session;
	s->tables = tables_ref(tables);
	s->ssl = ssl;
	s->plus_offered = plus_offered;
	if (session)
		gsasl_session_hook_set(session, s);
	return s;
}

static enum sasl_outcome outcome_of_fault(int result)
{
	switch (result) {
	case GSASL_MECHANISM_PARSE_ERROR:
	case GSASL_MECHANISM_CALLED_TOO_MANY_TIMES:
	case GSASL_BASE64_ERROR:
		return SASL_MALFORMED;
	default:
		return SASL_WRONG;
	}
}

/* One that is written as none ever is, is wrong like any other. */
static enum sasl_outcome take_password(struct sasl *s, const char *text, size_t len)
{
	char *as_said = mem_strndup(text, len);
	s->password = users_password(as_said, NULL);
	if (!s->password) {
		s->password = mem_strdup("");
		s->foreign = true;
	}
	mem_free_secret(as_said);
	return SASL_PASSWORD;
}

/* message = [authzid] NUL authcid NUL passwd: RFC 4616 2 */
static enum sasl_outcome step_plain(struct sasl *s, const char *in, size_t len)
{
	const char *end = in + len, *first = len ? memchr(in, '\0', len) : NULL;
	const char *second = first ? memchr(first + 1, '\0', (size_t)(end - first - 1)) : NULL;
	if (len == 0 && s->answers++ == 0)
		return SASL_CHALLENGE;
	if (!second || memchr(second + 1, '\0', (size_t)(end - second - 1)))
		return SASL_MALFORMED;
	take_names(s, first + 1, in);
	return take_password(s, second + 1, (size_t)(end - second - 1));
}

/* Nobody ever wrote down how; some clients know these words only. */
static enum sasl_outcome step_login(struct sasl *s, const char *in, size_t len, struct buf *out)
{
	char name[USERS_LOGIN_MAX * 4 + 1];
	if (len > 0 && memchr(in, '\0', len))
		return SASL_MALFORMED;
	switch (s->answers++) {
	case 0:
		buf_puts(out, "Username:");
		return SASL_CHALLENGE;
	case 1:
		snprintf(name, sizeof name, "%.*s", (int)len, len ? in : "");
		take_names(s, name, NULL);
		buf_puts(out, "Password:");
		return SASL_CHALLENGE;
	default:
		return take_password(s, in, len);
	}
}

static enum sasl_outcome conclude_exchange(struct sasl *s)
{
	if (!s->known || s->foreign)
		return SASL_WRONG;
	/* SMTP has no place for the server's proof beside its 235: RFC 4954 4. */
	s->ended = true;
	return SASL_CHALLENGE;
}

/* RFC 5802 6: "p" binds, "y" could and was not let, "n" can't. The library lets the first two pass
 * where they are wrong. */
static bool is_misbound(const struct sasl *s, char flag)
{
	return (flag == 'y' && s->plus_offered) || (flag == 'p') != s->mechanism->plus;
}

static enum sasl_outcome step_scram(struct sasl *s, const char *in, size_t len, struct buf *out)
{
	char *said = NULL;
	size_t said_len = 0;
	if (s->ended)
		return len == 0 ? SASL_DONE : SASL_MALFORMED;
	if (len > 0 && !s->begun) {
		s->begun = true;
		if (is_misbound(s, in[0]))
			return SASL_WRONG;
	}
	int result = gsasl_step(s->session, in, len, &said, &said_len);
	enum sasl_outcome outcome;
	if (result == GSASL_NEEDS_MORE)
		outcome = SASL_CHALLENGE;
	else
		outcome = result == GSASL_OK ? conclude_exchange(s) : outcome_of_fault(result);
	if (outcome == SASL_CHALLENGE)
		buf_append(out, said, said_len);
	gsasl_free(said);
	return outcome;
}

enum sasl_outcome sasl_step(struct sasl *s, const char *in, size_t len, struct buf *out)
{
	if (s->session)
		return step_scram(s, in, len, out);
	return s->mechanism == mechanism_row(MECHANISM_PLAIN) ? step_plain(s, in, len)
							      : step_login(s, in, len, out);
}

const char *sasl_login(const struct sasl *s)
{
	return s->login[0] ? s->login : NULL;
}

bool sasl_password(struct sasl *s, struct user_value *v, char **password)
{
	bool known = users_find(s->tables, s->login, v);
	*password = s->password;
	s->password = NULL;
	return known && s->login[0] && !s->foreign;
}

void sasl_free(struct sasl **sp)
{
	struct sasl *s = *sp;
	if (!s)
		return;
	if (s->session)
		gsasl_finish(s->session);
	tables_unref(s->tables);
	mem_free_secret(s->password);
	explicit_bzero(s, sizeof *s);
	free(s);
	*sp = NULL;
}

void sasl_library_free(struct Gsasl **library)
{
	if (*library)
		gsasl_done(*library);
	*library = NULL;
}
