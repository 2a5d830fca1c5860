/* SPDX-License-Identifier: ISC */
#include "harness.h"

#include "base/log.h"
#include "chance.h"
#include "spool/domains.h"
#include "spool/shape.h"

enum { MESSAGES = 400, MINUTE_MS = 60000 };

static const char *const domain[] = {
	"a.test",      "b.test",      "mx.c.test",	    "in.c.test",
	"x.in.c.test", "y.in.c.test", "one.two.three.four", "lonely"};
enum { DOMAINS = sizeof domain / sizeof domain[0] };

static struct chance chance;

static uint32_t below(uint32_t n)
{
	return chance_below(&chance, n);
}

static void set_random_addresses(struct envelope *e)
{
	free(e->sender);
	e->sender = below(5) == 0 ? mem_strdup("") : mem_printf("s@%s", domain[below(DOMAINS)]);
	uint32_t n = below(3) == 0 ? 1 + below(20) : 1;
	for (uint32_t i = 0; i < n; i++) {
		char *to = mem_printf("r%u@%s", i, domain[below(DOMAINS)]);
		envelope_add(e, to);
		free(to);
	}
}

/* --- the recount: nothing but strings and loops */

struct tally {
	char name[64];
	int64_t total, count[SHAPE_BUCKETS_MAX];
	char below[64][64]; /* names directly below it that were seen */
	int nbelow;
};

static struct tally tally[200];
static int ntally;
static int64_t all_total, all_count[SHAPE_BUCKETS_MAX];

static struct tally *tally_of(const char *name)
{
	for (int i = 0; i < ntally; i++)
		if (strcmp(tally[i].name, name) == 0)
			return &tally[i];
	memset(&tally[ntally], 0, sizeof tally[ntally]);
	snprintf(tally[ntally].name, sizeof tally[ntally].name, "%s", name);
	return &tally[ntally++];
}

static int bucket_of(const struct shape *s, int64_t age_ms)
{
	int64_t limit = s->first_ms, width = s->first_ms;
	int b = 0;
	while (age_ms >= limit && b < s->buckets - 1) {
		width = s->linear ? width : limit;
		limit += width;
		b++;
	}
	return b;
}

static void see_below(struct tally *parent, const char *name)
{
	for (int i = 0; i < parent->nbelow; i++)
		if (strcmp(parent->below[i], name) == 0)
			return;
	snprintf(parent->below[parent->nbelow++], sizeof parent->below[0], "%s", name);
}

static void recount(const struct shape *s, const char *address, int64_t age_ms)
{
	const char *at = strchr(address, '@');
	char name[64];
	int b = bucket_of(s, age_ms);
	snprintf(name, sizeof name, "%s", at ? at + 1 : "");
	all_total++;
	all_count[b]++;
	for (;;) {
		struct tally *t = tally_of(name);
		t->total++;
		t->count[b]++;
		char *dot = strchr(name + 1, '.');
		if (!s->parents || !*name || !dot || !strchr(dot + 1, '.'))
			return;
		see_below(tally_of(dot), name);
		memmove(name, dot, strlen(dot) + 1);
	}
}

static void recount_envelope(const struct shape *s, const struct envelope *e, int64_t now_ms)
{
	int64_t age_ms = now_ms - ident_time_ms(e->id);
	if (age_ms < 0)
		age_ms = 0;
	if (s->senders)
		recount(s, e->sender, age_ms);
	for (uint32_t i = 0; i < e->nrcpt && !s->senders; i++)
		if (!e->rcpt[i].done)
			recount(s, e->rcpt[i].address, age_ms);
}

static void begin_recount(void)
{
	ntally = 0;
	all_total = 0;
	memset(all_count, 0, sizeof all_count);
}

static void is_as_counted(const struct shape *s)
{
	size_t bytes = (size_t)s->buckets * sizeof all_count[0];
	assert_int_equal(s->all.total, all_total);
	assert_memory_equal(s->all.count, all_count, bytes);
	assert_int_equal(s->n, ntally);
	for (size_t i = 0; i < s->n; i++) {
		const struct shape_row *row = &s->row[i];
		const struct tally *t = tally_of(row->name);
		assert_int_equal(ntally, s->n); /* none was added by asking */
		assert_int_equal(row->total, t->total);
		assert_int_equal(row->subdomains, t->nbelow);
		assert_memory_equal(row->count, t->count, bytes);
		if (i == 0)
			continue;
		const struct shape_row *before = row - 1;
		assert_true(
			before->total > row->total ||
			(before->total == row->total && strlen(before->name) <= strlen(row->name)));
	}
}

