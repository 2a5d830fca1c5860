/* SPDX-License-Identifier: ISC */
/* sluice sendmail: a message from standard input to the relay, or to its maildrop. */
#include "base/conf.h"
#include "base/envelope.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/maildrop/maildrop_leave.h"
#include "cmd/maildrop/message_text.h"
#include "cmd/options.h"
#include "cmd/maildrop/sendmail_options.h"
#include "cmd/maildrop/sendmail_session.h"
#include "cmd/maildrop/submit.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>
#include <unistd.h>

enum { ENVID_SIZE = 301 }; /* in xtext */

struct job {
	struct sendmail_options options;
	struct conf *conf;
	char host[256]; /* what an address without a domain gets */
	char *sender;
	struct address_list to;
	struct envelope *known; /* the same recipients: one is found in it without a look at all */
	struct message_text message;
	struct buf error;
};

static const char *login_name(void)
{
	const struct passwd *pw = getpwuid(getuid());
	return pw ? pw->pw_name : "nobody";
}

static void find_host(struct job *j)
{
	if (*j->conf->hostname)
		snprintf(j->host, sizeof j->host, "%s", j->conf->hostname);
	else if (gethostname(j->host, sizeof j->host - 1) != 0)
		snprintf(j->host, sizeof j->host, "localhost");
}

/* An address as SMTP wants it; NULL: it is none. */
static char *qualify_address(const struct job *j, const char *text)
{
	struct mailaddr address;
	size_t len = strlen(text);
	bool local = !*mailaddr_domain(text);
	if (len >= 2 && text[0] == '<' && text[len - 1] == '>') {
		text++;
		len -= 2;
	}
	char *full =
		local ? mem_printf("%.*s@%s", (int)len, text, j->host) : mem_strndup(text, len);
	enum mailaddr_result r = mailaddr_mailbox(full, strlen(full), true, &address);
	free(full);
	return r == MAILADDR_OK ? mem_strdup(address.text) : NULL;
}

static int set_sender(struct job *j)
{
	const char *from = j->options.from ? j->options.from : login_name();
	bool null = !*from || strcmp(from, "<>") == 0;
	j->sender = null ? mem_strdup("") : qualify_address(j, from);
	if (j->sender)
		return EX_OK;
	buf_printf(&j->error, "the sender %s is no address", from);
	return EX_DATAERR;
}

static int add_recipients(struct job *j, const struct address_list *from)
{
	for (int i = 0; i < from->n; i++) {
		char *address = qualify_address(j, from->item[i]);
		if (!address) {
			buf_printf(&j->error, "the recipient %s is no address", from->item[i]);
			return EX_DATAERR;
		}
		if (!envelope_find(j->known, address)) {
			envelope_add(j->known, address);
			address_list_add(&j->to, address);
		}
		free(address);
	}
	return EX_OK;
}

static int set_recipients(struct job *j)
{
	struct address_list all = {0};
	int status = EX_OK;
	/* A recipient on the command line may be a list, as in a header. */
	for (int i = 0; status == EX_OK && i < j->options.nrcpt; i++) {
		const char *text = j->options.rcpt[i];
		if (!header_addresses(text, strlen(text), &all, &j->error)) {
			buf_printf(&j->error, ": %s", text);
			status = EX_USAGE;
		}
	}
	if (status == EX_OK && j->options.from_header &&
	    !message_text_recipients(&j->message, &all, &j->error))
		status = EX_DATAERR;
	if (status == EX_OK)
		status = add_recipients(j, &all);
	address_list_free(&all);
	if (status == EX_OK && j->to.n == 0) {
		buf_puts(&j->error, j->options.from_header
					    ? "there is no recipient in To, Cc or Bcc"
					    : "there is no recipient; give some, or use -t");
		status = EX_USAGE;
	}
	return status;
}

