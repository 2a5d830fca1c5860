/* conf.h - the settings, as all threads see them.
 *
 * Made from the rows of conf_table.h. A struct conf never changes once it is read; a reload makes
 * another and posts it to each thread.
 *
 * OWNERSHIP  Counted; conf_read() gives one reference.
 * THREAD     conf_read(): main. The rest: any; the count is atomic.
 * ERRORS     conf_read() says each fault as "FILE:LINE: what is wrong" and returns NULL.
 * SEE        sluice.conf(5).
 */
#ifndef BASE_CONF_H
#define BASE_CONF_H

#include "base/buf.h"
#include "base/conf_table.h"
#include "base/resolve.h"
#include "base/trust_anchor.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct conf_list {
	int n;
	char **item;
};

struct conf_rate {
	int64_t events; /* 0: no limit; else up to 10^9, */
	int64_t per_ms; /* in up to a hundred years */
};

struct conf_feedback {
	enum { FEEDBACK_CONSTANT, FEEDBACK_CONCURRENCY, FEEDBACK_SQRT_CONCURRENCY } form;
	double value; /* the constant, or the numerator: 0..1 */
};

enum sandbox_wanted { SANDBOX_AUTO, SANDBOX_REQUIRED, SANDBOX_OFF };
enum log_format { LOG_TEXT, LOG_JSON, LOG_POSTFIX };
enum listener_tls {
	LISTENER_TLS_NONE,
	LISTENER_TLS_OPTIONAL,
	LISTENER_TLS_REQUIRED,
	LISTENER_TLS_IMPLICIT
};
enum listener_auth { LISTENER_AUTH_FALSE, LISTENER_AUTH_TRUE, LISTENER_AUTH_REQUIRED };
enum received_client { RECEIVED_FULL, RECEIVED_LOGIN, RECEIVED_HIDDEN };
enum bare_newline { BARE_NEWLINE_REJECT, BARE_NEWLINE_NORMALISE };
enum limit_by { LIMIT_BY_LOGIN, LIMIT_BY_CLIENT, LIMIT_BY_SENDER, LIMIT_BY_COUNT };
enum limit_action { LIMIT_DEFER, LIMIT_REJECT, LIMIT_HOLD };
enum sender_mismatch { MISMATCH_REJECT, MISMATCH_REWRITE, MISMATCH_ALLOW };
enum sender_header { SENDER_HEADER_ALLOW, SENDER_HEADER_REJECT };
enum verify_unavailable { VERIFY_ACCEPT, VERIFY_DEFER };
enum in_doubt_action { IN_DOUBT_BOUNCE, IN_DOUBT_DELIVERED };
enum destination_by { DESTINATION_BY_SITE, DESTINATION_BY_DOMAIN, DESTINATION_BY_RECIPIENT };
enum dnssec_mode { DNSSEC_VALIDATE, DNSSEC_TRUST, DNSSEC_OFF };
enum greeting_5xx { GREETING_5XX_DEFER, GREETING_5XX_BOUNCE };
enum transport_protocol { TRANSPORT_PROTOCOL_SMTP, TRANSPORT_PROTOCOL_LMTP };
enum transport_tls {
	TRANSPORT_TLS_NONE,
	TRANSPORT_TLS_OPPORTUNISTIC,
	TRANSPORT_TLS_REQUIRED,
	TRANSPORT_TLS_VERIFY,
	TRANSPORT_TLS_DANE,
	TRANSPORT_TLS_DANE_ONLY
};
enum dkim_canonicalization {
	DKIM_RELAXED_RELAXED,
	DKIM_RELAXED_SIMPLE,
	DKIM_SIMPLE_RELAXED,
	DKIM_SIMPLE_SIMPLE
};
enum tls_minimum { TLS_MINIMUM_1_2, TLS_MINIMUM_1_3 };

enum milter_default {
	MILTER_DEFAULT_TEMPFAIL,
	MILTER_DEFAULT_ACCEPT,
	MILTER_DEFAULT_REJECT,
	MILTER_DEFAULT_QUARANTINE
};

