/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/conf.h"
#include "base/conf_scan.h"
#include "base/conf_value.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];
static struct buf errors;
static const char *machine = "relay.test";

int gethostname(char *name, size_t size)
{
	snprintf(name, size, "%s", machine);
	return 0;
}

static int start(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "/tmp/test_conf.%d", (int)getpid());
	buf_init(&errors);
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(path);
	buf_fini(&errors);
	return 0;
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static struct conf *read_text(const char *text)
{
	write_file(path, text);
	buf_clear(&errors);
	return conf_read(path, &errors);
}

static struct conf *good(const char *text)
{
	struct conf *c = read_text(text);
	if (!c)
		print_error("%s", buf_cstr(&errors));
	assert_non_null(c);
	assert_int_equal(buf_len(&errors), 0);
	return c;
}

/* The first fault of a text is in that line, and says that. */
static void wrong(const char *text, int line, const char *phrase)
{
	struct conf *c = read_text(text);
	assert_null(c);
	char *said = buf_cstr(&errors), *where = mem_printf("%s:%d: ", path, line);
	if (strncmp(said, where, strlen(where)) != 0 || !strstr(said, phrase))
		fail_msg("expected %s... %s ...\nsaid     %s", where, phrase, said);
	free(where);
}

static void an_empty_file_is_the_defaults(void **state)
{
	(void)state;
	struct conf *c = good("\n# nothing\n"), *d = conf_defaults();
	struct buf one = {0}, two = {0};
	assert_true(conf_print(c, NULL, &one));
	assert_true(conf_print(d, NULL, &two));
	assert_string_equal(buf_cstr(&one), buf_cstr(&two));
	assert_int_equal(c->nlistener, 1);
	assert_string_equal(c->listener[0].title, "smtp");
	assert_string_equal(c->listener[0].address.item[0], "127.0.0.1:2525");
	assert_int_equal(c->ntransport, 1);
	assert_string_equal(c->transport[0].title, "smtp");
	assert_int_equal(c->nroute, 1);
	assert_string_equal(c->route[0].title, "*");
	assert_ptr_equal(c->route[0].by, &c->transport[0]);
	assert_int_equal(c->nalias, 0);
	assert_int_equal(c->networks.n, 2);
	assert_int_equal(c->message_size_limit, 50 << 20);
	assert_true(c->queue.jitter > 0.099 && c->queue.jitter < 0.101);
	buf_fini(&one);
	buf_fini(&two);
	conf_unref(conf_ref(c));
	conf_unref(c);
	conf_unref(d);
	conf_unref(NULL);
}

static void values_may_stand_in_quotes_or_not_and_several_in_a_line(void **state)
{
	(void)state;
	struct conf *c = good("message_size_limit = 20m   workers = 3\n"
			      "hopcount_limit=\"7\" log_level = 'debug'\r\n"
			      "queue { minimal_backoff_time = 30s maximal_backoff_time = \"1h\" }\n"
			      "listener in { address = 127.0.0.1:25 client_rate_limit = 100/m\n"
			      "  chunking = off }\n");
	assert_int_equal(c->message_size_limit, 20 << 20);
	assert_int_equal(c->workers, 3);
	assert_int_equal(c->hopcount_limit, 7);
	assert_int_equal(c->log_level, 0);
	assert_int_equal(c->queue.minimal_backoff_time, 30000);
	assert_int_equal(c->queue.maximal_backoff_time, 3600000);
	assert_int_equal(c->listener[0].client_rate_limit.events, 100);
	assert_int_equal(c->listener[0].client_rate_limit.per_ms, 60000);
	assert_int_equal(c->listener[0].address.n, 1);
	assert_false(c->listener[0].chunking);
	conf_unref(c);
	c = good("\xef\xbb\xbfworkers = 3\r\n");
	assert_int_equal(c->workers, 3);
	conf_unref(c);
}

static void every_unit_is_understood(void **state)
{
	(void)state;
	struct conf *c = good("message_size_limit = 500 queue_minfree = 64k segment_size = 1G\n"
			      "transport smtp { connect_timeout = 500ms helo_timeout = 2m\n"
			      " connection_idle_timeout = 0 connection_max_age = 1d\n"
			      " destination_concurrency_positive_feedback = 1/concurrency\n"
			      " destination_concurrency_negative_feedback = "
			      "\"0.5 / sqrt(concurrency)\" }\n");
	const struct conf_transport *t = &c->transport[0];
	assert_int_equal(c->message_size_limit, 500);
	assert_int_equal(c->queue_minfree, 65536);
	assert_int_equal(c->segment_size, 1 << 30);
	assert_int_equal(t->connect_timeout, 500);
	assert_int_equal(t->helo_timeout, 120000);
	assert_int_equal(t->connection_idle_timeout, 0);
	assert_int_equal(t->connection_max_age, 86400000);
	assert_int_equal(t->destination_concurrency_positive_feedback.form, FEEDBACK_CONCURRENCY);
	assert_int_equal(t->destination_concurrency_negative_feedback.form,
			 FEEDBACK_SQRT_CONCURRENCY);
	assert_true(t->destination_concurrency_negative_feedback.value > 0.49);
	conf_unref(c);
}

static void an_empty_list_is_empty_and_more_can_be_added_to_a_default(void **state)
{
	(void)state;
	struct conf *c = good("networks = {}\nlistener a { address += { \"[::1]:25\" } }\n");
	assert_int_equal(c->networks.n, 0);
	assert_int_equal(c->listener[0].address.n, 2);
	assert_string_equal(c->listener[0].address.item[1], "[::1]:25");
	conf_unref(c);
}

static void like_takes_over_all_and_what_is_said_after_it_counts(void **state)
{
	(void)state;
	struct conf *c = good("transport \"slow\" { port = 2526 like = \"smtp\" }\n"
			      "transport \"smtp\" { helo_timeout = 7s port = 2525 }\n"
			      "transport \"slower\" { like = slow helo_timeout = 9s }\n");
	assert_int_equal(c->ntransport, 3);
	assert_string_equal(c->transport[0].title, "smtp");
	assert_string_equal(c->transport[1].title, "slow");
	assert_int_equal(c->transport[1].helo_timeout, 7000);
	assert_int_equal(c->transport[1].port, 2526);
	assert_int_equal(c->transport[2].helo_timeout, 9000);
	assert_int_equal(c->transport[2].port, 2526);
	conf_unref(c);
}

