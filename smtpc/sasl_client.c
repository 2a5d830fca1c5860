/* SPDX-License-Identifier: ISC */
#include "smtpc/sasl_client.h"

#include "base/mem.h"

#include <assert.h>
#include <gsasl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct sasl_client {
	const struct sasl_setup *setup;
	enum sasl_mechanism mechanism;
	Gsasl_session *session; /* NULL: a token, which needs none */
	int steps;
	bool over;
	const char *error;
};

static const struct {
	const char *name;
	bool token, binding;
} mechanisms[] = {
#define X(mechanism, name, token, binding) {name, token, binding},
	SASL_MECHANISMS(X)
#undef X
};

static bool is_scram(const struct sasl_client *s)
{
	return s->mechanism <= SASL_SCRAM_SHA_1;
}

static const EVP_MD *digest_of(const struct sasl_client *s)
{
	bool sha1 = s->mechanism == SASL_SCRAM_SHA_1 || s->mechanism == SASL_SCRAM_SHA_1_PLUS;
	return sha1 ? EVP_sha1() : EVP_sha256();
}

static void put_hex(char *to, const unsigned char *bytes, int n)
{
	for (int i = 0; i < n; i++)
		snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

/* RFC 5802 2.2, Hi(): GNU SASL's own is several times slower. */
static bool salt_password(const struct sasl_client *s, Gsasl_session *session)
{
	const char *text = gsasl_property_fast(session, GSASL_SCRAM_SALT);
	const char *rounds = gsasl_property_fast(session, GSASL_SCRAM_ITER);
	unsigned char key[EVP_MAX_MD_SIZE];
	char *salt = NULL, *prepared = NULL, as_hex[2 * sizeof key + 1];
	size_t len = 0;
	int n = EVP_MD_get_size(digest_of(s));
	if (!text || !rounds || gsasl_base64_from(text, strlen(text), &salt, &len) != GSASL_OK)
		return false;
	gsasl_saslprep(s->setup->secret, (Gsasl_saslprep_flags)0, &prepared, NULL);
	const char *password = prepared ? prepared : s->setup->secret;
	bool done = PKCS5_PBKDF2_HMAC(password, (int)strlen(password), (unsigned char *)salt,
				      (int)len, atoi(rounds), digest_of(s), n, key) == 1;
	put_hex(as_hex, key, n);
	done = done && gsasl_property_set(session, GSASL_SCRAM_SALTED_PASSWORD, as_hex) == GSASL_OK;
	OPENSSL_cleanse(key, sizeof key);
	OPENSSL_cleanse(as_hex, sizeof as_hex);
	mem_free_secret(prepared);
	free(salt);
	return done;
}

static int set_property(Gsasl_session *session, Gsasl_property p, const char *value)
{
	return *value ? gsasl_property_set(session, p, value) : GSASL_NO_CALLBACK;
}

/* GNU SASL wants none for a mechanism that is not bound. */
static const char *binding_text(const struct sasl_client *s, bool exporter)
{
	const struct sasl_binding *b = &s->setup->binding;
	return mechanisms[s->mechanism].binding && b->exporter == exporter ? b->text : "";
}

static int supply_property(Gsasl *context, Gsasl_session *session, Gsasl_property p)
{
	const struct sasl_client *s = gsasl_session_hook_get(session);
	const struct sasl_setup *setup = s->setup;
	(void)context;
	switch (p) {
	case GSASL_AUTHID:
		return set_property(session, p, setup->login);
	case GSASL_PASSWORD:
		return set_property(session, p, setup->secret);
	case GSASL_SCRAM_SALTED_PASSWORD:
		return salt_password(s, session) ? GSASL_OK : GSASL_NO_CALLBACK;
	case GSASL_CB_TLS_EXPORTER:
		return set_property(session, p, binding_text(s, true));
	case GSASL_CB_TLS_UNIQUE:
		return set_property(session, p, binding_text(s, false));
	default:
		return GSASL_NO_CALLBACK;
	}
}

struct Gsasl *sasl_client_context(void)
{
	Gsasl *context;
	if (gsasl_init(&context) != GSASL_OK) {
		fputs("sluice: GNU SASL can't make a context\n", stderr);
		abort();
	}
	gsasl_callback_set(context, supply_property);
	return context;
}

void sasl_client_context_free(struct Gsasl *context)
{
	if (context)
		gsasl_done(context);
}

unsigned sasl_client_offered(const char *words)
{
	unsigned offered = 0;
	for (size_t len; *words; words += len) {
		words += strspn(words, " =\t\r\n");
		len = strcspn(words, " \t\r\n");
		for (int i = 0; i < SASL_NONE; i++)
			if (len == strlen(mechanisms[i].name) &&
			    strncasecmp(words, mechanisms[i].name, len) == 0)
				offered |= 1u << i;
	}
	return offered;
}

enum sasl_mechanism sasl_client_choose(unsigned offered, bool token, bool binding)
{
	for (int i = 0; i < SASL_NONE; i++)
		if (offered & 1u << i && mechanisms[i].token == token &&
		    (binding || !mechanisms[i].binding))
			return (enum sasl_mechanism)i;
	return SASL_NONE;
}

const char *sasl_client_name(enum sasl_mechanism mechanism)
{
	assert(mechanism < SASL_NONE);
	return mechanisms[mechanism].name;
}

struct sasl_client *sasl_client_new(const struct sasl_setup *setup, enum sasl_mechanism mechanism)
{
	struct sasl_client *s = mem_zalloc(sizeof *s);
	s->setup = setup;
	s->mechanism = mechanism;
	if (mechanisms[mechanism].token)
		return s;
	int how = gsasl_client_start(setup->context, mechanisms[mechanism].name, &s->session);
	if (how == GSASL_OK)
		gsasl_session_hook_set(s->session, s);
	else
		s->error = gsasl_strerror(how);
	return s;
}

/* Its own copies. */
static void wipe_session(Gsasl_session *session)
{
	static const Gsasl_property secrets[] = {GSASL_PASSWORD, GSASL_SCRAM_SALTED_PASSWORD};
	for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
		const char *value = gsasl_property_fast(session, secrets[i]);
		if (value)
			OPENSSL_cleanse((void *)(uintptr_t)value, strlen(value));
	}
}

