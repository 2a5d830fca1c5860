/* SPDX-License-Identifier: ISC */
#include "tests/unit/stages/unit.h"

#include "base/mem.h"
#include "stages/stages.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The files of the spool, replaced: in memory. */
struct spool_file {
	struct buf bytes;
};

static int files, names;

struct spool_file *spool_file_new(struct spool *spool, uint64_t id)
{
	(void)spool;
	(void)id;
	assert_int_equal(names, 0);
	files++;
	names++;
	return mem_zalloc(sizeof(struct spool_file));
}

int spool_file_write(struct spool_file *f, const void *bytes, size_t len)
{
	buf_append(&f->bytes, bytes, len);
	return 0;
}

uint64_t spool_file_size(const struct spool_file *f)
{
	return buf_len(&f->bytes);
}

ssize_t spool_file_read(const struct spool_file *f, uint64_t offset, void *to, size_t len)
{
	size_t have = buf_len(&f->bytes);
	size_t n = offset >= have ? 0 : have - (size_t)offset < len ? have - (size_t)offset : len;
	if (n > 0)
		memcpy(to, buf_data(&f->bytes) + offset, n);
	return (ssize_t)n;
}

static struct spool_file *unnamed[4];

void spool_file_unname(struct spool_file *f)
{
	for (int i = 0; i < 4; i++)
		if (unnamed[i] == f)
			return;
	for (int i = 0; i < 4; i++)
		if (!unnamed[i]) {
			unnamed[i] = f;
			names--;
			return;
		}
	fail();
}

void spool_file_discard(struct spool_file **fp)
{
	spool_file_unname(*fp);
	for (int i = 0; i < 4; i++)
		if (unnamed[i] == *fp)
			unnamed[i] = NULL;
	buf_fini(&(*fp)->bytes);
	free(*fp);
	*fp = NULL;
	files--;
}

/* Nothing is stored beside a message here. */
void spool_store_free(struct spool_store **sp)
{
	assert_null(*sp);
}

static struct conf *conf;
static struct loop *loop;
static struct thread_pool *pool;
static atomic_int ended; /* by a thread of the pool, too */
static int cancelled;

static void resume(void *owner, struct note *note)
{
	(void)owner;
	assert_int_equal(note->type, PASSAGE_RESUME);
	passage_resume((struct passage *)note);
}

static int begin(void **state)
{
	(void)state;
	ended = cancelled = files = names = 0;
	memset(unnamed, 0, sizeof unnamed);
	conf = conf_defaults();
	loop = loop_new("test", resume, NULL, NULL);
	pool = thread_pool_new("pool", 1, 1);
	return 0;
}

static int end(void **state)
{
	(void)state;
	thread_pool_free(&pool);
	loop_free(&loop);
	conf_unref(conf);
	assert_int_equal(files, 0);
	return 0;
}

static struct passage *passage_of(const char *content, size_t len, bool in_file)
{
	struct passage *p = passage_new(conf, loop, pool, NULL, 1);
	p->draft.envelope = envelope_new();
	p->draft.size = len;
	if (in_file) {
		p->draft.file = spool_file_new(NULL, 1);
		spool_file_write(p->draft.file, content, len);
	} else {
		char *copy = mem_alloc(len + 1);
		memcpy(copy, content, len);
		p->draft.content = content_in_memory(copy, len);
	}
	return p;
}

static void expect_content(const struct passage *p, const char *wanted)
{
	const struct draft *d = &p->draft;
	char *got = mem_zalloc((size_t)d->size + 1);
	if (d->content)
		content_read(d->content, 0, got, (size_t)d->size);
	else
		spool_file_read(d->file, 0, got, (size_t)d->size);
	assert_string_equal(got, wanted);
	assert_int_equal(d->size, strlen(wanted));
	free(got);
}

/* What a change makes of content, in memory and in a file. */
static void expect(const char *content, void (*change)(struct draft *), const char *wanted)
{
	for (int in_file = 0; in_file < 2; in_file++) {
		struct passage *p = passage_of(content, strlen(content), in_file);
		assert_true(draft_open(&p->draft));
		change(&p->draft);
		assert_true(draft_settle(&p->draft));
		expect_content(p, wanted);
		passage_free(&p);
	}
}

static void sign(struct draft *d)
{
	draft_insert(d, 0, mem_strdup("S: 1\r\n\t2\r\n"));
}

static void sign_and_complete(struct draft *d)
{
	sign(d);
	draft_complete(d);
}

static void exchange(struct draft *d)
{
	draft_remove(d, 0);
	draft_insert(d, d->nfield, mem_strdup("Last: x\r\n"));
}

static void write_body(struct draft *d)
{
	draft_body_begin(d);
	draft_body_put(d, "gone", 4);
	draft_body_begin(d);
	draft_body_put(d, "new ", 4);
	draft_body_put(d, "body", 4);
}

