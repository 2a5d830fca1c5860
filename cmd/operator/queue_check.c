/* SPDX-License-Identifier: ISC */
#include "cmd/operator/queue_check.h"

#include "base/date.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/confine/privileges.h"
#include "cmd/text/moment.h"
#include "cmd/watch/clock_watch.h"
#include "spool/repair.h"

#include <inttypes.h>
#include <stdio.h>

static void print_buf(const struct buf *b)
{
	fwrite(buf_data(b), 1, buf_len(b), stdout);
}

static void print_finding(void *owner, const struct check_finding *f)
{
	char id[IDENT_TEXT];
	struct buf b = {0};
	(void)owner;
	buf_printf(&b, "%s%s/", f->left ? "left: " : "", f->folder);
	utf8_put(&b, f->file);
	if (f->bytes > 0)
		buf_printf(&b, ":%" PRIu64, f->offset);
	buf_printf(&b, ": %s", f->reason);
	if (f->bytes > 0)
		buf_printf(&b, ", %" PRIu64 " bytes", f->bytes);
	if (f->id)
		buf_printf(&b, ", message %s", ident_text(f->id, id));
	buf_puts(&b, "\n");
	print_buf(&b);
	buf_fini(&b);
}

static void print_finding_json(void *owner, const struct check_finding *f)
{
	char id[IDENT_TEXT];
	struct buf b = {0};
	(void)owner;
	buf_printf(&b, "{\"fault\":\"%s\",\"folder\":\"%s\",\"file\":", check_fault_name(f->fault),
		   f->folder);
	log_json_string(&b, f->file);
	if (f->bytes > 0)
		buf_printf(&b, ",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64, f->offset, f->bytes);
	else
		buf_puts(&b, ",\"offset\":null,\"bytes\":null");
	if (f->id)
		buf_printf(&b, ",\"id\":\"%s\"", ident_text(f->id, id));
	else
		buf_puts(&b, ",\"id\":null");
	buf_printf(&b, ",\"reason\":\"%s\",\"left\":%s}\n", f->reason, f->left ? "true" : "false");
	print_buf(&b);
	buf_fini(&b);
}

static const char *plural_ending(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void print_oldest(const struct check_summary *s)
{
	char id[IDENT_TEXT];
	struct buf came = {0};
	if (!s->oldest)
		return;
	moment_put(&came, s->oldest_ms, false);
	printf("oldest: %s, came %s\n", ident_text(s->oldest, id), buf_cstr(&came));
	buf_fini(&came);
}

static void print_summary(const struct check_summary *s)
{
	uint64_t all = 0;
	for (int q = 0; q <= SPOOL_HOLD; q++)
		all += s->messages[q];
	printf("format %d, %" PRIu64 " segment%s, %" PRIu64 " bytes, %" PRIu64 " needed\n",
	       s->format, s->segments, plural_ending(s->segments), s->bytes, s->needed);
	printf("%" PRIu64 " message%s:", all, plural_ending(all));
	for (int q = 0; q <= SPOOL_HOLD; q++)
		printf("%s %" PRIu64 " %s", q ? "," : "", s->messages[q],
		       spool_queue_name((enum spool_queue)q));
	printf("; %" PRIu64 " recipient%s left\n", s->recipients, plural_ending(s->recipients));
	print_oldest(s);
	if (s->repaired)
		printf("%" PRIu64 " fault%s put aside in quarantine/\n", s->repaired,
		       plural_ending(s->repaired));
	printf("%" PRIu64 " fault%s%s\n", s->faults, plural_ending(s->faults),
	       s->repaired ? " left" : "");
}

static void print_summary_json(const struct check_summary *s)
{
	char id[IDENT_TEXT];
	printf("{\"format\":%d,\"segments\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"needed\":%" PRIu64
	       ",\"messages\":{",
	       s->format, s->segments, s->bytes, s->needed);
	for (int q = 0; q <= SPOOL_HOLD; q++)
		printf("%s\"%s\":%" PRIu64, q ? "," : "", spool_queue_name((enum spool_queue)q),
		       s->messages[q]);
	printf("},\"recipients\":%" PRIu64, s->recipients);
	int64_t oldest_ms = s->oldest_ms + date_ahead_ms();
	if (s->oldest)
		printf(",\"oldest\":{\"id\":\"%s\",\"arrived\":%" PRId64 ".%03d}",
		       ident_text(s->oldest, id), oldest_ms / 1000, (int)(oldest_ms % 1000));
	else
		printf(",\"oldest\":null");
	printf(",\"repaired\":%" PRIu64 ",\"faults\":%" PRIu64 "}\n", s->repaired, s->faults);
}

int queue_check(struct conf *conf, const struct queue_args *args)
{
	struct check check = {.found = args->json ? print_finding_json : print_finding};
	struct buf error = {0};
	clock_watch_read(conf->spool);
	privileges_raise_limits();
	bool ok = args->repair ? privileges_become(conf->user, &error) &&
					 spool_repair(conf, &check, &error)
			       : spool_check(conf, &check, &error);
	if (!ok)
		fprintf(stderr, "sluice: %s\n", buf_cstr(&error));
	else if (args->json)
		print_summary_json(&check.summary);
	else
		print_summary(&check.summary);
	log_flush();
	buf_fini(&error);
	return ok && check.summary.faults == 0 ? STATUS_DONE : STATUS_REFUSED;
}