static void like_takes_over_the_port_of_smtp_where_it_was_given_for_lmtp(void **state)
{
	(void)state;
	struct conf *c = good("transport smtp { port = 25 }\n"
			      "transport a { protocol = lmtp port = 25 }\n"
			      "transport b { like = a }\n"
			      "transport c { protocol = lmtp }\n"
			      "transport d { like = c }\n"
			      "transport e { like = smtp protocol = lmtp }\n");
	static const int ports[] = {25, 25, 25, 24, 24, 24};
	for (int i = 0; i < c->ntransport; i++)
		assert_int_equal(c->transport[i].port, ports[i]);
	conf_unref(c);
}

static void comments_of_all_kinds_change_no_line(void **state)
{
	(void)state;
	wrong("# one \"unterminated {\n// two\n/* three\nfour } */ workers = 1 /* five */\n"
	      "workers = x # six\n",
	      5, "workers must be a whole number");
	struct conf *c = good("postmaster = \"a#b//c/*d@example.org\" # end");
	assert_string_equal(c->postmaster, "a#b//c/*d@example.org");
	conf_unref(c);
}

/* libconfuse's time for blanks in a row grows with the square of their number. */
static void however_many_blanks_are_one_to_the_parser(void **state)
{
	(void)state;
	struct buf text = {0};
	buf_printf(&text, "%1000s#%1000sx\n/*%1000s\n*/a%1000s=%1000s\" %1000s\"", "", "", "", "",
		   "", "");
	struct conf_scan scan;
	struct conf_faults faults = {0};
	conf_scan(&scan, buf_cstr(&text), path, &faults);
	assert_int_equal(faults.n, 0);
	char *wanted = mem_printf("  \n \na = \" %1000s\"", "");
	assert_string_equal(buf_cstr(&scan.clean), wanted);
	free(wanted);
	conf_scan_fini(&scan);
	conf_faults_fini(&faults);
	buf_fini(&text);
}

static void the_environment_is_not_looked_at(void **state)
{
	(void)state;
	struct conf *c = good("postmaster = \"${HOME}@example.org\"");
	assert_string_equal(c->postmaster, "${HOME}@example.org");
	conf_unref(c);
	wrong("\npostmaster = ${HOME}", 2, "in quotes");
	wrong("include(\"/etc/passwd\")\n", 1, "include");
}

static void a_bare_number_is_not_a_duration(void **state)
{
	(void)state;
	wrong("transport smtp {\n connect_timeout = 30\n}\n", 2,
	      "connect_timeout must be a duration like 500ms, 30s, 5m, 1h or 5d, not \"30\"");
}

static void a_percentage_may_have_its_sign(void **state)
{
	(void)state;
	struct conf *c = good("flow \"a\" { share = \"25%\" }\nflow \"b\" { share = 30 }");
	assert_int_equal(c->flow[1].share + c->flow[2].share, 55);
	conf_unref(c);
	wrong("flow \"a\" { share = \"25 %\" }", 1,
	      "share must be a percentage like 90%, not \"25 %\"");
	wrong("flow \"a\" { share = \"0%\" }", 1, "share must be 1% to 100%, not 0%");
}

/* With more, a limit was none, or let nothing through at all. */
static void a_rate_is_of_numbers_that_can_be_reckoned_with(void **state)
{
	(void)state;
	struct conf *c = good("limit client { messages = \"1000000000/36500d\" }");
	assert_int_equal(c->limit[0].messages.events, 1000000000);
	conf_unref(c);
	wrong("limit client { messages = \"1/36501d\" }", 1,
	      "messages must be at most 1000000000 in at most 36500d, not \"1/36501d\"");
	wrong("limit client { messages = \"1000000001/ms\" }", 1, "at most 1000000000");
	wrong("listener a { client_rate_limit = \"0.000001/1d\" }", 1, "at most 36500d");
	wrong("listener a { client_rate_limit = \"1/106751991167d\" }", 1, "at most 36500d");
}

static void wrong_values_are_said_with_their_line(void **state)
{
	(void)state;
	wrong("workers = many", 1, "workers must be a whole number, not \"many\"");
	wrong("\n\nworkers = 257", 3, "workers must be 0 to 256, not 257");
	wrong("workers = -1", 1, "must be 0 to 256");
	wrong("workers = 99999999999999999999", 1, "whole number");
	wrong("message_size_limit = 10x", 1, "must be a size like");
	wrong("message_size_limit = 9999999999g", 1, "must be a size like");
	wrong("dns {\n timeout = 1ms }", 2, "timeout must be 10ms to 10m, not 1ms");
	wrong("log_format = xml", 1, "must be one of text, json, postfix, not \"xml\"");
	wrong("log = relative.log", 1, "absolute path");
	wrong("spool = \"\"", 1, "spool must not be empty");
	wrong("listener a {\n chunking = maybe }", 2, "must be true or false");
	wrong("listener a {\n client_rate_limit = \"ten a minute\" }", 2, "must be a rate");
	wrong("transport t {\n\n destination_concurrency_positive_feedback = 2 }", 3, "0 to 1");
	wrong("queue { backoff_jitter = 0.6 }", 1, "backoff_jitter must be 0 to 0.5");
	wrong("hostname = \"not a name\"", 1, "is not the name of a host");
	wrong("http = localhost", 1, "is not ADDRESS:PORT");
	wrong("postmaster = nobody", 1, "is not an address");
	wrong("masquerade_exceptions = { \"root\",\n \"root@a.test\" }", 2, "is not a local part");
	wrong("masquerade_exceptions = { \"\" }", 1, "\"\" is not a local part");
	wrong("events {\n to = \"http://\" }", 2, "nor an http:// or https:// URL");
	wrong("events {\n to = \"https://a b.test/\" }", 2, "nor an http:// or https:// URL");
	wrong("events {\n to = \"http://a.test:99999/\" }", 2, "nor an http:// or https:// URL");
	wrong("events {\n to = \"http://[::1\" }", 2, "nor an http:// or https:// URL");
	conf_unref(good("events { to = \"https://a.test:8443/x?y=z\" }"));
	wrong("masquerade_exceptions = { \"a b\" }", 1, "\"a b\" is not a local part");
}