static void fields_are_inserted_and_removed_and_the_rest_stays(void **state)
{
	(void)state;
	expect("A: 1\r\nB: 2\r\n 3\r\n\r\nbody", sign,
	       "S: 1\r\n\t2\r\nA: 1\r\nB: 2\r\n 3\r\n\r\nbody");
	expect("A: 1\r\nB: 2\r\n 3\r\n\r\nbody", exchange, "B: 2\r\n 3\r\nLast: x\r\n\r\nbody");
	expect("A: 1\r\nB: 2", exchange, "B: 2\r\nLast: x\r\n");
	expect("A: 1", exchange, "Last: x\r\n");
	expect("A: 1\r\nno field\r\n\r\nbody", exchange, "Last: x\r\nno field\r\n\r\nbody");
	expect("\r\nbody\r\n", sign, "S: 1\r\n\t2\r\n\r\nbody\r\n");
	expect("", sign, "S: 1\r\n\t2\r\n");
}

static void what_is_completed_has_its_ends(void **state)
{
	(void)state;
	expect("A: 1", sign_and_complete, "S: 1\r\n\t2\r\nA: 1\r\n\r\n");
	expect("A: 1\r\n", sign_and_complete, "S: 1\r\n\t2\r\nA: 1\r\n\r\n");
	expect("A: 1\r\n\r\n", sign_and_complete, "S: 1\r\n\t2\r\nA: 1\r\n\r\n");
	expect("A: 1\r\n\r\nb", sign_and_complete, "S: 1\r\n\t2\r\nA: 1\r\n\r\nb\r\n");
	expect("A: 1\r\n\r\nb\r\n", sign_and_complete, "S: 1\r\n\t2\r\nA: 1\r\n\r\nb\r\n");
	expect("A: 1\r\nodd\r\n", sign_and_complete, "S: 1\r\n\t2\r\nA: 1\r\nodd\r\n");
}

static void another_body_takes_the_place_of_the_first(void **state)
{
	(void)state;
	expect("A: 1\r\n\r\nbody", write_body, "A: 1\r\n\r\nnew body");
	expect("A: 1", write_body, "A: 1\r\n\r\nnew body");
}

static char *large(size_t len)
{
	char *text = mem_alloc(len + 1);
	memset(text, 'x', len);
	text[len] = '\0';
	return text;
}

static void large_content_is_copied_into_one_file(void **state)
{
	(void)state;
	char *body = large(900000), *content = mem_printf("A: 1\r\n\r\n%s", body);
	struct passage *p = passage_of(content, strlen(content), true);
	assert_true(draft_open(&p->draft));
	sign(&p->draft);
	draft_body_begin(&p->draft);
	draft_body_put(&p->draft, body, 600000);
	draft_body_put(&p->draft, body, 90000);
	assert_true(draft_settles_slowly(&p->draft));
	assert_true(draft_settle(&p->draft));
	char *wanted = mem_printf("S: 1\r\n\t2\r\nA: 1\r\n\r\n%.690000s", body);
	expect_content(p, wanted);
	assert_true(files == 1 && names == 1);
	passage_free(&p);
	free(wanted);
	free(content);
	free(body);
}

static void a_header_without_end_is_not_opened(void **state)
{
	(void)state;
	char *name = large(2 << 20);
	memcpy(name, "A: ", 3);
	for (int in_file = 0; in_file < 2; in_file++) {
		struct passage *p = passage_of(name, strlen(name), in_file);
		assert_false(draft_open(&p->draft));
		assert_int_equal(errno, EMSGSIZE);
		assert_true(draft_settle(&p->draft));
		expect_content(p, name);
		passage_free(&p);
	}
	free(name);
}

/* Stages. */

static void over(struct passage *p)
{
	*(enum passage_end *)p->owner = p->end;
	passage_free(&p);
	ended++;
}

static void add_field(struct passage *p)
{
	assert_true(draft_open(&p->draft));
	draft_insert(&p->draft, 0, mem_strdup(passage_context(p)));
	passage_next(p);
}

static void reject(struct passage *p)
{
	passage_refuse(p, "550 5.7.1 no");
}

static void compute(struct passage *p)
{
	*(int *)p->at_work = 1;
}

static void begin_computing(struct passage *p)
{
	p->at_work = mem_zalloc(sizeof(int));
	if (!passage_give(p, compute)) {
		free(p->at_work);
		passage_fail(p, ECANCELED);
	}
}

static void computed(struct passage *p)
{
	assert_int_equal(*(int *)p->at_work, 1);
	free(p->at_work);
	passage_next(p);
}

static void cancel(struct passage *p)
{
	cancelled++;
	free(p->at_work);
}

