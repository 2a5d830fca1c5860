/* SPDX-License-Identifier: ISC */
/*	xclient	  = "XCLIENT" 1*( SP attribute "=" xtext ) CRLF		POSTFIX XCLIENT_README
 *	attribute = "NAME" / "ADDR" / "PORT" / "PROTO" / "HELO" / "LOGIN" / "DESTADDR" / "DESTPORT"
 *
 * A proxy says who its client is, who then counts as the client in every respect; whom LOGIN names has
 * logged in. The session begins anew: 220, as behind a connection. [UNAVAILABLE] and [TEMPUNAVAIL] say
 * that there is no such thing, or that it isn't known. Only hosts of the setting xclient may say it,
 * and they alone are told that there is such a verb. A proxy hands on all that its client says from then on: whether XCLIENT
 * may be said again is judged by the client's address. Who had logged in was another client, unless LOGIN says it anew.
 */
#include "base/address.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/netlist.h"
#include "base/users.h"
#include "smtpd/command.h"
#include "smtpd/filtering.h"
#include "smtpd/greeting.h"
#include "smtpd/param.h"
#include "smtpd/reception.h"
#include "smtpd/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TEXT_MAX = 255 };

enum attribute { NAME, ADDR, PORT, PROTO, HELO, LOGIN, DESTADDR, DESTPORT, ATTRIBUTES };

static const char *const names[ATTRIBUTES] = {"NAME", "ADDR",  "PORT",	   "PROTO",
					      "HELO", "LOGIN", "DESTADDR", "DESTPORT"};

/* The attributes that were given; of others, said is false. */
struct said {
	bool said[ATTRIBUTES], known[ATTRIBUTES];
	char text[ATTRIBUTES][TEXT_MAX + 1];
	char login[USERS_LOGIN_MAX + 1];
	union address client, destination;
	uint64_t port, destination_port;
};

static int attribute_of(const struct param *p)
{
	int a = 0;
	while (a < ATTRIBUTES && !param_is(p, names[a]))
		a++;
	return a;
}

static bool is_known(const char *text)
{
	return strcasecmp(text, "[UNAVAILABLE]") != 0 && strcasecmp(text, "[TEMPUNAVAIL]") != 0;
}

static bool take_address(const char *text, union address *to)
{
	if (strncasecmp(text, "IPV6:", 5) == 0)
		text += 5;
	bool good = address_parse(text, 0, to);
	if (good)
		address_unmask(to);
	return good;
}

static bool take_port(const char *text, uint64_t *to)
{
	return param_number(text, to) && *to <= UINT16_MAX;
}

static bool take_known(struct said *k, enum attribute a, const char *text)
{
	switch (a) {
	case NAME:
	case HELO:
		return mailaddr_hello_valid(text);
	case ADDR:
		return take_address(text, &k->client);
	case DESTADDR:
		return take_address(text, &k->destination);
	case PORT:
		return take_port(text, &k->port);
	case DESTPORT:
		return take_port(text, &k->destination_port);
	case PROTO:
		return strcasecmp(text, "SMTP") == 0 || strcasecmp(text, "ESMTP") == 0;
	default:
		assert(a == LOGIN);
		return users_login(text, k->login, NULL);
	}
}

static bool take_attribute(struct said *k, const struct param *p)
{
	int a = attribute_of(p);
	if (a == ATTRIBUTES || k->said[a] || !p->value ||
	    !xtext_decode(p->value, strlen(p->value), k->text[a], sizeof k->text[a]))
		return false;
	k->said[a] = true;
	k->known[a] = is_known(k->text[a]);
	return !k->known[a] || take_known(k, (enum attribute)a, k->text[a]);
}

static bool take_attributes(struct said *k, char *argument)
{
	struct param p = {.at = argument, .begun = true};
	enum param_result result;
	while ((result = param_next(&p)) == PARAM_NEXT)
		if (!take_attribute(k, &p))
			return false;
	return result == PARAM_END;
}

static void log_client(const struct session *s, const struct said *k, const union address *proxy)
{
	char by[64], client[64], destination[64];
	log_event(LOG_LEVEL_INFO, "xclient", "session", log_id(s->number), "proxy",
		  address_text(proxy, by), "client", address_text(&s->peer, client), "port",
		  k->known[PORT] ? log_number((int64_t)k->port) : NULL, "name",
		  k->known[NAME] ? k->text[NAME] : NULL, "helo", s->helo, "login", s->login,
		  "destination",
		  k->known[DESTADDR] ? address_text(&k->destination, destination) : NULL,
		  "destination_port",
		  k->known[DESTPORT] ? log_number((int64_t)k->destination_port) : NULL, NULL);
}

/* The session counts among the connections of its client now. False: of those there are too many. */
static bool change_client(struct session *s, const union address *client)
{
	struct clients *all = s->worker->clients;
	switch (clients_enter(all, client, s->listener, s->service->listener, clock_steady_us())) {
	case CLIENTS_WELCOME:
		clients_leave(all, &s->peer, s->listener);
		s->peer = *client;
		return true;
	case CLIENTS_TOO_MANY:
		session_close(s, RESPONSE_CLIENT_CONNECTIONS);
		return false;
	default:
		session_close(s, RESPONSE_CLIENT_RATE);
		return false;
	}
}

static void replace_text(char **text, const char *with)
{
	free(*text);
	*text = with ? mem_strdup(with) : NULL;
}

static void begin_anew(struct session *s, const struct said *k)
{
	union address proxy = s->peer;
	/* Nobody's address: of an unknown client the proxy's own must not be thought. */
	union address client = {.in = {.sin_family = AF_INET}};
	if (k->known[ADDR])
		client = k->client;
	if (k->said[ADDR] && !change_client(s, &client))
		return;
	if (k->said[ADDR])
		s->proxy = k->known[ADDR] && netlist_match(&s->service->xclient, &client);
	if (k->said[NAME] || k->said[ADDR])
		replace_text(&s->client_name, k->known[NAME] ? k->text[NAME] : NULL);
	replace_text(&s->login, k->known[LOGIN] ? k->login : NULL);
	s->mechanism = NULL;
	stream_secret(s->stream, s->service->listener->auth);
	replace_text(&s->helo, k->known[HELO] ? k->text[HELO] : NULL);
	s->esmtp = !k->known[PROTO] || strcasecmp(k->text[PROTO], "ESMTP") == 0;
	reception_reset(s);
	log_client(s, k, &proxy);
	filtering_free(&s->filtering);
	filtering_open(s);
	greeting_begin(s);
}

void verb_xclient(struct session *s, char *argument)
{
	struct said said = {0};
	enum response why = RESPONSE_OK;
	if (!s->proxy)
		why = RESPONSE_NOT_IMPLEMENTED;
	else if (s->state != SESSION_GREETED && s->state != SESSION_READY)
		why = RESPONSE_IN_TRANSACTION;
	else if (!*argument)
		why = RESPONSE_NEEDS_ARGUMENT;
	else if (!take_attributes(&said, argument))
		why = RESPONSE_BAD_PARAMETER;
	if (why == RESPONSE_OK)
		begin_anew(s, &said);
	else
		session_refuse(s, why, NULL);
}