static void without_a_hostname_it_is_the_machine_s_if_that_is_one(void **state)
{
	(void)state;
	static const char *const names[][2] = {{"relay.test.", "relay.test"},
					       {"b\xc3\xbc"
						"cher.test",
						"xn--bcher-kva.test"},
					       {"a_b", "a_b"}};
	static const char *const none[] = {"(none)", "a b", "a..b", "-a", "a\r\nb", ""};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		machine = names[i][0];
		struct conf *c = good("workers = 1");
		assert_string_equal(c->own_name, names[i][1]);
		conf_unref(c);
	}
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
		machine = none[i];
		wrong("workers = 1", 1, "hostname is not set, and the machine's own name \"");
		conf_unref(good("hostname = relay.test"));
		conf_unref(conf_defaults());
	}
	machine = "relay.test";
}

static void a_local_part_is_kept_as_that_of_an_address_is(void **state)
{
	(void)state;
	struct conf *c = good("masquerade_exceptions = { root, '\"a b\"', '\"daemon\"' }");
	assert_string_equal(c->masquerade_exceptions.item[0], "root");
	assert_string_equal(c->masquerade_exceptions.item[1], "\"a b\"");
	assert_string_equal(c->masquerade_exceptions.item[2], "daemon");
	conf_unref(c);
}

/* Hosts that know no SMTPUTF8 take it then. */
static void the_domain_of_an_address_of_ours_is_kept_in_ascii(void **state)
{
	(void)state;
	struct conf *c =
		good("postmaster = \"p@b\xc3\xbc.test\"\n"
		     "verify { sender = \"v@b\xc3\xbc.test\" }\n"
		     "archive { to = { \"a@b\xc3\xbc.test\" } sender = \"s@b\xc3\xbc.test\" }\n"
		     "tls_report { from = \"r@b\xc3\xbc.test\" }\n");
	assert_string_equal(c->postmaster, "p@xn--b-eha.test");
	assert_string_equal(c->verify.sender, "v@xn--b-eha.test");
	assert_string_equal(c->archive.to.item[0], "a@xn--b-eha.test");
	assert_string_equal(c->archive.sender, "s@xn--b-eha.test");
	assert_string_equal(c->tls_report.from, "r@xn--b-eha.test");
	conf_unref(c);
}

static void wrong_forms_are_said_with_their_line(void **state)
{
	(void)state;
	wrong("workers = 1\nwrokers = 2\n", 2, "'wrokers'");
	wrong("listener a {\n\n\n adress = 1 }", 4, "'adress'");
	wrong("\nhostname = \"relay\nspool = \"/x\"\n", 2, "unterminated string");
	wrong("workers = 1\n\nlistener \"a\" {\n timeout = 1s\n", 3, "never closed");
	wrong("\nnetworks = { \"::1\"\n", 2, "never closed");
	wrong("workers = 1\n/* what\n", 2, "unterminated comment");
	wrong("workers = 1\nhostname = *\n", 2, "* outside of quotes");
	wrong("workers = 1\nlog_level = info/* x */debug\n", 2, "* outside of quotes");
	wrong("workers = 1 }\n", 1, "closing brace");
	wrong("workers 1\n", 1, "missing equal sign");
	wrong("workers = { 1 }\n", 1, "unexpected token '{'");
	wrong("listener {\n}\n", 1, "missing title");
	wrong("queue \"a\" {\n}\n", 1, "missing opening brace");
	wrong("workers { }\n", 1, "missing equal sign");
	wrong("workers =\n\n", 3, "premature end of file");
}

static void sections_that_do_not_fit_together_are_said_with_their_line(void **state)
{
	(void)state;
	wrong("listener a { }\n\nlistener a { }\n", 3, "already there, in line 1");
	wrong("queue { }\nqueue { }\n", 2, "already there");
	wrong("transport a {\n like = smtp\n like = smtp }\n", 3,
	      "like is already there, in line 2");
	wrong("\nflow \"\" { }\n", 2, "a flow must have a name");
	wrong("\nlistener \"\" { }\n", 2, "a listener must have a name");
	wrong("\ntransport \"\" { }\n", 2, "a transport must have a name");
	wrong("\nmilter \"\" { address = \"inet:127.0.0.1:1\" }\n", 2, "a milter must have a name");
	wrong("milter a { address = \"inet:127.0.0.1:1\" }\n\nmilter a { address = "
	      "\"inet:127.0.0.1:2\" }\n",
	      3, "milter \"a\" is already there, in line 1");
	wrong("source a { address = { \"127.0.0.1\" } }\nsource a { address = { \"127.0.0.2\" } "
	      "}\n",
	      2, "source \"a\" is already there, in line 1");
	wrong("limit client { messages = \"1/h\" }\nlimit client { messages = \"1/h\" }\n", 2,
	      "limit \"client\" is already there, in line 1");
	wrong("\ntransport error { }\n", 2, "means something else in a table of routes");
	wrong("route \"*\" {\n error = \"5.1.1 gone\" discard = true }\n", 1,
	      "relay, error and discard exclude each other");
	wrong("auth { file = \"\" }\nlistener a {\n auth = required }\n", 3,
	      "auth needs a users' file, or Dovecot");
	wrong("flow a { weight = 2 } flow a { rate = \"2/s\" }\n", 1,
	      "flow \"a\" is already there, in line 1");
	/* Those that stand for something in the parser, and others. */
	wrong("listener \"a\\x1f99999999\" { }\n", 1, "a title must not have control characters");
	wrong("\ndkim \"a.test\\x1f7\" { selector = s key = /k }\n", 2, "a title must not have");
	wrong("listener \"a\\nb\" { }\n", 1, "a title must not have control characters");
	wrong("\nnetworks = { \"\\x01\" }\n", 2, "networks must not have control characters");
	wrong("networks = { \"::1\",\n \"10.0.0.1\\n\" }\n", 2, "networks must not have control");
	wrong("route Example.com { }\nroute example.COM { }\n", 2, "already there, in line 1");
	wrong("route a.test { }\nroute b.test {\n transport = fast\n}\n", 3,
	      "there is no transport \"fast\"");
	wrong("transport a {\n like = b\n}\ntransport b { }\n", 2,
	      "no transport of that name before this one");
	wrong("route \"a@@\" { }\n", 1, "is not an address, a domain");
	wrong("route \"*\" {\n relay = {\n \"[10.0.0.5\" } }\n", 3, "is not a relay");
	wrong("route \"*\" { relay = { \"ok.test\",\n \"host:0\" } }\n", 2, "\"host:0\"");
	wrong("queue {\n minimal_backoff_time = 2h\n}\n", 2, "is above maximal_backoff_time");
	wrong("queue {\n\n maximal_backoff_time = 1s\n}\n", 3, "is above maximal_backoff_time");
	wrong("transport smtp {\n initial_destination_concurrency = 21 }\n", 2,
	      "is above destination_concurrency_limit 20");
	struct conf *c = good("transport smtp { initial_destination_concurrency = 21\n"
			      "destination_concurrency_limit = 0 }");
	conf_unref(c);
}

