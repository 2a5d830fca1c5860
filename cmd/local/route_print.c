/* SPDX-License-Identifier: ISC */
#include "cmd/local/route_print.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmd/text/json_put.h"
#include "qmgr/route/source_choice.h"

static const char *const actions[] = {"deliver", "error", "discard"};

static void put_origin(struct buf *to, const struct table_origin *at)
{
	if (at->line > 0)
		buf_printf(to, "%s:%d", at->file, at->line);
	else
		buf_puts(to, *at->file ? at->file : "the defaults");
}

static void put_steps(struct buf *to, const char *what, const char *address,
		      const struct rewrite *r)
{
	buf_printf(to, "%-10s <%s>\n", what, address);
	for (int i = 0; i < r->n; i++) {
		buf_printf(to, "  becomes  <%s>, by %s, ", r->step[i].to, r->step[i].by);
		put_origin(to, &r->step[i].origin);
		buf_puts(to, "\n");
	}
}

static void put_access(struct buf *to, const struct route_trace *t)
{
	static const char *const names[] = {"accept",  "refuse", "hold",
					    "discard", "verify", "flow"};
	if (!t->accessed)
		return;
	buf_printf(to, "%-10s %s", "access", names[t->access.action]);
	if (t->access.action == ACCESS_REFUSE)
		buf_printf(to, " %d %s %s", t->access.code, t->access.dsn, t->access.text);
	if (t->access.action == ACCESS_FLOW)
		buf_printf(to, " %s", t->access.text);
	buf_puts(to, ", by recipient_access, ");
	put_origin(to, &t->access_at);
	buf_puts(to, "\n");
}

void route_print_security(struct buf *to, enum resolve_security s)
{
	if (s != RESOLVE_INDETERMINATE)
		buf_printf(to, ", DNSSEC %s", resolve_security_text(s));
}

/* NULL: of none that is known. */
static const char *provider_of(const struct conf *c, const struct resolve_host *h)
{
	const struct conf_provider *p = conf_provider_find(c, h->name);
	return p ? p->title : NULL;
}

static void put_provider(struct buf *to, const char *provider)
{
	if (provider)
		buf_printf(to, ", provider %s", provider);
}

static void put_hop(struct buf *to, const struct conf *c, const struct route_hop *h)
{
	char peer[ADDRESS_PEER_MAX];
	const struct resolve *r = h->answer;
	buf_printf(to, "  %-8s %s%s", h->fallback ? "fallback" : "next hop", h->text,
		   h->bracketed || h->fallback || h->weight ? "" : ", by MX");
	route_print_security(to, r ? r->security : RESOLVE_INDETERMINATE);
	buf_puts(to, "\n");
	if (!r || r->nhost == 0)
		buf_printf(to, "    %s\n", r ? r->failure->text : "no answer in time");
	for (int i = 0; r && i < r->nhost; i++)
		for (int a = 0; a < r->host[i].naddress; a++) {
			union address address = r->host[i].address[a];
			address_set_port(&address, h->port);
			buf_printf(to, "    host   %s%s%s, preference %d%s",
				   address_is_unix(&address) ? "" : r->host[i].name,
				   address_is_unix(&address) ? "" : " ",
				   address_peer(&address, "", peer), r->host[i].preference,
				   h->weight ? log_text(", weight %d", h->weight) : "");
			route_print_security(to, r->host[i].security);
			put_provider(to, provider_of(c, &r->host[i]));
			buf_puts(to, "\n");
		}
}

/* Of the flow, or else of the transport. */
static const struct conf_uses *sources_of(const struct route_trace *t, const struct route_way *w)
{
	return source_uses(t->conf, w->by, t->flow);
}

static const char *source_today(const struct route_trace *t, const struct route_way *w)
{
	const struct conf_uses *uses = sources_of(t, w);
	return uses->n ? source_choose(uses, t->flow, clock_wall_ms(), NULL, NULL)->title : NULL;
}

static void put_sources(struct buf *to, const struct route_trace *t, const struct route_way *w)
{
	const struct conf_uses *uses = sources_of(t, w);
	if (uses->n == 0)
		return;
	buf_puts(to, "  from     sources");
	for (int i = 0; i < uses->n; i++)
		buf_printf(to, "%s %s%s", i ? "," : "", uses->of[i].source->title,
			   uses->of[i].weight > 1 ? log_text("=%d", (int)uses->of[i].weight) : "");
	if (uses == &w->by->uses)
		buf_printf(to, " of transport %s", w->by->title);
	else
		buf_printf(to, " of flow %s", t->flow);
	buf_printf(to, "; flow %s has %s today\n", t->flow, source_today(t, w));
}