#define CONF_TYPE_flag bool
#define CONF_TYPE_number int64_t
#define CONF_TYPE_duration int64_t
#define CONF_TYPE_size int64_t
#define CONF_TYPE_percent int64_t
#define CONF_TYPE_text char *
#define CONF_TYPE_list struct conf_list
#define CONF_TYPE_choice int
#define CONF_TYPE_rate struct conf_rate
#define CONF_TYPE_feedback struct conf_feedback
#define CONF_MEMBER(type, name, ...) CONF_TYPE_##type name;

enum { CONF_MILTERS_MAX = 16 };

struct conf_milter {
	char *title;
	int line;
	CONF_MILTER(CONF_MEMBER)
	union address to; /* address, read */
};

struct conf_source {
	char *title;
	int line;
	CONF_SOURCE(CONF_MEMBER)
	union address bind[2]; /* address, read: of different families */
	int nbind;
};

struct conf_use {
	const struct conf_source *source;
	int64_t weight; /* from 1 */
};

/* The sources that a transport or a flow names. */
struct conf_uses {
	int n;
	struct conf_use *of;
};

struct conf_listener {
	char *title;
	int line;
	CONF_LISTENER(CONF_MEMBER)
	const struct conf_milter *passes[CONF_MILTERS_MAX]; /* milters, found */
	int npasses;
};

struct conf_transport {
	char *title;
	int line;
	CONF_TRANSPORT(CONF_MEMBER)
	struct conf_uses uses; /* sources, found */
	struct ssl_ctx_st
		*identity; /* an SSL_CTX with client_certificate, where keys were wanted; or NULL */
};

struct tables;

struct conf_route {
	char *title; /* "user@domain", "domain", ".parent", "*"; lower case */
	int line;
	CONF_ROUTE(CONF_MEMBER)
	const struct conf_transport *by; /* the transport of that name */
	bool named;			 /* in the file, whichever it is */
};

struct conf_alias {
	char *title; /* lower case */
	int line;
	CONF_ALIAS(CONF_MEMBER)
};

struct conf_limit {
	char *title; /* "login", "client", "sender" */
	int line;
	CONF_LIMIT(CONF_MEMBER)
};

struct conf_dkim {
	char *title; /* "domain", or ".domain": those below it; lower case, in ASCII */
	int line;
	CONF_DKIM(CONF_MEMBER)
	struct evp_pkey_st *loaded; /* an EVP_PKEY with the key, where keys were wanted; or NULL */
	struct evp_md_ctx_st *signing; /* of that: copied for each signature */
};

struct conf_provider {
	char *title;
	int line;
	CONF_PROVIDER(CONF_MEMBER)
	const char *file, *mx_file;	 /* of the section; and of the one that has given mx, */
	const char *by_file;		 /* or transport */
	const struct conf_transport *by; /* the transport of that name; or NULL */
};

struct conf_suffix;

struct conf_flow {
	char *title;
	int line;
	CONF_FLOW(CONF_MEMBER)
	struct conf_uses uses;		 /* sources, found */
	const struct conf_transport *by; /* the transport of that name; or NULL */
};

struct conf_queue {
	CONF_QUEUE(CONF_MEMBER)
	double jitter; /* backoff_jitter as a number */
};

enum { CONF_DNS_SERVERS_MAX = 16 };

struct conf_dns {
	CONF_DNS(CONF_MEMBER)
};

struct conf_verify {
	CONF_VERIFY(CONF_MEMBER)
};

struct conf_auth {
	CONF_AUTH(CONF_MEMBER)
	struct conf_list users; /* file, where it is wanted and may be read: CONF_WITH_KEYS */
};

struct conf_tls {
	CONF_TLS(CONF_MEMBER)
};

struct conf_events {
	CONF_EVENTS(CONF_MEMBER)
};

enum conf_replicate { REPLICATE_OFF, REPLICATE_ASYNC, REPLICATE_SYNC };

struct conf_cluster {
	CONF_CLUSTER(CONF_MEMBER)
};

struct conf_tls_report {
	CONF_TLS_REPORT(CONF_MEMBER)
};

struct conf_archive {
	CONF_ARCHIVE(CONF_MEMBER)
};

struct tls_authorities;

