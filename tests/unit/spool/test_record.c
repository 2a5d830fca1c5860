/* SPDX-License-Identifier: ISC */
#include "harness.h"

#include "base/crc32c.h"

#include "spool/payload.h"
#include "spool/record.h"

static const struct content_place place = {.seq = 77, .offset = 123456};

static struct envelope *full_envelope(uint32_t nrcpt)
{
	struct envelope *e = envelope_new();
	e->id = ident_new();
	e->arrived_ms = INT64_C(1700000000123);
	e->due_ms = INT64_C(1700000300456);
	e->sender = mem_strdup("sender+tag@example.org");
	e->envid = mem_strdup("QQ314159");
	e->flow = mem_strdup("newsletter");
	envelope_came_from(e, nrcpt % 2 ? "ann" : NULL, "192.0.2.7");
	e->ret = RET_HDRS;
	e->body = BODY_8BITMIME;
	e->smtputf8 = e->warned = true;
	e->rounds = 7;
	e->size = UINT64_C(5000000000);
	e->summed = true;
	e->tls = ENVELOPE_TLS_REQUIRED;
	e->archive = true;
	e->by = ENVELOPE_BY_RETURN | ENVELOPE_BY_TRACE;
	e->priority = -9;
	e->by_ms = INT64_C(1700000600789);
	e->not_before_ms = nrcpt % 2 ? INT64_C(1700000300456) : 0;
	e->hold_asked = nrcpt % 2 ? 86400 : 0;
	e->hold_for = nrcpt % 2;
	e->sum = 0xfedcba98;
	struct verdict *v = NULL;
	for (uint32_t i = 0; i < nrcpt; i++) {
		char *address = mem_printf("r%u@d%u.example", i, i % 100);
		struct recipient *r = envelope_add(e, address);
		free(address);
		if (i % 7 == 0) {
			verdict_unref(v);
			v = verdict_at((enum verdict_class)(i / 7 % 4), (int)(200 + i % 400),
				       "4.7.1", "mx[192.0.2.1]:25", "as it was said", (int64_t)i);
		}
		r->last = i % 3 ? verdict_ref(v) : NULL;
		r->done = i % 5 == 0;
		r->notify = (uint8_t)(i % 16);
		r->tries = i;
		r->doubts = (uint8_t)(i % (RECIPIENT_DOUBTS_MAX + 1));
		r->orcpt = i % 2 ? mem_strdup("rfc822;x+2By@example") : NULL;
	}
	verdict_unref(v);
	return e;
}

static void same_text(const char *a, const char *b)
{
	if (!a || !b)
		assert_ptr_equal(a, b);
	else
		assert_string_equal(a, b);
}

static void same_recipient(const struct recipient *a, const struct recipient *b)
{
	assert_string_equal(a->address, b->address);
	same_text(a->orcpt, b->orcpt);
	assert_int_equal(a->notify, b->notify);
	assert_int_equal(a->done, b->done);
	assert_int_equal(a->tries, b->tries);
	assert_int_equal(a->doubts, b->doubts);
	assert_int_equal(!a->last, !b->last);
	if (!a->last)
		return;
	assert_int_equal(a->last->class, b->last->class);
	assert_int_equal(a->last->code, b->last->code);
	assert_int_equal(a->last->when_ms, b->last->when_ms);
	assert_string_equal(a->last->dsn, b->last->dsn);
	assert_string_equal(a->last->host, b->last->host);
	assert_string_equal(a->last->text, b->last->text);
}