static void addresses_and_networks_are_checked_one_by_one(void **state)
{
	(void)state;
	wrong("listener a {\n address = { \"127.0.0.1:25\",\n \"127.0.0.1\" } }\n", 3,
	      "\"127.0.0.1\" is not ADDRESS:PORT");
	wrong("listener a {\n address = { } }\n", 1, "has no address");
	wrong("aliases = {\n \"\" }\n", 2, "aliases: a table must have a name");
	wrong("networks = {\n \"10.0.0.0/8\",\n \"10.0.0.0/40\" }\n", 3,
	      "\"10.0.0.0/40\" is not a network");
	wrong("listener a {\n networks = { \"10.0.0.1/8\" } }\n", 2, "is not a network");
	wrong("route a.test {\n error = \"5.1.1 x\"\n recipients = { \"/x\" } }\n", 3,
	      "of an error nobody is a recipient");
	wrong("drop_headers = { \"Bcc:\" }\n", 1, "\"Bcc:\" is not the name of a header field");
	wrong("drop_headers = { \"To\",\n\"\" }\n", 2, "is not the name of a header field");
	wrong("drop_headers = { \"received\" }\n", 1, "a loop of mail is never found");
	wrong("flow_header = \"X-Tenant:\"\n", 1,
	      "\"X-Tenant:\" is not the name of a header field");
	wrong("flow_header = \"Received\"\n", 1, "a loop of mail is never found");
	wrong("dns {\n server = { \"ns.example.org\" } }\n", 2, "is no IP address");
	wrong("transport t {\n source_address = \"eth0\" }\n", 2, "is no IP address");
	wrong("transport t {\n helo = \"two names\" }\n", 2, "is not the name of a host");
	wrong("transport t {\n helo = \"[192.0.2]\" }\n", 2, "nor an address literal");
	struct conf *c = good("transport t { helo = \"[IPv6:2001:db8::1]\" }");
	conf_unref(c);
}

static void addresses_of_ours_are_checked(void **state)
{
	(void)state;
	wrong("\nalias \"a b\" { to = { \"x@y.test\" } }\n", 2, "\"a b\" is not an address");
	wrong("alias A@b.test { to = { \"x@y.test\" } }\n\nalias a@B.test { to = { \"z@y.test\" } "
	      "}\n",
	      3, "is already there");
	wrong("\npostmaster = \"nobody at all\"\n", 2,
	      "postmaster \"nobody at all\" is not an address");
	wrong("verify {\n sender = nobody }\n", 2, "sender \"nobody\" is not an address");
	wrong("tls_report {\n from = nobody }\n", 2, "from \"nobody\" is not an address");
	wrong("\ndkim_also = \"a..b\"\n", 2, "dkim_also \"a..b\" is not a domain");
	wrong("auth {\n file = users }\n", 2, "file \"users\" is not an absolute path");
}

static void what_nobody_can_listen_at_twice_is_said(void **state)
{
	(void)state;
	wrong("listener a { address = { \"127.0.0.1:25\" } }\n"
	      "listener b { address = {\n \"0.0.0.0:25\" } }\n",
	      3, "listener \"a\" has 127.0.0.1:25 already, in line 1");
	wrong("listener a {\n address = { \"[::]:25\", \"[::1]:25\" } }\n", 2,
	      "listener \"a\" has [::]:25 already, in line 1");
	wrong("listener a { address = { \"0.0.0.0:25\" } }\nhttp = \"127.0.0.1:25\"", 2,
	      "http 127.0.0.1:25: listener \"a\" has 0.0.0.0:25 already, in line 1");
	wrong("listener a { address = {\n \"127.0.0.1:25\",\n \"[::ffff:127.0.0.1]:25\" } }\n", 3,
	      "listener \"a\" has 127.0.0.1:25 already, in line 1");
	wrong("\nlistener a { address = { \"127.0.0.1:8025\" } }\n", 2,
	      "http 127.0.0.1:8025: listener \"a\" has 127.0.0.1:8025 already, in line 2");
	conf_unref(good("listener a { address = { \"0.0.0.0:25\", \"[::]:25\" } }\n"
			"listener b { address = { \"127.0.0.1:0\", \"127.0.0.1:0\" } }\n"
			"http = \"0.0.0.0:0\""));
}

#define SOURCES                                                                                    \
	"source a { address = { \"192.0.2.10\", \"2001:db8::10\" }  helo = out-a.test  rate = "    \
	"\"10/s\" }\nsource b { address = { \"192.0.2.11\" } }\n"