static void put_carrier(struct buf *to, const struct route_trace *t, const struct route_way *w)
{
	buf_printf(to, "  by       transport %s", w->by->title);
	if (w->provider)
		buf_printf(to, ", of provider %s", w->provider->title);
	if (w->of_flow)
		buf_printf(to, ", of flow %s", t->flow);
	buf_printf(to, ", tls %s\n", w->nhop ? w->hop[0].tls : w->by->tls);
	put_sources(to, t, w);
}

static void put_way(struct buf *to, const struct route_trace *t, const struct route_way *w)
{
	buf_printf(to, "%-10s <%s>\n", w->copy ? "copy" : "recipient", w->recipient);
	buf_printf(to, "  route    %s, ", w->setting);
	put_origin(to, &w->origin);
	buf_puts(to, "\n");
	if (w->unlisted)
		buf_puts(to, "  refused  550 5.1.1 User unknown: in none of its recipients\n");
	if (w->action == ROUTE_ERROR)
		buf_printf(to, "  %-8s %s %s\n", w->dsn[0] == '4' ? "deferred" : "returned", w->dsn,
			   w->text);
	else if (w->action == ROUTE_DISCARD)
		buf_printf(to, "  dropped  %s\n", w->text);
	else
		put_carrier(to, t, w);
	for (int i = 0; i < w->nhop; i++)
		put_hop(to, t->conf, &w->hop[i]);
}

static bool is_dropped(const struct route_trace *t)
{
	return t->access.action == ACCESS_REFUSE || t->access.action == ACCESS_DISCARD;
}

void route_print_text(struct buf *to, const struct route_trace *t, const char *sender,
		      const char *address)
{
	put_steps(to, "from", sender, &t->sender);
	put_access(to, t);
	if (is_dropped(t))
		return;
	put_steps(to, "to", address, &t->recipient);
	if (t->aliased) {
		buf_printf(to, "%-10s stands for others, by ", "alias");
		put_origin(to, &t->alias_at);
		buf_puts(to, "\n");
	}
	if (t->refused != RESPONSE_OK)
		buf_printf(to, "%-10s %d %s %s\n", "refused", response_row(t->refused)->code,
			   response_row(t->refused)->dsn, response_reason(t->refused));
	for (uint32_t i = 0; i < t->nway; i++)
		put_way(to, t, &t->way[i]);
}

static void json_origin(struct buf *to, const struct table_origin *at)
{
	json_put_text(to, "file", at->file);
	buf_printf(to, "\"line\":%d", at->line);
}

static void json_steps(struct buf *to, const char *name, const struct rewrite *r)
{
	buf_printf(to, "\"%s\":[", name);
	for (int i = 0; i < r->n; i++) {
		buf_puts(to, i ? ",{" : "{");
		json_put_text(to, "by", r->step[i].by);
		json_put_text(to, "to", r->step[i].to);
		json_origin(to, &r->step[i].origin);
		buf_puts(to, "}");
	}
	buf_puts(to, "],");
}

static void json_access(struct buf *to, const struct route_trace *t)
{
	static const char *const names[] = {"accept",  "refuse", "hold",
					    "discard", "verify", "flow"};
	if (!t->accessed)
		return;
	buf_puts(to, "\"access\":{");
	json_put_text(to, "action", names[t->access.action]);
	if (t->access.action == ACCESS_REFUSE) {
		buf_printf(to, "\"code\":%d,", t->access.code);
		json_put_text(to, "dsn", t->access.dsn);
		json_put_text(to, "text", t->access.text);
	}
	json_origin(to, &t->access_at);
	buf_puts(to, "},");
}

