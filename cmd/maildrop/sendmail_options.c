/* SPDX-License-Identifier: ISC */
#include "cmd/maildrop/sendmail_options.h"

#include "cmd/options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

static const char usage[] =
	"usage: sluice sendmail [-t] [-i] [-G] [-v] [-f FROM] [-F NAME] [-N DSN] [-c FILE] "
	"[RCPT...]\n"
	"       sluice sendmail -q | -qIID | -qRTEXT | -qSTEXT | -bp | -bs | -bi | -bv ADDRESS...\n"
	"Read a message from standard input, and hand it to the relay, or leave it in the maildrop "
	"if\n"
	"the relay is down. The exit status is 0 only if it is on disk; 75 means: try again "
	"later.\n"
	"  -t        send to the addresses in To, Cc and Bcc, and to the recipients given\n"
	"  -i, -oi   a line with a single dot is text, not the end\n"
	"  -f FROM   the sender; <> is the null sender. Also -r FROM\n"
	"  -F NAME   the name in From, if the message has no such field\n"
	"  -N DSN    when to report to the sender: never, or success, failure, delay\n"
	"  -R WHAT   return in a bounce: full or hdrs\n"
	"  -V ENVID  an identifier of the sender, repeated in reports\n"
	"  -G        add no fields to the header: mail from elsewhere\n"
	"  -h N      it has made N hops already; see hopcount_limit\n"
	"  -v        show the dialogue with the relay on standard error\n"
	"  -L NAME   begin errors with this name\n"
	"  -bm       submit a message, the default; -bp: list the queue, as mailq does\n"
	"  -bs       speak SMTP on standard input and output\n"
	"  -bv       send nothing: show what would happen to mail for these addresses\n"
	"  -bi, -I   as newaliases does: report faults in the tables of aliases, which the\n"
	"            relay reads by itself when they change\n"
	"  -q        try all deferred mail now; -qIID: that message; -qRTEXT, -qSTEXT: mail with "
	"a\n"
	"            recipient, or a sender, that contains TEXT. With -bp: list it\n"
	"  -c FILE   the configuration, which says where the relay listens\n"
	"-A X, -e X, -m, -n, -O X, -U, -X FILE, other -o, -B7BIT and -B8BITMIME, which some "
	"programs\n"
	"pass, change nothing.\n";

static const struct option longs[] = {OPTIONS_COMMON};

enum { HOPS_MAX = 100000, ENVID_MAX = 100 };

static const char *program = "sendmail";

static _Noreturn void refuse_option(const char *what, const char *value)
{
	fprintf(stderr, "%s: %s%s\n%.*s\n", program, what, value, (int)strcspn(usage, "\n"), usage);
	exit(EX_USAGE);
}

static int parse_hops(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);
	if (end == text || *end || n < 0 || n > HOPS_MAX)
		refuse_option("-h: it is a number of hops, not ", text);
	return (int)n;
}

/* The relay runs its queue by itself. */
static void parse_run(struct sendmail_options *o, const char *text)
{
	if (!queue_habit_read(&o->of, text))
		refuse_option("-q is followed by nothing, IID, RTEXT or STEXT (how often the queue "
			      "is run says queue_run_delay); not ",
			      text);
	if (o->mode == SENDMAIL_SUBMIT)
		o->mode = SENDMAIL_FLUSH;
}