static void keep(struct passage *p)
{
	p->at_work = mem_zalloc(1);
}

static const struct passage_stage adds = {.begin = add_field};
static const struct passage_stage rejects = {.begin = reject};
static const struct passage_stage computes = {
	.begin = begin_computing, .worked = computed, .cancel = cancel};
static const struct passage_stage waits = {.begin = keep, .cancel = cancel};

static char one[] = "One: 1\r\n", two[] = "Two: 2\r\n";

static void run_loop(void)
{
	for (int i = 0; i < 1000 && ended == 0; i++)
		ev_run(loop->ev, EVRUN_ONCE);
}

static void stages_that_answer_at_once_are_over_at_once(void **state)
{
	(void)state;
	enum passage_end how;
	struct passage *p = passage_of("A: 1\r\n\r\n", 8, false);
	passage_add(p, &adds, one);
	passage_add(p, &adds, two);
	assert_true(passage_run(p, over, &how));
	assert_int_equal(p->end, PASSAGE_DONE);
	expect_content(p, "Two: 2\r\nOne: 1\r\nA: 1\r\n\r\n");
	assert_int_equal(ended, 0);
	passage_free(&p);
}

static void who_refuses_ends_it(void **state)
{
	(void)state;
	enum passage_end how;
	struct passage *p = passage_of("A: 1\r\n\r\n", 8, false);
	passage_add(p, &rejects, NULL);
	passage_add(p, &adds, one);
	assert_true(passage_run(p, over, &how));
	assert_int_equal(p->end, PASSAGE_REFUSED);
	assert_string_equal(p->reply, "550 5.7.1 no");
	passage_free(&p);
}

static void the_pool_works_and_the_loop_goes_on(void **state)
{
	(void)state;
	enum passage_end how = PASSAGE_UNDER_WAY;
	struct passage *p = passage_of("A: 1\r\n\r\n", 8, true);
	passage_add(p, &computes, NULL);
	passage_add(p, &adds, one);
	passage_add(p, &computes, NULL);
	thread_pool_start(pool);
	assert_false(passage_run(p, over, &how));
	run_loop();
	assert_int_equal(ended, 1);
	assert_int_equal(how, PASSAGE_DONE);
}

static void without_a_loop_the_pool_does_all(void **state)
{
	(void)state;
	enum passage_end how = PASSAGE_UNDER_WAY;
	struct passage *p = passage_of("A: 1\r\n\r\n", 8, true);
	p->loop = NULL;
	passage_add(p, &computes, NULL);
	passage_add(p, &adds, one);
	assert_false(passage_run(p, over, &how));
	thread_pool_start(pool);
	while (!ended)
		;
	assert_int_equal(how, PASSAGE_DONE);
}

static void a_pool_that_stops_fails_it(void **state)
{
	(void)state;
	enum passage_end how = PASSAGE_UNDER_WAY;
	struct passage *p = passage_of("A: 1\r\n\r\n", 8, false);
	passage_add(p, &computes, NULL);
	assert_false(passage_run(p, over, &how));
	thread_pool_stop(pool);
	run_loop();
	assert_int_equal(how, PASSAGE_FAILED);
	assert_int_equal(cancelled, 1);
	p = passage_of("A: 1\r\n\r\n", 8, false);
	passage_add(p, &computes, NULL);
	assert_true(passage_run(p, over, &how));
	assert_int_equal(p->end, PASSAGE_FAILED);
	passage_free(&p);
}

static void one_that_is_given_up_frees_itself(void **state)
{
	(void)state;
	enum passage_end how = PASSAGE_UNDER_WAY;
	struct passage *p = passage_of("A: 1\r\n\r\n", 8, false);
	passage_add(p, &waits, NULL);
	assert_false(passage_run(p, over, &how));
	passage_cancel(&p);
	assert_int_equal(cancelled, 1);
	p = passage_of("A: 1\r\n\r\n", 8, false);
	passage_add(p, &computes, NULL);
	assert_false(passage_run(p, over, &how));
	passage_cancel(&p);
	assert_null(p);
	thread_pool_stop(pool); /* comes back undone, to nobody */
	mailbox_drain(&loop->mailbox);
	assert_int_equal(cancelled, 2);
	assert_int_equal(ended, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		T(fields_are_inserted_and_removed_and_the_rest_stays),
		T(what_is_completed_has_its_ends),
		T(another_body_takes_the_place_of_the_first),
		T(large_content_is_copied_into_one_file),
		T(a_header_without_end_is_not_opened),
		T(stages_that_answer_at_once_are_over_at_once),
		T(who_refuses_ends_it),
		T(the_pool_works_and_the_loop_goes_on),
		T(without_a_loop_the_pool_does_all),
		T(a_pool_that_stops_fails_it),
		T(one_that_is_given_up_frees_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
