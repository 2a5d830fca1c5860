/* SPDX-License-Identifier: ISC */
/* What is read of a stream whose servers die meanwhile. This test stands in for the library's calls. */
#include "tests/unit/base/unit.h"

#include "base/mem.h"
#include "replica/harvest.h"
#include "replica/life.h"

#include <stdlib.h>
#include <string.h>

enum { THERE = 1000 };

static struct {
	uint64_t unseen; /* by who asks, until something is to be changed */
	uint64_t at;	 /* what has been handed out */
	uint64_t again_at, again_from, lost_at;
	int elected, elected_after_purge;
	jsClusterInfo cluster;
} server;

natsStatus natsConnection_Connect(natsConnection **nc, natsOptions *o)
{
	(void)nc, (void)o;
	return NATS_OK;
}

natsStatus natsConnection_JetStream(jsCtx **js, natsConnection *nc, jsOptions *o)
{
	(void)js, (void)nc, (void)o;
	return NATS_OK;
}

natsStatus js_GetStreamInfo(jsStreamInfo **info, jsCtx *js, const char *stream, jsOptions *o,
			    jsErrCode *code)
{
	(void)js, (void)stream, (void)o, (void)code;
	*info = mem_zalloc(sizeof **info);
	(*info)->Config = mem_zalloc(sizeof *(*info)->Config);
	server.cluster.Leader = server.elected > 0 ? "n2" : "n1";
	(*info)->Cluster = &server.cluster;
	(*info)->State.FirstSeq = 1;
	(*info)->State.LastSeq = (*info)->State.Msgs = THERE - server.unseen;
	return NATS_OK;
}

void jsStreamInfo_Destroy(jsStreamInfo *info)
{
	if (info)
		free(info->Config);
	free(info);
}

natsStatus js_UpdateStream(jsStreamInfo **info, jsCtx *js, jsStreamConfig *c, jsOptions *o,
			   jsErrCode *code)
{
	(void)info, (void)js, (void)c, (void)o, (void)code;
	return NATS_OK;
}

natsStatus js_PurgeStream(jsCtx *js, const char *stream, jsOptions *o, jsErrCode *code)
{
	(void)js, (void)code;
	assert_string_equal(stream, "sluice-n9");
	assert_string_equal(o->Stream.Purge.Subject, "sluice.n9.0.>");
	server.unseen = server.elected_after_purge > 0 ? 400 : 0;
	server.elected += server.elected_after_purge;
	server.elected_after_purge = 0;
	return NATS_OK;
}

natsStatus js_AddConsumer(jsConsumerInfo **info, jsCtx *js, const char *stream,
			  jsConsumerConfig *cfg, jsOptions *o, jsErrCode *code)
{
	(void)info, (void)js, (void)stream, (void)cfg, (void)o, (void)code;
	server.at = 0;
	return NATS_OK;
}

natsStatus js_DeleteConsumer(jsCtx *js, const char *stream, const char *reader, jsOptions *o,
			     jsErrCode *code)
{
	(void)js, (void)stream, (void)reader, (void)o, (void)code;
	return NATS_OK;
}

natsStatus js_PullSubscribe(natsSubscription **sub, jsCtx *js, const char *subject,
			    const char *durable, jsOptions *o, jsSubOptions *so, jsErrCode *code)
{
	(void)sub, (void)js, (void)subject, (void)durable, (void)o, (void)so, (void)code;
	return NATS_OK;
}

static void hand_out(natsMsgList *list)
{
	static const char subject[] = "sluice.n9.3.1.spare";
	const char number[] = {(char)(++server.at >> 8), (char)server.at};
	assert_int_equal(natsMsg_Create(&list->Msgs[list->Count++], subject, NULL, number, 2),
			 NATS_OK);
}

