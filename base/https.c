/* SPDX-License-Identifier: ISC */
#include "base/https.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/https_ca.h"
#include "base/magic.h"
#include "base/mem.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

struct https {
	struct loop *loop;
	CURLM *multi;
	struct timer timer; /* curl's */
	int under_way;	    /* requests */
};

enum { REQUEST_MAGIC = 0x47e70511 };

struct https_request {
	unsigned magic;
	struct https *all;
	CURL *easy;
	struct curl_slist *at, *head;
	struct buf body, answer;
	char error[CURL_ERROR_SIZE];
	bool too_large;
	void (*answered)(void *owner, const struct https_answer *);
	void *owner;
};

/* A socket that curl wants to be told of. */
struct watch {
	ev_io io;
	struct https *all;
};

static void free_request(struct https_request *f)
{
	assert(f->all->under_way > 0 && loop_is_ours(f->all->loop));
	f->all->under_way--;
	curl_multi_remove_handle(f->all->multi, f->easy);
	curl_easy_cleanup(f->easy);
	curl_slist_free_all(f->at);
	curl_slist_free_all(f->head);
	buf_wipe(&f->body);
	buf_wipe(&f->answer);
	magic_free(f);
}

static const char *error_of(const struct https_request *f, CURLcode how)
{
	if (f->too_large)
		return "its answer is larger than 64k";
	if (how == CURLE_OK)
		return NULL;
	return f->error[0] ? f->error : curl_easy_strerror(how);
}

static void end_request(CURL *easy, CURLcode how)
{
	struct https_request *f;
	struct https_answer a = {0};
	char *type = NULL;
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &f);
	magic_check(f, REQUEST_MAGIC);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &a.status);
	curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
	a.content_type = type ? type : "";
	a.body = buf_cstr(&f->answer);
	a.len = buf_len(&f->answer);
	a.error = error_of(f, how);
	a.untrusted = how == CURLE_PEER_FAILED_VERIFICATION;
	f->answered(f->owner, &a);
	free_request(f);
}

static void act_on_socket(struct https *all, curl_socket_t fd, int events)
{
	int running, left;
	struct CURLMsg *m;
	curl_multi_socket_action(all->multi, fd, events, &running);
	while ((m = curl_multi_info_read(all->multi, &left)))
		if (m->msg == CURLMSG_DONE)
			end_request(m->easy_handle, m->data.result);
}

