/* SPDX-License-Identifier: ISC */
#include "cmd/local/check_access.h"

#include "base/credential.h"
#include "base/dkim_rows.h"
#include "base/mem.h"
#include "base/tables.h"
#include "cmd/confine/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MODE_GIVEN = 0640 };

enum use { USE_READ, USE_QUEUE, USE_LOG };

struct named {
	int line;
	const char *whose; /* "listener", or a setting's name */
	char *path;
	enum use use;
	int error; /* errno of the user's look at it */
};

struct access {
	const struct conf *conf;
	struct named *file;
	size_t n;
};

static void add_file(struct access *a, int line, const char *whose, const char *path)
{
	if (!*path)
		return;
	a->file = mem_realloc(a->file, (a->n + 1) * sizeof *a->file);
	a->file[a->n++] = (struct named){.line = line, .whose = whose, .path = mem_strdup(path)};
}

static void add_list(struct access *a, int line, const char *whose, const struct conf_list *l)
{
	for (int i = 0; i < l->n; i++)
		if (!socketmap_name_is(l->item[i]))
			add_file(a, line, whose, l->item[i]);
}

static void add_secret(void *context, const char *key, const char *value)
{
	struct credential *of = NULL;
	struct buf why = {0};
	(void)key;
	if (!credential_parse(value, &of, &why))
		add_file(context, 0, "credentials", of->file);
	credential_unref(of);
	buf_fini(&why);
}

static void add_keys(void *context, const char *key, const char *value)
{
	struct dkim_rows rows;
	struct buf why = {0};
	(void)key;
	dkim_rows_parse(value, &rows, &why);
	for (int i = 0; i < rows.n; i++)
		add_file(context, 0, "dkim_keys", rows.row[i].file);
	dkim_rows_fini(&rows);
	buf_fini(&why);
}

static void add_tables(struct access *a)
{
	const struct conf *conf = a->conf;
#define T(role, setting, ...) add_list(a, 0, #setting, &conf->setting);
	TABLES(T)
#undef T
	if (!conf->tables)
		return;
	tables_each(conf->tables, TABLE_CREDENTIALS, add_secret, a);
	tables_each(conf->tables, TABLE_DKIM_KEYS, add_keys, a);
}

static void add_cluster(struct access *a, const struct conf_cluster *k)
{
	add_file(a, 0, "redis_password", k->redis_password);
	add_file(a, 0, "redis_ca", k->redis_ca);
	add_file(a, 0, "redis_certificate", k->redis_certificate);
	add_file(a, 0, "redis_key", k->redis_key);
	add_file(a, 0, "nats_ca", k->nats_ca);
	add_file(a, 0, "nats_certificate", k->nats_certificate);
	add_file(a, 0, "nats_key", k->nats_key);
	add_file(a, 0, "nats_credentials", k->nats_credentials);
}

static void add_all(struct access *a)
{
	const struct conf *conf = a->conf;
	add_file(a, 0, "the configuration", conf->file);
	for (int i = 0; i < conf->nlistener; i++) {
		const struct conf_listener *l = &conf->listener[i];
		add_list(a, l->line, "certificate", &l->certificate);
		add_list(a, l->line, "key", &l->key);
		add_file(a, l->line, "client_ca", l->client_ca);
	}
	for (int i = 0; i < conf->ntransport; i++) {
		const struct conf_transport *t = &conf->transport[i];
		add_file(a, t->line, "client_certificate", t->client_certificate);
		add_file(a, t->line, "client_key", t->client_key);
	}
	for (int i = 0; i < conf->ndkim; i++)
		add_file(a, conf->dkim[i].line, "key", conf->dkim[i].key);
	add_file(a, 0, "trust_anchor", conf->dns.trust_anchor);
	add_file(a, 0, "tls ca", conf->tls.ca);
	add_file(a, 0, "events token", conf->events.token);
	add_cluster(a, &conf->cluster);
	add_tables(a);
}

static void add_written(struct access *a, enum use use, char *path)
{
	a->file = mem_realloc(a->file, (a->n + 1) * sizeof *a->file);
	a->file[a->n++] = (struct named){.path = path, .use = use};
}

/* A queue from a backup may be of a user of another machine. Its folder itself is given to the user at a start by root, where
 * that may be. */
static void add_queue(struct access *a, const struct privileges *p)
{
	static const char *const within[] = {"lock", "log", "large", "taken", "maildrop"};
	const char *spool = a->conf->spool;
	if (!privileges_gives_folder(p, spool))
		add_written(a, USE_QUEUE, mem_strdup(spool));
	for (size_t i = 0; i < sizeof within / sizeof *within; i++)
		add_written(a, USE_QUEUE, mem_printf("%s/%s", spool, within[i]));
}

static int try_access(const char *path, int mode)
{
	return access(path, mode) == 0 ? 0 : errno;
}

/* One that is yet to be made is made in its folder. */
static int try_append(const char *path)
{
	char *folder = mem_printf("%.*s/", (int)(strrchr(path, '/') - path), path);
	int error = try_access(path, W_OK);
	if (error == ENOENT)
		error = try_access(folder, W_OK | X_OK);
	free(folder);
	return error;
}

static int try_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int error = fd < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	return error;
}

/* A file that is not there is no question of rights. */
static int try_file(const struct named *f)
{
	int error = f->use == USE_QUEUE ? try_access(f->path, R_OK | W_OK)
		    : f->use == USE_LOG ? try_append(f->path)
					: try_read(f->path);
	return error == EACCES || error == EPERM ? error : 0;
}