natsStatus natsSubscription_Fetch(natsMsgList *list, natsSubscription *sub, int batch,
				  int64_t timeout_ms, jsErrCode *code)
{
	(void)sub, (void)timeout_ms, (void)code;
	list->Msgs = mem_zalloc((size_t)batch * sizeof(natsMsg *));
	if (server.again_at > 0 && server.at >= server.again_at) {
		server.at = server.again_from;
		server.again_at = 0;
	}
	if (server.lost_at > 0 && server.at >= server.lost_at) {
		server.at += 3;
		server.lost_at = 0;
	}
	while (server.at < THERE && list->Count < batch)
		hand_out(list);
	if (list->Count > 0)
		return NATS_OK;
	free(list->Msgs);
	return NATS_TIMEOUT;
}

natsStatus natsMsg_GetMetaData(jsMsgMetaData **is, natsMsg *m)
{
	const unsigned char *number = (const unsigned char *)natsMsg_GetData(m);
	*is = mem_zalloc(sizeof **is);
	(*is)->Sequence.Stream = (uint64_t)number[0] << 8 | number[1];
	return NATS_OK;
}

void jsMsgMetaData_Destroy(jsMsgMetaData *is)
{
	free(is);
}

natsStatus natsMsg_Ack(natsMsg *m, jsOptions *o)
{
	(void)m, (void)o;
	return NATS_OK;
}

static char spool[] = "/var/tmp/harvest-XXXXXX";

static int set_up(void **state)
{
	(void)state;
	memset(&server, 0, sizeof server);
	strcpy(spool, "/var/tmp/harvest-XXXXXX");
	return mkdtemp(spool) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	life_remove("/var/tmp", strrchr(spool, '/') + 1);
	return 0;
}

static bool read_stream(void)
{
	struct conf *defaults = conf_defaults(), conf = *defaults;
	struct buf error = {0};
	atomic_bool interrupt = false;
	struct replica_epoch row = {.state = REPLICA_ADOPTING, .life = 5, .epoch = 4, .since = 3};
	struct harvest h = {.conf = &conf,
			    .node = "n9",
			    .row = &row,
			    .folder = "adopted-from-n9",
			    .interrupt = &interrupt};
	conf.spool = spool;
	conf.cluster.nats = (char[]){"127.0.0.1:1"};
	bool ok = harvest_run(&h, &error);
	assert_int_equal(ok, buf_len(&error) == 0);
	buf_fini(&error);
	conf_unref(defaults);
	return ok;
}

static void a_stream_is_read_to_its_end(void **state)
{
	(void)state;
	assert_true(read_stream());
	assert_int_equal(server.at, THERE);
}

/* Whoever counts them has as many as there are before the last has come. */
static void what_another_server_hands_out_again_counts_once(void **state)
{
	(void)state;
	server.again_at = 300;
	server.again_from = 100;
	assert_true(read_stream());
	assert_int_equal(server.at, THERE);
}

/* It lacks nothing, and does not know yet that all of it counts. */
static void what_a_new_leader_has_not_done_yet_is_awaited(void **state)
{
	(void)state;
	server.unseen = 400;
	assert_true(read_stream());
	assert_int_equal(server.at, THERE);
}

static void one_that_comes_after_that_is_not_believed(void **state)
{
	(void)state;
	server.elected_after_purge = 1;
	assert_false(read_stream());
	assert_true(read_stream());
	assert_int_equal(server.at, THERE);
}

/* They count as handed out, and were on their way when the connection broke. */
static void where_some_do_not_come_all_is_read_once_more(void **state)
{
	(void)state;
	server.lost_at = 300;
	assert_false(read_stream());
	assert_true(read_stream());
	assert_int_equal(server.at, THERE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_stream_is_read_to_its_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_another_server_hands_out_again_counts_once,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_new_leader_has_not_done_yet_is_awaited,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_comes_after_that_is_not_believed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(where_some_do_not_come_all_is_read_once_more,
						set_up, tear_down),
	};
	return RUN(tests);
}