struct conf {
	atomic_int refs; /* first: see conf_with_tables() */
	char *file;
	CONF_GLOBAL(CONF_MEMBER)
	char *own_name; /* hostname; or, where that is empty, the machine's */
	int nlistener, ntransport, nroute, nalias, nlimit, ndkim, nmilter, nprovider, nsuffix,
		nflow, nsource;
	struct conf_listener *listener;
	struct conf_transport *transport; /* [0] is "smtp" */
	struct conf_route *route;	  /* there is always a "*" */
	bool route_is_default;		  /* that one is not in the file */
	struct conf_alias *alias;	  /* of sections, sorted by title */
	struct conf_limit *limit;
	const struct conf_limit *limit_by[LIMIT_BY_COUNT]; /* of these; NULL: none */
	struct conf_dkim *dkim;
	struct conf_milter *milter;
	struct conf_provider *provider;
	struct conf_flow *flow; /* [0] is "*" */
	struct conf_source *source;
	const struct conf_source **source_sorted; /* by title */
	struct conf_suffix *suffix;		  /* of all providers, sorted by name */
	const struct conf_dkim **dkim_sorted;	  /* by title */
	struct conf_queue queue;
	struct conf_dns dns;
	struct conf_auth auth;
	struct conf_tls tls;
	struct conf_tls_report tls_report;
	struct conf_archive archive;
	struct tls_authorities *authorities; /* of tls.ca, where keys were wanted; or NULL */
	struct conf_verify verify;
	struct conf_events events;
	struct conf_cluster cluster;
	bool routes_verify;	     /* some route section does */
	int64_t suppress_most;	     /* the longest suppress of all; 0: nobody wants it */
	bool flows_suppress;	     /* some flow has one of its own */
	bool routes_refuse;	     /* some route section is an error, or knows its recipients */
	struct conf_list recipients; /* tables of recipients, of all routes: each once */
	bool providers_carry;	     /* some provider names a transport */
	bool flows_have_sources;
	int user_line, dkim_also_line; /* where they are set, for who judges them later; or 1 */
	struct tables *tables; /* what the files say that it names, unless they were not wanted */
	bool faulty;	       /* of conf_read_to_ask() only: see there */
	struct conf *whole;    /* of which this is a copy with other tables; or NULL */
};

struct conf_faults;

enum conf_with { CONF_WITH_KEYS = 1, CONF_WITH_TABLES = 2 };

struct conf *conf_read(const char *file, struct buf *errors);
/* Read, check and complete a configuration, with keys and tables. On faults NULL, with one line for
 * each in errors. */

struct conf *conf_read_with(const char *file, unsigned with, struct buf *errors);
/* The settings, and of the files that they name only those that are wanted (enum conf_with): most
 * commands are run by users who may read neither. Without tables, tables is NULL. */

void conf_text_faults(const char *text, struct conf_faults *);
/* Of a configuration that says this. The files that it names are not looked at. */

struct conf *conf_read_to_ask(const char *file, struct buf *errors);
/* The settings alone, to ask the relay that runs with them, or with what they were before: with faults in
 * the file it comes back all the same, as `faulty`, with spool, log and own_name as the file has them, where
 * that can be told. Nothing else of it can be relied on. NULL: the file can't be read, or hides its spool. */

struct conf *conf_defaults(void);
/* The defaults: as of an empty file. */

struct conf *conf_with_tables(struct conf *, struct tables *);
/* The same settings, with other tables, of which it takes the reference. */

struct conf *conf_ref(struct conf *);
void conf_unref(struct conf *); /* NULL is allowed */

bool conf_print(const struct conf *, const char *name, struct buf *to);
/* One setting as "NAME = VALUE\n"; name NULL: all, sections as transport.smtp.port. A name that is none
 * so is looked for in all sections: minimal_backoff_time, port. False: no such name. The values can be
 * read back. */

bool conf_print_default(const struct conf *defaults, const char *name, struct buf *to);
/* The same of conf_defaults(), and the defaults of each kind of section of which it has none: milter.timeout. */

void conf_fixed(const struct conf *, struct buf *to);
/* The settings that take effect only at a start, each as its name, NUL, its value, NUL. */

void conf_differences(const struct buf *fixed, const struct conf *new, struct buf *to);
/* A line for each of those that differs. fixed: those of the start. */