/* The child: in the user's place. */
static void try_all(struct access *a, struct privileges *p, int answers)
{
	struct buf error = {0};
	if (!privileges_drop(p, &error))
		_exit(1);
	for (size_t i = 0; i < a->n; i++) {
		int got = try_file(&a->file[i]);
		if (write(answers, &got, sizeof got) != sizeof got)
			_exit(1);
	}
	_exit(0);
}

static void ask_user(struct access *a, struct privileges *p)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return;
	pid_t child = fork();
	if (child == 0)
		try_all(a, p, ends[1]);
	close(ends[1]);
	for (size_t i = 0; child > 0 && i < a->n; i++)
		if (read(ends[0], &a->file[i].error, sizeof a->file[i].error) !=
		    sizeof a->file[i].error)
			a->file[i].error = 0;
	close(ends[0]);
	if (child > 0)
		waitpid(child, NULL, 0);
}

static const char *group_of(const struct passwd *pw)
{
	const struct group *g = getgrgid(pw->pw_gid);
	return g ? g->gr_name : pw->pw_name;
}

/* The outermost folder above it that this user can't pass, as its group or as anybody; NULL: none. */
static char *closed_folder(const struct passwd *pw, const char *path)
{
	struct stat st;
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *folder = mem_strndup(path, (size_t)(slash - path));
		bool closed = stat(folder, &st) == 0 && st.st_uid != pw->pw_uid &&
			      !(st.st_mode & (st.st_gid == pw->pw_gid ? S_IXGRP : S_IXOTH));
		if (closed)
			return folder;
		free(folder);
	}
	return NULL;
}

char *check_access_command(const struct conf *conf, const char *path)
{
	struct stat st;
	const struct passwd *pw = *conf->user ? getpwnam(conf->user) : NULL;
	if (!pw || pw->pw_uid == 0 || stat(path, &st) != 0 || st.st_uid == pw->pw_uid)
		return mem_printf("chmod o= %s", path);
	char *folder = closed_folder(pw, path), *command;
	if (folder)
		command = mem_printf("chgrp %s %s && chmod g+x %s", group_of(pw), folder, folder);
	else if (st.st_gid == pw->pw_gid)
		command = mem_printf("chmod g+r,o= %s", path);
	else
		command = mem_printf("chgrp %s %s && chmod g+r,o= %s", group_of(pw), path, path);
	free(folder);
	return command;
}

static void tell_of_queue(const struct conf *conf, const char *path,
			  void (*tell)(void *context, int line, const char *text), void *context)
{
	char *text = mem_printf(
		"spool: the relay's user \"%s\" may not read and write %s (chown -R %s: %s/)",
		conf->user, path, conf->user, conf->spool);
	tell(context, 0, text);
	free(text);
}

/* A start by root makes it, and gives it away. One by systemd does not come to be, and a reload behind a rotation keeps the old one. */
static void tell_of_log(const struct conf *conf,
			void (*tell)(void *context, int line, const char *text), void *context)
{
	const char *how = access(conf->log, F_OK) == 0 ? "chown" : "install -m 640 /dev/null -o";
	char *text =
		mem_printf("log: the relay's user \"%s\" may not write %s, as where systemd starts "
			   "the relay (%s %s %s)",
			   conf->user, conf->log, how, conf->user, conf->log);
	tell(context, 0, text);
	free(text);
}

static void tell_of_file(const struct conf *conf, const struct named *f,
			 void (*tell)(void *context, int line, const char *text), void *context)
{
	char *command = check_access_command(conf, f->path);
	char *text = mem_printf("%s: the relay's user \"%s\" may not read %s (%s)", f->whose,
				conf->user, f->path, command);
	tell(context, f->line, text);
	free(text);
	free(command);
}

/* One command gives the user all of the queue. */
static void tell_of_all(struct access *a, void (*tell)(void *context, int line, const char *text),
			void *context)
{
	bool told = false;
	for (size_t i = 0; i < a->n; i++) {
		struct named *f = &a->file[i];
		if (f->error && f->use == USE_READ)
			tell_of_file(a->conf, f, tell, context);
		else if (f->error && f->use == USE_LOG)
			tell_of_log(a->conf, tell, context);
		else if (f->error && !told)
			tell_of_queue(a->conf, f->path, tell, context);
		told = told || (f->error && f->use == USE_QUEUE);
		free(f->path);
	}
}

bool check_access_user(const struct conf *conf, struct buf *error)
{
	struct privileges p;
	if (privileges_of_default(conf->user))
		return true;
	bool there = privileges_find(&p, conf->user, error);
	privileges_fini(&p);
	return there;
}

void check_access(const struct conf *conf, void (*tell)(void *context, int line, const char *text),
		  void *context)
{
	struct access a = {.conf = conf};
	struct privileges p;
	struct buf error = {0};
	if (!*conf->user || !getpwnam(conf->user))
		return;
	if (privileges_find(&p, conf->user, &error) && p.change) {
		add_all(&a);
		add_queue(&a, &p);
		if (conf->log[0] == '/')
			add_written(&a, USE_LOG, mem_strdup(conf->log));
		ask_user(&a, &p);
	}
	tell_of_all(&a, tell, context);
	free(a.file);
	buf_fini(&error);
	privileges_fini(&p);
}

bool check_access_give(const char *user, int fd)
{
	const struct passwd *pw = geteuid() == 0 && *user ? getpwnam(user) : NULL;
	return !pw || pw->pw_uid == 0 ||
	       (fchown(fd, (uid_t)-1, pw->pw_gid) == 0 && fchmod(fd, MODE_GIVEN) == 0);
}
