/* SPDX-License-Identifier: ISC */
#include "smtpc/fetch_token.h"

#include "base/clock.h"
#include "base/mem.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAX = 64 << 10, TIMEOUT_MS = 30000 };

struct fetch_tokens {
	struct loop *loop;
	CURLM *multi;
	struct timer timer; /* curl's */
};

struct fetch_token {
	struct fetch_tokens *all;
	CURL *easy;
	struct buf form, answer;
	char error[CURL_ERROR_SIZE];
	bool too_large;
	void (*fetched)(void *owner, long status, const char *body, size_t len, const char *error);
	void *owner;
};

/* A socket that curl wants to be told of. */
struct watch {
	ev_io io;
	struct fetch_tokens *all;
};

static void free_fetch(struct fetch_token *f)
{
	curl_multi_remove_handle(f->all->multi, f->easy);
	curl_easy_cleanup(f->easy);
	buf_wipe(&f->form);
	buf_wipe(&f->answer);
	free(f);
}

static const char *error_of(const struct fetch_token *f, CURLcode how)
{
	if (f->too_large)
		return "its answer is larger than 64k";
	if (how == CURLE_OK)
		return NULL;
	return f->error[0] ? f->error : curl_easy_strerror(how);
}

static void ended(CURL *easy, CURLcode how)
{
	struct fetch_token *f;
	long status = 0;
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, &f);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	f->fetched(f->owner, status, buf_cstr(&f->answer), buf_len(&f->answer), error_of(f, how));
	free_fetch(f);
}

static void act(struct fetch_tokens *all, curl_socket_t fd, int events)
{
	int running, left;
	struct CURLMsg *m;
	curl_multi_socket_action(all->multi, fd, events, &running);
	while ((m = curl_multi_info_read(all->multi, &left)))
		if (m->msg == CURLMSG_DONE)
			ended(m->easy_handle, m->data.result);
}

static void on_socket(struct ev_loop *ev, ev_io *io, int revents)
{
	struct watch *w = io->data;
	(void)ev;
	act(w->all, io->fd,
	    (revents & EV_READ ? CURL_CSELECT_IN : 0) |
		    (revents & EV_WRITE ? CURL_CSELECT_OUT : 0));
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *owner, void *private)
{
	struct fetch_tokens *all = owner;
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
	act(owner, CURL_SOCKET_TIMEOUT, 0);
}

static int want_timer(CURLM *multi, long ms, void *owner)
{
	struct fetch_tokens *all = owner;
	(void)multi;
	if (ms < 0)
		timer_stop(&all->loop->timers, &all->timer);
	else
		timer_start(&all->loop->timers, &all->timer, clock_steady_ms() + ms);
	return 0;
}

struct fetch_tokens *fetch_tokens_new(struct loop *loop)
{
	struct fetch_tokens *all = mem_zalloc(sizeof *all);
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

void fetch_tokens_free(struct fetch_tokens **ap)
{
	struct fetch_tokens *all = *ap;
	if (!all)
		return;
	curl_multi_cleanup(all->multi);
	timer_stop(&all->loop->timers, &all->timer);
	curl_global_cleanup();
	free(all);
	*ap = NULL;
}

static size_t take(char *data, size_t size, size_t n, void *owner)
{
	struct fetch_token *f = owner;
	f->too_large |= buf_len(&f->answer) + size * n > ANSWER_MAX;
	if (f->too_large)
		return 0; /* curl ends it */
	buf_append(&f->answer, data, size * n);
	return size * n;
}

static void set_request(struct fetch_token *f, const char *url, const char *ca)
{
	CURL *c = f->easy;
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, buf_cstr(&f->form));
	curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, (long)buf_len(&f->form));
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, f);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, f->error);
	curl_easy_setopt(c, CURLOPT_PRIVATE, f);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "sluice");
	if (ca && *ca)
		curl_easy_setopt(c, CURLOPT_CAINFO, ca);
}

struct fetch_token *
fetch_token_begin(struct fetch_tokens *all, const char *url, const char *ca, const struct buf *form,
		  void (*fetched)(void *, long, const char *, size_t, const char *), void *owner)
{
	struct fetch_token *f = mem_zalloc(sizeof *f);
	f->all = all;
	f->fetched = fetched;
	f->owner = owner;
	f->easy = curl_easy_init();
	if (!f->easy) {
		fputs("sluice: libcurl has no memory\n", stderr);
		abort();
	}
	buf_reserve(&f->form, buf_len(form) + 1);
	buf_append(&f->form, buf_data(form), buf_len(form));
	buf_reserve(&f->answer, ANSWER_MAX + 1);
	set_request(f, url, ca);
	curl_multi_add_handle(all->multi, f->easy);
	return f;
}

void fetch_token_drop(struct fetch_token **fp)
{
	if (*fp)
		free_fetch(*fp);
	*fp = NULL;
}
