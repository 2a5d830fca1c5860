/* SPDX-License-Identifier: ISC */
#include "cmd/local/check_warnings.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/conf_value.h"
#include "base/credential.h"
#include "base/dkim_rows.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/netlist.h"
#include "base/tables.h"
#include "base/tls_certificates.h"
#include "base/tls_policy.h"
#include "base/tls_verify.h"
#include "cmd/local/check_access.h"
#include "cmd/local/check_hops.h"
#include "cmd/local/check_sources.h"
#include "cmd/watch/certificate_watch.h"
#include "cmd/watch/memory_room.h"
#include "qmgr/route/route.h"
#include "replica/membership.h"
#include "smtpc/secret_file.h"
#include "smtpc/token.h"
#include "smtpd/alias.h"
#include "smtpd/rewrite.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
	IPV4_WORLD_BITS = 8,
	IPV6_WORLD_BITS = 16,
	DESCRIPTORS_BESIDE = 64, /* of the queue and the threads */
	TMPFS = 0x01021994,
	RSA_BITS_WANTED = 2048,
	FIRST_LINE = 64,
};

static const uint32_t ramfs = 0x858458f6;

struct checked {
	const struct conf *conf;
	int n;
};

static void add_warning(struct checked *c, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void add_warning(struct checked *c, int line, const char *fmt, ...)
{
	va_list args;
	if (line > 0)
		fprintf(stderr, "%s:%d: warning: ", c->conf->file, line);
	else
		fprintf(stderr, "%s: warning: ", c->conf->file);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputs("\n", stderr);
	c->n++;
}

/* More than any organisation has: a /8 or larger that is not set apart for private use. */
static bool is_world(const struct net *n)
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
	if (n->bits < 96 || memcmp(n->bytes, mapped, sizeof mapped) != 0)
		return n->bits <= IPV6_WORLD_BITS && (n->bytes[0] & 0xfe) != 0xfc;
	return n->bits <= 96 + IPV4_WORLD_BITS && n->bytes[12] != 10 && n->bytes[12] != 127;
}

static void check_networks(struct checked *c, const struct conf_list *l, int line)
{
	struct net n;
	for (int i = 0; i < l->n; i++)
		if (net_parse(l->item[i], &n) && is_world(&n))
			add_warning(c, line,
				    "networks has %s: whoever is there may send mail through here",
				    l->item[i]);
}

static void check_cluster(struct checked *c)
{
	const struct conf_cluster *k = &c->conf->cluster;
	static const char *const near[] = {"unix:", "127.", "[::1]", "localhost:"};
	for (size_t i = 0; i < sizeof near / sizeof near[0]; i++)
		if (strncmp(k->redis, near[i], strlen(near[i])) == 0)
			return;
	if (*k->redis && *k->redis_password && !k->redis_tls)
		add_warning(c, 0,
			    "cluster: without redis_tls the password, and the names of hosts and "
			    "logins, cross the network in clear");
}

static void check_node(struct checked *c)
{
	struct buf why = {0};
	if (!membership_would_start(c->conf, &why))
		add_warning(c, 0, "the relay will not start: %s", buf_cstr(&why));
	buf_fini(&why);
}

static void check_hostname(struct checked *c)
{
	const char *name = c->conf->own_name;
	if (!strchr(name, '.'))
		add_warning(
			c, 0,
			"hostname \"%s\" has no dot: many hosts refuse a name that is not complete",
			name);
}

/* The folder, or the nearest one above it that is there. */
static bool find_folder(const char *path, struct statfs *fs)
{
	char *folder = mem_strdup(path), *slash;
	bool found;
	while (!(found = statfs(folder, fs) == 0) && (slash = strrchr(folder, '/')) &&
	       slash > folder)
		*slash = '\0';
	free(folder);
	return found;
}

static void check_spool(struct checked *c)
{
	struct statfs fs;
	struct stat st;
	const char *spool = c->conf->spool;
	if (stat(spool, &st) == 0 ? !S_ISDIR(st.st_mode) : errno == ENOTDIR)
		add_warning(c, 0, "spool %s is no folder: the relay will not start", spool);
	if (find_folder(spool, &fs) &&
	    ((uint32_t)fs.f_type == TMPFS || (uint32_t)fs.f_type == ramfs))
		add_warning(c, 0, "spool %s is in memory: the queue is gone when the machine stops",
			    spool);
	if (c->conf->queue_minfree == 0)
		add_warning(
			c, 0,
			"queue_minfree is 0: mail is accepted until the disk is completely full");
	else if (find_folder(spool, &fs) &&
		 (int64_t)fs.f_bavail * fs.f_bsize < c->conf->queue_minfree)
		add_warning(c, 0, "the disk of spool %s has less room than queue_minfree: %s",
			    spool, condition_effect(CONDITION_disk_full));
}