static void on_socket(struct ev_loop *ev, ev_io *io, int revents)
{
	struct watch *w = io->data;
	(void)ev;
	act_on_socket(w->all, io->fd,
		      (revents & EV_READ ? CURL_CSELECT_IN : 0) |
			      (revents & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *owner, void *private)
{
	struct https *all = owner;
	struct watch *w = private;
	(void)easy;
	if (w)
		ev_io_stop(all->loop->ev, &w->io);
	if (what == CURL_POLL_REMOVE) {
		curl_multi_assign(all->multi, fd, NULL);
		free(w);
		return 0;
	}
	if (!w) {
		w = mem_zalloc(sizeof *w);
		w->all = all;
		curl_multi_assign(all->multi, fd, w);
	}
	ev_io_init(&w->io, on_socket, fd,
		   (what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
	w->io.data = w;
	ev_io_start(all->loop->ev, &w->io);
	return 0;
}

static void on_timer(void *owner)
{
	act_on_socket(owner, CURL_SOCKET_TIMEOUT, 0);
}

static int want_timer(CURLM *multi, long ms, void *owner)
{
	struct https *all = owner;
	(void)multi;
	if (ms < 0)
		timer_stop(&all->loop->timers, &all->timer);
	else
		timer_start(&all->loop->timers, &all->timer, clock_steady_ms() + ms);
	return 0;
}

struct https *https_new(struct loop *loop)
{
	struct https *all = mem_zalloc(sizeof *all);
	all->loop = loop;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	all->multi = curl_multi_init();
	if (!all->multi) {
		fputs("sluice: libcurl can't be used\n", stderr);
		abort();
	}
	timer_init(&all->timer, on_timer, all);
	curl_multi_setopt(all->multi, CURLMOPT_SOCKETFUNCTION, want_socket);
	curl_multi_setopt(all->multi, CURLMOPT_SOCKETDATA, all);
	curl_multi_setopt(all->multi, CURLMOPT_TIMERFUNCTION, want_timer);
	curl_multi_setopt(all->multi, CURLMOPT_TIMERDATA, all);
	return all;
}

void https_free(struct https **ap)
{
	struct https *all = *ap;
	if (!all)
		return;
	assert(all->under_way == 0);
	curl_multi_cleanup(all->multi);
	timer_stop(&all->loop->timers, &all->timer);
	curl_global_cleanup();
	free(all);
	*ap = NULL;
}

static size_t take_body(char *data, size_t size, size_t n, void *owner)
{
	struct https_request *f = owner;
	magic_check(f, REQUEST_MAGIC);
	f->too_large |= buf_len(&f->answer) + size * n > HTTPS_ANSWER_MAX;
	if (f->too_large)
		return 0; /* curl ends it */
	buf_append(&f->answer, data, size * n);
	return size * n;
}

static void set_body(struct https_request *f, const struct https_order *o)
{
	buf_reserve(&f->body, buf_len(o->body) + 1);
	buf_append(&f->body, buf_data(o->body), buf_len(o->body));
	curl_easy_setopt(f->easy, CURLOPT_POSTFIELDS, buf_cstr(&f->body));
	curl_easy_setopt(f->easy, CURLOPT_POSTFIELDSIZE, (long)buf_len(&f->body));
	if (!o->content_type)
		return;
	char *line = mem_printf("Content-Type: %s", o->content_type);
	f->head = curl_slist_append(NULL, line);
	curl_easy_setopt(f->easy, CURLOPT_HTTPHEADER, f->head);
	free(line);
}

/* A plus: until libcurl forgets it, as an answer of the DNS. */
static void set_place(struct https_request *f, const char *at)
{
	char *entry = mem_printf("+%s", at);
	f->at = curl_slist_append(NULL, entry);
	curl_easy_setopt(f->easy, CURLOPT_RESOLVE, f->at);
	free(entry);
}

void https_put_addresses(struct buf *to, const struct resolve *r)
{
	for (int i = 0, n = 0; i < r->nhost; i++)
		for (int k = 0; k < r->host[i].naddress; k++, n++) {
			char text[ADDRESS_WHERE_MAX];
			const union address *a = &r->host[i].address[k];
			buf_printf(to, a->sa.sa_family == AF_INET6 ? "%s[%s]" : "%s%s",
				   n ? "," : "", address_where(a, text));
		}
}

static void set_request(struct https_request *f, const struct https_order *o)
{
	CURL *c = f->easy;
	curl_easy_setopt(c, CURLOPT_URL, o->url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)o->timeout_ms);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, f);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, f->error);
	curl_easy_setopt(c, CURLOPT_PRIVATE, f);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "sluice");
	/* A thread of libcurl that looks for a name is left to itself: the loop would wait for it, however long that takes. */
	curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
	if (o->body)
		set_body(f, o);
	if (o->ca && *o->ca)
		https_ca_set(c, o->ca);
	if (o->at) {
		set_place(f, o->at);
		curl_easy_setopt(c, CURLOPT_PROXY, ""); /* it would look elsewhere */
		/* Hosts that are asked once in days: nothing is kept open. */
		curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L);
	}
}

struct https_request *https_begin(struct https *all, const struct https_order *order,
				  void (*answered)(void *, const struct https_answer *),
				  void *owner)
{
	assert(answered && order->timeout_ms > 0 && loop_is_ours(all->loop));
	struct https_request *f = mem_zalloc(sizeof *f);
	f->magic = REQUEST_MAGIC;
	f->all = all;
	f->answered = answered;
	f->owner = owner;
	f->easy = curl_easy_init();
	if (!f->easy) {
		fputs("sluice: libcurl has no memory\n", stderr);
		abort();
	}
	buf_reserve(&f->answer, HTTPS_ANSWER_MAX + 1);
	set_request(f, order);
	curl_multi_add_handle(all->multi, f->easy);
	all->under_way++;
	return f;
}

void https_drop(struct https_request **fp)
{
	if (*fp) {
		magic_check(*fp, REQUEST_MAGIC);
		free_request(*fp);
	}
	*fp = NULL;
}
