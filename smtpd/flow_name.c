/* SPDX-License-Identifier: ISC */
#include "smtpd/flow_name.h"

#include "base/envelope.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/netlist.h"
#include "base/tables.h"

#include <stdlib.h>
#include <string.h>

static char *of_field(const struct conf *c, const struct flow_facts *of)
{
	if (!of->named)
		return NULL;
	if (envelope_flow_good(of->named))
		return mem_strdup(of->named);
	log_event(LOG_LEVEL_WARNING, "flow", "id", log_id(of->id), "state", "ignored", "reason",
		  log_text("%s is not the name of a flow: \"%s\"", c->flow_header, of->named),
		  NULL);
	return NULL;
}

static char *of_login(const struct conf *c, const struct flow_facts *of)
{
	struct table_origin origin;
	if (!of->login)
		return NULL;
	char *text = mem_printf("login:%s", of->login), *key = name_key(text);
	char *flow = tables_get(c->tables, TABLE_FLOWS, key, &origin);
	free(text);
	free(key);
	return flow;
}

static char *of_client(const struct conf *c, const struct flow_facts *of)
{
	struct table_origin origin;
	struct net net;
	char text[NET_TEXT], *flow = NULL;
	if (!of->client || !c->tables || tables_count(c->tables, TABLE_FLOWS) == 0)
		return NULL;
	net_of(of->client, &net);
	do
		flow = tables_get(c->tables, TABLE_FLOWS, net_text(&net, text), &origin);
	while (!flow && net_up(&net));
	return flow;
}

static char *of_table(const struct conf *c, const struct flow_facts *of)
{
	struct table_origin origin;
	if (of->asked)
		return of->row ? mem_strdup(of->row) : NULL;
	char *flow = of_login(c, of);
	if (!flow)
		flow = tables_find(c->tables, TABLE_FLOWS, of->sender, &origin);
	return flow ? flow : of_client(c, of);
}

static char *of_sender(const char *sender)
{
	const char *at = strrchr(sender, '@');
	if (!*sender)
		return mem_strdup("<>");
	return name_key(at ? at + 1 : sender);
}

char *flow_name(const struct conf *c, const struct flow_facts *of)
{
	char *flow = of_field(c, of);
	if (!flow)
		flow = of_table(c, of);
	if (flow)
		return flow;
	return of->login ? mem_strdup(of->login) : of_sender(of->sender);
}
