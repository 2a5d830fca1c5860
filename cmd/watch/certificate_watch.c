/* SPDX-License-Identifier: ISC */
#include "cmd/watch/certificate_watch.h"

#include "base/condition.h"
#include "base/conf_value.h"
#include "base/date.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/tls_certificates.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LOOK_MS = 1000 };

/* All files together, as they look; 64-bit FNV-1a. */
#define MIX_START UINT64_C(0xcbf29ce484222325)
#define MIX_PRIME UINT64_C(0x100000001b3)

struct certificate_watch {
	struct loop *loop;
	struct timer look;
	struct conf *conf;   /* a reference, or NULL */
	uint64_t used, seen; /* how the files looked: those in use, and at the last look */
	int64_t told_ms;     /* the date of the last warnings; 0: never */
	int64_t begins_ms; /* the date when the next of those that are not valid yet is; 0: all are */
	struct conf_list used_file; /* those in use, */
	struct tls_span *used_span; /* and when each is valid; 0: not known */
	void (*changed)(void *owner);
	void *owner;
};

static void mix_bytes(uint64_t *into, const void *bytes, size_t len)
{
	for (const unsigned char *b = bytes; len > 0; len--, b++)
		*into = (*into ^ *b) * MIX_PRIME;
}

static void mix_file(uint64_t *into, const char *file)
{
	struct stat st = {.st_size = -1};
	if (stat(file, &st) != 0)
		st = (struct stat){.st_size = -1};
	mix_bytes(into, &st.st_dev, sizeof st.st_dev);
	mix_bytes(into, &st.st_ino, sizeof st.st_ino);
	mix_bytes(into, &st.st_size, sizeof st.st_size);
	mix_bytes(into, &st.st_mtim, sizeof st.st_mtim);
}

static uint64_t hash_all_files(const struct conf *c)
{
	uint64_t mixed = MIX_START;
	for (int i = 0; i < c->nlistener; i++) {
		const struct conf_listener *l = &c->listener[i];
		for (int k = 0; k < l->certificate.n; k++) {
			char *ocsp = tls_certificate_ocsp(l->certificate.item[k]);
			mix_file(&mixed, l->certificate.item[k]);
			mix_file(&mixed, l->key.item[k]);
			mix_file(&mixed, ocsp);
			free(ocsp);
		}
	}
	return mixed;
}

static void tell_age(const char *file, const char *what, int64_t in_ms)
{
	log_event(LOG_LEVEL_WARNING, "certificate", "file", file, "reason", what, "days",
		  log_number(in_ms / DAYS(1)), NULL);
}

static void watch_age(struct certificate_watch *w, const char *file, bool tell)
{
	struct tls_span is;
	if (!tls_certificate_span(file, &is))
		return;
	int64_t early_ms = is.begins_ms - date_ms(), left_ms = is.ends_ms - date_ms();
	metric_cell_set(metric_cell(FAMILY_certificate_expiry, file, NULL), left_ms / 1000);
	if (early_ms > 0 && (w->begins_ms == 0 || is.begins_ms < w->begins_ms))
		w->begins_ms = is.begins_ms;
	condition_turn(early_ms > 0  ? CONDITION_certificate_early
		       : left_ms < 0 ? CONDITION_certificate_expired
				     : CONDITION_certificate_expires,
		       early_ms > 0 || left_ms < EXPIRY_NEAR_MS, file, NULL);
	if (tell && early_ms > 0)
		tell_age(file, "it is not valid yet", early_ms);
	else if (tell && left_ms < EXPIRY_NEAR_MS)
		tell_age(file, left_ms < 0 ? "it has expired" : "it expires soon", left_ms);
}

static void watch_ages(struct certificate_watch *w)
{
	int64_t now_ms = date_ms();
	bool tell = w->told_ms == 0 || now_ms >= w->told_ms + DAYS(1) || now_ms < w->told_ms;
	if (tell)
		w->told_ms = now_ms;
	w->begins_ms = 0;
	for (int i = 0; i < w->conf->nlistener; i++) {
		const struct conf_list *l = &w->conf->listener[i].certificate;
		for (int k = 0; k < l->n; k++)
			watch_age(w, l->item[k], tell);
	}
}

