/* SPDX-License-Identifier: ISC */
#include "cmd/sink/sink_options.h"

#include "base/address.h"
#include "base/conf_units.h"
#include "base/mem.h"
#include "cmd/options.h"

#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"usage: sluice sink [-l ADDR:PORT] [-d DIR] [OPTION...]\n"
	"Receive mail by SMTP, for tests. Print a line for each message, and at the end, by\n"
	"SIGTERM or SIGINT, how many there were.\n"
	"  -l, --listen ADDR:PORT  by default 127.0.0.1:2526; [ADDR]:PORT for IPv6\n"
	"  -d, --dir DIR           store each message, byte for byte, as DIR/N.eml, and sender "
	"and\n"
	"                          recipients as lines \"from\" and \"to\" in DIR/N.env\n"
	"  --delay MS              hold back each reply so long, like a distant host\n"
	"  --limit N               connections at once; others get 421\n"
	"  --refuse [STAGE:]PATTERN=CODE\n"
	"                          refuse addresses that match PATTERN, with * and ? as in\n"
	"                          the shell; STAGE is mail, rcpt (the default) or end (of\n"
	"                          the content); CODE is 400 to 599; repeatable\n"
	"  --greylist TIME         450 to each sender and recipient together, until they have\n"
	"                          been known for so long: 30s, 5m\n"
	"  --per-connection N      messages on one connection, then 421\n"
	"  --rate N/s[=[STAGE:]CODE]\n"
	"                          no more than N/s, N/m or N/h, that many at once: what is\n"
	"                          beyond gets CODE, by default 451; STAGE is mail (the\n"
	"                          default), rcpt or end. After 421 the connection ends\n"
	"  --starttls              offer STARTTLS, with a certificate that it makes itself\n"
	"  --certificate FILE, --key FILE\n"
	"                          offer STARTTLS with that one\n"
	"  --tlsa                  offer STARTTLS, and print the TLSA record of the certificate\n"
	"  --name HOST             what the host is called in replies, record and certificate;\n"
	"                          by default sink.invalid\n"
	"  --login NAME:PASSWORD   nobody sends without a login: SCRAM-SHA-256, PLAIN, LOGIN;\n"
	"                          with STARTTLS only under TLS; repeatable\n"
	"  --size SIZE             the largest message, by default 100m\n"
	"  --no-pipelining         do not announce PIPELINING\n"
	"  --no-chunking           do not announce CHUNKING\n"
	"  --count N               end after N messages\n"
	"  -q, --quiet             print only the totals\n"
	"  -v, --verbose           print each command too\n";

enum {
	DELAY = OPTION_OWN,
	LIMIT,
	REFUSE,
	SIZE,
	NO_PIPELINING,
	NO_CHUNKING,
	COUNT,
	GREYLIST,
	PER_CONNECTION,
	RATE,
	STARTTLS,
	CERTIFICATE,
	KEY,
	TLSA,
	NAME,
	LOGIN,
};

static const struct option longs[] = {
	{"listen", required_argument, NULL, 'l'},
	{"dir", required_argument, NULL, 'd'},
	{"delay", required_argument, NULL, DELAY},
	{"limit", required_argument, NULL, LIMIT},
	{"refuse", required_argument, NULL, REFUSE},
	{"size", required_argument, NULL, SIZE},
	{"no-pipelining", no_argument, NULL, NO_PIPELINING},
	{"no-chunking", no_argument, NULL, NO_CHUNKING},
	{"count", required_argument, NULL, COUNT},
	{"greylist", required_argument, NULL, GREYLIST},
	{"per-connection", required_argument, NULL, PER_CONNECTION},
	{"rate", required_argument, NULL, RATE},
	{"starttls", no_argument, NULL, STARTTLS},
	{"certificate", required_argument, NULL, CERTIFICATE},
	{"key", required_argument, NULL, KEY},
	{"tlsa", no_argument, NULL, TLSA},
	{"name", required_argument, NULL, NAME},
	{"login", required_argument, NULL, LOGIN},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	OPTIONS_COMMON,
};

static void parse_listen(const struct options *o, const char *text, union address *to)
{
	const char *colon = strrchr(text, ':');
	if (!colon)
		options_wrong(o, "--listen %s: there is no port", text);
	size_t len = (size_t)(colon - text);
	int port = (int)options_number(o, "--listen", colon + 1, 1, 65535);
	if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	char *host = mem_strndup(text, len);
	if (!address_parse(*host ? host : "127.0.0.1", port, to))
		options_wrong(o, "--listen: %s is no address", host);
	free(host);
}

/* The text behind "STAGE:", or all of it where it names none. */
static char *take_stage(char *text, enum sink_stage *stage)
{
	static const struct {
		const char *name;
		enum sink_stage stage;
	} stages[] = {{"mail:", SINK_MAIL}, {"rcpt:", SINK_RCPT}, {"end:", SINK_END}};
	for (int i = 0; i < 3; i++) {
		size_t len = strlen(stages[i].name);
		if (strncmp(text, stages[i].name, len) == 0) {
			*stage = stages[i].stage;
			return text + len;
		}
	}
	return text;
}