static struct shape *random_question(void)
{
	struct shape *s = shape_new();
	s->senders = below(3) == 0;
	s->parents = below(2) == 0;
	s->linear = below(2) == 0;
	s->buckets = 1 + (int)below(SHAPE_BUCKETS_MAX);
	s->first_ms = 1 + below(10 * MINUTE_MS);
	return s;
}

/* --- domains and shape alone */

static struct stub stub[MESSAGES];
static struct envelope *envelope[MESSAGES];
static int64_t age_ms[MESSAGES];

static void change_one(struct domains *d, int i)
{
	struct envelope *e = envelope[i];
	if (!e) {
		envelope[i] = e = envelope_new();
		set_random_addresses(e);
		age_ms[i] = below(100000) * (int64_t)(1 + below(10000));
	} else if (below(4) == 0) {
		domains_drop(d, &stub[i]);
		envelope_free(&envelope[i]);
		return;
	} else {
		e->rcpt[below(e->nrcpt)].done = true;
	}
	domains_set(d, &stub[i], e);
}

static void compare(const struct domains *d)
{
	struct shape *s = random_question();
	shape_begin(s, d);
	begin_recount();
	for (int i = 0; i < MESSAGES; i++) {
		if (!envelope[i])
			continue;
		struct domain_count one, *of = &one;
		uint32_t n = domains_rcpts(d, &stub[i], &of);
		if (s->senders)
			shape_add(s, domains_sender(&stub[i]), age_ms[i], 1);
		for (uint32_t k = 0; k < n && !s->senders; k++)
			shape_add(s, of[k].domain, age_ms[i], of[k].rcpts);
		if (s->senders)
			recount(s, envelope[i]->sender, age_ms[i]);
		for (uint32_t k = 0; k < envelope[i]->nrcpt && !s->senders; k++)
			if (!envelope[i]->rcpt[k].done)
				recount(s, envelope[i]->rcpt[k].address, age_ms[i]);
	}
	shape_end(s, d);
	shape_rank(s);
	is_as_counted(s);
	shape_free(&s);
}

static void random_messages_are_counted_as_a_plain_recount_does(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct domains d;
		chance.state = seed;
		domains_init(&d);
		memset(stub, 0, sizeof stub);
		for (int turn = 0; turn < 3000; turn++) {
			change_one(&d, (int)below(MESSAGES));
			if (turn % 300 == 299)
				compare(&d);
		}
		for (int i = 0; i < MESSAGES; i++) {
			domains_drop(&d, &stub[i]);
			envelope_free(&envelope[i]);
		}
		for (uint32_t i = 0; i < domains_end(&d); i++)
			assert_string_equal(domains_name(&d, i), ""); /* no name is left over */
		domains_fini(&d);
	}
}

static void what_recovery_has_found_is_counted_after_the_move(void **state)
{
	(void)state;
	struct domains here, there;
	struct stub *moved[MESSAGES];
	size_t n = 0;
	chance.state = 7;
	domains_init(&here);
	domains_init(&there);
	memset(stub, 0, sizeof stub);
	for (int i = 0; i < MESSAGES; i++) {
		change_one(i % 2 ? &there : &here, i);
		if (i % 2)
			moved[n++] = &stub[i];
	}
	domains_move(&here, &there, moved, n);
	for (int i = 0; i < 10; i++)
		compare(&here);
	for (int i = 0; i < MESSAGES; i++) {
		domains_drop(&here, &stub[i]);
		envelope_free(&envelope[i]);
	}
	domains_fini(&here);
}

static void buckets_begin_at_their_limits(void **state)
{
	(void)state;
	struct shape *s = shape_new();
	assert_int_equal(shape_bucket(s, 0), 0);
	assert_int_equal(shape_bucket(s, 5 * MINUTE_MS - 1), 0);
	assert_int_equal(shape_bucket(s, 5 * MINUTE_MS), 1);
	assert_int_equal(shape_bucket(s, 10 * MINUTE_MS), 2);
	assert_int_equal(shape_bucket(s, 1280 * MINUTE_MS - 1), 8);
	assert_int_equal(shape_bucket(s, 1280 * MINUTE_MS), 9);
	assert_int_equal(shape_bucket(s, INT64_MAX / 2), 9);
	s->linear = true;
	assert_int_equal(shape_bucket(s, 10 * MINUTE_MS), 2);
	assert_int_equal(shape_bucket(s, 15 * MINUTE_MS), 3);
	assert_int_equal(shape_bucket(s, 45 * MINUTE_MS), 9);
	assert_int_equal(shape_bucket(s, INT64_MAX / 2), 9);
	shape_free(&s);
}

/* --- the whole spool */

