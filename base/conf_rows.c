/* SPDX-License-Identifier: ISC */
#include "base/conf_rows.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum { RESTART, RELOAD };

/* Each list of rows in turn, with STRUCT the one that its members lie in. */
#define ROW(type, name, text, low, high, reload, choices, sentence)                                \
	{#name, CONF_##type, text, low, high, reload, choices, sentence, offsetof(STRUCT, name)},

#define STRUCT struct conf
static const struct conf_row global_rows[] = {CONF_GLOBAL(ROW)};
#undef STRUCT
#define STRUCT struct conf_listener
static const struct conf_row listener_rows[] = {CONF_LISTENER(ROW)};
#undef STRUCT
#define STRUCT struct conf_transport
static const struct conf_row transport_rows[] = {CONF_TRANSPORT(ROW)};
#undef STRUCT
#define STRUCT struct conf_route
static const struct conf_row route_rows[] = {CONF_ROUTE(ROW)};
#undef STRUCT
#define STRUCT struct conf_alias
static const struct conf_row alias_rows[] = {CONF_ALIAS(ROW)};
#undef STRUCT
#define STRUCT struct conf_limit
static const struct conf_row limit_rows[] = {CONF_LIMIT(ROW)};
#undef STRUCT
#define STRUCT struct conf_milter
static const struct conf_row milter_rows[] = {CONF_MILTER(ROW)};
#undef STRUCT
#define STRUCT struct conf_dkim
static const struct conf_row dkim_rows[] = {CONF_DKIM(ROW)};
#undef STRUCT
#define STRUCT struct conf_provider
static const struct conf_row provider_rows[] = {CONF_PROVIDER(ROW)};
#undef STRUCT
#define STRUCT struct conf_source
static const struct conf_row source_rows[] = {CONF_SOURCE(ROW)};
#undef STRUCT
#define STRUCT struct conf_flow
static const struct conf_row flow_rows[] = {CONF_FLOW(ROW)};
#undef STRUCT
#define STRUCT struct conf_queue
static const struct conf_row queue_rows[] = {CONF_QUEUE(ROW)};
#undef STRUCT
#define STRUCT struct conf_dns
static const struct conf_row dns_rows[] = {CONF_DNS(ROW)};
#undef STRUCT
#define STRUCT struct conf_verify
static const struct conf_row verify_rows[] = {CONF_VERIFY(ROW)};
#undef STRUCT
#define STRUCT struct conf_auth
static const struct conf_row auth_rows[] = {CONF_AUTH(ROW)};
#undef STRUCT
#define STRUCT struct conf_tls
static const struct conf_row tls_rows[] = {CONF_TLS(ROW)};
#undef STRUCT
#define STRUCT struct conf_events
static const struct conf_row events_rows[] = {CONF_EVENTS(ROW)};
#undef STRUCT
#define STRUCT struct conf_cluster
static const struct conf_row cluster_rows[] = {CONF_CLUSTER(ROW)};
#undef STRUCT
#define STRUCT struct conf_tls_report
static const struct conf_row tls_report_rows[] = {CONF_TLS_REPORT(ROW)};
#undef STRUCT
#define STRUCT struct conf_archive
static const struct conf_row archive_rows[] = {CONF_ARCHIVE(ROW)};
#undef STRUCT

#define ROWS(rows) (int)(sizeof rows / sizeof rows[0]), rows

const struct conf_section conf_sections[CONF_KINDS] = {
	[CONF_KIND_GLOBAL] = {"", false, sizeof(struct conf), ROWS(global_rows),
			      "Settings of the whole relay."},
	[CONF_KIND_LISTENER] = {"listener", true, sizeof(struct conf_listener), ROWS(listener_rows),
				"Where mail comes in. Without one, there is one called smtp."},
	[CONF_KIND_TRANSPORT] = {"transport", true, sizeof(struct conf_transport),
				 ROWS(transport_rows),
				 "A way for mail to go out. There is always one called smtp. like "
				 "= NAME takes over the settings of a transport defined before it, "
				 "or of smtp."},
	[CONF_KIND_ROUTE] = {"route", true, sizeof(struct conf_route), ROWS(route_rows),
			     "Which mail goes where: an address, a domain, a .parent of domains, "
			     "or * for the rest. The most specific route is taken."},
	[CONF_KIND_ALIAS] = {"alias", true, sizeof(struct conf_alias), ROWS(alias_rows),
			     "An address that stands for others."},
	[CONF_KIND_LIMIT] = {"limit", true, sizeof(struct conf_limit), ROWS(limit_rows),
			     "How much a login, a client (an IPv4 address, or a /64 of IPv6) or a "
			     "sender's address may send: one section for each of the names login, "
			     "client and sender. Of several limits that are reached the strictest "
			     "action counts."},
	[CONF_KIND_MILTER] =
		{"milter", true, sizeof(struct conf_milter), ROWS(milter_rows),
		 "A filter that speaks Sendmail's milter protocol, like rspamd, OpenDKIM or "
		 "clamav-milter. Mail passes those that its listener names, in their order, "
		 "each as the one before has left it, and is signed by us after that. "
		 "Reports of ours pass none."},
	[CONF_KIND_DKIM] = {"dkim", true, sizeof(struct conf_dkim), ROWS(dkim_rows),
			    "Signing mail of a domain, that of the header From: the domain, or "
			    ".domain for all that lie in it. Several sections of one domain make "
			    "several signatures. A client that may not relay, and a login that may "
			    "not send as that address, gets none."},
	[CONF_KIND_PROVIDER] =
		{"provider", true, sizeof(struct conf_provider), ROWS(provider_rows),
		 "A receiver whose mail hosts serve many domains, and what holds for all of them "
		 "together. Which one it is follows from the names in the MX records."},
	[CONF_KIND_SOURCE] =
		{"source", true, sizeof(struct conf_source), ROWS(source_rows),
		 "An address to connect from, with the name that goes with it. What is learnt "
		 "of hosts, and all limits on them, are of each source by itself."},
	[CONF_KIND_FLOW] =
		{"flow", true, sizeof(struct conf_flow), ROWS(flow_rows),
		 "Whose mail it is, where that is to be other than the default. \"*\" changes "
		 "the default, and what a section does not say. A message is of the flow that "
		 "flow_header names; else that of the tables flows; else that of its login; else "
		 "that of the domain of its sender, of \"<>\" for the null sender. Reports of the "
		 "relay's own are of \"<reports>\". Case does not matter, nor how a domain is "
		 "spelled."},
	[CONF_KIND_QUEUE] = {"queue", false, sizeof(struct conf_queue), ROWS(queue_rows),
			     "How long, and how much at once."},
	[CONF_KIND_DNS] = {"dns", false, sizeof(struct conf_dns), ROWS(dns_rows),
			   "Where names are looked up."},
	[CONF_KIND_VERIFY] = {"verify", false, sizeof(struct conf_verify), ROWS(verify_rows),
			      "Asking next hops whether they take a recipient, where "
			      "recipient_access or a route says verify."},
	[CONF_KIND_EVENTS] = {"events", false, sizeof(struct conf_events), ROWS(events_rows),
			      "Who is told, in JSON, what became of each attempt on a recipient; "
			      "see EVENTS in sluice(8)."},
	[CONF_KIND_AUTH] = {"auth", false, sizeof(struct conf_auth), ROWS(auth_rows),
			    "Who may log in, on listeners with auth = true."},
	[CONF_KIND_TLS] = {"tls", false, sizeof(struct conf_tls), ROWS(tls_rows),
			   "Whom to believe, of those that mail goes to."},
	[CONF_KIND_TLS_REPORT] = {"tls_report", false, sizeof(struct conf_tls_report),
				  ROWS(tls_report_rows),
				  "Reports to other domains on TLS to their hosts (RFC 8460)."},
	[CONF_KIND_ARCHIVE] = {"archive", false, sizeof(struct conf_archive), ROWS(archive_rows),
			       "Copies of mail for an archive, each a message of its own with the "
			       "original attached, and its envelope in words. What is not stored "
			       "with its copy is not accepted."},
	[CONF_KIND_CLUSTER] =
		{"cluster", false, sizeof(struct conf_cluster), ROWS(cluster_rows),
		 "Several machines that know what each other knows; see Several machines in "
		 "sluice(8)."},
};

/* Where struct conf has a section, or, of the titled ones, a pointer to the first and their number. */
static const struct {
	size_t section, count;
} places[CONF_KINDS] = {
#define TITLED(kind, name)                                                                         \
	[CONF_KIND_##kind] = {offsetof(struct conf, name), offsetof(struct conf, n##name)}
#define SINGLE(kind, name) [CONF_KIND_##kind] = {offsetof(struct conf, name), 0}
	TITLED(LISTENER, listener), TITLED(TRANSPORT, transport),   TITLED(ROUTE, route),
	TITLED(ALIAS, alias),	    TITLED(LIMIT, limit),	    TITLED(MILTER, milter),
	TITLED(DKIM, dkim),	    TITLED(PROVIDER, provider),	    TITLED(SOURCE, source),
	TITLED(FLOW, flow),	    SINGLE(QUEUE, queue),	    SINGLE(DNS, dns),
	SINGLE(VERIFY, verify),	    SINGLE(EVENTS, events),	    SINGLE(AUTH, auth),
	SINGLE(TLS, tls),	    SINGLE(TLS_REPORT, tls_report), SINGLE(ARCHIVE, archive),
	SINGLE(CLUSTER, cluster),
#undef TITLED
#undef SINGLE
};

int conf_count(const struct conf *c, enum conf_kind kind)
{
	assert(kind < CONF_KINDS);
	const char *at = (const char *)c + places[kind].count;
	return conf_sections[kind].titled ? *(const int *)at : 1;
}

void *conf_at(const struct conf *c, enum conf_kind kind, int i)
{
	char *at = (char *)c + places[kind].section, *first;
	assert(i >= 0 && i < conf_count(c, kind));
	if (!conf_sections[kind].titled)
		return at;
	memcpy(&first, at, sizeof first);
	return first + (size_t)i * conf_sections[kind].size;
}

void *conf_find(const struct conf *c, enum conf_kind kind, const char *title)
{
	assert(conf_sections[kind].titled);
	for (int i = 0; i < conf_count(c, kind); i++) {
		struct conf_titled *section = conf_at(c, kind, i);
		if (strcmp(section->title, title) == 0)
			return section;
	}
	return NULL;
}