static void json_hosts(struct buf *to, const struct conf *c, const struct route_hop *h)
{
	char where[ADDRESS_WHERE_MAX];
	const struct resolve *r = h->answer;
	bool some = false;
	buf_puts(to, "\"hosts\":[");
	for (int i = 0; r && i < r->nhost; i++)
		for (int a = 0; a < r->host[i].naddress; a++) {
			buf_puts(to, some ? ",{" : "{");
			some = true;
			json_put_text(to, "name", r->host[i].name);
			json_put_text(to, "address", address_where(&r->host[i].address[a], where));
			json_put_text(to, "dnssec", resolve_security_text(r->host[i].security));
			json_put_text(to, "provider", provider_of(c, &r->host[i]));
			buf_printf(to, "\"port\":%d,\"preference\":%d}", h->port,
				   r->host[i].preference);
		}
	buf_puts(to, "]");
	if (!r || r->nhost == 0) {
		buf_puts(to, ",\"failure\":");
		log_json_string(to, r ? r->failure->text : "no answer in time");
	}
}

static void json_hops(struct buf *to, const struct conf *c, const struct route_way *w)
{
	buf_puts(to, ",\"next_hops\":[");
	for (int i = 0; i < w->nhop; i++) {
		const struct route_hop *h = &w->hop[i];
		buf_puts(to, i ? ",{" : "{");
		json_put_text(to, "next_hop", h->text);
		json_put_flag(to, "fallback", h->fallback);
		json_put_number(to, "weight", h->weight);
		json_put_text(to, "dnssec",
			      resolve_security_text(h->answer ? h->answer->security
							      : RESOLVE_INDETERMINATE));
		json_hosts(to, c, h);
		buf_puts(to, "}");
	}
	buf_puts(to, "]");
}

static void json_sources(struct buf *to, const struct route_trace *t, const struct route_way *w)
{
	const struct conf_uses *uses = sources_of(t, w);
	buf_puts(to, "\"sources\":[");
	for (int i = 0; i < uses->n; i++) {
		buf_puts(to, i ? ",{" : "{");
		json_put_text(to, "source", uses->of[i].source->title);
		buf_printf(to, "\"weight\":%d}", (int)uses->of[i].weight);
	}
	buf_puts(to, "],");
	json_put_text(to, "source_today", source_today(t, w));
}

static void json_way(struct buf *to, const struct route_trace *t, const struct route_way *w)
{
	json_put_text(to, "recipient", w->recipient);
	json_put_flag(to, "copy", w->copy);
	json_put_flag(to, "unlisted", w->unlisted);
	json_put_text(to, "action", actions[w->action]);
	json_put_text(to, "setting", w->setting);
	if (w->action == ROUTE_ERROR)
		json_put_text(to, "dsn", w->dsn);
	if (w->action != ROUTE_DELIVER) {
		json_put_text(to, "text", w->text);
	} else {
		json_put_text(to, "transport", w->by->title);
		json_put_text(to, "provider", w->provider ? w->provider->title : NULL);
		json_put_text(to, "tls", w->nhop ? w->hop[0].tls : w->by->tls);
		json_sources(to, t, w);
	}
	json_origin(to, &w->origin);
	if (w->action == ROUTE_DELIVER)
		json_hops(to, t->conf, w);
}

static void json_head(struct buf *to, const struct route_trace *t, const char *sender,
		      const char *address)
{
	buf_puts(to, "{");
	json_put_text(to, "from", sender);
	json_put_text(to, "address", address);
	json_put_text(to, "flow", t->flow);
	json_steps(to, "sender_rewriting", &t->sender);
	json_steps(to, "recipient_rewriting", &t->recipient);
	json_access(to, t);
	if (t->aliased) {
		buf_puts(to, "\"alias\":{");
		json_origin(to, &t->alias_at);
		buf_puts(to, "},");
	}
}

void route_print_json(struct buf *to, const struct route_trace *t, const char *sender,
		      const char *address)
{
	for (uint32_t i = 0; i < t->nway; i++) {
		json_head(to, t, sender, address);
		json_way(to, t, &t->way[i]);
		buf_puts(to, "}\n");
	}
	if (t->nway > 0)
		return;
	json_head(to, t, sender, address);
	bool dropped = t->access.action == ACCESS_DISCARD;
	buf_printf(to, "\"recipient\":null,\"action\":\"%s\"", dropped ? "discard" : "refuse");
	if (t->refused != RESPONSE_OK) {
		buf_puts(to, ",\"text\":");
		log_json_string(to, response_reason(t->refused));
	}
	buf_puts(to, "}\n");
}
