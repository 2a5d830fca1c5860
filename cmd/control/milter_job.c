/* SPDX-License-Identifier: ISC */
#include "cmd/control/milter_job.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/text/milter_print.h"
#include "smtpd/milter/milter_probe.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct tried {
	struct milter_job *job;
	struct milter_probe *probe; /* under way, or NULL */
	int row;
};

struct milter_job {
	struct request *request;
	struct conf *conf; /* a reference */
	struct milter_row *row;
	struct tried *tried; /* of each row */
	int n, waiting;
	int64_t began_us;
};

static void job_free(struct milter_job *j)
{
	for (int i = 0; i < j->n; i++) {
		milter_probe_end(&j->tried[i].probe);
		milter_health_fini(&j->row[i].health);
		free(j->row[i].why);
	}
	free(j->row);
	free(j->tried);
	conf_unref(j->conf);
	free(j);
}

static void on_client_gone(struct request *r)
{
	job_free(r->job);
}

static void print_rows(const struct milter_job *j, const char *how, struct buf *to)
{
	if (strcmp(how, "list") == 0)
		milter_print_list(to, j->row, j->n);
	for (int i = 0; strcmp(how, "show") == 0 && i < j->n; i++)
		milter_print_full(to, &j->row[i], date_ms());
	for (int i = 0; strcmp(how, "--json") == 0 && i < j->n; i++)
		milter_print_json(to, &j->row[i]);
}

static void answer_client(struct milter_job *j)
{
	struct request *r = j->request;
	struct buf out = {0};
	for (int i = 0; i < j->n; i++)
		milter_health_take(j->row[i].filter->title, &j->row[i].health);
	print_rows(j, r->argv[1], &out);
	control_say(r, buf_data(&out), buf_len(&out));
	buf_fini(&out);
	job_free(j);
	control_finish(r, STATUS_DONE);
}

static void on_tried(void *owner, const char *why)
{
	struct tried *t = owner;
	struct milter_job *j = t->job;
	struct milter_row *row = &j->row[t->row];
	assert(t->probe);
	row->took_us = clock_steady_us() - j->began_us;
	row->why = why ? mem_strdup(why) : NULL;
	milter_probe_end(&t->probe);
	assert(j->waiting > 0);
	if (--j->waiting == 0)
		answer_client(j);
}

static void add_row(struct milter_job *j, const struct conf_milter *m)
{
	j->row[j->n] = (struct milter_row){.conf = j->conf, .filter = m};
	j->tried[j->n] = (struct tried){.job = j, .row = j->n};
	j->n++;
}

static void refuse_request(struct milter_job *j, const char *name)
{
	struct request *r = j->request;
	job_free(j);
	if (name)
		control_complain(r, "sluice: %s: there is no such filter\n", name);
	else
		control_complain(r, "sluice: there are no filters: see milter in sluice.conf(5)\n");
	control_finish(r, STATUS_REFUSED);
}

void milter_job_start(struct request *r, struct loop *loop, struct conf *conf)
{
	struct milter_job *j = mem_zalloc(sizeof *j);
	const char *name = r->argc > 2 ? r->argv[2] : NULL;
	j->request = r;
	j->conf = conf_ref(conf);
	j->row = mem_zalloc(((size_t)conf->nmilter + 1) * sizeof *j->row);
	j->tried = mem_zalloc(((size_t)conf->nmilter + 1) * sizeof *j->tried);
	for (int i = 0; i < conf->nmilter; i++)
		if (!name || strcmp(name, conf->milter[i].title) == 0)
			add_row(j, &conf->milter[i]);
	if (j->n == 0 || r->argc < 2) {
		refuse_request(j, name);
		return;
	}
	r->job = j;
	r->gone = on_client_gone;
	j->began_us = clock_steady_us();
	j->waiting = j->n;
	for (int i = 0; i < j->n; i++)
		j->tried[i].probe =
			milter_probe_begin(loop, j->row[i].filter, on_tried, &j->tried[i]);
}
