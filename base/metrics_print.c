/* SPDX-License-Identifier: ISC */
#include "base/metrics_print.h"

#include "base/log.h"
#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Units of the values that were put in, to one of the unit in the name. */
enum unit { NUMBERS = 1, MICROSECONDS = 1000000 };

enum { NUMBER_TEXT = 40 };

static void put_head(const struct metrics_print *p, const char *name, int len, const char *sentence,
		     const char *type)
{
	if (p->form != METRICS_PROMETHEUS)
		return;
	buf_printf(p->to, "# HELP sluice_%.*s %s.\n", len, name, sentence);
	buf_printf(p->to, "# TYPE sluice_%.*s %s\n", len, name, type);
}

static void put_value(const struct metrics_print *p, const char *name, const char *labels,
		      const char *value)
{
	struct buf full = {0};
	buf_printf(&full, *labels ? "%s{%s}" : "%s", name, labels);
	if (p->form == METRICS_JSON) {
		buf_puts(p->to, ",");
		log_json_string(p->to, buf_cstr(&full));
		buf_printf(p->to, ":%s", value);
	} else {
		buf_printf(p->to, "%s%s %s\n", p->form == METRICS_PROMETHEUS ? "sluice_" : "",
			   buf_cstr(&full), value);
	}
	buf_fini(&full);
}

static bool is_counter(const char *name, size_t len)
{
	return len > 6 && strncmp(name + len - 6, "_total", 6) == 0;
}

void metrics_print_number(const struct metrics_print *p, const char *name, const char *labels,
			  int64_t n)
{
	char text[NUMBER_TEXT];
	if (p->brief && n == 0 && *labels && is_counter(name, strlen(name)))
		return;
	snprintf(text, sizeof text, "%" PRId64, n);
	put_value(p, name, labels, text);
}

static const char *type_of(const char *name, size_t len)
{
	return is_counter(name, len) ? "counter" : "gauge";
}

void metrics_print_family(const struct metrics_print *p, const char *name, const char *sentence)
{
	put_head(p, name, (int)strlen(name), sentence, type_of(name, strlen(name)));
}

void metrics_label(struct buf *to, const char *name, const char *value)
{
	struct buf clean = {0};
	utf8_put(&clean, value);
	buf_printf(to, "%s%s=\"", buf_len(to) ? "," : "", name);
	for (const char *c = buf_cstr(&clean); *c; c++) {
		if (*c == '\\' || *c == '"')
			buf_puts(to, "\\");
		buf_append(to, c, 1);
	}
	buf_puts(to, "\"");
	buf_fini(&clean);
}

void metrics_print_labelled(const struct metrics_print *p, const char *name, const char *label,
			    const char *value, int64_t n)
{
	struct buf labels = {0};
	metrics_label(&labels, label, value);
	metrics_print_number(p, name, buf_cstr(&labels), n);
	buf_fini(&labels);
}

static void put_rows(const struct metrics_print *p)
{
	static const struct {
		const char *name, *sentence;
	} rows[] = {
#define M(name, text, sentence) {text, sentence},
		METRICS(M)
#undef M
	};
	for (int m = 0; m < METRIC_COUNT; m++) {
		char name[80], labels[80];
		if (!rows[m].name)
			continue;
		size_t len = strcspn(rows[m].name, "{"), rest = strlen(rows[m].name) - len;
		assert(len < sizeof name && rest < sizeof labels && rest != 1);
		if (*rows[m].sentence)
			put_head(p, rows[m].name, (int)len, rows[m].sentence,
				 type_of(rows[m].name, len));
		snprintf(name, sizeof name, "%.*s", (int)len, rows[m].name);
		snprintf(labels, sizeof labels, "%.*s", rest > 2 ? (int)rest - 2 : 0,
			 rows[m].name + len + (rest > 0));
		metrics_print_number(p, name, labels, metrics_sum((enum metric)m));
	}
}

static const struct histogram_row {
	const char *name, *label;
	enum unit unit;
	const char *sentence;
} histograms[] = {
#define H(name, family, label, unit, bounds, sentence) {family, label, unit, sentence},
	HISTOGRAMS(H)
#undef H
};

static const char *in_unit(int64_t value, enum unit unit, char text[NUMBER_TEXT])
{
	if (value % unit == 0)
		snprintf(text, NUMBER_TEXT, "%" PRId64, value / unit);
	else
		snprintf(text, NUMBER_TEXT, "%.15g", (double)value / unit);
	return text;
}

/* Threads have always had turns: whoever looks at the mail is not told of them. */
static bool is_left_out(const struct metrics_print *p, enum metric_histogram h, int64_t count)
{
	return p->brief && (count == 0 || strcmp(histograms[h].name, "loop_turn_seconds") == 0);
}

static void put_histogram(const struct metrics_print *p, enum metric_histogram h)
{
	const struct histogram_row *row = &histograms[h];
	struct histogram_sum sum;
	char name[80], labels[160], text[NUMBER_TEXT];
	int64_t below = 0;
	metrics_histogram(h, &sum);
	if (is_left_out(p, h, sum.count))
		return;
	if (*row->sentence)
		put_head(p, row->name, (int)strlen(row->name), row->sentence, "histogram");
	snprintf(name, sizeof name, "%s_bucket", row->name);
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		bool last = i == HISTOGRAM_BUCKETS - 1;
		below += sum.bucket[i];
		snprintf(labels, sizeof labels, "%s%sle=\"%s\"", row->label, *row->label ? "," : "",
			 last ? "+Inf" : in_unit(metrics_bounds(h)[i], row->unit, text));
		metrics_print_number(p, name, labels, below);
	}
	assert(below == sum.count);
	snprintf(name, sizeof name, "%s_sum", row->name);
	put_value(p, name, row->label, in_unit(sum.sum, row->unit, text));
	snprintf(name, sizeof name, "%s_count", row->name);
	metrics_print_number(p, name, row->label, sum.count);
}

static void put_cells(const struct metrics_print *p, enum metric_family f)
{
	static const struct {
		const char *name, *label[2], *sentence;
	} families[] = {
#define F(name, family, first, second, sentence) {family, {first, second}, sentence},
		FAMILIES(F)
#undef F
	};
	metrics_print_family(p, families[f].name, families[f].sentence);
	for (const struct metric_cell *c = NULL; (c = metric_cell_next(f, c));) {
		if (metric_cell_value(c) == METRIC_GONE)
			continue;
		/* All names are there for alarms; a reader is told of what is so. */
		if (p->brief && f == FAMILY_conditions && metric_cell_value(c) == 0)
			continue;
		struct buf labels = {0};
		for (int i = 0; i < 2 && families[f].label[i]; i++)
			metrics_label(&labels, families[f].label[i], metric_cell_label(c, i));
		metrics_print_number(p, families[f].name, buf_cstr(&labels), metric_cell_value(c));
		buf_fini(&labels);
	}
}

void metrics_print_all(const struct metrics_print *p)
{
	put_rows(p);
	for (int f = 0; f < FAMILY_COUNT; f++)
		put_cells(p, (enum metric_family)f);
	for (int h = 0; h < HISTOGRAM_COUNT; h++)
		put_histogram(p, (enum metric_histogram)h);
}
