/* SPDX-License-Identifier: ISC */
#include "base/conf_build.h"

#include "base/conf_value.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/tables.h"
#include "base/tls_verify.h"

#include <assert.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct builder {
	struct conf *conf;
	const struct conf_file *from;
	const char *file;
	struct conf_lines *lines;
	struct conf_faults *faults;
};

static void set_defaults(enum conf_kind kind, void *section)
{
	const struct conf_section *s = &conf_sections[kind];
	for (int i = 0; i < s->nrow; i++)
		conf_value_default(&s->row[i], conf_place(section, &s->row[i]));
}

static void copy_section(enum conf_kind kind, void *to, const void *from)
{
	const struct conf_section *s = &conf_sections[kind];
	for (int i = 0; i < s->nrow; i++)
		conf_value_copy(&s->row[i], conf_place(to, &s->row[i]),
				conf_place(from, &s->row[i]));
}

static void set_list(struct builder *b, const struct conf_setting *s, struct conf_list *l)
{
	if (!s->added)
		conf_list_free(l);
	for (int i = 0; i < s->n; i++) {
		if (conf_value_controls(s->text[i]))
			conf_fault(b->faults, b->file, s->lines[i],
				   "%s must not have control characters", s->row->name);
		conf_lines_add(b->lines, l, l->n, s->lines[i]);
		conf_list_add(l, s->text[i]);
	}
}

static void apply_block(struct builder *b, const struct conf_block *block, void *section)
{
	for (int i = 0; i < block->nsetting; i++) {
		const struct conf_setting *s = &block->setting[i];
		void *place = conf_place(section, s->row);
		struct buf why = {0};
		if (s->row->type == CONF_list)
			set_list(b, s, place);
		else if (!conf_value_set(s->row, place, s->text[0], &why))
			conf_fault(b->faults, b->file, s->line, "%s %s", s->row->name,
				   buf_cstr(&why));
		if (s->line > 0)
			conf_lines_add(b->lines, place, -1, s->line);
		buf_fini(&why);
	}
}

static int count_blocks(const struct builder *b, int kind, const char *title)
{
	int n = 0;
	for (int i = 0; i < b->from->nblock; i++)
		n += b->from->block[i].kind == kind &&
		     (!title || strcmp(b->from->block[i].title, title) == 0);
	return n;
}

static void set_title(struct conf_titled *t, enum conf_kind kind, const char *text, int line)
{
	assert(conf_sections[kind].titled && !t->title);
	bool folded = kind == CONF_KIND_ROUTE || kind == CONF_KIND_ALIAS ||
		      kind == CONF_KIND_DKIM || kind == CONF_KIND_FLOW;
	t->title = folded ? name_key(text) : mem_strdup(text);
	t->line = line;
	set_defaults(kind, t);
}

/* A port that was given for LMTP is kept, though it is that of SMTP. */
static void clone_port(struct builder *b, const struct conf_transport *from,
		       const struct conf_transport *to)
{
	int line = conf_lines_find(b->lines, &from->port, -1, 0);
	if (line > 0 && from->protocol == TRANSPORT_PROTOCOL_LMTP)
		conf_lines_add(b->lines, &to->port, -1, line);
}

/* "like": all of another transport, as far as the file has come; or of "smtp". */
static void clone_transport(struct builder *b, const struct conf_block *block,
			    struct conf_transport *t)
{
	for (int i = 0; i < b->conf->ntransport; i++) {
		const struct conf_transport *other = &b->conf->transport[i];
		if (other != t && strcmp(other->title, block->like) == 0) {
			copy_section(CONF_KIND_TRANSPORT, t, other);
			clone_port(b, other, t);
			return;
		}
	}
	conf_fault(b->faults, b->file, block->like_line,
		   "like = \"%s\": there is no transport of that name before this one",
		   block->like);
}

static void build_transport(struct builder *b, const struct conf_block *block)
{
	struct conf_transport *t = &b->conf->transport[b->conf->ntransport++];
	set_title((struct conf_titled *)t, CONF_KIND_TRANSPORT, block ? block->title : "smtp",
		  block ? block->line : 0);
	if (block && block->like)
		clone_transport(b, block, t);
	if (block)
		apply_block(b, block, t);
}

/* "smtp" first, wherever the file has it; then the others in their order. */
static void build_transports(struct builder *b)
{
	int n = count_blocks(b, CONF_KIND_TRANSPORT, NULL) + 1;
	b->conf->transport = mem_zalloc((size_t)n * sizeof *b->conf->transport);
	if (count_blocks(b, CONF_KIND_TRANSPORT, "smtp") == 0)
		build_transport(b, NULL);
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < b->from->nblock; i++) {
			const struct conf_block *block = &b->from->block[i];
			bool smtp = strcmp(block->title, "smtp") == 0;
			if (block->kind == CONF_KIND_TRANSPORT && smtp == (pass == 0))
				build_transport(b, block);
		}
	}
}