static void same_envelope(const struct envelope *a, const struct envelope *b)
{
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->arrived_ms, b->arrived_ms);
	assert_int_equal(a->due_ms, b->due_ms);
	assert_string_equal(a->sender, b->sender);
	same_text(a->envid, b->envid);
	same_text(a->flow, b->flow);
	same_text(a->user, b->user);
	same_text(a->client, b->client);
	assert_int_equal(a->ret, b->ret);
	assert_int_equal(a->body, b->body);
	assert_int_equal(a->smtputf8, b->smtputf8);
	assert_int_equal(a->warned, b->warned);
	assert_int_equal(a->rounds, b->rounds);
	assert_int_equal(a->size, b->size);
	assert_int_equal(a->summed, b->summed);
	assert_int_equal(a->tls, b->tls);
	assert_int_equal(a->archive, b->archive);
	assert_int_equal(a->by, b->by);
	assert_int_equal(a->priority, b->priority);
	assert_int_equal(a->by_ms, b->by_ms);
	assert_int_equal(a->not_before_ms, b->not_before_ms);
	assert_int_equal(a->hold_asked, b->hold_asked);
	assert_int_equal(a->hold_for, b->hold_for);
	assert_int_equal(a->sum, b->sum);
	assert_int_equal(a->nrcpt, b->nrcpt);
	for (uint32_t i = 0; i < a->nrcpt; i++)
		same_recipient(&a->rcpt[i], &b->rcpt[i]);
}

static void same_history(const struct envelope *a, const struct envelope *b)
{
	assert_int_equal(a->nhistory, b->nhistory);
	for (uint32_t i = 0; i < a->nhistory; i++) {
		assert_int_equal(a->history[i].round, b->history[i].round);
		assert_int_equal(a->history[i].recipient, b->history[i].recipient);
		assert_int_equal(a->history[i].nrcpt, b->history[i].nrcpt);
		assert_string_equal(a->history[i].verdict->text, b->history[i].verdict->text);
	}
}

static void round_trip(struct envelope *e)
{
	struct buf b;
	buf_init(&b);
	payload_put_envelope(&b, e, &place, 7);
	struct envelope *again = payload_get_envelope(e->id, buf_data(&b), buf_len(&b));
	assert_non_null(again);
	same_envelope(e, again);
	same_history(e, again);
	struct envelope_head is;
	assert_true(payload_get_envelope_head(buf_data(&b), buf_len(&b), &is));
	assert_int_equal(is.content.seq, place.seq);
	assert_int_equal(is.content.offset, place.offset);
	assert_int_equal(is.due_ms, e->due_ms);
	assert_int_equal(is.size, e->size);
	assert_int_equal(is.generation, 7);
	assert_int_equal(is.held, e->held);
	envelope_free(&again);
	envelope_free(&e);
	buf_fini(&b);
}

static void an_envelope_comes_back_with_all_its_fields(void **state)
{
	(void)state;
	round_trip(full_envelope(50));
}

static void an_envelope_comes_back_with_its_history(void **state)
{
	(void)state;
	struct envelope *e = full_envelope(3);
	e->held = true;
	for (uint32_t round = 1; round <= ENVELOPE_HISTORY_MAX + 5; round++) {
		char text[32];
		snprintf(text, sizeof text, "said in round %u", round);
		struct verdict *v = verdict_new(VERDICT_DEFERRED, 451, NULL, "mx", text);
		envelope_add_history(e,
				     &(struct history){.round = round, .nrcpt = 3, .verdict = v});
		verdict_unref(v);
	}
	assert_int_equal(e->nhistory, ENVELOPE_HISTORY_MAX);
	assert_int_equal(e->history[0].round, 1);
	assert_int_equal(e->history[e->nhistory - 1].round, ENVELOPE_HISTORY_MAX + 5);
	round_trip(e);
}