static void forget_age(const char *file)
{
	metric_cell_set(metric_cell(FAMILY_certificate_expiry, file, NULL), METRIC_GONE);
	condition_clear(CONDITION_certificate_expires, file);
}

/* Those that the last configuration had, and this one may not have. */
static void forget_ages(const struct conf *c)
{
	condition_clear_all(CONDITION_certificate_kept);
	for (int i = 0; c && i < c->nlistener; i++)
		for (int k = 0; k < c->listener[i].certificate.n; k++)
			forget_age(c->listener[i].certificate.item[k]);
}

static void forget_used(struct certificate_watch *w)
{
	conf_list_free(&w->used_file);
	mem_free(&w->used_span);
}

static void note_used(struct certificate_watch *w, const char *file)
{
	struct tls_span is = {0};
	if (!tls_certificate_span(file, &is))
		is = (struct tls_span){0};
	conf_list_add(&w->used_file, file);
	w->used_span = mem_realloc(w->used_span, (size_t)w->used_file.n * sizeof *w->used_span);
	w->used_span[w->used_file.n - 1] = is;
}

void certificate_watch_used(struct certificate_watch *w)
{
	forget_used(w);
	for (int i = 0; i < w->conf->nlistener; i++)
		for (int k = 0; k < w->conf->listener[i].certificate.n; k++)
			note_used(w, w->conf->listener[i].certificate.item[k]);
}

static bool is_valid_at(const struct tls_span *is, int64_t wall_ms)
{
	return is->begins_ms <= wall_ms && is->ends_ms > wall_ms;
}

/* One that has grown old where it lies, or comes too early, takes nobody's place. NULL: it does not. */
static const char *replaces_good(const struct certificate_watch *w, const char *file)
{
	struct tls_span is;
	int64_t now_ms = date_ms();
	if (!tls_certificate_span(file, &is) || is_valid_at(&is, now_ms))
		return NULL;
	for (int i = 0; i < w->used_file.n; i++)
		if (strcmp(w->used_file.item[i], file) == 0 &&
		    is_valid_at(&w->used_span[i], now_ms))
			return is.begins_ms > now_ms ? "is not valid yet, and the one in use is"
						     : "has expired, and the one in use has not";
	return NULL;
}

bool certificate_watch_good(const struct certificate_watch *w, const struct conf *conf,
			    struct buf *says)
{
	for (int i = 0; i < conf->nlistener; i++) {
		const struct conf_list *l = &conf->listener[i].certificate;
		for (int k = 0; k < l->n; k++) {
			const char *why = replaces_good(w, l->item[k]);
			if (!why)
				continue;
			buf_printf(says, "%s %s: a restart would use it", l->item[k], why);
			return false;
		}
	}
	return true;
}

static void look_at_files(void *owner)
{
	struct certificate_watch *w = owner;
	assert(w->conf);
	uint64_t before = w->seen;
	bool begins = w->begins_ms > 0 && date_ms() >= w->begins_ms;
	loop_timer_in(w->loop, &w->look, LOOK_MS);
	w->seen = hash_all_files(w->conf);
	if ((w->seen != w->used || begins) && w->seen == before) {
		w->used = w->seen;
		w->changed(w->owner);
	}
	watch_ages(w);
}

struct certificate_watch *certificate_watch_new(struct loop *loop, void (*changed)(void *owner),
						void *owner)
{
	struct certificate_watch *w = mem_zalloc(sizeof *w);
	w->loop = loop;
	w->changed = changed;
	w->owner = owner;
	timer_init(&w->look, look_at_files, w);
	return w;
}

void certificate_watch_free(struct certificate_watch **wp)
{
	struct certificate_watch *w = *wp;
	if (!w)
		return;
	timer_stop(&w->loop->timers, &w->look);
	forget_used(w);
	conf_unref(w->conf);
	free(w);
	*wp = NULL;
}

void certificate_watch_start(struct certificate_watch *w, struct conf *conf)
{
	forget_ages(w->conf);
	conf_unref(w->conf);
	w->conf = conf_ref(conf);
	w->used = w->seen = hash_all_files(conf);
	certificate_watch_used(w);
	watch_ages(w);
	if (!timer_active(&w->look))
		loop_timer_in(w->loop, &w->look, LOOK_MS);
}