void sasl_client_free(struct sasl_client **sp)
{
	struct sasl_client *s = *sp;
	if (!s)
		return;
	if (s->session) {
		wipe_session(s->session);
		gsasl_finish(s->session);
	}
	free(s);
	*sp = NULL;
}

static void put_base64(struct buf *to, const char *data, size_t len)
{
	char *text = NULL;
	if (gsasl_base64_to(data, len, &text, NULL) == GSASL_OK)
		buf_puts(to, text);
	mem_free_secret(text);
}

/* RFC 5801 4: the characters that part the fields. */
static void put_gs2_name(struct buf *to, const char *name)
{
	for (; *name; name++) {
		if (*name == '=' || *name == ',')
			buf_puts(to, *name == '=' ? "=3D" : "=2C");
		else
			buf_append(to, name, 1);
	}
}

static void put_token(const struct sasl_client *s, struct buf *to)
{
	struct buf plain = {0};
	const struct sasl_setup *setup = s->setup;
	buf_reserve(&plain, 3 * strlen(setup->login) + strlen(setup->secret) + 64);
	if (s->mechanism == SASL_OAUTHBEARER) {
		buf_puts(&plain, "n,a=");
		put_gs2_name(&plain, setup->login);
		buf_puts(&plain, ",");
	} else {
		buf_printf(&plain, "user=%s", setup->login);
	}
	buf_printf(&plain, "\1auth=Bearer %s\1\1", setup->secret);
	put_base64(to, buf_data(&plain), buf_len(&plain));
	buf_wipe(&plain);
}

/* A second challenge says in JSON what is wrong; an answer is due before the host says 535. */
static bool step_token(struct sasl_client *s, struct buf *to)
{
	s->over = true;
	if (s->steps == 0)
		put_token(s, to);
	else if (s->mechanism == SASL_OAUTHBEARER)
		put_base64(to, "\1", 1);
	return s->steps++ < 2;
}

/* RFC 5802 5.1: r=nonce,s=salt,i=count */
static bool asks_too_much(const struct sasl_client *s, const char *challenge)
{
	char *plain = NULL;
	size_t len = 0;
	bool much = false;
	if (!is_scram(s) ||
	    gsasl_base64_from(challenge, strlen(challenge), &plain, &len) != GSASL_OK)
		return false;
	const char *count = memmem(plain, len, ",i=", 3);
	if (count) {
		char digits[12];
		snprintf(digits, sizeof digits, "%.*s", (int)(plain + len - count - 3), count + 3);
		much = strspn(digits, "0123456789") > 9 || atol(digits) > SASL_ITERATIONS_MAX;
	}
	free(plain);
	return much;
}

static bool server_first(const struct sasl_client *s)
{
	return s->mechanism == SASL_LOGIN;
}

static bool step_session(struct sasl_client *s, const char *challenge, struct buf *to)
{
	char *text = NULL;
	if (!challenge && server_first(s))
		return true;
	if (challenge && asks_too_much(s, challenge)) {
		s->error = "it asks for too many rounds of hashing";
		return false;
	}
	int how = gsasl_step64(s->session, challenge ? challenge : "", &text);
	if (how == GSASL_OK || how == GSASL_NEEDS_MORE)
		buf_puts(to, text ? text : "");
	else
		s->error = gsasl_strerror(how);
	mem_free_secret(text);
	s->over = how == GSASL_OK;
	return how == GSASL_OK || how == GSASL_NEEDS_MORE;
}

bool sasl_client_step(struct sasl_client *s, const char *challenge, struct buf *to)
{
	if (mechanisms[s->mechanism].token)
		return step_token(s, to);
	if (!s->session)
		return false;
	/* Some end with an empty challenge. A second one would be followed by a third. */
	if (s->over && challenge && *challenge == '\0')
		return s->steps++ == 0;
	return step_session(s, challenge, to);
}

bool sasl_client_over(const struct sasl_client *s)
{
	return s->over;
}

const char *sasl_client_error(const struct sasl_client *s)
{
	return s->error ? s->error : "it asks again for what was said";
}