static void compare_with_list(uint32_t queues)
{
	struct shape *question = random_question();
	question->queues = queues;
	question->first_ms = 10 * MINUTE_MS; /* all in the first bucket, whenever it is counted */
	struct spool_command *c = spool_command_new(SPOOL_SHAPE, h.loop, NULL);
	c->shape = question;
	int n = h.ncommand + 1;
	loop_post(spool_loop(h.spool), &c->note);
	harness_wait(&h, &h.ncommand, n);
	assert_ptr_equal(h.command, c);
	struct spool_command *list = harness_ask(&h, SPOOL_LIST, 0, 0, 1 << 20);
	begin_recount();
	for (int i = 0; i < list->nrow; i++)
		if (queues & 1u << list->row[i].queue)
			recount_envelope(c->shape, list->row[i].envelope, clock_wall_ms());
	is_as_counted(c->shape);
	spool_command_free(&list);
	spool_command_free(&c);
}

static void compare_all_queues(void)
{
	for (uint32_t queues = 1; queues < 16; queues++)
		compare_with_list(queues);
}

static void store_random(int n)
{
	for (int i = 0; i < n; i++) {
		struct spool_store *s = harness_new_store(&h, 0, 100);
		set_random_addresses(s->envelope);
		loop_post(spool_loop(h.spool), &s->note);
	}
	harness_wait(&h, &h.nstored, h.nstored + n);
}

/* A round of attempts: some recipients are done, the others wait. */
static void attempt(int n)
{
	for (int i = 0; i < n; i++) {
		struct envelope *e = harness_take(&h);
		for (uint32_t k = 0; k < e->nrcpt; k++)
			if (!e->rcpt[k].done && below(2) == 0) {
				harness_delivered(&h, e->id, k, VERDICT_SENT);
				e->rcpt[k].done = true;
			}
		uint64_t id = e->id;
		e->due_ms = clock_wall_ms() + 3600000;
		bool left = envelope_open(e) > 0;
		harness_release(&h, id, left ? e : NULL);
		if (!left)
			envelope_free(&e);
	}
}

static void order_some(enum spool_order op, int every)
{
	struct spool_command *list = harness_ask(&h, SPOOL_LIST, 0, 0, 1 << 20);
	for (int i = 0; i < list->nrow; i += every) {
		struct spool_command *c = harness_ask(&h, (int)op, list->row[i].envelope->id, 0, 0);
		spool_command_free(&c);
	}
	spool_command_free(&list);
}

static void the_spool_counts_what_it_lists_whatever_became_of_it(void **state)
{
	(void)state;
	chance.state = 3;
	harness_init(&h);
	harness_open(&h);
	store_random(100);
	compare_all_queues();
	harness_credit(&h, 60);
	attempt(50); /* ten stay active, forty incoming */
	harness_wait(&h, &h.narrival, 60);
	compare_all_queues();
	order_some(SPOOL_SUSPEND, 5);
	order_some(SPOOL_DELETE, 7);
	compare_all_queues();
	harness_close(&h);
	harness_open(&h);
	compare_all_queues();
	harness_credit(&h, 100);
	store_random(20);
	compare_all_queues();
	harness_crash(&h);
	harness_open(&h);
	compare_all_queues();
	harness_fini(&h);
}

static int list_domain(const char *name)
{
	struct spool_command *c = spool_command_new(SPOOL_LIST, h.loop, NULL);
	c->domain = mem_strdup(name);
	c->limit = 10;
	harness_command(&h, c);
	int n = c->nrow;
	spool_command_free(&c);
	return n;
}

static void the_first_message_that_a_start_reads_is_found_by_its_domain(void **state)
{
	(void)state;
	struct spool_store *s;
	harness_init(&h);
	harness_open(&h);
	s = harness_new_store(&h, 1, 100);
	s->envelope->sender[0] = '\0';
	loop_post(spool_loop(h.spool), &s->note);
	harness_wait(&h, &h.nstored, h.nstored + 1);
	assert_int_equal(list_domain("example.com"), 1);
	harness_close(&h);
	harness_open(&h);
	assert_int_equal(list_domain("example.com"), 1);
	harness_fini(&h);
}

int main(void)
{
	log_set_level(LOG_LEVEL_ERROR);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_messages_are_counted_as_a_plain_recount_does),
		cmocka_unit_test(what_recovery_has_found_is_counted_after_the_move),
		cmocka_unit_test(buckets_begin_at_their_limits),
		cmocka_unit_test(the_spool_counts_what_it_lists_whatever_became_of_it),
		cmocka_unit_test(the_first_message_that_a_start_reads_is_found_by_its_domain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
