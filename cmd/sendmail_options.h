/* sendmail_options.h - what `sluice sendmail` is told.
 *
 * OWNERSHIP  Strings point into argv.
 * THREAD     Main.
 * ERRORS     Told on stderr; exits with EX_USAGE.
 */
#ifndef CMD_SENDMAIL_OPTIONS_H
#define CMD_SENDMAIL_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct sendmail_options {
	const char *conf_file;
	const char *from; /* NULL: who runs it; "" or "<>": the null sender */
	const char *name; /* in From, when that is missing; or NULL */
	const char *envid;
	const char *ret;    /* "FULL", "HDRS" or NULL */
	const char *notify; /* as RCPT takes it, or NULL */
	bool from_header, dot_is_text, list_queue;
	int nrcpt;
	char **rcpt;
};

void sendmail_options_parse(struct sendmail_options *, int argc, char **argv);

#endif
