/* SPDX-License-Identifier: ISC */
/* sluice passwd: who may log in. Needs no relay; one that runs sees the change by itself. */
#include "base/mem.h"
#include "base/users.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "cmd/local/users_file.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static const char usage[] =
	"usage: sluice passwd [-c FILE] [-f FILE] [-d] [--crypt] [--iterations N] LOGIN\n"
	"Add a login to the users' file, or change its password, which is read from the terminal,\n"
	"or as one line from standard input. The file holds keys for SCRAM, never the password.\n"
	"  -f FILE         the users' file; without it, auth.file of the configuration\n"
	"  -d, --delete    delete the login\n"
	"  --crypt         keep a hash of crypt(5) instead, for PLAIN and LOGIN only\n"
	"  --iterations N  how much work each guess at a password costs, 4096 to 10000000;\n"
	"                  by default 10000\n";

enum { OPTION_CRYPT = OPTION_OWN, OPTION_ITERATIONS };

enum { LINE = USERS_PASSWORD_MAX + 3 }; /* CR LF NUL */

static const struct option longs[] = {
	{"file", required_argument, NULL, 'f'},
	{"delete", no_argument, NULL, 'd'},
	{"crypt", no_argument, NULL, OPTION_CRYPT},
	{"iterations", required_argument, NULL, OPTION_ITERATIONS},
	OPTIONS_COMMON,
};

struct passwd_args {
	const char *file;
	bool deletes, crypt;
	int iterations;
};

static bool print_refusal(const char *text)
{
	fprintf(stderr, "sluice: %s\n", text);
	return false;
}

/* Without a buffer of the C library's, which nobody would wipe. */
static bool read_line(char line[LINE])
{
	size_t n = 0;
	ssize_t got = 1;
	while (n < LINE - 1 && (got = read(STDIN_FILENO, line + n, 1)) == 1 && line[n] != '\n') {
		if (line[n] == '\0')
			return print_refusal("a password must not hold a NUL");
		n++;
	}
	if (n == LINE - 1)
		return print_refusal("that password is too long");
	while (n > 0 && line[n - 1] == '\r')
		n--;
	line[n] = '\0';
	return n > 0 || print_refusal("a password must not be empty");
}

/* The terminal, as it was before it was silent. */
static struct termios as_it_was;

/* Who breaks off wants to see again what is typed. The signal has no handler any more. */
static void end_silence(int number)
{
	tcsetattr(STDIN_FILENO, TCSANOW, &as_it_was);
	raise(number);
}

static void catch_endings(void)
{
	static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	const struct sigaction caught = {.sa_handler = end_silence, .sa_flags = (int)SA_RESETHAND};
	struct sigaction now;
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
		if (sigaction(endings[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaction(endings[i], &caught, NULL);
}

static bool ask_silently(const char *prompt, char line[LINE])
{
	struct termios silent;
	if (tcgetattr(STDIN_FILENO, &as_it_was) != 0)
		return print_refusal("the terminal can't be made silent");
	silent = as_it_was;
	silent.c_lflag &= ~(tcflag_t)ECHO;
	catch_endings();
	fputs(prompt, stderr);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
	bool read = read_line(line);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &as_it_was);
	fputs("\n", stderr);
	return read;
}

static bool read_password(char line[LINE])
{
	char again[LINE];
	if (!isatty(STDIN_FILENO))
		return read_line(line);
	bool same = ask_silently("Password: ", line) && ask_silently("Again: ", again);
	if (same && strcmp(line, again) != 0)
		same = print_refusal("these are two passwords; nothing was changed");
	explicit_bzero(again, sizeof again);
	return same;
}

/* The row's text, the caller's to mem_free_secret(); NULL: it was said why. */
static char *make_value(const struct passwd_args *args)
{
	char line[LINE];
	struct buf text = {0};
	struct user_value v = {.crypt = NULL};
	char *password = read_password(line) ? users_password(line, &text) : NULL;
	bool made =
		password &&
		(args->crypt ? user_value_make_crypt(&v, password)
			     : user_value_make_scram(&v, USER_SHA256, password, args->iterations) &&
				       user_value_make_scram(&v, USER_SHA1, password,
							     args->iterations));
	if (made)
		user_value_print(&v, &text);
	else if (password)
		print_refusal("the password can't be hashed");
	else if (buf_len(&text) > 0)
		print_refusal(buf_cstr(&text));
	char *value = made ? mem_strdup(buf_cstr(&text)) : NULL;
	mem_free_secret(password);
	explicit_bzero(line, sizeof line);
	user_value_fini(&v);
	buf_wipe(&text);
	return value;
}

static int change_login(const struct passwd_args *args, const struct conf *conf, const char *login)
{
	static const char *const said[] = {
		[USERS_FILE_ADDED] = "added", [USERS_FILE_CHANGED] = "changed"};
	const char *file = args->file ? args->file : conf->auth.file;
	struct buf error = {0};
	char *value = args->deletes ? NULL : make_value(args);
	int status = STATUS_REFUSED;
	if (args->deletes || value) {
		enum users_file_outcome outcome =
			users_file_set(file, login, value, conf->user, &error);
		if (outcome == USERS_FILE_FAILED)
			print_refusal(buf_cstr(&error));
		else if (outcome == USERS_FILE_NONE)
			fprintf(stderr, "sluice: %s: there is no login %s\n", file, login);
		else
			printf("%s: %s %s\n", file, login,
			       args->deletes ? "deleted" : said[outcome]);
		status = outcome == USERS_FILE_ADDED || outcome == USERS_FILE_CHANGED
				 ? STATUS_DONE
				 : STATUS_REFUSED;
	}
	mem_free_secret(value);
	buf_fini(&error);
	return status;
}

/* With a file of its own it needs no configuration. */
static struct conf *find_conf(const struct options *o, const struct passwd_args *args)
{
	if (args->file && access(o->conf_file, R_OK) != 0)
		return conf_defaults();
	return options_conf(o);
}

static bool check_file(const struct passwd_args *args, const struct conf *conf)
{
	const char *file = args->file ? args->file : conf->auth.file;
	size_t len = strlen(file);
	if (!*file)
		return print_refusal("auth.file is empty: name the users' file with -f");
	if (len > 4 && strcmp(file + len - 4, ".cdb") == 0)
		return print_refusal(
			"a CDB file is not written here: write the text it is made from");
	return true;
}

int cmd_passwd(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:f:d", .longs = longs};
	struct passwd_args args = {.iterations = USER_ITERATIONS};
	char login[USERS_LOGIN_MAX + 1];
	struct buf why = {0};
	for (int option; (option = options_next(&o, argc, argv)) != -1;) {
		if (option == 'f')
			args.file = optarg;
		else if (option == 'd')
			args.deletes = true;
		else if (option == OPTION_CRYPT)
			args.crypt = true;
		else
			args.iterations =
				(int)options_number(&o, "--iterations", optarg, USER_ITERATIONS_MIN,
						    USER_ITERATIONS_MAX);
	}
	if (optind + 1 != argc)
		options_wrong(&o, "passwd takes one login");
	if (!users_login(argv[optind], login, &why)) {
		print_refusal(buf_cstr(&why));
		buf_fini(&why);
		return STATUS_REFUSED;
	}
	struct conf *conf = find_conf(&o, &args);
	int status =
		conf && check_file(&args, conf) ? change_login(&args, conf, login) : STATUS_REFUSED;
	conf_unref(conf);
	return status;
}