static void a_source_has_addresses_that_no_other_has(void **state)
{
	(void)state;
	wrong("source a { }\n", 1, "source \"a\" has no address");
	wrong("source \"a b\" { address = { \"192.0.2.10\" } }\n", 1, "a name has letters, digits");
	wrong("source a { address = { \"192.0.2.10\",\n \"::ffff:192.0.2.11\" } }\n", 2,
	      "one address for IPv4, and one for IPv6; ::ffff:192.0.2.11 is another");
	wrong("source a { address = {\n \"192.0.2.10\",\n \"eth0\" } }\n", 3,
	      "\"eth0\" is no IP address");
	wrong("source a { address = { \"192.0.2.10\",\n \"192.0.2.10\" } }\n", 2,
	      "is an address of source \"a\" already");
	wrong("source a { address = { \"192.0.2.10\",\n \"192.0.2.11\" } }\n", 2,
	      "192.0.2.11 is another");
	wrong(SOURCES "source c {\n address = { \"2001:db8:0::10\" } }\n", 4,
	      "is an address of source \"a\" already");
	wrong(SOURCES "source c { address = { \"192.0.2.12\" }\n helo = \"-\" }\n", 4,
	      "is not the name of a host");
}

/* So many that a look along all the others for each would not end in this test's time. With a sanitizer each section that
 * libconfuse adds costs a copy of all. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { MANY_SOURCES = 3000 };
#else
enum { MANY_SOURCES = 100000 };
#endif

static void so_many_sources_are_read(void **state)
{
	(void)state;
	struct buf text = {0};
	for (int i = 0; i < MANY_SOURCES; i++)
		buf_printf(&text, "source s%d { address = { \"2001:db8::%x:%x\" } }\n", i, i >> 16,
			   i & 0xffff);
	struct conf *c = good(buf_cstr(&text));
	assert_ptr_equal(conf_source_find(c, "s0"), c->source);
	assert_ptr_equal(conf_source_find(c, "s2777"), c->source + 2777);
	assert_null(conf_source_find(c, "s-1"));
	conf_unref(c);
	buf_printf(&text, "source last { address = { \"2001:db8:0::0:4d2\" } }\n");
	wrong(buf_cstr(&text), MANY_SOURCES + 1, "is an address of source \"s1234\" already");
	buf_fini(&text);
}

#define FIFTEEN_SERVERS                                                                            \
	"\"192.0.2.1\", \"192.0.2.2\", \"192.0.2.3\", \"192.0.2.4\", \"192.0.2.5\", "              \
	"\"192.0.2.6\", "                                                                          \
	"\"192.0.2.7\", \"192.0.2.8\", \"192.0.2.9\", \"192.0.2.10\", \"192.0.2.11\", "            \
	"\"192.0.2.12\", \"192.0.2.13\", \"192.0.2.14\", \"192.0.2.15\""

static void more_name_servers_than_are_asked_are_a_fault(void **state)
{
	(void)state;
	conf_unref(good("dns { server = { " FIFTEEN_SERVERS ", \"192.0.2.16\" } }"));
	wrong("dns { server = { " FIFTEEN_SERVERS ", \"192.0.2.16\",\n \"192.0.2.17\" } }", 2,
	      "16 name servers at most; \"192.0.2.17\" is another");
}

static void the_name_of_a_transport_has_no_spaces(void **state)
{
	(void)state;
	wrong("\ntransport \"to partners\" { port = 2525 }\n", 2,
	      "transport \"to partners\": a name has no spaces");
}

static void transports_and_flows_name_sources_with_weights(void **state)
{
	(void)state;
	wrong(SOURCES "transport smtp {\n sources = { a,\n \"c=2\" } }\n", 5,
	      "there is no source \"c\"");
	wrong(SOURCES "transport smtp {\n sources = { \"a=x\" } }\n", 4,
	      "the weight in \"a=x\" is not a number");
	wrong(SOURCES "transport smtp {\n sources = { \"a=0\" } }\n", 4, "from 1 to 9999");
	wrong(SOURCES "transport smtp {\n sources = { a, \"a=2\" } }\n", 4, "\"a\" is there twice");
	wrong(SOURCES "transport smtp {\n sources = { a }\n source_address = \"192.0.2.1\" }\n", 4,
	      "sources and source_address exclude each other");
	wrong(SOURCES "flow one {\n sources = { d } }\n", 4, "there is no source \"d\"");
	struct conf *c = good(SOURCES "transport smtp { sources = { a, \"b=3\" } }\n"
				      "flow one { sources = { b } }\n");
	assert_int_equal(c->transport[0].uses.n, 2);
	assert_string_equal(c->transport[0].uses.of[1].source->title, "b");
	assert_int_equal(c->transport[0].uses.of[1].weight, 3);
	assert_int_equal(conf_flow_find(c, "one")->uses.n, 1);
	assert_int_equal(conf_flow_find(c, "two")->uses.n, 0);
	const struct conf_source *b = conf_source_find(c, "b");
	assert_non_null(conf_source_address(b, AF_INET));
	assert_null(conf_source_address(b, AF_INET6));
	assert_null(conf_source_find(c, "c"));
	conf_unref(c);
}

static void a_flow_has_its_section_however_either_is_spelled(void **state)
{
	(void)state;
	struct conf *c = good("flow \"Shop.Example\" { weight = 2 }\nflow \"b\u00fccher.example\" "
			      "{ weight = 3 }\n"
			      "flow news { weight = 4 }\n");
	assert_int_equal(conf_flow_find(c, "shop.example")->weight, 2);
	assert_int_equal(conf_flow_find(c, "xn--bcher-kva.example")->weight, 3);
	assert_int_equal(conf_flow_find(c, "News")->weight, 4);
	assert_int_equal(conf_flow_find(c, "new")->weight, 1);
	conf_unref(c);
	wrong("flow news { weight = 2 }\nflow News { weight = 3 }\n", 2,
	      "flow \"news\" is already there, in line 1");
}

static void tls_needs_a_certificate_and_its_key(void **state)
{
	(void)state;
	wrong("listener a {\n tls = required\n}\n", 2, "needs a certificate and a key");
	wrong("listener a {\n\n tls = implicit\n}\n", 3, "needs a certificate and a key");
	wrong("listener a {\n certificate = \"/x.pem\"\n}\n", 2, "a certificate but no key");
	wrong("listener a {\n key = \"/x.pem\"\n}\n", 2, "a key but no certificate");
	wrong("listener a {\n key = \"/x.pem\"\n certificate = \"/nowhere.pem\"\n}\n", 3,
	      "/nowhere.pem: No such file");
}

static void a_tls_policy_that_is_none_is_a_fault(void **state)
{
	(void)state;
	wrong("transport smtp {\n tls = maybe\n}\n", 2, "must be none, opportunistic");
	wrong("route \"*\" {\n tls = maybe\n}\n", 2, "must be none, opportunistic");
}

static void a_file_that_can_t_be_read_is_said(void **state)
{
	(void)state;
	buf_clear(&errors);
	assert_null(conf_read("/nowhere/sluice.conf", &errors));
	assert_string_equal(buf_cstr(&errors),
			    "/nowhere/sluice.conf:1: can't be read: No such file or directory\n");
	buf_clear(&errors);
	assert_null(conf_read("/tmp", &errors));
	assert_non_null(strstr(buf_cstr(&errors), "/tmp:1: can't be read"));
}

static void a_table_that_can_t_be_read_is_said_where_it_is_named(void **state)
{
	(void)state;
	const char *nowhere = "/nowhere/t can't be read: No such file or directory";
	wrong("aliases = {\n \"/nowhere/t\" }", 2, nowhere);
	wrong("routes = { \"/dev/null\",\n \"/nowhere/t\" }", 2, nowhere);
	wrong("archive {\n tables = { \"/nowhere/t\" } }", 2, nowhere);
	wrong("route \"a.test\" { }\nroute \"b.test\" {\n recipients = { \"/nowhere/t\" } }", 3,
	      nowhere);
	wrong("auth {\n file = \"/nowhere/t\" }\n"
	      "listener a { auth = true }",
	      2, nowhere);
	wrong("aliases = { \"/nowhere/t.cdb\" }", 1, "/nowhere/t.cdb can't be read: No such file");
	wrong("\ncanonical = { \"/tmp\" }", 2, "/tmp can't be read: Is a directory");
}

static void a_title_is_no_setting(void **state)
{
	(void)state;
	wrong("route \"foo\" { foo = 1 }\nlistener\n'a' # one\n{\n bar = 2\n}\n", 1,
	      "no such option 'foo'");
	assert_non_null(strstr(buf_cstr(&errors), ":5: no such option 'bar'"));
	assert_null(strstr(buf_cstr(&errors), "title"));
	wrong("route { }\n", 1, "missing title for section 'route'");
	wrong("events { }\n\nevents { }\n", 3, "events is already there, in line 1");
	wrong("queue \"x\" { }\n", 1, "missing opening brace for section 'queue'");
	wrong("route \"a\" \"b\" { }\n", 1, "route");
	wrong("route \"A.test\" { }\nroute \"b.test\" { }\nroute \"a.test\" { }\n", 3,
	      "route \"a.test\" is already there, in line 1");
	struct conf *c = good("listener\n\"a \\\"b\\\" {x}\" /* { */ {\n\n timeout = 9s }\n"
			      "route x.test {\n relay = { \"[192.0.2.1]:25\" } }\n");
	assert_string_equal(c->listener[0].title, "a \"b\" {x}");
	assert_int_equal(c->listener[0].timeout, 9000);
	assert_string_equal(c->route[0].title, "x.test");
	assert_int_equal(c->route[0].line, 5);
	conf_unref(c);
}

