/* SPDX-License-Identifier: ISC */
/* bench_scheduler - entries a second through the scheduler alone, and whether their cost is flat.
 *
 *	bench_scheduler [LARGEST [TEXT]]	powers of ten from 1000 up to LARGEST, 1000000 if not
 *						given; only scenarios with TEXT in their names
 *
 * The real scheduler among neighbours that answer at once, in one thread, under a clock of its own:
 * no socket, no disk, no name server. One line a scenario and number of recipients queued at first:
 * from the arrival of its message to its verdict, processor time of one entry, and entries a second.
 */
#include "base/clock.h"
#include "base/delivery.h"
#include "base/log.h"
#include "base/mem.h"
#include "qmgr/qmgr.h"
#include "spool/spool.h"

#include <arpa/inet.h>
#include <ev.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SITES = 10000, FLOW = 200000 };

static struct qmgr *q;
static struct content *content;
static struct verdict *sent;
static int64_t steady_ms = 1000000;
static int64_t delivered;
static int answered; /* questions to dns */
static uint64_t next_id;
static bool each_its_flow; /* or all of one */

/* By number: what CONNECTION_CLOSE is answered with. */
static struct connection_open **opened;
static uint64_t opened_cap;

int64_t clock_steady_ms(void)
{
	return steady_ms;
}

int64_t clock_steady_us(void)
{
	return steady_ms * 1000;
}

int64_t clock_wall_ms(void)
{
	return INT64_C(1700000000000) + steady_ms;
}

int64_t clock_wall_us(void)
{
	return clock_wall_ms() * 1000;
}

int64_t clock_up_ms(void)
{
	return steady_ms;
}

static void post(struct note *note)
{
	loop_post(qmgr_loop(q), note);
}

static void to_spool(void *context, struct note *note)
{
	(void)context;
	if (note->type == SPOOL_DELIVERED) {
		struct spool_delivered *d = (struct spool_delivered *)note;
		for (uint32_t i = 0; i < d->n; i++)
			verdict_unref(d->of[i].verdict);
	} else if (note->type == SPOOL_RELEASE) {
		envelope_free(&((struct spool_release *)note)->envelope);
	}
	free(note);
}

static void to_dns(void *context, struct note *note)
{
	(void)context;
	struct resolve *r = (struct resolve *)note;
	r->nhost = 1;
	r->host = mem_zalloc(sizeof *r->host);
	r->host[0].name = mem_strdup(r->name);
	r->host[0].naddress = 1;
	struct sockaddr_in *in = &r->host[0].address[0].in;
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl((r->name[0] == 's' ? 0x0b000000U : 0x0a000000U) +
				    (uint32_t)strtoul(r->name + 1, NULL, 10));
	note->type = RESOLVE_ANSWER;
	answered++;
	post(note);
}

/* A host whose name begins with s takes a connection and never says a word. */
static void answer_open(struct connection_open *o)
{
	while (o->connection >= opened_cap) {
		opened_cap = opened_cap ? opened_cap * 2 : 1024;
		opened = mem_realloc(opened, opened_cap * sizeof(struct connection_open *));
	}
	opened[o->connection] = o;
	if (o->host[0] == 's')
		return;
	struct connection_ready *r = mem_zalloc(sizeof *r);
	r->note.type = CONNECTION_READY;
	r->connection = o->connection;
	r->owner = o->owner;
	r->depth = 1;
	post(&r->note);
}

static void answer_close(struct connection_close *c)
{
	struct connection_open *o = opened[c->connection];
	free(c);
	o->note.type = CONNECTION_CLOSED;
	post(&o->note);
}

static void answer_delivery(struct delivery *d)
{
	for (uint32_t i = 0; i < d->nrcpt; i++)
		d->rcpt[i].verdict = verdict_ref(sent);
	d->note.type = DELIVERY_BACK;
	delivered++;
	post(&d->note);
}

static void to_worker(void *context, int worker, struct note *note)
{
	(void)context;
	(void)worker;
	if (note->type == CONNECTION_OPEN)
		answer_open((struct connection_open *)note);
	else if (note->type == CONNECTION_CLOSE)
		answer_close((struct connection_close *)note);
	else
		answer_delivery((struct delivery *)note);
}

static struct conf *conf_of(const char *text)
{
	char path[] = "/tmp/bench_scheduler.XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	struct buf errors;
	buf_init(&errors);
	if (!f || fputs(text, f) == EOF || fclose(f) != 0) {
		perror(path);
		exit(1);
	}
	struct conf *c = conf_read(path, &errors);
	unlink(path);
	if (!c) {
		fputs(buf_cstr(&errors), stderr);
		exit(1);
	}
	return c;
}

