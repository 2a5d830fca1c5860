/* SPDX-License-Identifier: ISC */
#include "cmd/local/login_device.h"

#include "base/clock.h"
#include "base/https.h"
#include "base/loop.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "smtpc/secret_file.h"
#include "smtpc/token_device.h"
#include "smtpc/token_store.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FETCH_MS = 30000 };

struct asking {
	const struct conf *conf;
	const struct credential *credential;
	struct token_source source;
	struct token_device device;
	struct loop *loop;
	struct https *https;
	struct https_request *request; /* under way, or NULL */
	struct timer poll;
	int64_t ends_ms; /* steady clock: the code serves no longer */
	bool done;	 /* the token is kept */
};

/* The endpoint's words go to a terminal: only printable ones do. */
static void complain_about(const char *what, const char *why)
{
	char *clean = mem_alloc(strlen(why) + 1);
	utf8_clean(clean, why, strlen(why));
	fprintf(stderr, "sluice: %s: %s\n", what, clean);
	free(clean);
}

static void end_loop(struct asking *a)
{
	ev_break(a->loop->ev, EVBREAK_ALL);
}

static void give_up(struct asking *a, const char *what, const char *why)
{
	complain_about(what, why);
	end_loop(a);
}

static void keep_token(struct asking *a, const struct token_answer *answer)
{
	struct buf why = {0};
	const char *file = a->credential->file;
	struct token_grant g = {.newest = answer->refresh};
	int lock = token_store_lock(file, true);
	if (lock < 0)
		buf_puts(&why, strerror(errno));
	else
		a->done = token_store_write(a->conf->spool, file, &a->source, &g, &why);
	if (lock >= 0)
		close(lock);
	if (!a->done)
		complain_about("the token can't be kept", buf_cstr(&why));
	buf_fini(&why);
	end_loop(a);
}

static void wait_for_next(struct asking *a)
{
	if (clock_steady_ms() + a->device.interval_ms < a->ends_ms)
		loop_timer_in(a->loop, &a->poll, a->device.interval_ms);
	else
		give_up(a, "the code has expired", "begin anew");
}

static void take_refusal(struct asking *a, const struct token_answer *answer, const char *why)
{
	switch (answer->error) {
	case TOKEN_ERROR_SLOW_DOWN:
		a->device.interval_ms += TOKEN_DEVICE_SLOWER_MS;
		wait_for_next(a);
		break;
	case TOKEN_ERROR_PENDING:
		wait_for_next(a);
		break;
	case TOKEN_ERROR_DENIED:
		give_up(a, "the login was denied", why);
		break;
	case TOKEN_ERROR_EXPIRED:
		give_up(a, "the code has expired, begin anew", why);
		break;
	default:
		give_up(a, a->source.endpoint, why);
	}
}

static void on_polled(void *owner, const struct https_answer *h)
{
	struct asking *a = owner;
	struct token_answer answer = {0};
	struct buf why = {0};
	a->request = NULL;
	if (h->error) { /* RFC 8628 3.5: once more, after twice the time */
		a->device.interval_ms *= 2;
		complain_about(a->source.endpoint, h->error);
		wait_for_next(a);
	} else if (!token_answer_read(&answer, h->status, h->body, h->len, &why)) {
		take_refusal(a, &answer, buf_cstr(&why));
	} else if (!answer.refresh) {
		give_up(a, a->source.endpoint,
			"it gives no refresh_token: see to the scope, such as offline_access");
	} else {
		keep_token(a, &answer);
	}
	token_answer_fini(&answer);
	buf_fini(&why);
}

static void post_form(struct asking *a, const char *url, struct buf *form,
		      void (*answered)(void *, const struct https_answer *))
{
	assert(!a->request);
	struct https_order order = {
		.url = url, .ca = a->source.ca, .body = form, .timeout_ms = FETCH_MS};
	a->request = https_begin(a->https, &order, answered, a);
	buf_wipe(form);
}

static void poll_endpoint(void *owner)
{
	struct asking *a = owner;
	struct buf form = {0};
	buf_reserve(&form, 16 << 10);
	token_device_poll_form(&a->source, &a->device, &form);
	post_form(a, a->source.endpoint, &form, on_polled);
}

static void on_begun(void *owner, const struct https_answer *h)
{
	struct asking *a = owner;
	struct buf why = {0};
	a->request = NULL;
	if (h->error) {
		give_up(a, a->source.device_endpoint, h->error);
	} else if (!token_device_read(&a->device, h->status, h->body, h->len, &why)) {
		give_up(a, a->source.device_endpoint, buf_cstr(&why));
	} else {
		printf("Open %s in a browser on any machine, log in as %s, and enter the code\n\n"
		       "    %s\n\nwithin %d minutes. Waiting; Ctrl-C ends it, and changes "
		       "nothing.\n",
		       a->device.address, a->credential->login, a->device.user_code,
		       (int)(a->device.lifetime_ms / 60000));
		fflush(stdout);
		a->ends_ms = clock_steady_ms() + a->device.lifetime_ms;
		wait_for_next(a);
	}
	buf_fini(&why);
}

static void on_signal(struct ev_loop *ev, ev_signal *w, int revents)
{
	(void)ev;
	(void)revents;
	give_up(w->data, "given up", "nothing is changed");
}

static void free_note(void *owner, struct note *note)
{
	(void)owner;
	free(note); /* nobody posts any */
}

static void run_asking(struct asking *a)
{
	static const int ends[] = {SIGINT, SIGTERM};
	ev_signal on[2];
	struct buf form = {0};
	a->loop = loop_new("login", free_note, NULL, a);
	a->https = https_new(a->loop);
	timer_init(&a->poll, poll_endpoint, a);
	for (int i = 0; i < 2; i++) {
		ev_signal_init(&on[i], on_signal, ends[i]);
		on[i].data = a;
		ev_signal_start(a->loop->ev, &on[i]);
	}
	buf_reserve(&form, 16 << 10);
	token_device_form(&a->source, &form);
	post_form(a, a->source.device_endpoint, &form, on_begun);
	ev_run(a->loop->ev, 0);
	for (int i = 0; i < 2; i++)
		ev_signal_stop(a->loop->ev, &on[i]);
	timer_stop(&a->loop->timers, &a->poll);
	https_drop(&a->request);
	https_free(&a->https);
	loop_free(&a->loop);
}

static bool read_source(struct asking *a)
{
	struct buf why = {0};
	char *text = secret_file_read(a->credential->file, &why);
	bool good = text && token_source_read(&a->source, text, &why);
	if (good && !a->source.device_endpoint) {
		buf_puts(&why, "it has no device_endpoint");
		good = false;
	}
	if (!good)
		complain_about(a->credential->file, buf_cstr(&why));
	secret_file_free(text);
	buf_fini(&why);
	return good;
}

bool login_device(const struct conf *conf, const struct credential *c)
{
	struct asking a = {.conf = conf, .credential = c};
	if (read_source(&a))
		run_asking(&a);
	token_device_fini(&a.device);
	token_source_fini(&a.source);
	return a.done;
}