static void lines_are_known_among_thousands_of_sections(void **state)
{
	(void)state;
	struct buf text = {0};
	for (int i = 0; i < 3000; i++)
		buf_printf(&text, "route \"%d.test\" {\n relay = { \"[192.0.2.1]:25\" } }\n", i);
	struct conf *c = good(buf_cstr(&text));
	for (int i = 0; i < 3000; i++)
		assert_int_equal(c->route[i].line, 2 * i + 1);
	conf_unref(c);
	buf_puts(&text, "route \"1500.test\" { }\n");
	wrong(buf_cstr(&text), 6001, "route \"1500.test\" is already there, in line 3001");
	buf_puts(&text, "route \"3000.test\" { verify = true\n verify = false }\n");
	assert_null(read_text(strstr(buf_cstr(&text), "route \"2000.test\"")));
	assert_non_null(strstr(buf_cstr(&errors), ":2003: verify is already there, in line 2002"));
	buf_fini(&text);
}

static void several_faults_are_said_in_the_order_of_their_lines(void **state)
{
	(void)state;
	assert_null(read_text("listener a {\n timeout = 1\n}\nworkers = x\nlog_level = y\n"));
	const char *text = buf_cstr(&errors);
	const char *two = strstr(text, ":2: timeout"), *four = strstr(text, ":4: workers"),
		   *five = strstr(text, ":5: log_level");
	assert_true(two && four && five && two < four && four < five);
}

static void what_is_printed_can_be_read_back(void **state)
{
	(void)state;
	struct conf *c =
		good("hostname = \"relay.example.org\" networks = { \"10.0.0.0/8\" }\n"
		     "message_size_limit = 20m postmaster = '\"o\\\\\"x\\\\\\\\y\"@example.org'\n"
		     "segment_size = 3000k log_format = json\n");
	struct buf one = {0}, two = {0}, globals = {0};
	assert_true(conf_print(c, NULL, &one));
	char *rest = mem_strdup(buf_cstr(&one)), *all = rest, *line;
	while ((line = strsep(&rest, "\n")))
		if (strcspn(line, ".") > strcspn(line, "="))
			buf_printf(&globals, "%s\n", line);
	free(all);
	struct conf *d = good(buf_cstr(&globals));
	assert_true(conf_print(d, NULL, &two));
	assert_string_equal(buf_cstr(&one), buf_cstr(&two));
	assert_string_equal(d->postmaster, "\"o\\\"x\\\\y\"@example.org");
	buf_fini(&one);
	buf_fini(&two);
	buf_fini(&globals);
	conf_unref(c);
	conf_unref(d);
}

