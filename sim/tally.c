/* SPDX-License-Identifier: ISC */
#include "sim/tally.h"

#include "base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FAULTS_TOLD = 20 };

static const struct {
	enum verdict_stage stage;
	int code;
	const char *dsn, *text;
} causes[] = {
#define CAUSE(name, stage, code, dsn, text) {VERDICT_AT_##stage, code, dsn, text},
	CAUSES(CAUSE)
#undef CAUSE
};

const char *const tally_by_recipients[TALLY_CLASSES] = {"1", "2 to 10", "11 to 100", "101 to 1000",
							"above 1000"};
const char *const tally_by_bytes[TALLY_CLASSES] = {"up to 4 KB", "to 32 KB", "to 256 KB", "to 2 MB",
						   "above 2 MB"};

const char *cause_text(enum cause cause)
{
	assert(cause < sizeof causes / sizeof causes[0]);
	return causes[cause].text;
}

/* A relay that can't be found has our text behind words of qmgr's. */
enum cause cause_of(const struct verdict *v)
{
	for (int i = 0; i < CAUSE_OTHER; i++)
		if (strstr(v->text, causes[i].text))
			return (enum cause)i;
	return CAUSE_OTHER;
}

struct verdict *cause_verdict(enum cause cause, enum verdict_class class, const char *host)
{
	assert(cause < sizeof causes / sizeof causes[0]);
	return verdict_answering(causes[cause].stage, class, causes[cause].code, causes[cause].dsn,
				 host, causes[cause].text);
}

void numbers_add(struct numbers *l, int64_t value)
{
	l->value = mem_room(l->value, (size_t)l->n, sizeof *l->value);
	l->value[l->n++] = value;
}

double numbers_mean(const struct numbers *l)
{
	double sum = 0;
	for (int64_t i = 0; i < l->n; i++)
		sum += (double)l->value[i];
	return l->n ? sum / (double)l->n : 0;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

int64_t numbers_quantile(struct numbers *l, double part)
{
	if (l->n == 0)
		return 0;
	qsort(l->value, (size_t)l->n, sizeof *l->value, by_value);
	int64_t i = (int64_t)ceil(part * (double)l->n) - 1;
	assert(i < l->n);
	return l->value[i < 0 ? 0 : i];
}

struct tally *tally_new(void)
{
	return mem_zalloc(sizeof(struct tally));
}

void tally_free(struct tally **tp)
{
	struct tally *t = mem_take(tp);
	if (!t)
		return;
	tally_providers_free(t);
	tally_sites_free(t);
	tally_flows_free(t);
	for (int i = 0; i < TALLY_CLASSES; i++) {
		free(t->by_recipients[i].value);
		free(t->by_bytes[i].value);
	}
	free(t->sure.value);
	free(t->sent_at.value);
	free(t->first.value);
	free(t->first_own.value);
	free(t->nodes.host);
	buf_fini(&t->faults);
	free(t);
}

void tally_wait(struct tally *t, uint32_t nrcpt, uint64_t size, int64_t ms)
{
	static const uint32_t most[] = {1, 10, 100, 1000};
	static const uint64_t bytes[] = {4 << 10, 32 << 10, 256 << 10, 2 << 20};
	int i = 0, j = 0;
	while (i < TALLY_CLASSES - 1 && nrcpt > most[i])
		i++;
	while (j < TALLY_CLASSES - 1 && size > bytes[j])
		j++;
	numbers_add(&t->by_recipients[i], ms);
	numbers_add(&t->by_bytes[j], ms);
}

void tally_fault(struct tally *t, const char *fmt, ...)
{
	if (t->nfault++ >= FAULTS_TOLD)
		return;
	va_list args;
	va_start(args, fmt);
	buf_vprintf(&t->faults, fmt, args);
	va_end(args);
	buf_puts(&t->faults, "\n");
}

double tally_deferred_percent(const struct tally *t)
{
	return t->recipients ? 100.0 * (double)t->deferred / (double)t->recipients : 0;
}
