/* SPDX-License-Identifier: ISC */
#include "cmd/confine/sandbox.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cmd/confine/own_program.h"
#include "cmd/confine/privileges.h"
#include "cmd/confine/sandbox_paths.h"
#include "cmd/confine/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static const char inheritance[] = "SLUICE_SANDBOX";

static struct {
	int files; /* version of Landlock in force; 0: none */
	bool calls;
	bool inherited;
	char *spool; /* as the configuration named it */
	char *bin;   /* the folder of the program, which may be executed */
} in_force;

struct granter {
	struct sandbox_visitor visitor;
	int rules;
};

struct looker {
	struct sandbox_visitor visitor;
	struct buf *says;
};

void sandbox_hide_memory(void)
{
	prctl(PR_SET_DUMPABLE, 0);
}

static void grant_itself(struct sandbox_visitor *v, const char *path, enum landlock_right right)
{
	landlock_grant(((struct granter *)v)->rules, path, right);
}

static void grant_folder(struct sandbox_visitor *v, const char *path, enum landlock_right right)
{
	char *folder = sandbox_paths_folder(path);
	grant_itself(v, folder ? folder : path, right);
	free(folder);
}

/* systemd may wait for word of us at a socket without a file. */
static bool notifies_abstract_socket(void)
{
	const char *socket = getenv("NOTIFY_SOCKET");
	return socket && socket[0] == '@';
}

static bool restrict_files(const struct conf *c, struct buf *error)
{
	struct granter g = {.rules = landlock_begin(notifies_abstract_socket())};
	if (g.rules < 0) {
		buf_printf(error, "Landlock: %s", strerror(errno));
		return false;
	}
	g.visitor.visit = grant_folder;
	sandbox_paths_conf(c, &g.visitor);
	g.visitor.visit = grant_itself;
	sandbox_paths_system(&g.visitor);
	if (landlock_enforce(g.rules))
		return true;
	buf_printf(error, "Landlock: %s", strerror(errno));
	return false;
}

/* From the program that was in this process before. */
static bool inherit_sandbox(void)
{
	int process = 0, files = 0, calls = 0;
	const char *text = getenv(inheritance);
	if (text && sscanf(text, "%d %d %d", &process, &files, &calls) == 3 &&
	    process == getpid()) {
		in_force.inherited = true;
		in_force.files = files;
		in_force.calls = calls;
	}
	unsetenv(inheritance);
	return in_force.inherited;
}

void sandbox_hand_over(void)
{
	char text[64];
	snprintf(text, sizeof text, "%d %d %d", (int)getpid(), in_force.files, in_force.calls);
	if (in_force.files || in_force.calls)
		setenv(inheritance, text, 1);
}

static const char *find_lack(void)
{
	if (!in_force.files && !in_force.calls)
		return "neither Landlock nor a filter of system calls can be had here";
	return !in_force.files	 ? "no Landlock can be had here, or none of version 2"
	       : !in_force.calls ? "no filter of system calls can be had here"
				 : NULL;
}

static void log_sandbox(const struct conf *c)
{
	bool any = in_force.files || in_force.calls;
	const char *reason = c->sandbox != SANDBOX_OFF ? find_lack()
			     : any ? "a restart cannot lift it: stop the relay, and start it"
				   : NULL;
	log_event(reason ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "sandbox", "files",
		  in_force.files ? "restricted" : "open", "landlock",
		  in_force.files ? log_number(in_force.files) : NULL, "system_calls",
		  in_force.calls ? "restricted" : "open", "inherited",
		  in_force.inherited ? "true" : NULL, "reason", reason, NULL);
}

static bool restrict_all(const struct conf *c, struct buf *error)
{
	/* The filter is compiled first, and in force last: it refuses the calls of Landlock. */
	bool calls = syscalls_offered();
	if (c->sandbox == SANDBOX_OFF)
		return true;
	if (calls && !syscalls_prepare(error))
		return false;
	in_force.files = landlock_abi();
	if (in_force.files && !restrict_files(c, error))
		return false;
	in_force.calls = calls && syscalls_restrict(error);
	return in_force.calls == calls;
}

