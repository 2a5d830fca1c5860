/* SPDX-License-Identifier: ISC */
#include "dns/channel.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/magic.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "dns/cares.h"
#include "dns/dnsname.h"
#include "dns/query.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	SETUP_AGAIN_MS = 1000,
	PAUSE_LEAST_MS = 50,
	OTHERS_ANSWERS = 3, /* in a row, for which the first server has let its time go by */
	SENT_MAGIC = 0x5e47da7a,
	CHANGE_AGAIN_MS = 30 * 1000, /* a question that is put anew for it has its time by then */
};

struct channel {
	struct loop *loop;
	void (*worked)(void *owner);
	void *owner;
	ares_channel ares; /* NULL: could not be set up */
	int64_t tried_ms;  /* when it was last tried */
	struct list watches;
	struct timer tick; /* while queries are under way */
	int64_t tick_ms;
	struct list resting; /* struct sent: c-ares gave up too soon */
	int under_way;
	int timeout_ms, tries;
	uint16_t port;
	bool any_reply;	 /* SERVFAIL, NOTIMP and REFUSED too */
	bool configured; /* the servers are; else they are those that resolv.conf named */
	int nserver;
	union address server[CARES_SERVERS_MAX]; /* as they are configured */
	int first;				 /* of these: asked before the others */
	int late, answers_late;			 /* answers in a row of this one behind it */
	int64_t changed_ms;			 /* when another became the first; 0: never */
};

struct watch {
	struct list link;
	ev_io io;
	struct channel *channel;
};

static void on_socket(struct ev_loop *ev, ev_io *w, int revents)
{
	(void)ev;
	struct channel *c = ((struct watch *)w->data)->channel;
	int fd = w->fd; /* The watch may be gone when c-ares returns. */
	ares_process_fd(c->ares, revents & EV_READ ? fd : ARES_SOCKET_BAD,
			revents & EV_WRITE ? fd : ARES_SOCKET_BAD);
	c->worked(c->owner);
}

static struct watch *watch_of(struct channel *c, int fd)
{
	list_each_entry (struct watch, w, link, &c->watches)
		if (w->io.fd == fd)
			return w;
	struct watch *w = mem_zalloc(sizeof *w);
	w->channel = c;
	ev_io_init(&w->io, on_socket, fd, 0);
	w->io.data = w;
	list_append(&c->watches, &w->link);
	return w;
}

static void on_socket_state(void *owner, ares_socket_t fd, int readable, int writable)
{
	struct channel *c = owner;
	struct watch *w = watch_of(c, fd);
	ev_io_stop(c->loop->ev, &w->io);
	if (!readable && !writable) {
		list_remove(&w->link);
		free(w);
		return;
	}
	ev_io_set(&w->io, fd, (readable ? EV_READ : 0) | (writable ? EV_WRITE : 0));
	ev_io_start(c->loop->ev, &w->io);
}

/* Why a tick and not ares_timeout(): that one walks all queries under way at each call. */
static void keep_ticking(struct channel *c)
{
	if (c->under_way > 0 && !timer_active(&c->tick))
		loop_timer_in(c->loop, &c->tick, c->tick_ms);
}

static void add_address(struct channel *c, const union address *a)
{
	assert(c->nserver < CARES_SERVERS_MAX);
	c->server[c->nserver] = *a;
	address_unmask(&c->server[c->nserver]);
	address_set_port(&c->server[c->nserver++], c->port);
}

static_assert((int)CONF_DNS_SERVERS_MAX <= CARES_SERVERS_MAX, "each that is configured has room");

static void read_servers(struct channel *c, const struct conf_dns *conf)
{
	c->configured = conf->server.n > 0;
	for (int i = 0; i < conf->server.n; i++) {
		union address address;
		if (!dnsname_literal(conf->server.item[i], true, &address)) {
			log_event(LOG_LEVEL_WARNING, "dns", "server", conf->server.item[i],
				  "reason", "not an address; left out", NULL);
			continue;
		}
		add_address(c, &address);
	}
}