static void one_setting_or_one_section_can_be_printed(void **state)
{
	(void)state;
	struct conf *c = good("route Example.com { relay = { \"[mx.test]:25\" } }\n"
			      "listener a { client_rate_limit = \"5/10s\" }");
	struct buf b = {0};
	assert_true(conf_print(c, "route.example.com.relay", &b));
	assert_string_equal(buf_cstr(&b), "route.example.com.relay = {\"[mx.test]:25\"}\n");
	buf_clear(&b);
	assert_true(conf_print(c, "listener.a.client_rate_limit", &b));
	assert_string_equal(buf_cstr(&b), "listener.a.client_rate_limit = \"5/10s\"\n");
	buf_clear(&b);
	assert_true(conf_print(c, "dns", &b));
	assert_non_null(strstr(buf_cstr(&b), "dns.port = 53\n"));
	assert_null(strstr(buf_cstr(&b), "queue."));
	assert_false(conf_print(c, "host", &b));
	assert_false(conf_print(c, "nothing", &b));
	buf_fini(&b);
	conf_unref(c);
}

/* "#name = value" becomes a setting, "# a sentence" stays a comment. */
static char *uncommented(const char *text)
{
	struct buf b = {0};
	for (; *text; text++)
		if (*text != '#' || text[1] == ' ')
			buf_append(&b, text, 1);
	return buf_steal(&b, NULL);
}

static void the_sample_is_the_defaults_with_and_without_its_comments(void **state)
{
	(void)state;
	struct buf sample = {0}, a = {0}, b = {0}, d = {0};
	conf_sample(&sample);
	struct conf *c = good(buf_cstr(&sample)), *defaults = conf_defaults();
	conf_print(c, NULL, &a);
	conf_print(defaults, NULL, &d);
	assert_string_equal(buf_cstr(&a), buf_cstr(&d));
	conf_unref(c);
	char *all = uncommented(buf_cstr(&sample));
	write_file(path, all);
	c = conf_read_with(path, CONF_WITH_TABLES, &errors); /* its keys are nowhere */
	assert_non_null(c);
	assert_int_equal(c->nalias, 1);
	assert_int_equal(c->ndkim, 1);
	conf_print(c, "transport", &b);
	buf_clear(&d);
	conf_print(defaults, "transport", &d);
	assert_string_equal(buf_cstr(&b), buf_cstr(&d));
	free(all);
	conf_unref(c);
	conf_unref(defaults);
	buf_fini(&sample);
	buf_fini(&a);
	buf_fini(&b);
	buf_fini(&d);
}

static void the_manual_lists_every_setting(void **state)
{
	(void)state;
	struct buf m = {0};
	conf_manual(&m);
#define LISTED(type, name, ...) assert_non_null(strstr(buf_cstr(&m), ".It Ic " #name " "));
	CONF_GLOBAL(LISTED)
	CONF_TRANSPORT(LISTED)
	CONF_QUEUE(LISTED)
#undef LISTED
	buf_fini(&m);
}

static bool is_limit(const struct conf_row *row)
{
	size_t len = strlen(row->name), end = strlen("_limit");
	return (row->type == CONF_number || row->type == CONF_size) && len >= end &&
	       strcmp(row->name + len - end, "_limit") == 0;
}

static void a_limit_that_may_be_0_says_what_that_is(void **state)
{
	int found = 0;
	(void)state;
	for (int kind = 0; kind < CONF_KINDS; kind++) {
		for (int i = 0; i < conf_sections[kind].nrow; i++) {
			const struct conf_row *row = &conf_sections[kind].row[i];
			if (!is_limit(row) || row->low > 0)
				continue;
			found++;
			if (!strstr(row->sentence, "0: "))
				fail_msg("%s: what is 0?", row->name);
		}
	}
	assert_true(found > 10);
}

static void a_difference_that_waits_for_the_next_start_is_said(void **state)
{
	(void)state;
	struct conf *a = good("spool = \"/a\" hopcount_limit = 5\nlistener x { address = "
			      "\"127.0.0.1:25\" }\nlistener y { }");
	struct conf *b = good("spool = \"/b\" hopcount_limit = 6 workers = 3\nlistener z { }\n"
			      "listener y { address = \"127.0.0.1:26\" }");
	struct buf to = {0}, fixed = {0};
	conf_fixed(a, &fixed);
	conf_differences(&fixed, a, &to);
	assert_int_equal(buf_len(&to), 0);
	conf_differences(&fixed, b, &to);
	assert_string_equal(buf_cstr(&to), "spool: \"/a\" becomes \"/b\" at the next start\n"
					   "workers: 0 becomes 3 at the next start\n");
	conf_keep_fixed(b, a);
	assert_string_equal(b->spool, "/a");
	assert_int_equal(b->workers, 0);
	assert_int_equal(b->hopcount_limit, 6);
	buf_fini(&to);
	buf_fini(&fixed);
	conf_unref(a);
	conf_unref(b);
}

static void a_difference_of_the_cluster_waits_for_the_next_start(void **state)
{
	(void)state;
	struct conf *a = good("cluster { name = \"a\" }");
	struct conf *b = good("cluster { name = \"b\" }");
	struct buf to = {0}, fixed = {0};
	conf_fixed(a, &fixed);
	conf_differences(&fixed, b, &to);
	assert_string_equal(buf_cstr(&to), "cluster.name: \"a\" becomes \"b\" at the next start\n");
	conf_keep_fixed(b, a);
	assert_string_equal(b->cluster.name, "a");
	buf_fini(&to);
	buf_fini(&fixed);
	conf_unref(a);
	conf_unref(b);
}

/* By hand: a build without the cluster takes no such setting. */
static struct conf *good_with(const char *text, bool redis)
{
	struct conf *c = good(text);
	if (redis) {
		free(c->cluster.redis);
		c->cluster.redis = mem_strdup("127.0.0.1:1");
	}
	return c;
}