/* An address has no colon behind letters alone, but where it is quoted or a literal. */
static bool has_unknown_stage(const char *pattern)
{
	size_t len = strspn(pattern, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	return pattern[len] == ':';
}

/* "<>" is the null sender, whose address is empty, and "<a@b.example>" is a@b.example. */
static char *without_brackets(char *pattern)
{
	size_t len = strlen(pattern);
	if (len < 2 || *pattern != '<' || pattern[len - 1] != '>')
		return pattern;
	pattern[len - 1] = '\0';
	return pattern + 1;
}

static void parse_refuse(const struct options *o, char *text, struct sink_options *to)
{
	struct sink_refusal r = {.stage = SINK_RCPT};
	char *pattern = take_stage(text, &r.stage);
	if (has_unknown_stage(pattern))
		options_wrong(o, "--refuse %s: a stage is mail, rcpt or end", text);
	char *equals = strrchr(text, '=');
	if (!equals || equals == pattern)
		options_wrong(o, "--refuse %s: it is PATTERN=CODE", text);
	r.code = (int)options_number(o, "--refuse", equals + 1, 400, 599);
	*equals = '\0';
	r.pattern = without_brackets(pattern);
	to->refusal = mem_realloc(to->refusal, (size_t)(to->nrefusal + 1) * sizeof *to->refusal);
	to->refusal[to->nrefusal++] = r;
}

static void parse_rate(const struct options *o, char *text, struct sink_rate *to)
{
	struct buf why = {0};
	char *equals = strchr(text, '=');
	*to = (struct sink_rate){.stage = SINK_MAIL, .code = 451};
	if (equals) {
		*equals = '\0';
		to->code = (int)options_number(o, "--rate", take_stage(equals + 1, &to->stage), 400,
					       599);
	}
	if (!conf_rate_parse(text, &to->rate, &why))
		options_wrong(o, "--rate %s: %s", text, buf_cstr(&why));
	buf_fini(&why);
}

static void parse_greylist(const struct options *o, const char *text, int64_t *to)
{
	struct buf why = {0};
	if (!conf_amount_parse(CONF_duration, text, to, &why))
		options_wrong(o, "--greylist %s: %s", text, buf_cstr(&why));
	buf_fini(&why);
}

static void parse_login(const struct options *o, const char *text, struct sink_options *to)
{
	const char *colon = strchr(text, ':');
	if (!colon || colon == text || !colon[1])
		options_wrong(o, "--login: it is NAME:PASSWORD");
	to->login = mem_realloc(to->login, (size_t)(to->nlogin + 1) * sizeof *to->login);
	to->login[to->nlogin++] = text;
}

static void parse_name(const struct options *o, const char *text, struct sink_options *to)
{
	if (!conf_host_good(text))
		options_wrong(o, "--name %s: it is no name of a host", text);
	to->name = text;
}

/* False: it is none of these. */
static bool parse_tls(const struct options *o, int option, struct sink_options *to)
{
	switch (option) {
	case CERTIFICATE:
		to->certificate = optarg;
		break;
	case KEY:
		to->key = optarg;
		break;
	case TLSA:
		to->tlsa = true;
		break;
	case NAME:
		parse_name(o, optarg, to);
		return true;
	case STARTTLS:
		break;
	default:
		return false;
	}
	to->starttls = true;
	return true;
}

/* False: it is none of these. */
static bool parse_mood(const struct options *o, int option, struct sink_options *to)
{
	switch (option) {
	case GREYLIST:
		parse_greylist(o, optarg, &to->greylist_ms);
		return true;
	case PER_CONNECTION:
		to->per_connection = options_number(o, "--per-connection", optarg, 1, 1000000);
		return true;
	case RATE:
		parse_rate(o, optarg, &to->rate);
		return true;
	case REFUSE:
		parse_refuse(o, optarg, to);
		return true;
	case LOGIN:
		parse_login(o, optarg, to);
		return true;
	default:
		return false;
	}
}

static void parse_size(const struct options *o, const char *text, int64_t *to)
{
	struct buf why = {0};
	if (!conf_amount_parse(CONF_size, text, to, &why) || *to < 1 || *to > INT64_C(4) << 30)
		options_wrong(o, "--size %s: %s", text,
			      buf_len(&why) ? buf_cstr(&why) : "it is 1 to 4g");
	buf_fini(&why);
}

static void parse_number_or_flag(const struct options *o, int option, struct sink_options *to)
{
	switch (option) {
	case DELAY:
		to->delay_ms = options_number(o, "--delay", optarg, 0, 3600000);
		break;
	case LIMIT:
		to->limit = options_number(o, "--limit", optarg, 0, 1000000);
		break;
	case COUNT:
		to->count = options_number(o, "--count", optarg, 1, INT64_MAX);
		break;
	case NO_PIPELINING:
		to->pipelining = false;
		break;
	case NO_CHUNKING:
		to->chunking = false;
		break;
	case 'q':
		to->quiet = true;
		break;
	default:
		to->verbose = true;
	}
}

void sink_options_parse(struct sink_options *to, int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:l:d:qv", .longs = longs};
	*to = (struct sink_options){.size_max = INT64_C(100) << 20,
				    .pipelining = true,
				    .chunking = true,
				    .name = "sink.invalid"};
	address_parse("127.0.0.1", 2526, &to->listen);
	int option;
	while ((option = options_next(&o, argc, argv)) != -1) {
		if (option == 'l')
			parse_listen(&o, optarg, &to->listen);
		else if (option == 'd')
			to->dir = optarg;
		else if (option == SIZE)
			parse_size(&o, optarg, &to->size_max);
		else if (!parse_tls(&o, option, to) && !parse_mood(&o, option, to))
			parse_number_or_flag(&o, option, to);
	}
	if (!to->certificate != !to->key)
		options_wrong(&o, "--certificate and --key go together");
	if (optind < argc)
		options_wrong(&o, "sink takes no argument %s", argv[optind]);
}