static void begin(const char *transport)
{
	char text[800];
	snprintf(text, sizeof text,
		 "transport smtp { connection_max_messages = 0 host_connection_limit = 0 "
		 "destination_recipient_limit = 1 %s }\n"
		 "queue { message_active_limit = 3000000 message_recipient_limit = 10000000 }",
		 transport);
	struct conf *conf = conf_of(text);
	q = qmgr_new(conf);
	conf_unref(conf);
	struct qmgr_edges edges = {
		.to_spool = to_spool, .to_dns = to_dns, .to_worker = to_worker, .workers = 2};
	qmgr_wire(q, &edges);
	content = content_in_memory(mem_strdup("x"), 1);
	sent = verdict_new(VERDICT_SENT, 250, "2.0.0", "", "ok");
	delivered = 0;
	answered = 0;
	each_its_flow = false;
}

static void end(void)
{
	qmgr_free(&q);
	content_unref(content);
	verdict_unref(sent);
	for (uint64_t i = 0; i < opened_cap; i++)
		opened[i] = NULL;
}

static void arrive(const char *letter, int site, int recipients)
{
	struct spool_arrival *a = mem_zalloc(sizeof *a);
	struct envelope *e = a->envelope = envelope_new();
	e->id = ++next_id;
	e->arrived_ms = clock_wall_ms();
	e->sender = each_its_flow ? mem_printf("x@%" PRIu64, next_id) : mem_strdup("");
	for (int i = 0; i < recipients; i++) {
		char to[40];
		snprintf(to, sizeof to, "x%d@%s%d", i, letter, site);
		envelope_add(e, to);
	}
	a->note.type = SPOOL_ARRIVAL;
	a->content = content_ref(content);
	post(&a->note);
}

static void turn(void)
{
	ev_run(qmgr_loop(q)->ev, EVRUN_NOWAIT);
}

static void run_until(int64_t wanted)
{
	while (delivered < wanted) {
		int64_t before = delivered;
		turn();
		steady_ms += delivered == before;
	}
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int one_message(int n)
{
	arrive("f", 0, n);
	run_until(n);
	return n;
}

static int many_to_one_site(int n)
{
	for (int i = 0; i < n; i++)
		arrive("f", 0, 1);
	run_until(n);
	return n;
}

static int many_flows_to_one_site(int n)
{
	each_its_flow = true;
	return many_to_one_site(n);
}

static int many_to_many_sites(int n)
{
	for (int i = 0; i < n; i++)
		arrive("f", i % SITES, 1);
	run_until(n);
	return n;
}

static int many_flows_to_many_sites(int n)
{
	each_its_flow = true;
	return many_to_many_sites(n);
}

/* Bulk, and smaller messages of all sizes that slip past it. */
static int mixed_sizes(int n)
{
	int sum = 0;
	arrive("f", 0, n / 2);
	for (int i = 0; sum < n / 2; i++) {
		int size = 1 + i % 40;
		arrive("f", i % 10, size);
		sum += size;
	}
	run_until(n / 2 + sum);
	return n / 2 + sum;
}

/* n messages wait for sites that never take them; others flow past. */
static int past_blockers(int n)
{
	for (int i = 0; i < n; i++)
		arrive("s", i % SITES, 1);
	while (answered < (n < SITES ? n : SITES))
		turn();
	turn();
	turn();
	return 0;
}

static int flow(int n)
{
	(void)n;
	for (int i = 0; i < FLOW / 100; i++) {
		for (int k = 0; k < 100; k++)
			arrive("f", 0, 1);
		run_until((i + 1) * 100);
	}
	return FLOW;
}

struct scenario {
	const char *name, *transport;
	int (*before)(int n); /* not measured, or NULL */
	int (*run)(int n);    /* returns entries */
};

static const struct scenario scenarios[] = {
	{"one message, one site", "", NULL, one_message},
	{"messages to one site", "", NULL, many_to_one_site},
	{"messages to 10,000 sites", "", NULL, many_to_many_sites},
	{"each of its flow, to one site", "", NULL, many_flows_to_one_site},
	{"each of its flow, to 10,000 sites", "", NULL, many_flows_to_many_sites},
	{"bulk and all sizes, ten sites", "", NULL, mixed_sizes},
	{"past blocked messages",
	 "connection_limit = 0 initial_destination_concurrency = 1 "
	 "destination_concurrency_limit = 1",
	 past_blockers, flow},
};

static void measure(const struct scenario *s, int n)
{
	begin(s->transport);
	if (s->before)
		s->before(n);
	double began = now();
	int entries = s->run(n);
	double seconds = now() - began;
	printf("%-34s %9d %9.0f ns %10.0f/s\n", s->name, n, seconds / entries * 1e9,
	       entries / seconds);
	fflush(stdout);
	end();
}

int main(int argc, char **argv)
{
	int largest = argc > 1 ? atoi(argv[1]) : 1000000;
	const char *text = argc > 2 ? argv[2] : "";
	log_set_level(LOG_LEVEL_ERROR);
	printf("%-34s %9s %12s %12s\n", "the scheduler alone", "queued", "an entry", "entries");
	for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
		for (int n = 1000; n <= largest && strstr(scenarios[i].name, text); n *= 10)
			measure(&scenarios[i], n);
	free(opened);
	return 0;
}
