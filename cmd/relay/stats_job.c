/* SPDX-License-Identifier: ISC */
#include "cmd/relay/stats_job.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/relay/server.h"
#include "cmd/text/stats_print.h"

#include <stdlib.h>
#include <string.h>

struct stats_job {
	struct glancer glancer; /* first: it comes back by this address */
	struct server *server;
	struct request *request;
	enum metrics_form form;
	bool all;
};

static void answer_client(struct glancer *g, const struct snapshot *snapshot)
{
	struct stats_job *j = (struct stats_job *)g;
	struct request *r = j->request;
	struct stats_view view = {.brief = j->form == METRICS_LINES && !j->all,
				  .accepting = spool_accepting(j->server->spool),
				  .uptime_ms = clock_steady_ms() - j->server->started_ms,
				  .snapshot = snapshot,
				  .top = j->server->top};
	struct buf out = {0};
	stats_print(&out, j->form, &view);
	control_say(r, buf_data(&out), buf_len(&out));
	buf_fini(&out);
	free(j);
	control_finish(r, STATUS_DONE);
}

static void on_client_gone(struct request *r)
{
	struct stats_job *j = r->job;
	glance_leave(&j->glancer);
	free(j);
}

void stats_job_start(struct server *s, struct request *r)
{
	struct stats_job *j = mem_zalloc(sizeof *j);
	bool json = r->argc > 1 && strcmp(r->argv[1], "--json") == 0;
	j->all = r->argc > 1 && strcmp(r->argv[1], "--all") == 0;
	j->glancer.look = answer_client;
	j->server = s;
	j->request = r;
	j->form = json ? METRICS_JSON : METRICS_LINES;
	r->job = j;
	r->gone = on_client_gone;
	glance_at(&s->glance, &j->glancer);
}