/* Keep the servers that resolv.conf has named: it may be replaced by a file that we may not read. */
static void keep_found(struct channel *c)
{
	int n = cares_servers(c->ares, c->server);
	assert(n <= CARES_SERVERS_MAX);
	if (n > 0)
		c->nserver = n;
	if (c->first >= c->nserver)
		c->first = 0;
}

/* c-ares would take one that it may not read for one that is not there, and ask this machine. */
static bool may_read_servers(void)
{
	int fd = open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno == ENOENT;
}

/* With all of these given c-ares reads no file. */
static int set_up_without_files(struct channel *c, struct ares_options *o, int mask)
{
	static char lookups[] = "b";
	struct in_addr none = {.s_addr = htonl(INADDR_LOOPBACK)}; /* replaced at once */
	o->lookups = lookups;
	o->ndots = 1;
	o->servers = &none;
	o->nservers = 1;
	return cares_init(&c->ares, o,
			  mask | ARES_OPT_LOOKUPS | ARES_OPT_NDOTS | ARES_OPT_DOMAINS |
				  ARES_OPT_SORTLIST | ARES_OPT_SERVERS);
}

/* Those that c-ares has or has read, in the order in which they are to be asked. */
static int use_servers(struct channel *c)
{
	assert(c->nserver > 0 && c->first >= 0 && c->first < c->nserver);
	union address server[CARES_SERVERS_MAX];
	for (int i = 0; i < c->nserver; i++)
		server[i] = c->server[(c->first + i) % c->nserver];
	return cares_use_servers(c->ares, server, c->nserver);
}

/* EDNSPSZ and the flag only say how long a UDP reply may be: the OPT record is in our packets. */
static void set_up(struct channel *c)
{
	struct ares_options o = {
		.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES | ARES_FLAG_EDNS |
			 (c->any_reply ? ARES_FLAG_NOCHECKRESP : 0),
		.timeout = c->timeout_ms,
		.tries = c->tries,
		.udp_port = c->port,
		.tcp_port = c->port,
		.socket_receive_buffer_size = CARES_SOCKET_BUFFER,
		.ednspsz = QUERY_EDNS_BYTES,
		.sock_state_cb = on_socket_state,
		.sock_state_cb_data = c,
	};
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_UDP_PORT |
		   ARES_OPT_TCP_PORT | ARES_OPT_SOCK_RCVBUF | ARES_OPT_EDNSPSZ |
		   ARES_OPT_SOCK_STATE_CB | ARES_OPT_NOROTATE;
	assert(!c->ares);
	c->tried_ms = c->loop->now_ms;
	bool unread = !c->configured && c->nserver > 0 && !may_read_servers();
	if (unread)
		log_event(LOG_LEVEL_WARNING, "dns", "reason",
			  "resolv.conf cannot be read; the servers that it named before stay",
			  NULL);
	int rc = unread ? set_up_without_files(c, &o, mask) : cares_init(&c->ares, &o, mask);
	if (rc == ARES_SUCCESS && !c->configured && !unread)
		keep_found(c);
	bool other = c->configured || unread || c->first > 0;
	if (rc == ARES_SUCCESS && other && c->nserver > 0) {
		rc = use_servers(c);
		if (rc != ARES_SUCCESS)
			ares_destroy(c->ares);
	}
	if (rc == ARES_SUCCESS)
		return;
	c->ares = NULL;
	log_event(LOG_LEVEL_ERROR, "dns", "reason", ares_strerror(rc), NULL);
}

static bool wants_another_first(const struct channel *c)
{
	bool lately = c->changed_ms > 0 && c->loop->now_ms - c->changed_ms < CHANGE_AGAIN_MS;
	return c->ares && c->answers_late >= OTHERS_ANSWERS && !lately;
}

static void say_first(const struct channel *c, const union address *silent)
{
	char where[ADDRESS_WHERE_MAX], first[ADDRESS_WHERE_MAX];
	log_event(LOG_LEVEL_WARNING, "dns", "server", address_where(silent, where), "first",
		  address_where(&c->server[c->first], first), "reason",
		  "it does not answer in time, and another does", NULL);
}