static void check_dns(struct checked *c)
{
	const struct conf_dns *d = &c->conf->dns;
	union address a;
	if (d->dnssec == DNSSEC_VALIDATE && access(d->trust_anchor, R_OK) != 0)
		add_warning(c, 0, "trust_anchor %s cannot be read: DNS answers are not validated",
			    d->trust_anchor);
	for (int i = 0; d->dnssec == DNSSEC_TRUST && i < d->server.n; i++)
		if (address_parse(d->server.item[i], 0, &a) && !address_is_loopback(&a))
			add_warning(c, 0,
				    "dnssec is \"trust\", but the name server %s is not on this "
				    "machine: its DNSSEC results are not believed",
				    d->server.item[i]);
}

/* A file that the relay appends to. */
static void check_appended(struct checked *c, const char *name, const char *path,
			   const char *effect)
{
	const char *slash = strrchr(path, '/');
	struct stat st;
	if (stat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			add_warning(c, 0, "%s %s is a folder: %s", name, path, effect);
	} else if (slash > path) {
		char *folder = mem_printf("%.*s", (int)(slash - path), path);
		if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode))
			add_warning(c, 0, "%s %s: there is no folder %s", name, path, folder);
		free(folder);
	}
}

static void check_log(struct checked *c)
{
	const char *path = c->conf->log;
	struct stat st;
	if (path[0] == '/') {
		check_appended(c, "log", path, "the relay will not start");
	} else if (strncmp(path, "syslog", 6) == 0) {
		const char *place = path[6] ? path + 7 : "/dev/log";
		if (stat(place, &st) != 0)
			add_warning(c, 0, "log %s: there is no syslogd at %s", path, place);
	}
}

static bool is_alias(const struct conf *conf, const char *address)
{
	struct conf_list to = {0};
	struct table_origin origin;
	bool found = alias_find(conf, NULL, address, &to, &origin) == ALIAS_IS_ONE;
	conf_list_free(&to);
	return found;
}

/* By MX, our own name leads to this relay, which keeps no mail. */
static bool leads_to_mx(const struct conf *conf, const char *address)
{
	struct route_table *routes = route_table_new(conf);
	const struct route *r = route_find(routes, "", address);
	bool by_mx = r->action == ROUTE_DELIVER && r->relay->n == 0;
	route_table_free(&routes);
	return by_mx;
}

static void check_postmaster(struct checked *c)
{
	struct rewrite r;
	if (*c->conf->postmaster || is_alias(c->conf, "postmaster") ||
	    tables_asked(c->conf->tables, TABLE_ALIASES))
		return;
	char *address = mem_printf("postmaster@%s", c->conf->own_name);
	bool good = rewrite_recipient(c->conf, address, &r);
	const char *to = rewrite_result(&r, address);
	if (!good || (!is_alias(c->conf, to) && leads_to_mx(c->conf, to)))
		add_warning(c, 0,
			    "perhaps nobody reads mail to <postmaster>: postmaster is not set, and "
			    "%s has no alias and no route to a relay",
			    to);
	rewrite_fini(&r);
	free(address);
}

static bool is_loopback(const char *listener)
{
	return strncmp(listener, "127.", 4) == 0 || strncmp(listener, "[::1]", 5) == 0;
}

static bool has_limit(const struct conf *conf)
{
	return conf->limit_by[LIMIT_BY_CLIENT] || conf->limit_by[LIMIT_BY_SENDER];
}

/* May anybody send through it? */
static bool is_world_open(const struct conf_listener *l)
{
	struct net n;
	for (int i = 0; i < l->networks.n; i++)
		if (net_parse(l->networks.item[i], &n) && is_world(&n))
			return true;
	return false;
}

static bool believes_all(const struct conf_listener *l)
{
	return l->proxy_protocol.n == 1 && strcmp(l->proxy_protocol.item[0], "true") == 0;
}

