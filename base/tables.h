/* tables.h - all tables of the configuration, by their role.
 *
 *	tables_find(): user@host.example.com, host.example.com, .example.com, .com, *
 *		       the first of these that any file of the role has; files in their order
 *
 * A set never changes. When a file has changed, tables_renew() makes a new set, which shares the
 * unchanged tables; conf_with_tables() hands it to the threads.
 *
 * OWNERSHIP  Counted.
 * THREAD     tables_read.c, where sets are made: main. The rest: any.
 * ERRORS     As faults.
 * SEE        table.h; table_forms.h: what their rows must look like; sluice.conf(5).
 */
#ifndef BASE_TABLES_H
#define BASE_TABLES_H

#include "base/conf.h"
#include "base/conf_lines.h"
#include "base/socketmap_name.h"
#include "base/table.h"

/* T(role, the setting that lists its files, a colon ends the key, form of a line, check) */
#define TABLES(T)                                                                                  \
	T(ALIASES, aliases, true, "address: address, address", check_alias)                        \
	T(ROUTES, routes, false, "address transport relay=HOST,HOST", check_route)                 \
	T(SENDER_ROUTES, sender_routes, false, "address transport relay=HOST,HOST",                \
	  check_sender_route)                                                                      \
	T(SENDER_CANONICAL, sender_canonical, false, "address address", check_canonical)           \
	T(RECIPIENT_CANONICAL, recipient_canonical, false, "address address", check_canonical)     \
	T(CANONICAL, canonical, false, "address address", check_canonical)                         \
	T(CLIENT_ACCESS, client_access, false, "client action", check_client_access)               \
	T(HELO_ACCESS, helo_access, false, "name action", check_helo_access)                       \
	T(SENDER_ACCESS, sender_access, false, "address action", check_sender_access)              \
	T(RECIPIENT_ACCESS, recipient_access, false, "address action", check_access)               \
	T(TLS_POLICY, tls_policy, false, "domain policy", check_tls_policy)                        \
	T(SENDER_BCC, sender_bcc, false, "address address", check_bcc)                             \
	T(RECIPIENT_BCC, recipient_bcc, false, "address address", check_bcc)                       \
	T(ARCHIVE, archive.tables, false, "address address", check_archived)                       \
	T(CREDENTIALS, credentials, false, "NEXT-HOP [SENDER] LOGIN SECRET", check_credential)     \
	T(SENDER_LOGINS, sender_logins, false, "address logins", check_logins)                     \
	T(FLOWS, flows, false, "login:NAME, address or network and flow", check_flow)              \
	T(LIMITS, limits, false, "login messages/time recipients/time", check_limit)               \
	T(DKIM_KEYS, dkim_keys, false, "domain SELECTOR FILE", check_dkim_keys)                    \
	T(CLIENT_CERTIFICATES, client_certificates, false, "fingerprint login", check_certificate) \
	T(RECIPIENTS, recipients, false, "address", check_recipient)                               \
	T(USERS, auth.users, false, "login HASH", check_user)

enum table_role {
#define T(role, ...) TABLE_##role,
	TABLES(T)
#undef T
		TABLE_ROLES
};

/* tables_read.c */

struct tables *tables_read(const struct conf *, const struct conf_lines *, struct conf_faults *);
/* NULL when there is a fault in any file; that one can't be read is told of the line that names it. */

bool tables_stale(const struct tables *);
/* Has any file changed, and rests? Asks the file system once a file. */

struct tables *tables_renew(const struct conf *, struct conf_faults *);
/* Those of the configuration, with what has changed read anew; a file with a fault keeps what it
 * had. */

/* tables.c */

struct tables *tables_ref(struct tables *);
void tables_unref(struct tables *); /* NULL is allowed */

int tables_count(const struct tables *, enum table_role); /* files of it */

const char *tables_setting(enum table_role); /* "recipient_access" */

const char *tables_file(const struct tables *, enum table_role, int i);

bool tables_may_ask(enum table_role);
/* May a server have it, "socketmap:..."? Whoever looks it up waits then. */

bool tables_asked(const struct tables *, enum table_role);
/* Is a server to be asked for one of them? tables_get() and tables_find() do not. */

char *tables_get_at(const struct tables *, enum table_role, int i, const char *key,
		    const struct socketmap_name **server, struct table_origin *);
/* tables_get() of the one of this number. *server: who has it instead, or NULL. */

void tables_each(const struct tables *, enum table_role,
		 void (*row)(void *context, const char *key, const char *value), void *context);
/* Every row of those that are files. */

char *tables_get(const struct tables *, enum table_role, const char *key, struct table_origin *);
/* The value of exactly this key; the caller frees it. NULL: none, as when there are no tables. */

char *tables_any(const struct tables *, enum table_role, const char *except, uint64_t choice);
/* The value of some row of its texts: table_any(). */

char *tables_find(const struct tables *, enum table_role, const char *address,
		  struct table_origin *);
/* The value of the most specific key for an address as an envelope keeps it; "" is looked up as
 * "<>". NULL: none, as when there are no tables. */

bool tables_list(const struct tables *, enum table_role, const struct conf_list *files,
		 const char *address);
/* Has one of these files of the role any of the keys of that address? Servers among them are not
 * asked: */

void tables_servers(const struct tables *, enum table_role, const struct conf_list *files,
		    struct conf_list *servers);
/* Which of these a server has; the list's items are the caller's. */

enum { TABLES_KEYS_MAX = 140 }; /* an address has: itself, its domain, parents, the rest */

int tables_keys(const char *address, char *room, size_t size, const char *key[TABLES_KEYS_MAX]);
/* The keys that an address is looked up by, most specific first: keys in room, which has size bytes, and in
 * the address. One that does not fit there has no key of its own. */

#endif