/* What a release wrote that knew no such wish, and what one may write that knows others. */
static void a_wish_that_is_not_known_is_none(void **state)
{
	(void)state;
	struct buf b = {0};
	struct envelope *e = envelope_new();
	e->sender = mem_strdup("a@b.test");
	payload_put_envelope(&b, e, &(struct content_place){0}, 1);
	assert_int_equal(buf_data(&b)[3], 0);
	assert_int_equal(buf_data(&b)[60], 0);
	envelope_free(&e);
	for (int wish = 0; wish < 256; wish++) {
		if (wish & (16 | 32 | 64))
			continue; /* it says that there is an origin, a flow, or a partner */
		buf_data(&b)[3] = (char)wish;
		e = payload_get_envelope(1, buf_data(&b), buf_len(&b));
		assert_non_null(e);
		assert_null(e->flow);
		assert_string_equal(envelope_flow(e), "b.test");
		int tls = wish & 15;
		assert_int_equal(e->tls, tls <= ENVELOPE_TLS_WAIVED ? tls : ENVELOPE_TLS_USUAL);
		assert_int_equal(e->archive, wish >= 128);
		envelope_free(&e);
	}
	buf_fini(&b);
}

static void an_envelope_of_ten_thousand_recipients_comes_back(void **state)
{
	(void)state;
	round_trip(full_envelope(10000));
}

static void a_null_sender_without_recipients_comes_back(void **state)
{
	(void)state;
	struct envelope *e = envelope_new();
	e->sender = mem_strdup("");
	round_trip(e);
}

static void recipients_of_one_transaction_share_their_verdict_on_disk(void **state)
{
	(void)state;
	struct envelope *e = harness_envelope(100);
	struct verdict *v =
		verdict_new(VERDICT_DEFERRED, 450, NULL, "mx", "a text that is long enough");
	struct buf without, with;
	buf_init(&without);
	buf_init(&with);
	payload_put_envelope(&without, e, &place, 7);
	for (uint32_t i = 0; i < e->nrcpt; i++)
		e->rcpt[i].last = verdict_ref(v);
	payload_put_envelope(&with, e, &place, 7);
	assert_true(buf_len(&with) < buf_len(&without) + 100 * 4 + 100);
	buf_fini(&without);
	buf_fini(&with);
	verdict_unref(v);
	envelope_free(&e);
}

static struct spool_delivered *delivery(uint32_t n)
{
	struct spool_delivered *d = mem_zalloc(sizeof *d + n * sizeof d->of[0]);
	d->id = 99;
	d->n = n;
	for (uint32_t i = 0; i < n; i++) {
		d->of[i].recipient = i * 3;
		d->of[i].verdict = verdict_new(i % 2 ? VERDICT_SENT : VERDICT_IN_DOUBT,
					       i % 2 ? 250 : 0, NULL, "mx", "ok");
	}
	return d;
}

static void a_delivery_comes_back(void **state)
{
	(void)state;
	struct spool_delivered *d = delivery(40);
	struct buf b;
	buf_init(&b);
	payload_put_delivery(&b, d, 5);
	uint32_t generation;
	struct spool_delivered *again =
		payload_get_delivery(99, buf_data(&b), buf_len(&b), &generation);
	assert_non_null(again);
	assert_int_equal(generation, 5);
	assert_int_equal(again->n, d->n);
	for (uint32_t i = 0; i < d->n; i++) {
		assert_int_equal(again->of[i].recipient, d->of[i].recipient);
		assert_int_equal(again->of[i].verdict->class, d->of[i].verdict->class);
		assert_string_equal(again->of[i].verdict->dsn, d->of[i].verdict->dsn);
	}
	delivered_free(d);
	delivered_free(again);
	buf_fini(&b);
}

static void who_wants_to_know_of_success_is_not_done_by_it(void **state)
{
	(void)state;
	struct envelope *e = harness_envelope(4);
	e->rcpt[3].notify = NOTIFY_SUCCESS;
	struct spool_delivered *d = delivery(2); /* 0 in doubt, 3 sent */
	delivered_apply(d, e);
	assert_false(e->rcpt[0].done);
	assert_false(e->rcpt[3].done);
	assert_int_equal(e->rcpt[3].last->class, VERDICT_SENT);
	e->rcpt[3].notify = 0;
	delivered_apply(d, e);
	assert_true(e->rcpt[3].done);
	assert_int_equal(e->rcpt[3].tries, 2);
	assert_int_equal(e->rcpt[0].doubts, 2);
	assert_int_equal(e->rcpt[3].doubts, 0);
	d->of[0].recipient = d->of[1].recipient; /* in doubt, and judged at once: one attempt */
	delivered_apply(d, e);
	assert_int_equal(e->rcpt[3].tries, 3);
	delivered_free(d);
	envelope_free(&e);
}