static int read_message(struct job *j)
{
	uint64_t max = (uint64_t)j->conf->message_size_limit;
	if (message_text_read(&j->message, stdin, !j->options.dot_is_text, max))
		return EX_OK;
	if (j->message.too_large)
		buf_puts(&j->error, "the message is larger than the relay takes");
	else
		buf_printf(&j->error, "standard input: %s", strerror(errno));
	return j->message.too_large ? EX_DATAERR : EX_IOERR;
}

/* Nobody knows from a faulty file where the relay listens. */
static int submit_if_known(struct job *j, const struct submission *s)
{
	if (!j->conf->faulty)
		return submit(j->conf, s, &j->error);
	buf_puts(&j->error, "the configuration has a fault");
	return EX_TEMPFAIL;
}

/* A relay that is down, or has no room for another client or for all the recipients at once, finds the message when
 * it can. */
static int submit_or_leave(struct job *j, const struct submission *s)
{
	int status = submit_if_known(j, s);
	if (status != EX_TEMPFAIL && submit_listener(j->conf))
		return status;
	if (s->verbose)
		fprintf(stderr, "%s: %s; it is left in the maildrop\n", j->options.program,
			buf_cstr(&j->error));
	buf_puts(&j->error, "; nor can the message be left for it: ");
	return maildrop_leave(j->conf, s, &j->error);
}

static int hand_over(struct job *j)
{
	char envid[ENVID_SIZE];
	struct message_author author = {j->sender, j->options.name, j->host};
	char *self = qualify_address(j, login_name());
	if (!*j->sender)
		author.address = self ? self : "nobody@localhost";
	message_text_complete(&j->message, j->options.gateway ? NULL : &author);
	buf_puts(&j->message.header, "\r\n");
	buf_append(&j->message.header, buf_data(&j->message.body), buf_len(&j->message.body));
	struct submission s = {.sender = j->sender,
			       .to = &j->to,
			       .notify = j->options.notify,
			       .ret = j->options.ret,
			       .eightbit = j->message.eightbit,
			       .verbose = j->options.verbose,
			       .content = &j->message.header};
	if (j->options.envid) {
		xtext_encode(j->options.envid, envid, sizeof envid);
		s.envid = envid;
	}
	int status = submit_or_leave(j, &s);
	free(self);
	return status;
}

/* Those that it has made before it came here, and those that its header tells of. */
static int check_hops(struct job *j)
{
	const char *value;
	size_t len, cursor = 0;
	int64_t hops = j->options.hops;
	while (message_text_field(&j->message, "Received", &value, &len, &cursor))
		hops++;
	if (hops < j->conf->hopcount_limit)
		return EX_OK;
	buf_printf(&j->error, "too many hops: %" PRId64 ", the message is in a loop", hops);
	return EX_DATAERR;
}

static int send_message(struct job *j)
{
	find_host(j);
	int status = set_sender(j);
	/* Recipients given are looked at before standard input is waited for. */
	if (status == EX_OK && j->options.nrcpt == 0 && !j->options.from_header)
		status = set_recipients(j);
	if (status == EX_OK)
		status = read_message(j);
	if (status == EX_OK)
		status = set_recipients(j);
	if (status == EX_OK)
		status = check_hops(j);
	if (status == EX_OK)
		status = hand_over(j);
	return status;
}

/* As a message to it, or from it, would have it; sluice route says of what is no address that it is none. */
static char *address_to_verify(const struct job *j, const char *text)
{
	char *address = strcmp(text, "<>") != 0 ? qualify_address(j, text) : NULL;
	return address ? address : mem_strdup(text);
}

/* Of a status by which another command ended, for whoever takes it for that of sendmail. */
static int sysexit_of(int status, int refused)
{
	if (status == STATUS_REFUSED)
		return refused;
	return status == STATUS_USAGE ? EX_USAGE : status;
}

