/* SPDX-License-Identifier: ISC */
#include "cmd/confine/sandbox_paths.h"

#include "base/conf_rows.h"
#include "base/credential.h"
#include "base/dkim_rows.h"
#include "base/mem.h"
#include "base/tables.h"
#include "cmd/confine/own_program.h"

#include <link.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *sandbox_paths_folder(const char *path)
{
	static const char *const shared[] = {"/", "/dev", "/proc", "/sys", "/run"};
	struct stat st;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return mem_strdup(path);
	const char *slash = strrchr(path, '/');
	char *folder = !slash	       ? mem_strdup(".")
		       : slash == path ? mem_strdup("/")
				       : mem_strndup(path, (size_t)(slash - path));
	for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
		if (strcmp(folder, shared[i]) != 0)
			continue;
		free(folder);
		return NULL;
	}
	return folder;
}

/* A link may be changed to lead elsewhere in the folder that it leads to now. */
static void visit_path(struct sandbox_visitor *v, const char *path, enum landlock_right right)
{
	char *real = realpath(path, NULL);
	v->visit(v, path, right);
	if (real && strcmp(real, path) != 0)
		v->visit(v, real, right);
	free(real);
}

static void visit_list(struct sandbox_visitor *v, const struct conf_list *files)
{
	for (int i = 0; i < files->n; i++)
		if (!socketmap_name_is(files->item[i]))
			visit_path(v, files->item[i], LANDLOCK_READ);
}

static void visit_secret(void *visitor, const char *key, const char *value)
{
	struct credential *of = NULL;
	struct buf why = {0};
	(void)key;
	if (!credential_parse(value, &of, &why))
		visit_path(visitor, of->file, LANDLOCK_READ);
	credential_unref(of);
	buf_fini(&why);
}

/* There may be many thousands of them: each folder once, as long as they stand together. */
struct keys {
	struct sandbox_visitor *visitor;
	char *folder; /* the last one; or NULL */
};

static void visit_keys(void *context, const char *key, const char *value)
{
	struct keys *k = context;
	struct dkim_rows rows;
	struct buf why = {0};
	(void)key;
	dkim_rows_parse(value, &rows, &why);
	for (int i = 0; i < rows.n; i++) {
		const char *file = rows.row[i].file;
		size_t len = (size_t)(strrchr(file, '/') - file);
		if (k->folder && strlen(k->folder) == len && strncmp(k->folder, file, len) == 0)
			continue;
		free(k->folder);
		k->folder = mem_strndup(file, len);
		visit_path(k->visitor, file, LANDLOCK_READ);
	}
	dkim_rows_fini(&rows);
	buf_fini(&why);
}

static void visit_if(struct sandbox_visitor *v, const char *file)
{
	if (*file)
		visit_path(v, file, LANDLOCK_READ);
}

static void visit_nats(struct sandbox_visitor *v, const struct conf_cluster *k)
{
	if (k->nats_tls)
		visit_path(v, k->nats_ca, LANDLOCK_READ);
	visit_if(v, k->nats_certificate);
	visit_if(v, k->nats_key);
	visit_if(v, k->nats_credentials);
}

static void visit_cluster(struct sandbox_visitor *v, const struct conf_cluster *c)
{
	if (c->redis_tls)
		visit_if(v, c->redis_ca);
	visit_if(v, c->redis_certificate);
	visit_if(v, c->redis_key);
	visit_if(v, c->redis_password);
}

