/* SPDX-License-Identifier: ISC */
/* Who says on a stream that it has the queue: whose epoch holds, and nobody else. This test stands in for the library's calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fence.h"
#include "base/mem.h"
#include "replica/nats_setup.h"

#include <stdlib.h>
#include <string.h>

static bool there;
static int made, changed;

natsStatus js_GetStreamInfo(jsStreamInfo **info, jsCtx *js, const char *stream, jsOptions *o,
			    jsErrCode *code)
{
	(void)js, (void)stream, (void)o, (void)code;
	if (!there)
		return NATS_NOT_FOUND;
	*info = mem_zalloc(sizeof **info);
	(*info)->Config = mem_zalloc(sizeof *(*info)->Config);
	return NATS_OK;
}

void jsStreamInfo_Destroy(jsStreamInfo *info)
{
	if (info)
		free(info->Config);
	free(info);
}

natsStatus js_AddStream(jsStreamInfo **info, jsCtx *js, jsStreamConfig *c, jsOptions *o,
			jsErrCode *code)
{
	(void)info, (void)js, (void)c, (void)o, (void)code;
	made++;
	return NATS_OK;
}

natsStatus js_UpdateStream(jsStreamInfo **info, jsCtx *js, jsStreamConfig *c, jsOptions *o,
			   jsErrCode *code)
{
	(void)info, (void)js, (void)c, (void)o, (void)code;
	changed++;
	return NATS_OK;
}

static natsStatus claim(bool stream, int64_t fence)
{
	struct nats_setup n;
	struct nats_stream is;
	struct replica_epoch row = {.epoch = 4};
	struct conf *conf = conf_defaults();
	nats_setup_init(&n, conf, "n1");
	there = stream;
	made = changed = 0;
	fence_set(fence);
	natsStatus s = nats_setup_stream(&n, &row, &is);
	fence_set(FENCE_NEVER);
	nats_setup_fini(&n);
	conf_unref(conf);
	return s;
}

static void an_epoch_that_holds_makes_a_stream_or_changes_it(void **state)
{
	(void)state;
	assert_int_equal(claim(false, FENCE_NEVER), NATS_OK);
	assert_int_equal(made, 1);
	assert_int_equal(claim(true, FENCE_NEVER), NATS_OK);
	assert_int_equal(changed, 1);
}

/* Its adopter may have taken the next one by now, and what is said here would be believed where the bucket loses that. */
static void an_epoch_that_is_over_writes_nothing(void **state)
{
	(void)state;
	assert_int_equal(claim(false, 0), NATS_TIMEOUT);
	assert_int_equal(claim(true, 0), NATS_TIMEOUT);
	assert_int_equal(made + changed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_epoch_that_holds_makes_a_stream_or_changes_it),
		cmocka_unit_test(an_epoch_that_is_over_writes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