static void check_dates(struct checked *c, int line, const char *certificate)
{
	struct tls_span is;
	if (!tls_certificate_span(certificate, &is))
		return;
	int64_t now_ms = clock_wall_ms(), left_ms = is.ends_ms - now_ms;
	if (is.begins_ms > now_ms)
		add_warning(c, line, "the certificate %s is not valid before %s: %s", certificate,
			    log_time(is.begins_ms), condition_effect(CONDITION_certificate_early));
	else if (left_ms < 0)
		add_warning(c, line, "the certificate %s has expired: %s", certificate,
			    condition_effect(CONDITION_certificate_expired));
	else if (left_ms < EXPIRY_NEAR_MS)
		add_warning(c, line, "the certificate %s expires in %d days: %s", certificate,
			    (int)(left_ms / DAYS(1)),
			    condition_effect(CONDITION_certificate_expires));
}

static void check_ocsp(struct checked *c, int line, const char *certificate)
{
	if (tls_certificate_has_others_ocsp(certificate))
		add_warning(c, line,
			    "%s.ocsp is the answer for another certificate, and not stapled",
			    certificate);
}

static void check_listener(struct checked *c, const struct conf_listener *l)
{
	struct stat st;
	bool public_address = false;
	for (int i = 0; i < l->address.n; i++)
		public_address = public_address || !is_loopback(l->address.item[i]);
	if (!conf_list_same(&l->networks, &c->conf->networks))
		check_networks(c, &l->networks, l->line);
	if (public_address && is_world_open(l) && !has_limit(c->conf))
		add_warning(c, l->line,
			    "listener \"%s\" is open to the world, and there is no limit on what a "
			    "client or a sender may send",
			    l->title);
	if (public_address && l->auth && !c->conf->limit_by[LIMIT_BY_LOGIN])
		add_warning(c, l->line,
			    "listener \"%s\" accepts logins from the network, and there is no "
			    "limit \"login\": a stolen password can send any amount of mail",
			    l->title);
	if (public_address && believes_all(l))
		add_warning(c, l->line,
			    "listener \"%s\" believes whoever reaches it who the client is: give "
			    "proxy_protocol the addresses of your proxies",
			    l->title);
	for (int i = 0; i < l->key.n; i++)
		if (stat(l->key.item[i], &st) == 0 && (st.st_mode & S_IRWXO))
			add_warning(c, l->line,
				    "listener \"%s\": every user of the machine may use the key %s",
				    l->title, l->key.item[i]);
	for (int i = 0; i < l->certificate.n; i++) {
		check_dates(c, l->line, l->certificate.item[i]);
		check_ocsp(c, l->line, l->certificate.item[i]);
	}
	if (public_address && l->certificate.n == 0 && l->tls == LISTENER_TLS_OPTIONAL)
		add_warning(
			c, l->line,
			"listener \"%s\" has no certificate: mail comes over the network in clear",
			l->title);
}

static void check_secret(struct checked *c, int line, const char *path, const char *whose)
{
	struct stat st;
	if (!*path || stat(path, &st) != 0 || !(st.st_mode & S_IRWXO))
		return;
	char *command = check_access_command(c->conf, path);
	add_warning(c, line, "%s: every user of the machine may read %s (%s)", whose, path,
		    command);
	free(command);
}

/* Say what the relay would when it wants to log in. Who may not read it can't tell. */
static void check_secret_text(struct checked *c, const struct credential *of, const char *whose)
{
	struct buf why = {0};
	struct token_source source = {0};
	if (access(of->file, R_OK) != 0 && errno == EACCES)
		return;
	char *text = secret_file_read(of->file, &why);
	if (text && of->kind == CREDENTIAL_REFRESH)
		token_source_read(&source, text, &why);
	else if (text && strcspn(text, "\r\n") == 0)
		buf_printf(&why, "%s is empty", of->file);
	if (buf_len(&why) > 0)
		add_warning(c, 0, "%s: %s: %s", whose, buf_cstr(&why),
			    condition_effect(CONDITION_secret_unreadable));
	token_source_fini(&source);
	secret_file_free(text);
	buf_fini(&why);
}

static void check_credential(void *context, const char *key, const char *value)
{
	struct checked *c = context;
	struct credential *of = NULL;
	struct buf why = {0};
	if (!credential_parse(value, &of, &why)) {
		char *whose = mem_printf("credentials of %s", key);
		check_secret(c, 0, of->file, whose);
		check_secret_text(c, of, whose);
		if (of->clear && strncmp(key, "unix:", 5) != 0)
			add_warning(c, 0,
				    "%s: the %s of %s may cross the network without TLS, for "
				    "whoever listens",
				    whose, of->kind == CREDENTIAL_PASSWORD ? "password" : "token",
				    of->login);
		else if (of->unproven && strncmp(key, "unix:", 5) != 0)
			add_warning(c, 0,
				    "%s: the %s of %s goes under TLS to whoever answers: "
				    "unauthenticated",
				    whose, of->kind == CREDENTIAL_PASSWORD ? "password" : "token",
				    of->login);
		free(whose);
	}
	credential_unref(of);
	buf_fini(&why);
}