/* The others have it at once, with all that waits for the one that is silent. */
static void change_first(struct channel *c)
{
	const union address *silent = &c->server[c->first];
	assert(c->late > 0 && c->late < c->nserver);
	c->first = (c->first + c->late) % c->nserver;
	c->late = c->answers_late = 0;
	c->changed_ms = c->loop->now_ms;
	say_first(c, silent);
	ares_destroy(c->ares);
	c->ares = NULL;
	set_up(c);
}

static void on_tick(void *owner)
{
	struct channel *c = owner;
	if (c->ares)
		ares_process_fd(c->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	if (wants_another_first(c))
		change_first(c);
	c->worked(c->owner);
	keep_ticking(c);
}

static struct channel *make_channel(struct loop *loop, const struct conf_dns *conf,
				    void (*worked)(void *owner), void *owner)
{
	struct channel *c = mem_zalloc(sizeof *c);
	c->loop = loop;
	c->worked = worked;
	c->owner = owner;
	list_init(&c->watches);
	list_init(&c->resting);
	timer_init(&c->tick, on_tick, c);
	c->timeout_ms = (int)conf->timeout;
	c->tries = (int)conf->tries;
	c->port = (uint16_t)conf->port;
	c->tick_ms = conf->timeout / 10;
	if (c->tick_ms < 5)
		c->tick_ms = 5;
	if (c->tick_ms > 200)
		c->tick_ms = 200;
	return c;
}

struct channel *channel_new(struct loop *loop, const struct conf_dns *conf,
			    const struct channel *before, void (*worked)(void *owner), void *owner)
{
	struct channel *c = make_channel(loop, conf, worked, owner);
	read_servers(c, conf);
	for (int i = 0; before && !c->configured && !before->configured && i < before->nserver; i++)
		c->server[c->nserver++] = before->server[i];
	set_up(c);
	return c;
}

struct channel *channel_new_single(struct loop *loop, const struct conf_dns *conf,
				   const union address *server, void (*worked)(void *owner),
				   void *owner)
{
	struct channel *c = make_channel(loop, conf, worked, owner);
	c->configured = c->any_reply = true;
	add_address(c, server);
	set_up(c);
	return c;
}

int channel_servers(const struct channel *c, union address *server, int max)
{
	int n = 0;
	for (; n < c->nserver && n < max; n++) {
		server[n] = c->server[n];
		address_set_port(&server[n], 0);
	}
	return n;
}

/* A question; c-ares hands it back. */
struct sent {
	unsigned magic;
	struct list link; /* in resting */
	struct channel *channel;
	struct channel_query *query;
	struct timer again;
	int64_t since_ms; /* steady clock */
	size_t len;
	unsigned char bytes[];
};

/* By the code in the head of the answer, where there is one. RFC 1035 4.1.1. */
void channel_count(enum channel_event event, const unsigned char *bytes, size_t len)
{
	static const enum metric of[] = {[0] = METRIC_dns_noerror,
					 [2] = METRIC_dns_servfail,
					 [3] = METRIC_dns_nxdomain,
					 [5] = METRIC_dns_refused};
	const size_t n = sizeof of / sizeof *of;
	size_t code = event == CHANNEL_REPLY && len > 3 ? bytes[3] & 0xfu : n;
	if (event == CHANNEL_REPLY)
		metrics_add(code == 0 || (code < n && of[code]) ? of[code] : METRIC_dns_other, 1);
	else
		metrics_add(event == CHANNEL_TIMEOUT ? METRIC_dns_timeout : METRIC_dns_failed, 1);
}

static void end_sent(struct sent *sent, enum channel_event event, const unsigned char *bytes,
		     size_t len)
{
	struct channel *c = sent->channel;
	struct channel_query *query = sent->query;
	assert(c->under_way > 0);
	assert(event != CHANNEL_REPLY || bytes);
	c->under_way--;
	list_remove(&sent->link);
	timer_stop(&c->loop->timers, &sent->again);
	magic_free(sent);
	channel_count(event, bytes, len);
	query->replied(query, event, bytes, event == CHANNEL_REPLY ? len : 0);
}

/* All that the settings give one server, but for what a clock may lack. */
static bool had_its_time(const struct channel *c, int64_t took_ms)
{
	int64_t most_ms = (int64_t)c->timeout_ms * c->tries;
	return took_ms >= most_ms - most_ms / 10;
}

static int64_t pause_after(const struct channel *c, int64_t took_ms)
{
	int64_t pause_ms = took_ms / 2;
	bool last = had_its_time(c, took_ms + pause_ms);
	return last || pause_ms < PAUSE_LEAST_MS ? PAUSE_LEAST_MS : pause_ms;
}

/* From 1.32 on c-ares waits for five times as long as a server took on average, whatever the settings say: one that is quick where it
 * knows the answer had no second for a name that it must look for. It is asked again, less and less often. */
static void rest_or_end(struct sent *sent)
{
	struct channel *c = sent->channel;
	int64_t now_ms = clock_steady_ms(), took_ms = now_ms - sent->since_ms;
	if (had_its_time(c, took_ms)) {
		end_sent(sent, CHANNEL_TIMEOUT, NULL, 0);
		return;
	}
	assert(list_empty(&sent->link) && !timer_active(&sent->again));
	list_append(&c->resting, &sent->link);
	timer_start(&c->loop->timers, &sent->again, now_ms + pause_after(c, took_ms));
}

/* Servers are asked one after the other: so many that were before it have let their time go by. */
static void note_who_answered(struct channel *c, int timeouts)
{
	int behind = c->nserver > 0 ? timeouts % c->nserver : 0;
	c->answers_late = behind > 0 ? (behind == c->late ? c->answers_late + 1 : 1) : 0;
	c->late = behind;
}

static void on_reply(void *owner, int status, int timeouts, const unsigned char *bytes, size_t len)
{
	struct sent *sent = owner;
	magic_check(sent, SENT_MAGIC);
	if (status == ARES_SUCCESS)
		note_who_answered(sent->channel, timeouts);
	if (status == ARES_ETIMEOUT)
		rest_or_end(sent);
	else if (status == ARES_SUCCESS && bytes)
		end_sent(sent, CHANNEL_REPLY, bytes, len);
	else if (status == ARES_EDESTRUCTION || status == ARES_ECANCELLED)
		end_sent(sent, CHANNEL_CLOSED, NULL, 0);
	else
		end_sent(sent, CHANNEL_FAILED, NULL, 0);
}

static void ask_again(void *owner)
{
	struct sent *sent = owner;
	magic_check(sent, SENT_MAGIC);
	struct channel *c = sent->channel;
	list_remove(&sent->link);
	if (c->ares)
		cares_send(c->ares, sent->bytes, sent->len, on_reply, sent);
	else
		end_sent(sent, CHANNEL_FAILED, NULL, 0);
	c->worked(c->owner);
}

/* No callback of c-ares runs any more. */
static void close_resting(struct channel *c)
{
	struct list *link;
	while ((link = list_first(&c->resting)))
		end_sent(list_entry(link, struct sent, link), CHANNEL_CLOSED, NULL, 0);
}

void channel_free(struct channel **cp)
{
	struct channel *c = *cp;
	if (!c)
		return;
	assert(loop_is_ours(c->loop));
	if (c->ares)
		ares_destroy(c->ares);
	close_resting(c);
	assert(c->under_way == 0);	 /* each was told that it is closed */
	assert(list_empty(&c->watches)); /* as each socket was */
	timer_stop(&c->loop->timers, &c->tick);
	free(c);
	*cp = NULL;
}

void channel_send(struct channel *c, const void *bytes, size_t len, struct channel_query *query)
{
	assert(loop_is_ours(c->loop) && len > 0 && query->replied);
	if (!c->ares && c->loop->now_ms - c->tried_ms >= SETUP_AGAIN_MS)
		set_up(c);
	if (!c->ares) {
		query->replied(query, CHANNEL_FAILED, NULL, 0);
		return;
	}
	struct sent *sent = mem_zalloc(sizeof *sent + len);
	sent->magic = SENT_MAGIC;
	sent->channel = c;
	sent->query = query;
	sent->since_ms = clock_steady_ms();
	sent->len = len;
	memcpy(sent->bytes, bytes, len);
	list_init(&sent->link);
	timer_init(&sent->again, ask_again, sent);
	c->under_way++;
	metrics_add(METRIC_dns_queries, 1);
	cares_send(c->ares, bytes, len, on_reply, sent);
	keep_ticking(c);
}
