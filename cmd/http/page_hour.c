/* SPDX-License-Identifier: ISC */
#include "cmd/http/page_hour.h"

#include "base/metrics.h"
#include "cmd/text/json_put.h"

#include <inttypes.h>

void page_point_take(struct page_point *p, int64_t now_ms)
{
	p->at_ms = now_ms;
	p->n[PAGE_received] = metrics_sum(METRIC_received);
	p->n[PAGE_rejected] = metric_cells_sum(FAMILY_rejects, NULL);
	p->n[PAGE_sent] = metric_cells_sum(FAMILY_deliveries, "sent");
	p->n[PAGE_deferred] = metric_cells_sum(FAMILY_deliveries, "deferred");
	p->n[PAGE_bounced] = metric_cells_sum(FAMILY_deliveries, "bounced");
}

void page_hour_take(struct page_hour *h, int64_t now_ms)
{
	page_point_take(&h->point[h->taken++ % PAGE_HOUR_POINTS], now_ms);
}

static void put_point(struct buf *to, const struct page_point *p)
{
	buf_printf(to, "[%" PRId64, p->at_ms);
	for (int i = 0; i < PAGE_COUNT; i++)
		buf_printf(to, ",%" PRId64, p->n[i]);
	buf_puts(to, "],");
}

void page_hour_print(struct buf *to, const struct page_hour *h)
{
	unsigned first = h->taken < PAGE_HOUR_POINTS ? 0 : h->taken - PAGE_HOUR_POINTS;
	buf_puts(to, "{\"counts\":["
#define X(name) "\"" #name "\","
		 PAGE_COUNTS(X)
#undef X
	);
	json_put_end(to, ']');
	buf_puts(to, "\"points\":[");
	for (unsigned i = first; i < h->taken; i++)
		put_point(to, &h->point[i % PAGE_HOUR_POINTS]);
	json_put_end(to, ']');
	json_put_last(to, '}');
}