/* A host that confirms deliveries itself has it: nothing is owed, and that is known when it is read again. */
static void what_is_settled_is_done_by_it(void **state)
{
	(void)state;
	struct envelope *e = harness_envelope(4);
	e->rcpt[0].notify = e->rcpt[3].notify = NOTIFY_SUCCESS;
	struct spool_delivered *d = delivery(2);
	verdict_unref(d->of[0].verdict);
	d->of[0].verdict = verdict_ref(d->of[1].verdict); /* 0 and 3 sent, by one transaction, */
	d->of[1].settled = true;			  /* and one of them is settled */
	struct buf b;
	buf_init(&b);
	payload_put_delivery(&b, d, 5);
	uint32_t generation;
	struct spool_delivered *again =
		payload_get_delivery(99, buf_data(&b), buf_len(&b), &generation);
	assert_int_equal(again->n, 2);
	delivered_apply(again, e);
	assert_false(e->rcpt[0].done);
	assert_true(e->rcpt[3].done);
	assert_int_equal(e->rcpt[3].tries, 1);
	delivered_free(d);
	delivered_free(again);
	buf_fini(&b);
	envelope_free(&e);
}

static void who_wants_to_know_where_mail_with_a_time_has_gone_is_not_done_by_it(void **state)
{
	(void)state;
	struct envelope *e = harness_envelope(4);
	struct spool_delivered *d = delivery(2);
	e->by = ENVELOPE_BY_RETURN | ENVELOPE_BY_TRACE;
	delivered_apply(d, e);
	assert_false(e->rcpt[3].done);
	e->by = ENVELOPE_BY_RETURN;
	delivered_apply(d, e);
	assert_true(e->rcpt[3].done);
	delivered_free(d);
	envelope_free(&e);
}

static void a_payload_cut_anywhere_is_refused(void **state)
{
	(void)state;
	struct envelope *e = full_envelope(5);
	struct spool_delivered *d = delivery(5);
	struct buf b, c;
	buf_init(&b);
	buf_init(&c);
	payload_put_envelope(&b, e, &place, 7);
	payload_put_delivery(&c, d, 5);
	for (size_t len = 0; len < buf_len(&b); len++)
		assert_null(payload_get_envelope(1, buf_data(&b), len));
	uint32_t generation;
	for (size_t len = 0; len < buf_len(&c); len++)
		assert_null(payload_get_delivery(1, buf_data(&c), len, &generation));
	buf_append(&b, "x", 1);
	assert_null(payload_get_envelope(1, buf_data(&b), buf_len(&b)));
	buf_fini(&b);
	buf_fini(&c);
	delivered_free(d);
	envelope_free(&e);
}

static void a_payload_with_any_bit_flipped_does_no_harm(void **state)
{
	(void)state;
	struct envelope *e = full_envelope(5);
	struct buf b;
	buf_init(&b);
	payload_put_envelope(&b, e, &place, 7);
	uint32_t generation;
	for (size_t bit = 0; bit < buf_len(&b) * 8; bit++) {
		buf_data(&b)[bit / 8] ^= (char)(1 << bit % 8);
		struct envelope *wrong = payload_get_envelope(1, buf_data(&b), buf_len(&b));
		envelope_free(&wrong);
		struct spool_delivered *d =
			payload_get_delivery(1, buf_data(&b), buf_len(&b), &generation);
		if (d)
			delivered_free(d);
		buf_data(&b)[bit / 8] ^= (char)(1 << bit % 8);
	}
	buf_fini(&b);
	envelope_free(&e);
}