static void differ(const char *one, const char *other, bool redis, const char *said)
{
	struct conf *a = good_with(one, redis), *b = good_with(other, redis);
	struct buf to = {0}, fixed = {0};
	conf_fixed(a, &fixed);
	conf_differences(&fixed, b, &to);
	assert_string_equal(buf_cstr(&to), said);
	buf_fini(&to);
	buf_fini(&fixed);
	conf_unref(a);
	conf_unref(b);
}

static void a_node_that_is_called_as_its_host_has_its_name_until_the_next_start(void **state)
{
	(void)state;
	differ("hostname = \"a.test\"", "hostname = \"b.test\"", true,
	       "cluster.name, which is the hostname: \"a.test\" becomes \"b.test\" at the next "
	       "start\n");
	differ("hostname = \"a.test\" cluster { name = \"n\" }",
	       "hostname = \"b.test\" cluster { name = \"n\" }", true, "");
	differ("hostname = \"a.test\"", "hostname = \"b.test\"", false, "");
}

static void asks_at(const char *text, const char *spool)
{
	write_file(path, text);
	buf_clear(&errors);
	struct conf *c = conf_read_to_ask(path, &errors);
	if (spool) {
		assert_non_null(c);
		assert_string_equal(c->spool, spool);
		assert_int_equal(c->faulty, buf_len(&errors) > 0);
	} else {
		assert_null(c);
		assert_true(buf_len(&errors) > 0);
	}
	conf_unref(c);
}

static void a_fault_elsewhere_does_not_hide_the_spool(void **state)
{
	(void)state;
	asks_at("spool = \"/a\"\n", "/a");
	asks_at("spool = '/a'\nspol = 1\n", "/a");
	asks_at("listener \"x\" {\nspool = /a\n", "/a");
	asks_at("networks = { \"10.0.0.0/8\"\nspool = \"/a\"\n", "/a");
	asks_at("log = \"x\nspool = \"/a\"\n/* never closed", NULL);
	asks_at("log = \"x\n# spool = \"/b\"\nspool = \"/a\"\n", "/a");
	asks_at("log = \"spool = /b\"\nnone = 1\n", "/var/spool/sluice");
	asks_at("spool = \"/a\nlog = \"x\"\n", NULL);
	asks_at("spool = \"\"\n", NULL);
	asks_at("spool = \"/a\\\\b\"\nnone = 1\n", NULL);
	asks_at("/* spool = \"/a\"\n", NULL);
	unlink(path);
	buf_clear(&errors);
	assert_null(conf_read_to_ask(path, &errors));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_file_is_the_defaults),
		cmocka_unit_test(a_fault_elsewhere_does_not_hide_the_spool),
		cmocka_unit_test(values_may_stand_in_quotes_or_not_and_several_in_a_line),
		cmocka_unit_test(every_unit_is_understood),
		cmocka_unit_test(an_empty_list_is_empty_and_more_can_be_added_to_a_default),
		cmocka_unit_test(like_takes_over_all_and_what_is_said_after_it_counts),
		cmocka_unit_test(like_takes_over_the_port_of_smtp_where_it_was_given_for_lmtp),
		cmocka_unit_test(comments_of_all_kinds_change_no_line),
		cmocka_unit_test(however_many_blanks_are_one_to_the_parser),
		cmocka_unit_test(the_environment_is_not_looked_at),
		cmocka_unit_test(a_bare_number_is_not_a_duration),
		cmocka_unit_test(a_percentage_may_have_its_sign),
		cmocka_unit_test(a_rate_is_of_numbers_that_can_be_reckoned_with),
		cmocka_unit_test(wrong_values_are_said_with_their_line),
		cmocka_unit_test(without_a_hostname_it_is_the_machine_s_if_that_is_one),
		cmocka_unit_test(a_local_part_is_kept_as_that_of_an_address_is),
		cmocka_unit_test(the_domain_of_an_address_of_ours_is_kept_in_ascii),
		cmocka_unit_test(wrong_forms_are_said_with_their_line),
		cmocka_unit_test(sections_that_do_not_fit_together_are_said_with_their_line),
		cmocka_unit_test(addresses_and_networks_are_checked_one_by_one),
		cmocka_unit_test(addresses_of_ours_are_checked),
		cmocka_unit_test(what_nobody_can_listen_at_twice_is_said),
		cmocka_unit_test(a_source_has_addresses_that_no_other_has),
		cmocka_unit_test(so_many_sources_are_read),
		cmocka_unit_test(more_name_servers_than_are_asked_are_a_fault),
		cmocka_unit_test(the_name_of_a_transport_has_no_spaces),
		cmocka_unit_test(transports_and_flows_name_sources_with_weights),
		cmocka_unit_test(a_flow_has_its_section_however_either_is_spelled),
		cmocka_unit_test(tls_needs_a_certificate_and_its_key),
		cmocka_unit_test(a_tls_policy_that_is_none_is_a_fault),
		cmocka_unit_test(a_file_that_can_t_be_read_is_said),
		cmocka_unit_test(a_title_is_no_setting),
		cmocka_unit_test(lines_are_known_among_thousands_of_sections),
		cmocka_unit_test(a_table_that_can_t_be_read_is_said_where_it_is_named),
		cmocka_unit_test(several_faults_are_said_in_the_order_of_their_lines),
		cmocka_unit_test(what_is_printed_can_be_read_back),
		cmocka_unit_test(one_setting_or_one_section_can_be_printed),
		cmocka_unit_test(the_sample_is_the_defaults_with_and_without_its_comments),
		cmocka_unit_test(the_manual_lists_every_setting),
		cmocka_unit_test(a_limit_that_may_be_0_says_what_that_is),
		cmocka_unit_test(a_difference_that_waits_for_the_next_start_is_said),
		cmocka_unit_test(a_difference_of_the_cluster_waits_for_the_next_start),
		cmocka_unit_test(
			a_node_that_is_called_as_its_host_has_its_name_until_the_next_start),
	};
	return cmocka_run_group_tests(tests, start, end);
}
