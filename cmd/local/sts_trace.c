/* SPDX-License-Identifier: ISC */
#include "cmd/local/sts_trace.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cmd/watch/kept_file.h"
#include "cmd/text/json_put.h"
#include "cmd/text/moment.h"
#include "dns/dns.h"
#include "sts/sts.h"

enum { WORDS_MAX = 1000 };

struct asking {
	struct loop *loop;
	struct dns *dns;
	struct sts *sts;
	struct sts_ask *answer;
};

static void to_dns(void *context, struct note *note)
{
	struct asking *a = context;
	loop_post(dns_loop(a->dns), note);
}

static void take_answer(void *owner, struct note *note)
{
	struct asking *a = owner;
	a->answer = (struct sts_ask *)note;
	ev_break(a->loop->ev, EVBREAK_ALL);
}

/* Whoever may not read the queue's folder does without. */
static void recall_policies(struct asking *a, const struct conf *conf)
{
	struct buf text = {0};
	kept_file_look(&kept_sts, conf->spool, &text);
	sts_recall(a->sts, buf_cstr(&text));
	buf_fini(&text);
}

struct sts_ask *sts_trace(struct conf *conf, const char *domain)
{
	struct asking a = {.dns = dns_new(conf)};
	a.loop = loop_new("main", take_answer, NULL, &a);
	a.sts = sts_new(conf, &(struct sts_edges){.to_dns = to_dns, .context = &a});
	struct sts_ask *question = sts_ask_new(domain, a.loop, &a);
	question->look = true;
	recall_policies(&a, conf);
	log_set_level(LOG_LEVEL_ERROR); /* what there is to say is in the answer */
	dns_start(a.dns);
	sts_start(a.sts);
	loop_post(sts_loop(a.sts), &question->note);
	ev_run(a.loop->ev, 0);
	sts_stop(a.sts);
	dns_stop(a.dns);
	sts_free(&a.sts);
	dns_free(&a.dns);
	loop_free(&a.loop);
	return a.answer;
}

static const char *sentence_of(const struct sts_ask *a)
{
	static const char *const sentences[] = {
#define X(outcome, word, sentence) [STS_##outcome] = sentence,
		STS_OUTCOMES(X)
#undef X
	};
	return *sentences[a->outcome] ? sentences[a->outcome] : NULL;
}

void sts_trace_print(struct buf *to, const struct sts_ask *a)
{
	const struct sts_policy *p = a->policy;
	buf_printf(to, "  mta-sts  %s", p ? sts_mode_word(p->mode) : "none");
	if (p) {
		buf_printf(to, ", id %s\n    fetched ", a->id);
		moment_put(to, a->fetched_ms, false);
		buf_puts(to, ", ends ");
		moment_put_due(to, a->ends_ms, clock_wall_ms(), false);
	}
	buf_printf(to, "\n    record %s: %s", *a->record ? a->record : "none",
		   sentence_of(a) ? sentence_of(a) : sts_outcome_word(a->outcome));
	if (a->why) {
		buf_puts(to, ": ");
		utf8_put_most(to, a->why, WORDS_MAX); /* whoever was asked may have chosen them */
	}
	buf_puts(to, "\n");
	for (int i = 0; p && i < p->nmx; i++)
		buf_printf(to, "    mx %s\n", p->mx[i]);
}

void sts_trace_json(struct buf *to, const struct sts_ask *a)
{
	const struct sts_policy *p = a->policy;
	buf_puts(to, "\"mta_sts\":{");
	json_put_text(to, "mode", p ? sts_mode_word(p->mode) : NULL);
	json_put_text(to, "id", p ? a->id : NULL);
	if (p) {
		moment_put_json(to, "fetched", a->fetched_ms);
		moment_put_json(to, "ends", a->ends_ms);
	}
	json_put_text(to, "record", *a->record ? a->record : NULL);
	json_put_text(to, "result", sts_outcome_word(a->outcome));
	json_put_text(to, "reason", a->why);
	buf_puts(to, "\"mx\":[");
	for (int i = 0; p && i < p->nmx; i++) {
		buf_puts(to, i ? "," : "");
		log_json_string(to, p->mx[i]);
	}
	buf_puts(to, "]},");
}
