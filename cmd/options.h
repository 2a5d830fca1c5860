/* options.h - the options of a subcommand, read with getopt_long, and the configuration they name.
 *
 * OWNERSHIP  Results point into argv.
 * THREAD     Main: getopt keeps its place in globals.
 * ERRORS     A wrong option is told on stderr, and ends the program with status 2; --help prints
 *            the usage, and ends it with 0.
 */
#ifndef CMD_OPTIONS_H
#define CMD_OPTIONS_H

#include "base/conf.h"

#include <getopt.h>

enum {
	OPTION_HELP = 1000,
	OPTION_JSON,
	OPTION_OWN
}; /* a command's own long ones: OPTION_OWN + n */

/* The rows that every table of long options ends with. */
#define OPTIONS_COMMON                                                                             \
	{"config", required_argument, NULL, 'c'}, {"help", no_argument, NULL, OPTION_HELP},        \
	{                                                                                          \
		NULL, 0, NULL, 0                                                                   \
	}

struct options {
	const char *usage;	    /* "usage: sluice ...\n" and what the options mean */
	const char *shorts;	    /* as for getopt, with "c:" */
	const struct option *longs; /* ends with OPTIONS_COMMON */
	const char *conf_file;	    /* of -c, or the default */
	bool begun;
	char with_colon[64]; /* shorts, behind ':' */
};

int options_next(struct options *, int argc, char **argv);
/* The next option, -1 when there are no more (then optind is the first argument). -c and --help
 * are dealt with. */

void options_only(struct options *, int argc, char **argv);
/* No option but the common ones, and no argument. */

void options_fault(struct buf *error, int option, char **argv);
/* The fault in the option at which getopt_long has returned ':' or '?', by its name. The string
 * of short options began with ':'. */

_Noreturn void options_wrong(const struct options *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Say what is wrong, and the first line of the usage, and exit. */

struct conf *options_conf(const struct options *);
/* Read the settings; their faults go to stderr, and NULL comes back. Keys and tables are left alone:
 * whoever runs the command may read neither. */

struct conf *options_conf_at(const char *file);
/* The same; NULL is the default's. */

struct conf *options_conf_to_ask(const struct options *);
/* For commands that the running relay carries out: faults go to stderr too, but NULL comes back only
 * where they hide where the relay is (conf_read_to_ask()). */

struct conf *options_conf_to_ask_at(const char *file);
/* The same; NULL is the default's. */

struct conf *options_conf_with(const struct options *, unsigned with);
/* With what else the command needs: enum conf_with. */

int options_printed(int status);
/* The end of all that goes to standard output: the status, or a refusal where not all found room there. */

bool options_said(const char *usage, bool help, bool ok, struct buf *error, int *status);
/* For commands whose words the relay reads as well: print the usage, where help is wanted, or say what
 * is wrong with them. True: that was all, and *status is what to end with. */

int64_t options_number(const struct options *, const char *name, const char *text, int64_t low,
		       int64_t high);
const char *options_default_conf(void);

#endif
