/* SPDX-License-Identifier: ISC */
#include "cluster/resp.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static void *count_array(const redisReadTask *task, resp_count elements)
{
	struct resp *r = task->privdata;
	if (elements > 0)
		r->elements += (size_t)elements;
	if (r->elements <= RESP_REPLY_ELEMENTS_MAX)
		return r->make_array(task, elements);
	r->fault = "a reply has too many elements";
	return NULL;
}

void resp_init(struct resp *r)
{
	*r = (struct resp){.reader = redisReaderCreate()};
	if (!r->reader) {
		fputs("sluice: hiredis has no memory\n", stderr);
		abort();
	}
	r->make = *r->reader->fn;
	r->make_array = r->make.createArray;
	r->make.createArray = count_array;
	r->reader->fn = &r->make;
	r->reader->privdata = r;
}

void resp_fini(struct resp *r)
{
	redisReaderFree(r->reader);
	r->reader = NULL;
}

enum resp_result resp_next(struct resp *r, struct buf *in, redisReply **reply)
{
	void *got = NULL;
	if (r->fault)
		return RESP_FAULT;
	r->fed += buf_len(in);
	int failed = redisReaderFeed(r->reader, buf_data(in), buf_len(in));
	buf_consume(in, buf_len(in));
	if (failed || redisReaderGetReply(r->reader, &got) != REDIS_OK) {
		if (!r->fault)
			r->fault = r->reader->errstr;
		return RESP_FAULT;
	}
	if (!got && r->fed > RESP_REPLY_BYTES_MAX) {
		r->fault = "a reply is too long";
		return RESP_FAULT;
	}
	*reply = got;
	if (!got)
		return RESP_NONE;
	r->fed = 0;
	r->elements = 0;
	return RESP_REPLY;
}

const char *resp_fault(const struct resp *r)
{
	return r->fault;
}

void resp_put(struct buf *out, int n, const char *const arg[], const size_t len[])
{
	char *text = NULL;
	/* The library changes neither: its prototype lacks the second const. */
	long long got = redisFormatCommandArgv(&text, n, (const char **)(uintptr_t)arg, len);
	if (got < 0) {
		fputs("sluice: hiredis has no memory\n", stderr);
		abort();
	}
	buf_append(out, text, (size_t)got);
	free(text);
}

const char *resp_text(const redisReply *reply)
{
	bool is = reply && (reply->type == REDIS_REPLY_STRING ||
			    reply->type == REDIS_REPLY_STATUS || reply->type == REDIS_REPLY_ERROR);
	return is ? reply->str : "";
}

bool resp_is_array(const redisReply *reply, size_t least)
{
	return reply && reply->type == REDIS_REPLY_ARRAY && reply->elements >= least;
}