/* "success,delay" to "SUCCESS,DELAY"; the caller's bytes are changed. */
static const char *parse_notify(char *text)
{
	static const char *const words[] = {"NEVER", "SUCCESS", "FAILURE", "DELAY"};
	unsigned seen = 0;
	for (char *p = text; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	for (const char *p = text; *p;) {
		size_t len = strcspn(p, ",");
		unsigned bit = 0;
		for (unsigned i = 0; i < 4; i++)
			if (strlen(words[i]) == len && strncmp(p, words[i], len) == 0)
				bit = 1U << i;
		if (!bit || (seen & bit)) /* a comma at the end, too, is followed by none of them */
			refuse_option("-N: it is never, or some of success,failure,delay; not ",
				      text);
		seen |= bit;
		p += len;
		p += *p == ',' && p[1];
	}
	if (seen == 0 || ((seen & 1) && seen != 1))
		refuse_option("-N: it is never, or some of success,failure,delay; not ", text);
	return text;
}

/* RFC 3461 4.4: what is longer would be cut, and the report would name another. */
static const char *parse_envid(const char *text)
{
	size_t len = strlen(text);
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			len = 0;
	if (len == 0 || len > ENVID_MAX)
		refuse_option("-V: it is 1 to 100 characters of ASCII, not ", text);
	return text;
}

static const char *parse_ret(const char *text)
{
	if (strcasecmp(text, "full") == 0)
		return "FULL";
	if (strcasecmp(text, "hdrs") != 0)
		refuse_option("-R: it is full or hdrs, not ", text);
	return "HDRS";
}

static void parse_mode(struct sendmail_options *o, const char *text)
{
	if (strcmp(text, "p") == 0)
		o->mode = SENDMAIL_LIST;
	else if (strcmp(text, "s") == 0)
		o->mode = SENDMAIL_SESSION;
	else if (strcmp(text, "v") == 0)
		o->mode = SENDMAIL_VERIFY;
	else if (strcmp(text, "i") == 0)
		o->mode = SENDMAIL_ALIASES;
	else if (strcmp(text, "m") != 0)
		refuse_option("unknown option -b", text);
}

/* Settings of sendmail; like Postfix we have others for them, or none. */
static void parse_old(struct sendmail_options *o, const char *text)
{
	if (strcmp(text, "i") == 0)
		o->dot_is_text = true;
}

static void parse_body(const char *text)
{
	if (strcasecmp(text, "7BIT") != 0 && strcasecmp(text, "8BITMIME") != 0)
		refuse_option("-B: it is 7BIT or 8BITMIME, not ", text);
}

static void parse_option(struct sendmail_options *o, int option)
{
	switch (option) {
	case 't':
		o->from_header = true;
		break;
	case 'i':
		o->dot_is_text = true;
		break;
	case 'f':
	case 'r':
		o->from = optarg;
		break;
	case 'F':
		o->name = optarg;
		break;
	case 'N':
		o->notify = parse_notify(optarg);
		break;
	case 'R':
		o->ret = parse_ret(optarg);
		break;
	case 'V':
		o->envid = parse_envid(optarg);
		break;
	case 'q':
		parse_run(o, optarg ? optarg : "");
		break;
	case 'v':
		o->verbose = true;
		break;
	case 'G':
		o->gateway = true;
		break;
	case 'h':
		o->hops = parse_hops(optarg);
		break;
	case 'L':
		o->program = program = optarg;
		break;
	case 'b':
		parse_mode(o, optarg);
		break;
	case 'I':
		o->mode = SENDMAIL_ALIASES;
		break;
	case 'o':
		parse_old(o, optarg);
		break;
	case 'B':
		parse_body(optarg);
		break;
	case 'c':
		o->conf_file = optarg;
		break;
	case OPTION_HELP:
		fputs(usage, stdout);
		exit(EX_OK);
	default: /* 'A', 'e', 'm', 'n', 'O', 'U', 'X' */
		break;
	}
}

void sendmail_options_parse(struct sendmail_options *o, int argc, char **argv)
{
	int option;
	struct buf error = {0};
	*o = (struct sendmail_options){.conf_file = options_default_conf(), .program = program};
	optind = 0;
	opterr = 0;
	while ((option = getopt_long(argc, argv, ":tif:r:F:N:R:V:b:o:B:nq::vGh:L:c:A:e:mO:UX:I",
				     longs, NULL)) != -1) {
		if (option == ':' || option == '?') {
			options_fault(&error, option, argv);
			refuse_option(buf_cstr(&error), "");
		}
		parse_option(o, option);
	}
	buf_fini(&error);
	if (o->mode == SENDMAIL_FLUSH && (o->from_header || optind < argc))
		refuse_option("-q sends nothing: it goes with no recipients", "");
	o->nrcpt = argc - optind;
	o->rcpt = argv + optind;
}