/* All sections of a kind, and one of that title behind them where it is not among them. */
static int build_titled(struct builder *b, enum conf_kind kind, char *sections, const char *always)
{
	size_t size = conf_sections[kind].size;
	int n = 0;
	for (int i = 0; i < b->from->nblock; i++) {
		const struct conf_block *block = &b->from->block[i];
		if (block->kind != (int)kind)
			continue;
		void *section = sections + (size_t)n++ * size;
		set_title(section, kind, block->title, block->line);
		apply_block(b, block, section);
	}
	if (always)
		set_title((void *)(sections + (size_t)n++ * size), kind, always, 0);
	return n;
}

static void *alloc_sections(const struct builder *b, enum conf_kind kind)
{
	return mem_zalloc((size_t)(count_blocks(b, kind, NULL) + 1) * conf_sections[kind].size);
}

static void build_single(struct builder *b, enum conf_kind kind, void *section)
{
	set_defaults(kind, section);
	for (int i = 0; i < b->from->nblock; i++)
		if (b->from->block[i].kind == (int)kind)
			apply_block(b, &b->from->block[i], section);
}

void conf_build_section(const struct conf_block *block, const struct conf_section *s, void *section,
			const char *file, struct conf_lines *lines, struct conf_faults *faults)
{
	struct builder b = {.file = file, .lines = lines, .faults = faults};
	for (int i = 0; i < s->nrow; i++)
		conf_value_default(&s->row[i], conf_place(section, &s->row[i]));
	apply_block(&b, block, section);
}

static bool has_setting(const struct conf_block *block, const char *setting)
{
	for (int i = 0; i < block->nsetting; i++)
		if (strcmp(block->setting[i].row->name, setting) == 0)
			return true;
	return false;
}

/* Over what an earlier file says of it. */
static void take_provider(struct builder *b, const struct conf_block *block, const char *file)
{
	struct builder of_file = {b->conf, b->from, file, b->lines, b->faults};
	struct conf_provider *p = conf_find(b->conf, CONF_KIND_PROVIDER, block->title);
	if (!p) {
		p = &b->conf->provider[b->conf->nprovider++];
		set_title((struct conf_titled *)p, CONF_KIND_PROVIDER, block->title, block->line);
	}
	apply_block(&of_file, block, p);
	p->file = file;
	p->line = block->line;
	if (has_setting(block, "mx") || !p->mx_file)
		p->mx_file = file;
	if (has_setting(block, "transport"))
		p->by_file = file;
}

static int count_providers(const struct conf_file *from)
{
	int n = 0;
	for (int i = 0; i < from->nblock; i++)
		n += from->block[i].kind == CONF_KIND_PROVIDER;
	return n;
}

static void take_providers(struct builder *b, const struct conf_file *from, const char *file)
{
	for (int i = 0; i < from->nblock; i++)
		if (from->block[i].kind == CONF_KIND_PROVIDER)
			take_provider(b, &from->block[i], file);
}

/* Of the files first that are there for them. */
static void build_providers(struct builder *b)
{
	struct conf *c = b->conf;
	struct conf_file *file = conf_provider_files(c, b->lines, b->faults);
	int n = count_providers(b->from);
	assert(c->nprovider == 0);
	for (int i = 0; i < c->providers.n; i++)
		n += count_providers(&file[i]);
	c->provider = mem_zalloc((size_t)(n + 1) * sizeof *c->provider);
	for (int i = 0; i < c->providers.n; i++) {
		take_providers(b, &file[i], c->providers.item[i]);
		conf_file_fini(&file[i]);
	}
	take_providers(b, b->from, c->file);
	free(file);
}

/* "*" first: what another does not say, that one says. */
static void build_flow(struct builder *b, const struct conf_block *block)
{
	struct conf_flow *f = &b->conf->flow[b->conf->nflow++];
	set_title((struct conf_titled *)f, CONF_KIND_FLOW, block ? block->title : "*",
		  block ? block->line : 0);
	if (f != b->conf->flow)
		copy_section(CONF_KIND_FLOW, f, b->conf->flow);
	if (block)
		apply_block(b, block, f);
}

static void build_flows(struct builder *b)
{
	b->conf->flow = alloc_sections(b, CONF_KIND_FLOW);
	if (count_blocks(b, CONF_KIND_FLOW, "*") == 0)
		build_flow(b, NULL);
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < b->from->nblock; i++) {
			const struct conf_block *block = &b->from->block[i];
			if (block->kind == CONF_KIND_FLOW &&
			    (strcmp(block->title, "*") == 0) == (pass == 0))
				build_flow(b, block);
		}
	}
}

