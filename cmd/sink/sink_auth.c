/* SPDX-License-Identifier: ISC */
#include "cmd/sink/sink_auth.h"

#include "base/mem.h"

#include <gsasl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct sink_auth {
	const struct sink_options *options;
	Gsasl_session *session;
	bool over; /* but for an empty line */
};

/* The row of "NAME:PASSWORD" of whoever logs in; NULL: nobody's. */
static const char *password_of(const struct sink_options *o, const char *name)
{
	size_t len = name ? strlen(name) : 0;
	for (int i = 0; name && i < o->nlogin; i++)
		if (strncmp(o->login[i], name, len) == 0 && o->login[i][len] == ':')
			return o->login[i] + len + 1;
	return NULL;
}

static int supply_property(Gsasl *library, Gsasl_session *session, Gsasl_property p)
{
	const struct sink_auth *a = gsasl_session_hook_get(session);
	const char *password = password_of(a->options, gsasl_property_fast(session, GSASL_AUTHID));
	(void)library;
	switch (p) {
	case GSASL_PASSWORD:
		return password ? gsasl_property_set(session, p, password)
				: GSASL_AUTHENTICATION_ERROR;
	case GSASL_VALIDATE_SIMPLE:
		return password && strcmp(password, gsasl_property_fast(session, GSASL_PASSWORD)) ==
					       0
			       ? GSASL_OK
			       : GSASL_AUTHENTICATION_ERROR;
	case GSASL_SCRAM_ITER:
		return gsasl_property_set(session, p, "4096");
	default:
		return GSASL_NO_CALLBACK;
	}
}

/* One for the whole program. */
static Gsasl *sasl_library(void)
{
	static Gsasl *only;
	if (!only && gsasl_init(&only) != GSASL_OK) {
		fputs("sluice: GNU SASL can't be used\n", stderr);
		abort();
	}
	gsasl_callback_set(only, supply_property);
	return only;
}

/* As the program says it; NULL: not one of ours. */
static const char *known_mechanism(const char *mechanism)
{
	static const char *const all[] = {"SCRAM-SHA-256", "PLAIN", "LOGIN"};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (strcasecmp(mechanism, all[i]) == 0)
			return all[i];
	return NULL;
}

struct sink_auth *sink_auth_new(const struct sink_options *o, const char *mechanism)
{
	const char *name = known_mechanism(mechanism);
	Gsasl_session *session;
	if (!name || gsasl_server_start(sasl_library(), name, &session) != GSASL_OK)
		return NULL;
	struct sink_auth *a = mem_zalloc(sizeof *a);
	a->options = o;
	a->session = session;
	gsasl_session_hook_set(session, a);
	return a;
}

enum sink_auth_outcome sink_auth_step(struct sink_auth *a, const char *said, struct buf *challenge)
{
	char *answer = NULL;
	if (a->over)
		return *said ? SINK_AUTH_FAILED : SINK_AUTH_DONE;
	int how = gsasl_step64(a->session, said, &answer);
	if (answer)
		buf_puts(challenge, answer);
	a->over = how == GSASL_OK;
	bool last = a->over && answer && *answer; /* it proves who we are */
	gsasl_free(answer);
	if (how != GSASL_OK && how != GSASL_NEEDS_MORE)
		return SINK_AUTH_FAILED;
	return a->over && !last ? SINK_AUTH_DONE : SINK_AUTH_MORE;
}

const char *sink_auth_login(const struct sink_auth *a)
{
	return gsasl_property_fast(a->session, GSASL_AUTHID);
}

void sink_auth_free(struct sink_auth **ap)
{
	if (*ap) {
		gsasl_finish((*ap)->session);
		free(*ap);
	}
	*ap = NULL;
}