/* The routes of mail for these addresses, by sluice route. */
static int verify_addresses(struct job *j)
{
	const struct sendmail_options *o = &j->options;
	char route[] = "route", config[] = "-c", from[] = "--from";
	char **words = mem_zalloc(((size_t)o->nrcpt + 6) * sizeof *words);
	char **kept = mem_zalloc(((size_t)o->nrcpt + 2) * sizeof *kept);
	int n = 0, nkept = 0;
	find_host(j);
	words[n++] = route;
	words[n++] = config;
	words[n++] = kept[nkept++] = mem_strdup(o->conf_file);
	if (o->from) {
		words[n++] = from;
		words[n++] = kept[nkept++] = address_to_verify(j, o->from);
	}
	for (int i = 0; i < o->nrcpt; i++)
		words[n++] = kept[nkept++] = address_to_verify(j, o->rcpt[i]);
	int status = sysexit_of(cmd_route(n, words), EX_DATAERR);
	while (nkept > 0)
		free(kept[--nkept]);
	free(kept);
	free(words);
	return status;
}

static int submit_message(struct job *j)
{
	buf_init(&j->error);
	message_text_init(&j->message);
	j->known = envelope_new();
	int status = send_message(j);
	if (status != EX_OK)
		fprintf(stderr, "%s: %s\n", j->options.program, buf_cstr(&j->error));
	message_text_fini(&j->message);
	address_list_free(&j->to);
	envelope_free(&j->known);
	buf_fini(&j->error);
	free(j->sender);
	return status;
}

/* There is nothing to build: who runs it wants to know that the tables can be used. */
static int read_aliases(const struct sendmail_options *o)
{
	struct options options = {.conf_file = o->conf_file};
	struct conf *conf = options_conf_with(&options, CONF_WITH_TABLES);
	int status = conf ? EX_OK : EX_CONFIG;
	conf_unref(conf);
	return status;
}

/* Refused by the relay, unless the file does not even say where that is. */
static int queue_refusal(const struct sendmail_options *o)
{
	struct buf said = {0};
	struct conf *conf = conf_read_to_ask(o->conf_file, &said);
	int status = conf ? EX_UNAVAILABLE : EX_CONFIG;
	buf_fini(&said);
	conf_unref(conf);
	return status;
}

static int ask_queue(const struct sendmail_options *o)
{
	bool lists = o->mode == SENDMAIL_LIST;
	int status = (lists ? queue_habit_list : queue_habit_flush)(&o->of, o->conf_file);
	return sysexit_of(status, status == STATUS_REFUSED ? queue_refusal(o) : EX_OK);
}

/* A command that needs the queue or the tables, and no message. False: it is another. */
static bool other_command(struct sendmail_options *o, int *status)
{
	if (o->mode == SENDMAIL_LIST || o->mode == SENDMAIL_FLUSH)
		*status = ask_queue(o);
	else if (o->mode == SENDMAIL_ALIASES)
		*status = read_aliases(o);
	else
		return false;
	return true;
}

static int finish_command(struct job *j)
{
	if (j->options.mode == SENDMAIL_SESSION)
		return sendmail_session(j->conf);
	return j->options.mode == SENDMAIL_VERIFY ? verify_addresses(j) : submit_message(j);
}

int cmd_sendmail(int argc, char **argv)
{
	struct job j = {0};
	int status;
	signal(SIGXFSZ, SIG_IGN); /* a file as large as ulimit -f allows: its write says EFBIG */
	sendmail_options_parse(&j.options, argc, argv);
	if (other_command(&j.options, &status)) {
		queue_habit_free(&j.options.of);
		return status;
	}
	struct options o = {.conf_file = j.options.conf_file};
	j.conf = j.options.mode == SENDMAIL_SUBMIT ? options_conf_to_ask(&o) : options_conf(&o);
	if (!j.conf)
		return EX_CONFIG;
	status = finish_command(&j);
	if (j.conf->faulty && status != EX_OK && status != EX_USAGE)
		status = EX_CONFIG; /* its limits may not be the relay's */
	queue_habit_free(&j.options.of);
	conf_unref(j.conf);
	return status;
}

int cmd_newaliases(int argc, char **argv)
{
	char mode[] = "-bi";
	char *words[] = {argv[0], mode, NULL};
	(void)argc; /* what newaliases is called with elsewhere means nothing here */
	return cmd_sendmail(2, words);
}