static char *own_name(const struct conf *c)
{
	char name[256] = "localhost";
	if (!*c->hostname)
		gethostname(name, sizeof name - 1);
	char *own = mem_strdup(*c->hostname ? c->hostname : name);
	conf_value_keep_name(&own);
	return own;
}

struct conf *conf_build(const struct conf_file *from, const char *file, struct conf_lines *lines,
			struct conf_faults *faults)
{
	struct conf *c = mem_zalloc(sizeof *c);
	struct builder b = {c, from, file, lines, faults};
	atomic_init(&c->refs, 1);
	c->file = mem_strdup(file);
	lines->file = c->file;
	build_single(&b, CONF_KIND_GLOBAL, c);
	conf_value_keep_name(&c->hostname);
	c->own_name = own_name(c);
	build_single(&b, CONF_KIND_QUEUE, &c->queue);
	build_single(&b, CONF_KIND_DNS, &c->dns);
	build_single(&b, CONF_KIND_AUTH, &c->auth);
	build_single(&b, CONF_KIND_TLS, &c->tls);
	build_single(&b, CONF_KIND_TLS_REPORT, &c->tls_report);
	build_single(&b, CONF_KIND_ARCHIVE, &c->archive);
	build_single(&b, CONF_KIND_VERIFY, &c->verify);
	build_single(&b, CONF_KIND_EVENTS, &c->events);
	build_single(&b, CONF_KIND_CLUSTER, &c->cluster);
	build_transports(&b);
	c->listener = alloc_sections(&b, CONF_KIND_LISTENER);
	c->nlistener = build_titled(&b, CONF_KIND_LISTENER, (char *)c->listener,
				    count_blocks(&b, CONF_KIND_LISTENER, NULL) ? NULL : "smtp");
	c->route = alloc_sections(&b, CONF_KIND_ROUTE);
	c->route_is_default = count_blocks(&b, CONF_KIND_ROUTE, "*") == 0;
	c->nroute = build_titled(&b, CONF_KIND_ROUTE, (char *)c->route,
				 c->route_is_default ? "*" : NULL);
	c->alias = alloc_sections(&b, CONF_KIND_ALIAS);
	c->nalias = build_titled(&b, CONF_KIND_ALIAS, (char *)c->alias, NULL);
	c->limit = alloc_sections(&b, CONF_KIND_LIMIT);
	c->nlimit = build_titled(&b, CONF_KIND_LIMIT, (char *)c->limit, NULL);
	c->milter = alloc_sections(&b, CONF_KIND_MILTER);
	c->nmilter = build_titled(&b, CONF_KIND_MILTER, (char *)c->milter, NULL);
	c->dkim = alloc_sections(&b, CONF_KIND_DKIM);
	c->ndkim = build_titled(&b, CONF_KIND_DKIM, (char *)c->dkim, NULL);
	c->source = alloc_sections(&b, CONF_KIND_SOURCE);
	c->nsource = build_titled(&b, CONF_KIND_SOURCE, (char *)c->source, NULL);
	build_providers(&b);
	build_flows(&b);
	return c;
}

static void free_settings(struct conf *c)
{
	for (int kind = CONF_KINDS - 1; kind >= 0; kind--) {
		const struct conf_section *s = &conf_sections[kind];
		for (int i = 0; i < conf_count(c, (enum conf_kind)kind); i++) {
			void *section = conf_at(c, (enum conf_kind)kind, i);
			for (int r = 0; r < s->nrow; r++)
				conf_value_free(&s->row[r], conf_place(section, &s->row[r]));
			if (s->titled)
				free(((struct conf_titled *)section)->title);
		}
	}
	for (int i = 0; i < c->ntransport; i++)
		SSL_CTX_free(c->transport[i].identity);
	for (int i = 0; i < c->ndkim; i++) {
		EVP_MD_CTX_free(c->dkim[i].signing);
		EVP_PKEY_free(c->dkim[i].loaded);
	}
	conf_list_free(&c->auth.users);
	conf_list_free(&c->recipients);
	tls_authorities_free(&c->authorities);
	conf_provider_free(c);
	conf_source_free(c);
	free(c->listener);
	free(c->transport);
	free(c->route);
	free(c->alias);
	free(c->limit);
	free(c->flow);
	free(c->dkim);
	free(c->milter);
	free(c->dkim_sorted);
	free(c->own_name);
	free(c->file);
}

void conf_free(struct conf *c)
{
	tables_unref(c->tables);
	if (c->whole)
		conf_unref(c->whole);
	else
		free_settings(c);
	free(c);
}