/* The tables do not know of dnssec. */
static void check_tls_policy(void *context, const char *key, const char *value)
{
	struct checked *c = context;
	if (c->conf->dns.dnssec == DNSSEC_OFF && tls_policy_dane(value, false) != TLS_DANE_IGNORED)
		add_warning(c, 0, "tls_policy of %s: %s wants DNSSEC, and dns { dnssec } is off",
			    key, value);
}

static void check_authorities(struct checked *c)
{
	bool announced = false;
	for (int i = 0; i < c->conf->nlistener; i++)
		announced |= c->conf->listener[i].certificate.n > 0;
	if (c->conf->authorities && tls_authorities_unread(c->conf->authorities) > 0)
		add_warning(c, 0,
			    "tls { ca }: a certificate in %s cannot be read, and nobody is trusted "
			    "for it",
			    c->conf->tls.ca);
	if (announced && !c->conf->authorities)
		add_warning(c, 0,
			    "tls { ca } has no authorities: mail with REQUIRETLS goes only to "
			    "hosts with TLSA records, and else is returned");
}

static void check_transport(struct checked *c, const struct conf_transport *t)
{
	char *whose = mem_printf("transport \"%s\"", t->title);
	check_secret(c, t->line, t->client_key, whose);
	free(whose);
}

static void check_dkim(struct checked *c, const struct conf_dkim *d)
{
	char *whose = mem_printf("dkim \"%s\"", d->title);
	check_secret(c, d->line, d->key, whose);
	if (d->loaded && EVP_PKEY_get_base_id(d->loaded) == EVP_PKEY_RSA &&
	    EVP_PKEY_get_bits(d->loaded) < RSA_BITS_WANTED)
		add_warning(c, d->line,
			    "%s: a key of %d bits may be broken, and some hosts take it for none: "
			    "2048 bits is usual",
			    whose, EVP_PKEY_get_bits(d->loaded));
	free(whose);
}

static void check_dkim_keys(void *context, const char *key, const char *value)
{
	struct dkim_rows rows;
	struct buf why = {0};
	char *whose = mem_printf("dkim_keys of %s", key);
	dkim_rows_parse(value, &rows, &why);
	for (int i = 0; i < rows.n; i++)
		check_secret(context, 0, rows.row[i].file, whose);
	dkim_rows_fini(&rows);
	free(whose);
	buf_fini(&why);
}

/* One that is read when it is wanted, and not at a start. Who may not read it can't tell. */
static void check_first_line(struct checked *c, const char *path, const char *whose)
{
	char line[FIRST_LINE];
	struct buf why = {0};
	bool told = *path && (access(path, R_OK) == 0 || errno != EACCES) &&
		    !file_read_line(path, line, sizeof line, &why);
	if (told)
		add_warning(c, 0, "%s: %s", whose, buf_cstr(&why));
	explicit_bzero(line, sizeof line);
	buf_fini(&why);
}

/* Shown to others than next hops: to the receiver of events, to Redis and to NATS. */
static void check_own_secrets(struct checked *c)
{
	const struct conf_cluster *k = &c->conf->cluster;
	const char *const secret[] = {k->redis_password, k->redis_key, k->nats_key,
				      k->nats_credentials};
	check_secret(c, 0, c->conf->events.token, "events");
	check_first_line(c, c->conf->events.token, "events");
	for (size_t i = 0; i < sizeof secret / sizeof secret[0]; i++) {
		check_secret(c, 0, secret[i], "cluster");
		check_first_line(c, secret[i], "cluster");
	}
}

static void check_auth(struct checked *c, const struct conf_listener *l)
{
	const struct conf_auth *a = &c->conf->auth;
	if (!l->auth)
		return;
	if (a->require_tls && l->certificate.n == 0)
		add_warning(c, l->line,
			    "listener \"%s\" has auth and no certificate: nobody can log in, since "
			    "require_tls is true",
			    l->title);
	if (!a->require_tls && l->tls < LISTENER_TLS_REQUIRED)
		add_warning(c, l->line,
			    "listener \"%s\" takes passwords without TLS: whoever listens on the "
			    "network has them",
			    l->title);
}