static char *folder_of_program(void)
{
	char program[OWN_PROGRAM];
	own_program(program);
	const char *slash = strrchr(program, '/');
	return mem_strndup(program, slash ? (size_t)(slash - program) : 0);
}

bool sandbox_enter(const struct conf *c, struct buf *error)
{
	if (inherit_sandbox()) {
		if (in_force.calls && !syscalls_prepare(error))
			return false;
	} else if (!restrict_all(c, error)) {
		return false;
	}
	if (c->sandbox == SANDBOX_REQUIRED && find_lack()) {
		buf_printf(error, "sandbox = required: %s", find_lack());
		return false;
	}
	if (in_force.calls)
		thread_prepare(syscalls_restrict_thread);
	prctl(PR_SET_DUMPABLE, c->sandbox == SANDBOX_OFF);
	in_force.spool = mem_strdup(c->spool);
	in_force.bin = folder_of_program();
	log_sandbox(c);
	return true;
}

/* Landlock has no part in access(2), and all in open(2). */
static bool is_hidden_by_sandbox(const char *path)
{
	if (!in_force.files || faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0)
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == EACCES;
}

static void say_hidden(struct buf *says, const char *path)
{
	buf_printf(
		says,
		"%s: out of the sandbox's reach; to have it opened, stop the relay and start it\n",
		path);
}

static void look_at_path(struct sandbox_visitor *v, const char *path, enum landlock_right right)
{
	struct looker *l = (struct looker *)v;
	if (right == LANDLOCK_KEEP)
		return; /* not before a start */
	/* A file that is yet to be made lies in a folder that is there. */
	char *folder = right == LANDLOCK_READ ? NULL : sandbox_paths_folder(path);
	if (is_hidden_by_sandbox(folder ? folder : path))
		say_hidden(l->says, path);
	free(folder);
}

/* Settings that are settled at a start, and can't be changed from inside. */
static void look_at_start(const struct conf *c, struct buf *says)
{
	struct privileges p;
	struct buf error = {0};
	if (!privileges_find(&p, c->user, &error) || p.change)
		buf_printf(says, "user = \"%s\": %s; stop the relay and start it\n", c->user,
			   p.change ? "the sandbox lets nobody change the user" : buf_cstr(&error));
	privileges_fini(&p);
	buf_fini(&error);
	if (in_force.files && strcmp(c->spool, in_force.spool) != 0)
		buf_printf(says,
			   "spool = \"%s\": the sandbox ends at the queue that there was; stop "
			   "the relay and start it\n",
			   c->spool);
}

static void look_at_offers(const struct conf *c, struct buf *says)
{
	bool any = in_force.files || in_force.calls;
	if (c->sandbox == SANDBOX_REQUIRED && find_lack() &&
	    (any || !landlock_abi() || !syscalls_offered()))
		buf_printf(says, "sandbox = required: %s\n", find_lack());
}

bool sandbox_reaches(const struct conf *c, bool restart, struct buf *says)
{
	struct looker l = {.visitor.visit = look_at_path, .says = says};
	size_t before = buf_len(says);
	if (in_force.files)
		sandbox_paths_conf(c, &l.visitor);
	if (restart && (in_force.files || in_force.calls))
		look_at_start(c, says);
	if (restart)
		look_at_offers(c, says);
	return buf_len(says) == before;
}

/* A file that can be read need not be one that can be executed. */
bool sandbox_reaches_program(const char *path, struct buf *says)
{
	char *real = in_force.files ? realpath(path, NULL) : NULL;
	size_t len = in_force.files ? strlen(in_force.bin) : 0;
	bool hidden =
		in_force.files &&
		!(real && len > 0 && strncmp(real, in_force.bin, len) == 0 && real[len] == '/');
	if (hidden)
		say_hidden(says, path);
	free(real);
	return !hidden;
}
