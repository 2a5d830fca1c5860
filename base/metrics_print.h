/* metrics_print.h - what is counted, as text: for Prometheus, as lines, as one JSON object.
 *
 *	struct metrics_print p = {to, form}
 *	metrics_print_family(&p, name, sentence)     its HELP and TYPE, for Prometheus
 *	metrics_print_number(&p, name, labels, n)   one value of it
 *
 * Names are without the prefix sluice_, which Prometheus' form puts in front. Labels are text that
 * metrics_label() has made: name="value", where the value is escaped, joined by commas.
 *
 * OWNERSHIP  The buffer is the caller's.
 * THREAD     Any.
 * ERRORS     None.
 * SEE        Prometheus text format 0.0.4.
 */
#ifndef BASE_METRICS_PRINT_H
#define BASE_METRICS_PRINT_H

#include "base/buf.h"
#include "base/metrics.h"

#include <stdbool.h>

enum metrics_form {
	METRICS_PROMETHEUS,
	METRICS_LINES, /* NAME VALUE */
	METRICS_JSON,  /* members of an object, each behind a comma */
};

struct metrics_print {
	struct buf *to;
	enum metrics_form form;
	bool brief; /* without histograms, and counters with labels, that nothing was put into, that of turns, and conditions that are not so */
};

void metrics_print_family(const struct metrics_print *, const char *name, const char *sentence);
/* A name that ends in _total is a counter's, any other a gauge's. */

void metrics_print_number(const struct metrics_print *, const char *name, const char *labels,
			  int64_t);
/* labels may be empty. */

void metrics_print_labelled(const struct metrics_print *, const char *name, const char *label,
			    const char *value, int64_t); /* with one label */

void metrics_print_all(const struct metrics_print *);
/* All rows, histograms and cells. */

void metrics_label(struct buf *to, const char *name, const char *value);
/* Append a label; behind another it begins with a comma. */

#endif