static void check_users(struct checked *c)
{
	const struct conf_list *users = &c->conf->auth.users;
	for (int i = 0; i < users->n; i++)
		check_secret(c, 0, users->item[i], "users, whose passwords can be guessed then");
}

/* Does this next hop lead to one of our own listeners? */
static bool is_own(const struct conf *conf, const char *host, int port)
{
	union address hop, own;
	bool named = !address_parse(host, port, &hop);
	for (int i = 0; i < conf->nlistener; i++) {
		const struct conf_list *l = &conf->listener[i].address;
		for (int k = 0; k < l->n; k++) {
			if (!address_parse_with_port(l->item[k], &own) ||
			    address_port(&own) != port)
				continue;
			if (named ? strcasecmp(host, conf->own_name) == 0
				  : memcmp(&own, &hop, sizeof own) == 0 ||
					    (address_is_loopback(&hop) &&
					     address_is_unspecified(&own)))
				return true;
		}
	}
	return false;
}

static void check_route(struct checked *c, const struct conf_route *r)
{
	for (int i = 0; i < r->relay.n; i++) {
		struct conf_relay hop;
		if (!conf_relay_read(r->relay.item[i], &hop))
			continue;
		if (is_own(c->conf, hop.host, hop.port ? hop.port : (int)r->by->port))
			add_warning(c, r->line, "route \"%s\" leads to this relay itself: %s",
				    r->title, r->relay.item[i]);
		free(hop.host);
	}
}

/* As many connections as the listeners and transports allow need as many descriptors. */
static void check_descriptors(struct checked *c)
{
	struct rlimit limit;
	int64_t wanted = DESCRIPTORS_BESIDE;
	for (int i = 0; i < c->conf->nlistener; i++)
		wanted += c->conf->listener[i].connection_limit;
	for (int i = 0; i < c->conf->ntransport; i++)
		wanted += c->conf->transport[i].connection_limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max != RLIM_INFINITY &&
	    (int64_t)limit.rlim_max < wanted)
		add_warning(c, 0,
			    "%lld connections are allowed, but this process may have only %llu "
			    "descriptors (ulimit -Hn, LimitNOFILE)",
			    (long long)wanted, (unsigned long long)limit.rlim_max);
}

static void check_memory(struct checked *c)
{
	struct buf says = {0};
	struct memory_room room = memory_room_find();
	if (memory_room_lacks(&room, c->conf, &says))
		add_warning(c, 0, "%s", buf_cstr(&says));
	buf_fini(&says);
}

static void check_milter(struct checked *c, const struct conf_milter *m)
{
	if (!conf_milter_passed(c->conf, m))
		add_warning(c, m->line,
			    "milter \"%s\": no mail passes it, as no listener's milters name it",
			    m->title);
}

static void warn_text(void *context, int line, const char *text)
{
	add_warning(context, line, "%s", text);
}

int check_warnings(const struct conf *conf)
{
	struct checked c = {.conf = conf};
	check_access(conf, warn_text, &c);
	check_hops(conf, warn_text, &c);
	check_sources(conf, warn_text, &c);
	check_cluster(&c);
	check_node(&c);
	check_hostname(&c);
	check_networks(&c, &conf->networks, 0);
	check_spool(&c);
	check_dns(&c);
	check_log(&c);
	if (conf->events.to[0] == '/')
		check_appended(&c, "events", conf->events.to, "no event is written");
	check_postmaster(&c);
	for (int i = 0; i < conf->nlistener; i++) {
		check_listener(&c, &conf->listener[i]);
		check_auth(&c, &conf->listener[i]);
	}
	check_users(&c);
	for (int i = 0; i < conf->ntransport; i++)
		check_transport(&c, &conf->transport[i]);
	for (int i = 0; i < conf->nroute; i++)
		check_route(&c, &conf->route[i]);
	for (int i = 0; i < conf->nmilter; i++)
		check_milter(&c, &conf->milter[i]);
	for (int i = 0; i < conf->ndkim; i++)
		check_dkim(&c, &conf->dkim[i]);
	if (conf->tables) {
		tables_each(conf->tables, TABLE_CREDENTIALS, check_credential, &c);
		tables_each(conf->tables, TABLE_TLS_POLICY, check_tls_policy, &c);
		tables_each(conf->tables, TABLE_DKIM_KEYS, check_dkim_keys, &c);
	}
	check_own_secrets(&c);
	check_authorities(&c);
	check_descriptors(&c);
	check_memory(&c);
	return c.n;
}