void sandbox_paths_conf(const struct conf *c, struct sandbox_visitor *v)
{
	visit_path(v, c->spool, LANDLOCK_KEEP);
	visit_path(v, c->file, LANDLOCK_READ);
	if (c->dns.dnssec == DNSSEC_VALIDATE)
		visit_path(v, c->dns.trust_anchor, LANDLOCK_READ);
	if (c->log[0] == '/')
		visit_path(v, c->log, LANDLOCK_APPEND);
#define T(role, setting, ...) visit_list(v, &c->setting);
	TABLES(T)
#undef T
	visit_list(v, &c->providers);
	if (*c->tls.ca)
		visit_path(v, c->tls.ca, LANDLOCK_READ);
	if (c->events.to[0] == '/')
		visit_path(v, c->events.to, LANDLOCK_APPEND);
	visit_if(v, c->events.token);
	if (c->cluster.replicate != REPLICATE_OFF)
		visit_nats(v, &c->cluster);
	if (*c->cluster.redis)
		visit_cluster(v, &c->cluster);
	for (int i = 0; i < c->nlistener; i++) {
		const struct conf_listener *l = &c->listener[i];
		visit_list(v, &l->certificate);
		visit_list(v, &l->key);
		visit_if(v, l->client_ca);
	}
	for (int i = 0; i < c->ntransport; i++) {
		visit_if(v, c->transport[i].client_certificate);
		visit_if(v, c->transport[i].client_key);
	}
	for (int i = 0; i < c->ndkim; i++)
		visit_if(v, c->dkim[i].key);
	if (!c->tables)
		return;
	struct keys keys = {v, NULL};
	tables_each(c->tables, TABLE_CREDENTIALS, visit_secret, v);
	tables_each(c->tables, TABLE_DKIM_KEYS, visit_keys, &keys);
	free(keys.folder);
}

/* The loader's own file, and the folders of libraries, where other versions of them will lie. */
static int visit_library(struct dl_phdr_info *info, size_t size, void *visitor)
{
	(void)size;
	struct sandbox_visitor *v = visitor;
	char *real = info->dlpi_name[0] == '/' ? realpath(info->dlpi_name, NULL) : NULL;
	char *slash = real ? strrchr(real, '/') : NULL;
	if (slash && slash > real) {
		*slash = '\0';
		v->visit(v, real, LANDLOCK_EXECUTE);
	}
	free(real);
	return 0;
}

static void visit_program(struct sandbox_visitor *v)
{
	char program[OWN_PROGRAM];
	own_program(program);
	char *slash = strrchr(program, '/');
	if (!slash || slash == program)
		return;
	*slash = '\0';
	v->visit(v, program, LANDLOCK_EXECUTE);
}

/* Where it is a link, whoever keeps it replaces it in a folder of its own. */
static void visit_resolver(struct sandbox_visitor *v)
{
	char *real = realpath("/etc/resolv.conf", NULL);
	char *folder = real ? sandbox_paths_folder(real) : NULL;
	visit_path(v, "/etc/resolv.conf", LANDLOCK_READ);
	if (folder && strcmp(folder, "/etc") != 0)
		v->visit(v, folder, LANDLOCK_READ);
	free(folder);
	free(real);
}

/* How memory is laid out; and what the next program of this process is told to leave unsaid. */
static void visit_for_sanitizer(struct sandbox_visitor *v)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	const char *options = getenv("TSAN_OPTIONS");
	const char *file = options ? strstr(options, "suppressions=") : NULL;
	v->visit(v, "/proc", LANDLOCK_APPEND);
	if (file) {
		file += strlen("suppressions=");
		char *path = mem_strndup(file, strcspn(file, ":"));
		v->visit(v, path, LANDLOCK_READ);
		free(path);
	}
#else
	(void)v;
#endif
}

/* Files of /etc that may be replaced, and then can't be read: the resolver keeps what it has, a user is
 * not looked for, and the loader finds its libraries without a cache. */
void sandbox_paths_system(struct sandbox_visitor *v)
{
	static const char *const read[] = {
		"/etc/hosts",
		"/etc/host.conf",
		"/etc/nsswitch.conf",
		"/etc/localtime",
		"/etc/passwd",
		"/etc/group",
		"/etc/ld.so.cache",
		"/etc/ssl/certs",
		"/etc/ssl/openssl.cnf",
		"/usr/share/zoneinfo",
		"/usr/share/ca-certificates",
		"/usr/local/share/ca-certificates",
	};
	visit_resolver(v);
	for (size_t i = 0; i < sizeof read / sizeof *read; i++)
		visit_path(v, read[i], LANDLOCK_READ);
	visit_path(v, X509_get_default_cert_dir(), LANDLOCK_READ);
	visit_path(v, X509_get_default_cert_file(), LANDLOCK_READ);
	v->visit(v, "/dev/null", LANDLOCK_APPEND);
	visit_for_sanitizer(v);
	dl_iterate_phdr(visit_library, v);
	visit_program(v);
}