static void a_record_head_with_any_bit_flipped_but_its_flags_is_refused(void **state)
{
	(void)state;
	struct record r = {.type = RECORD_ENVELOPE, .length = 99, .id = 12345, .crc = 777}, got;
	uint8_t head[RECORD_HEAD];
	record_put(head, 42, &r);
	assert_true(record_get(head, 42, &got));
	assert_int_equal(got.type, r.type);
	assert_int_equal(got.length, r.length);
	assert_int_equal(got.id, r.id);
	assert_int_equal(got.crc, r.crc);
	assert_false(record_get(head, 43, &got)); /* of another segment */
	for (int bit = 0; bit < RECORD_HEAD * 8; bit++) {
		head[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(record_get(head, 42, &got), bit / 8 == RECORD_FLAGS_AT);
		head[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void head_comes_back(const struct segment_head *is, int bytes)
{
	struct segment_head got;
	uint8_t head[SEGMENT_HEAD];
	segment_head_put(head, is);
	assert_true(segment_head_get(head, &got));
	assert_int_equal(got.version, is->version);
	assert_int_equal(got.lane, is->lane);
	assert_int_equal(got.seq, is->seq);
	assert_int_equal(got.created, is->created);
	assert_int_equal(got.salt, is->salt);
	assert_int_equal(got.first, is->first);
	assert_int_equal(got.size, is->size);
	for (int bit = 0; bit < bytes * 8; bit++) {
		head[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(segment_head_get(head, &got));
		head[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void a_segment_head_with_any_bit_flipped_is_refused(void **state)
{
	(void)state;
	head_comes_back(&(struct segment_head){.version = 2,
					       .lane = 3,
					       .seq = 9,
					       .created = 10,
					       .salt = 11,
					       .first = 1,
					       .size = 4096},
			SEGMENT_HEAD);
}

static void a_segment_head_of_version_1_is_read(void **state)
{
	(void)state;
	head_comes_back(&(struct segment_head){.version = 1, .seq = 9, .created = 10, .salt = 11},
			48);
}

static void a_segment_of_a_newer_version_is_refused(void **state)
{
	(void)state;
	struct segment_head is = {.version = 3}, got;
	uint8_t head[SEGMENT_HEAD];
	segment_head_put(head, &is);
	assert_false(segment_head_get(head, &got));
}

static void the_checksum_is_crc32c(void **state)
{
	(void)state;
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_envelope_comes_back_with_all_its_fields),
		cmocka_unit_test(an_envelope_comes_back_with_its_history),
		cmocka_unit_test(a_wish_that_is_not_known_is_none),
		cmocka_unit_test(an_envelope_of_ten_thousand_recipients_comes_back),
		cmocka_unit_test(a_null_sender_without_recipients_comes_back),
		cmocka_unit_test(recipients_of_one_transaction_share_their_verdict_on_disk),
		cmocka_unit_test(a_delivery_comes_back),
		cmocka_unit_test(who_wants_to_know_of_success_is_not_done_by_it),
		cmocka_unit_test(what_is_settled_is_done_by_it),
		cmocka_unit_test(
			who_wants_to_know_where_mail_with_a_time_has_gone_is_not_done_by_it),
		cmocka_unit_test(a_payload_cut_anywhere_is_refused),
		cmocka_unit_test(a_payload_with_any_bit_flipped_does_no_harm),
		cmocka_unit_test(a_record_head_with_any_bit_flipped_but_its_flags_is_refused),
		cmocka_unit_test(a_segment_head_with_any_bit_flipped_is_refused),
		cmocka_unit_test(a_segment_head_of_version_1_is_read),
		cmocka_unit_test(a_segment_of_a_newer_version_is_refused),
		cmocka_unit_test(the_checksum_is_crc32c),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
