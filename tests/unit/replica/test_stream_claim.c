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
static int64_t servers, servers_there; /* that the stream is on, and that NATS has */
static struct replica_epoch claimed;
static int made, changed;
static char *subjects, *description;

natsStatus js_GetStreamInfo(jsStreamInfo **info, jsCtx *js, const char *stream, jsOptions *o,
			    jsErrCode *code)
{
	(void)js, (void)stream, (void)o, (void)code;
	if (!there)
		return NATS_NOT_FOUND;
	*info = mem_zalloc(sizeof **info);
	jsStreamConfig *c = (*info)->Config = mem_zalloc(sizeof *c);
	c->Name = "sluice-n1";
	c->Replicas = servers;
	if (claimed.epoch == 0)
		return NATS_OK;
	subjects = replica_subjects("n1", claimed.epoch);
	c->Subjects = (const char **)&subjects;
	c->SubjectsLen = 1;
	c->Description = description = replica_claim(&claimed);
	return NATS_OK;
}

void jsStreamInfo_Destroy(jsStreamInfo *info)
{
	free(subjects);
	free(description);
	subjects = description = NULL;
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
	(void)info, (void)js, (void)o, (void)code;
	changed++;
	if (c->Replicas > servers_there)
		return NATS_ERR;
	servers = c->Replicas;
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
	servers_there = servers_there ? servers_there : conf->cluster.nats_replicas;
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

static void a_stream_comes_to_be_on_as_many_servers_as_are_wanted(void **state)
{
	(void)state;
	claimed = (struct replica_epoch){.epoch = 4};
	servers = 1;
	assert_int_equal(claim(true, FENCE_NEVER), NATS_OK);
	assert_int_equal(servers, 3);
	assert_int_equal(changed, 1);
	assert_int_equal(claim(true, FENCE_NEVER), NATS_OK);
	assert_int_equal(changed, 0);
	assert_int_equal(servers, 3);
	claimed.epoch = 0;
}

static void where_there_are_fewer_an_epoch_is_claimed_on_those(void **state)
{
	(void)state;
	servers = servers_there = 1;
	assert_int_equal(claim(true, FENCE_NEVER), NATS_OK);
	assert_int_equal(changed, 2);
	assert_int_equal(servers, 1);
	servers_there = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_epoch_that_holds_makes_a_stream_or_changes_it),
		cmocka_unit_test(an_epoch_that_is_over_writes_nothing),
		cmocka_unit_test(a_stream_comes_to_be_on_as_many_servers_as_are_wanted),
		cmocka_unit_test(where_there_are_fewer_an_epoch_is_claimed_on_those),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
