/* SPDX-License-Identifier: ISC */
/* Counts of one site; and which site the mail of a domain goes to. */
#include "sim/tally.h"

#include "base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct tally_domain {
	struct tally_site *site;
	UT_hash_handle hh;
	char name[];
};

static void free_domains(struct tally *t)
{
	hash_each (struct tally_domain, d, t->domains) {
		HASH_DEL(t->domains, d);
		free(d);
	}
}

void tally_sites_free(struct tally *t)
{
	free_domains(t);
	hash_each (struct tally_site, s, t->sites) {
		HASH_DEL(t->sites, s);
		free(s->waits.value);
		free(s->sample);
		free(s->windows.value);
		free(s->key);
		free(s);
	}
}

void tally_domain(struct tally *t, const char *domain, struct tally_site *site)
{
	struct tally_domain *d;
	HASH_FIND_STR(t->domains, domain, d);
	if (!d) {
		size_t size = strlen(domain) + 1;
		d = mem_zalloc(sizeof *d + size);
		memcpy(d->name, domain, size);
		HASH_ADD_KEYPTR(hh, t->domains, d->name, size - 1, d);
	}
	d->site = site;
}

struct tally_site *tally_site_of(struct tally *t, const char *domain)
{
	struct tally_domain *d;
	HASH_FIND_STR(t->domains, domain, d);
	return d ? d->site : NULL;
}

struct tally_site *tally_site(struct tally *t, const char *key)
{
	struct tally_site *s;
	HASH_FIND_STR(t->sites, key, s);
	if (s)
		return s;
	s = mem_zalloc(sizeof *s);
	s->key = mem_strdup(key);
	s->sum.at_ms = s->slack_window = s->window = -1;
	HASH_ADD_KEYPTR(hh, t->sites, s->key, strlen(s->key), s);
	return s;
}

void tally_window(struct tally *t, const char *key, int window)
{
	struct tally_site *s = tally_site(t, key);
	if (s->feedbacks == 0 || window < s->window_least)
		s->window_least = window;
	if (window > s->window_most)
		s->window_most = window;
	s->feedbacks++;
	s->window_sum += window;
	s->window_squares += (double)window * window;
}

/* One that was whole, and in which nothing but the rate was in the way. */
static void end_window(struct tally_site *s)
{
	if (s->window >= 0 && s->slack_window < s->window)
		numbers_add(&s->windows, s->in_window);
}

static void count_window(struct tally_site *s, int64_t now_us)
{
	assert(now_us / TALLY_WINDOW_US >= s->window);
	int64_t window = now_us / TALLY_WINDOW_US;
	if (window != s->window) {
		end_window(s);
		s->window = window;
		s->in_window = 0;
	}
	s->in_window++;
}

void tally_end_windows(struct tally *t)
{
	for (struct tally_site *s = t->sites; s; s = s->hh.next)
		if ((s->window + 1) * TALLY_WINDOW_US <= t->ended_ms * 1000)
			end_window(s);
}

void tally_begun(struct tally_site *s, int64_t now_us)
{
	if (s->rate > 0)
		count_window(s, now_us);
	int64_t gap_us = now_us - s->last_begun_us;
	if (s->begun == 0)
		s->first_begun_us = now_us;
	else if (s->begun == 1 || gap_us < s->gap_least_us)
		s->gap_least_us = gap_us;
	s->begun++;
	s->last_begun_us = now_us;
}

static void note_bound(struct tally_site *s, const struct sample *sample)
{
	assert(sample->bound < CONSTRAINT_COUNT);
	if (sample->bound == CONSTRAINT_IDLE)
		return;
	s->bound[sample->bound]++;
	s->nbound++;
}

static void note_most(struct tally_site *s, const struct sample *sample)
{
	if (sample->busy > s->busy_most)
		s->busy_most = sample->busy;
	if (sample->connections > s->connections_most)
		s->connections_most = sample->connections;
	if (sample->waiting > s->waiting_most)
		s->waiting_most = sample->waiting;
	if (sample->busy > 0 || sample->waiting > 0) {
		s->samples++;
		s->busy_sum += sample->busy;
	}
}

static void add_sample(struct tally *t, const char *key, const struct sample *sample)
{
	struct tally_site *s = tally_site(t, key);
	note_most(s, sample);
	note_bound(s, sample);
	if (t->sample_ms > 0 && sample->at_ms % t->sample_ms != 0)
		return;
	s->sample = mem_room(s->sample, (size_t)s->nsample, sizeof *s->sample);
	s->sample[s->nsample++] = *sample;
}

void tally_add(struct tally *t, const char *key, const struct sample *sample)
{
	struct sample *sum = &tally_site(t, key)->sum;
	if (sum->at_ms != sample->at_ms)
		*sum = (struct sample){.at_ms = sample->at_ms, .bound = CONSTRAINT_IDLE};
	sum->window += sample->window;
	sum->busy += sample->busy;
	sum->connections += sample->connections;
	sum->waiting += sample->waiting;
	sum->shut |= sample->shut;
	sum->pace += sample->pace;
	if (sum->bound == CONSTRAINT_IDLE)
		sum->bound = sample->bound;
}

void tally_added(struct tally *t, int64_t at_ms)
{
	for (struct tally_site *s = t->sites; s; s = s->hh.next) {
		if (s->sum.waiting == 0 || s->sum.at_ms != at_ms)
			s->slack_window = at_ms * 1000 / TALLY_WINDOW_US;
		if (s->sum.at_ms == at_ms)
			add_sample(t, s->key, &s->sum);
	}
}

static int64_t thin_samples(struct sample *sample, int64_t n, int64_t each_ms)
{
	int64_t kept = 0;
	for (int64_t i = 0; i < n; i++)
		if (sample[i].at_ms % each_ms == 0)
			sample[kept++] = sample[i];
	return kept;
}

void tally_thin(struct tally *t)
{
	t->sample_ms *= 2;
	for (struct tally_site *s = t->sites; s; s = s->hh.next)
		s->nsample = thin_samples(s->sample, s->nsample, t->sample_ms);
	for (struct tally_provider *p = t->providers; p; p = p->hh.next)
		p->nsample = thin_samples(p->sample, p->nsample, t->sample_ms);
}

const struct tally_site *tally_largest(const struct tally *t)
{
	const struct tally_site *best = NULL;
	for (const struct tally_site *s = t->sites; s; s = s->hh.next)
		if (!best || s->feedbacks > best->feedbacks)
			best = s;
	return best;
}

double tally_window_mean(const struct tally_site *s)
{
	return s->feedbacks ? s->window_sum / (double)s->feedbacks : 0;
}

double tally_window_deviation(const struct tally_site *s)
{
	double mean = tally_window_mean(s);
	double square = s->feedbacks ? s->window_squares / (double)s->feedbacks - mean * mean : 0;
	return square > 0 ? sqrt(square) : 0;
}

double tally_busy_mean(const struct tally_site *s)
{
	return s->samples ? s->busy_sum / (double)s->samples : 0;
}

double tally_rate(const struct tally_site *s)
{
	int64_t us = s->last_begun_us - s->first_begun_us;
	return us > 0 ? 1e6 * (double)(s->begun - 1) / (double)us : 0;
}

double tally_bound_part(const struct tally_site *s, enum constraint c)
{
	assert(c < CONSTRAINT_COUNT);
	return s->nbound ? (double)s->bound[c] / (double)s->nbound : 0;
}