void conf_keep_fixed(struct conf *new, const struct conf *old);
/* New has those as old has them, whatever its file says. Nobody else has new yet. */

void conf_sample(struct buf *to);
/* The text of etc/sluice.conf: every setting with its sentence and default. */

void conf_manual(struct buf *to);
/* The part of sluice.conf(5) that lists the settings, in mdoc. */

bool conf_relay_parse(const char *, char **host, int *port, bool *bracketed);
/* A next hop: "host", "host:port", "[host]", "[host]:port", with an IP address for host too; or
 * "unix:/its/path", which is its host. The host comes as name_key() has it, without brackets,
 * the caller's to free(); NULL when false. port is 0 where there is none. bracketed: no MX look-up, as for every IP address. */

struct conf_relay {
	char *host;
	int port;
	bool bracketed;
	int weight; /* 1 to 9999; 0: none was given */
};

bool conf_relay_read(const char *, struct conf_relay *);
/* The same, with a weight behind where there is one: "[host]:port=3". host is the caller's to free(),
 * and NULL when false. */

char *conf_relay_kept(const char *);
/* A next hop with its name or address in its one spelling, and its weight: what names a site. NULL: it is none. */

char *conf_relay_key(const char *);
/* The spelling in which tables have that hop: "[2001:db8::1]:25" for "[IPv6:2001:DB8:0::1]:025", and "[2001:db8::1]" for
 * "2001:DB8:0::1". NULL: it is written so, or is no next hop. */

bool conf_pattern_good(const char *);
/* A pattern for addresses: "user@domain", "domain", ".parent", "*". A domain may be "[192.0.2.1]". */

bool conf_alias_good(const char *);
/* A key of aliases: "user@domain", "postmaster". */

bool conf_host_good(const char *);
/* Has it the form of the name of a host? */

enum { CONF_TITLE_MAX = 64 };

bool conf_title_good(const char *);
/* Of a provider or a source: letters, digits and . _ -, at most CONF_TITLE_MAX. */

const char *conf_hello(const struct conf *, const struct conf_transport *,
		       const struct conf_source *);
/* The name of ours in EHLO. conf and source may be NULL. */

const struct conf_alias *conf_alias_find(const struct conf *, const char *address);
/* address in lower case; NULL: none of a section. */

const struct conf_provider *conf_provider_find(const struct conf *, const char *host);
/* The one that has the longest of the suffixes in which this mail host lies; or NULL. */

const struct conf_provider *conf_provider_of_answer(const struct conf *, const struct resolve *);
/* The one that has all hosts of the best preference; or NULL. Those of lesser preference may be another's, to
 * help out. */

const struct conf_flow *conf_flow_find(const struct conf *, const char *name);
/* The row of this flow, or of "*". */

bool conf_below_share(int64_t held, int64_t share, int64_t nfree);
/* Of the active messages: who holds so many places, and has so much of a hundred, may have another of those that are free. */

const struct conf_source *conf_source_find(const struct conf *, const char *name); /* or NULL */

const union address *conf_source_address(const struct conf_source *, int family);
/* Where its connections to hosts of that family come from; NULL: there are none. */

const union address *conf_transport_from(const struct conf_transport *, const struct conf_source *,
					 int family, union address own[2]);
/* Likewise those of a transport, from this source or else from its source_address, which is put into own; NULL: the system chooses. */

bool conf_milter_passed(const struct conf *, const struct conf_milter *);
/* Does any mail pass this filter of the configuration? */

const char *conf_milter_action(enum milter_default); /* "tempfail" */

int conf_milter_locals(const struct conf *);
/* How many filters the mail of users of this machine passes. */

enum { CONF_DKIM_MAX = 8 }; /* signatures of one message */

int conf_dkim_find(const struct conf *, const char *domain,
		   const struct conf_dkim *found[CONF_DKIM_MAX]);
/* The sections that sign for a domain, which is in lower case and ASCII: its own; else those of the
 * nearest parent, ".parent". Returns how many, 0 where there are none. */

bool conf_dkim_selector_good(const char *); /* letters, digits, hyphens, dots between them */

void conf_dkim_names(const struct conf_dkim *const found[], int n, struct buf *to);
/* "domain:selector,domain:selector", as the log has them. */

#endif
