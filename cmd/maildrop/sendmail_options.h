/* sendmail_options.h - the options of `sluice sendmail`.
 *
 * OWNERSHIP  Strings point into argv; `of` is freed with queue_habit_free().
 * THREAD     Main.
 * ERRORS     Told on stderr; exits with EX_USAGE.
 */
#ifndef CMD_MAILDROP_SENDMAIL_OPTIONS_H
#define CMD_MAILDROP_SENDMAIL_OPTIONS_H

#include "cmd/maildrop/queue_habits.h"

#include <stdbool.h>
#include <stdint.h>

/* The job of sendmail; each but the first takes nothing from standard input, but for SESSION. */
enum sendmail_mode {
	SENDMAIL_SUBMIT,
	SENDMAIL_LIST,	  /* -bp */
	SENDMAIL_FLUSH,	  /* -q */
	SENDMAIL_SESSION, /* -bs */
	SENDMAIL_VERIFY,  /* -bv */
	SENDMAIL_ALIASES, /* -bi */
};

struct sendmail_options {
	enum sendmail_mode mode;
	const char *program; /* that errors begin with: -L, or "sendmail" */
	const char *conf_file;
	const char *from; /* NULL: who runs it; "" or "<>": the null sender */
	const char *name; /* in From, when that is missing; or NULL */
	const char *envid;
	const char *ret;    /* "FULL", "HDRS" or NULL */
	const char *notify; /* as RCPT takes it, or NULL */
	bool from_header, dot_is_text;
	bool verbose;	       /* the dialogue with the relay goes to stderr */
	bool gateway;	       /* nothing is added to the message */
	int hops;	       /* it has made before it came here */
	struct queue_habit of; /* LIST, FLUSH: which mail */
	int nrcpt;
	char **rcpt;
};

void sendmail_options_parse(struct sendmail_options *, int argc, char **argv);

#endif
