/* SPDX-License-Identifier: ISC */
#include "tests/unit/histories/nats_client.h"

#include "base/list.h"
#include "base/mem.h"
#include "tests/unit/histories/fibers.h"
#include "tests/unit/histories/jetstream.h"

#include <assert.h>
#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CONNECTIONS = 4096,
	CONNECT_US = 2000000,
	NOTICE_US = 4000000,
	AGAIN_US = 250000,
	RETRANSMIT_US = 200000,
	API_MS = 5000,
	ELECTION = 20, /* per cent of requests before which there is one */
};

struct __natsOptions {
	natsConnectionHandler disconnected, reconnected, closed;
	void *closure;
};

struct __natsConnection {
	int of;
	struct __natsOptions options;
	unsigned generation; /* each connection to a server is another one */
	bool broken, over;
	int64_t out_us, in_us; /* when the last that was sent arrives */
	struct list kept;      /* calls, until there is a connection */
	natsMsgHandler handler;
	void *handler_closure;
};

struct __natsSubscription {
	natsConnection *connection;
	natsOnCompleteCB completed;
	void *closure;
	char *stream; /* of a reader */
};

struct __natsMsg {
	char *subject;
	char *data;
	int len;
	uint64_t sequence;
	char *stream; /* of one that a reader was handed */
	bool no_responders;
};

struct __jsCtx {
	natsConnection *connection;
	int64_t wait_ms;
};

struct __kvStore {
	jsCtx *js;
	char *bucket;
};

/* One request, and its answer. Whoever does not wait for it any more leaves it behind. */
struct call {
	struct list link;
	enum {
		CALL_PUBLISH,
		CALL_PUT,
		CALL_ADD,
		CALL_UPDATE,
		CALL_DELETE,
		CALL_PURGE,
		CALL_INFO,
		CALL_NAMES,
		CALL_LAST,
		CALL_READER,
		CALL_FETCH,
	} what;
	natsConnection *connection;
	unsigned generation;
	char *stream, *subject, *reply;
	char *data;
	struct jetstream_blob *blob; /* PUBLISH, PUT */
	uint64_t number;	     /* PURGE: before; PUT: replaces; FETCH: how many */
	uint64_t keep;		     /* PURGE */
	bool keeps_one;
	bool answered;
	enum jetstream_answer answer;
	uint64_t sequence;
	jsStreamInfo *info;
	jsStreamNamesList *names;
	natsMsg *message;
	natsMsgList list;
};

static struct {
	natsConnection *connection[CONNECTIONS];
	int n;
	bool cut[FIBER_PROCESSES];
	unsigned cuts[FIBER_PROCESSES];
	bool up, leader, elections;
	unsigned elected;
	int64_t slow_us;
	struct chance chance;
} net;

void nats_client_begin(uint64_t seed)
{
	memset(&net, 0, sizeof net);
	net.up = net.leader = true;
	net.chance.state = seed;
}

bool nats_client_reaches(int process)
{
	return net.up && !net.cut[process];
}

bool nats_client_answers(int process)
{
	return nats_client_reaches(process) && net.leader && !net.slow_us;
}

static int64_t latency_us(void)
{
	int64_t most_us = net.slow_us ? net.slow_us : 800;
	return 100 + (int64_t)chance_below(&net.chance, (uint32_t)most_us);
}

/* The way there. */

static void send(struct call *);

static void tell_disconnected(void *connection)
{
	natsConnection *nc = connection;
	if (!nc->over && nc->options.disconnected)
		nc->options.disconnected(nc, nc->options.closure);
}

static void break_off(natsConnection *nc)
{
	if (nc->broken || nc->over)
		return;
	nc->broken = true;
	nc->generation++;
	fibers_after(0, nc->of, tell_disconnected, nc);
}

static void connect_again(void *connection)
{
	natsConnection *nc = connection;
	if (!nc->broken || nc->over || !nats_client_reaches(nc->of))
		return;
	nc->broken = false;
	list_each (link, tmp, &nc->kept) {
		list_remove(link);
		send(list_entry(link, struct call, link));
	}
	if (nc->options.reconnected)
		nc->options.reconnected(nc, nc->options.closure);
}

struct noticed {
	natsConnection *connection;
	unsigned cut;
};

static void notice(void *what)
{
	struct noticed *n = what;
	natsConnection *nc = n->connection;
	if (net.cut[nc->of] && net.cuts[nc->of] == n->cut)
		break_off(nc);
	free(n);
}

static bool lives(const natsConnection *nc)
{
	return !nc->over;
}

static void each_of(int process, void (*with)(natsConnection *))
{
	for (int i = 0; i < net.n; i++)
		if (lives(net.connection[i]) && (process < 0 || net.connection[i]->of == process))
			with(net.connection[i]);
}

static void notice_later(natsConnection *nc)
{
	struct noticed *n = mem_alloc(sizeof *n);
	*n = (struct noticed){.connection = nc, .cut = net.cuts[nc->of]};
	fibers_after(NOTICE_US + (int64_t)chance_below(&net.chance, 2000000), FIBER_NOBODY, notice,
		     n);
}

static void again_later(natsConnection *nc)
{
	if (nc->broken)
		fibers_after(AGAIN_US + latency_us(), nc->of, connect_again, nc);
}

void nats_client_cut(int process, bool cut)
{
	if (net.cut[process] == cut)
		return;
	net.cut[process] = cut;
	net.cuts[process]++;
	each_of(process, cut ? notice_later : again_later);
}

void nats_client_servers(bool up)
{
	if (net.up == up)
		return;
	net.up = up;
	each_of(-1, up ? again_later : break_off);
}

void nats_client_leader(bool there)
{
	net.leader = there;
}

void nats_client_elections(bool often)
{
	net.elections = often;
	if (!often)
		jetstream_settle();
}

void nats_client_slow(int64_t most_us)
{
	net.slow_us = most_us;
}

/* What the server does. */

/* Of the data so many bytes are there, and zeros follow. */
static natsMsg *message_new(const char *subject, const void *data, size_t there, size_t len)
{
	natsMsg *m = mem_zalloc(sizeof *m);
	m->subject = mem_strdup(subject);
	m->data = mem_zalloc(len + 1);
	if (there > 0)
		memcpy(m->data, data, there);
	m->len = (int)len;
	return m;
}

static natsMsg *message_of(const struct jetstream_message *from)
{
	natsMsg *m = message_new(from->blob->subject, from->blob->bytes, from->blob->kept,
				 from->blob->len);
	m->sequence = from->sequence;
	return m;
}

static void list_subjects(const struct jetstream_content *seen, const char *filter,
			  jsStreamInfo *info)
{
	jsStreamStateSubjects *all = mem_zalloc(sizeof *all);
	all->List = mem_zalloc((seen->n + 1) * sizeof *all->List);
	for (size_t i = 0; i < seen->n; i++) {
		const char *subject = seen->message[i].blob->subject;
		if (jetstream_matches(filter, subject))
			all->List[all->Count++] =
				(jsStreamStateSubject){.Subject = mem_strdup(subject), .Msgs = 1};
	}
	info->State.Subjects = all;
}

static jsStreamInfo *info_of(const struct jetstream_stream *s, const char *filter)
{
	const struct jetstream_content *seen = jetstream_seen(s);
	jsStreamInfo *info = mem_zalloc(sizeof *info);
	info->Config = mem_zalloc(sizeof *info->Config);
	info->Config->Name = mem_strdup(s->name);
	info->Config->Subjects = mem_alloc(sizeof(char *));
	info->Config->Subjects[0] = mem_strdup(s->now.subjects);
	info->Config->SubjectsLen = 1;
	info->Config->Description = mem_strdup(s->now.description);
	info->Cluster = mem_zalloc(sizeof *info->Cluster);
	info->Cluster->Leader = mem_printf("server%u", net.elected);
	info->State.Msgs = seen->n;
	info->State.LastSeq = seen->last;
	info->State.FirstSeq = seen->n > 0 ? seen->message[0].sequence : seen->last + 1;
	if (filter)
		list_subjects(seen, filter, info);
	return info;
}

static enum jetstream_answer fetch(struct call *c, struct jetstream_stream *s)
{
	if (!s->read)
		return JETSTREAM_NOT_FOUND;
	c->list.Msgs = mem_zalloc((size_t)(c->number + 1) * sizeof *c->list.Msgs);
	for (size_t i = 0; i < s->now.n && (uint64_t)c->list.Count < c->number; i++) {
		const struct jetstream_message *m = &s->now.message[i];
		if (m->sequence <= s->reader)
			continue;
		c->list.Msgs[c->list.Count] = message_of(m);
		c->list.Msgs[c->list.Count++]->stream = mem_strdup(s->name);
		s->reader = m->sequence;
	}
	return c->list.Count > 0 ? JETSTREAM_DONE : JETSTREAM_NOT_FOUND;
}

static enum jetstream_answer read_stream(struct call *c)
{
	struct jetstream_stream *s = jetstream_find(c->stream);
	if (!s)
		return JETSTREAM_NOT_FOUND;
	if (c->what == CALL_FETCH)
		return fetch(c, s);
	if (c->what == CALL_READER) {
		s->read = !c->keeps_one;
		s->reader = s->acknowledged = 0;
		return JETSTREAM_DONE;
	}
	if (c->what == CALL_INFO) {
		c->info = info_of(s, c->subject);
		return JETSTREAM_DONE;
	}
	const struct jetstream_message *m = jetstream_last(s, c->subject);
	if (m)
		c->message = message_of(m);
	return m ? JETSTREAM_DONE : JETSTREAM_NOT_FOUND;
}

static enum jetstream_answer list_names(struct call *c)
{
	const char *name;
	c->names = mem_zalloc(sizeof *c->names);
	for (int i = 0; (name = jetstream_name(i)); i++) {
		c->names->List = mem_realloc(c->names->List, (size_t)(i + 1) * sizeof(char *));
		c->names->List[c->names->Count++] = mem_strdup(name);
	}
	return JETSTREAM_DONE;
}

static enum jetstream_answer serve(struct call *c)
{
	switch (c->what) {
	case CALL_PUBLISH:
		return jetstream_publish(c->blob, NULL, &c->sequence);
	case CALL_PUT:
		return jetstream_publish(c->blob, &c->number, &c->sequence);
	case CALL_ADD:
		return jetstream_add(c->stream, c->subject, c->data, c->keeps_one);
	case CALL_UPDATE:
		return jetstream_update(c->stream, c->subject, c->data);
	case CALL_DELETE:
		return jetstream_delete(c->stream);
	case CALL_PURGE:
		return jetstream_purge(c->stream, c->subject, c->number, c->keep);
	case CALL_NAMES:
		return list_names(c);
	default:
		return read_stream(c);
	}
}

/* And the way back. */

static void hand_over(struct call *c)
{
	natsConnection *nc = c->connection;
	char text[160];
	if (c->answer == JETSTREAM_DONE)
		snprintf(text, sizeof text, "{\"stream\":\"s\",\"seq\":%llu}",
			 (unsigned long long)c->sequence);
	else
		snprintf(text, sizeof text,
			 "{\"error\":{\"code\":503,\"err_code\":10023,\"description\":"
			 "\"insufficient resources\"}}");
	natsMsg *m = message_new(c->reply, text, strlen(text), strlen(text));
	m->no_responders = c->answer == JETSTREAM_NO_STREAM;
	if (nc->handler)
		nc->handler(nc, NULL, m, nc->handler_closure);
	else
		natsMsg_Destroy(m);
}

static bool on_its_way(const struct call *c)
{
	return !c->connection->over && c->generation == c->connection->generation;
}

static void come_back(void *what)
{
	struct call *c = what;
	if (!on_its_way(c))
		return;
	if (!nats_client_reaches(c->connection->of)) {
		fibers_after(RETRANSMIT_US, c->connection->of, come_back, c);
		return;
	}
	c->answered = true;
	if (c->what == CALL_PUBLISH)
		hand_over(c);
}

static int64_t in_order_us(int64_t *last_us)
{
	int64_t at_us = fibers.now_us + latency_us();
	*last_us = at_us > *last_us ? at_us : *last_us;
	return *last_us - fibers.now_us;
}

static void elect_another(void)
{
	if (!net.elections || !chance_percent(&net.chance, ELECTION))
		return;
	net.elected++;
	jetstream_elect(&net.chance);
}

static void arrive(void *what)
{
	struct call *c = what;
	if (!on_its_way(c))
		return;
	if (!nats_client_reaches(c->connection->of)) {
		fibers_after(RETRANSMIT_US, FIBER_NOBODY, arrive, c);
		return;
	}
	if (!net.leader)
		return;
	elect_another();
	c->answer = serve(c);
	jetstream_drop(c->blob);
	fibers_after(in_order_us(&c->connection->in_us), c->connection->of, come_back, c);
}

static void send(struct call *c)
{
	natsConnection *nc = c->connection;
	if (nc->broken) {
		list_append(&nc->kept, &c->link);
		return;
	}
	c->generation = nc->generation;
	fibers_after(in_order_us(&nc->out_us), FIBER_NOBODY, arrive, c);
}

static struct call *call_new(natsConnection *nc, int what, const char *stream, const char *subject)
{
	struct call *c = mem_zalloc(sizeof *c);
	c->what = what;
	c->connection = nc;
	c->stream = stream ? mem_strdup(stream) : NULL;
	c->subject = subject ? mem_strdup(subject) : NULL;
	return c;
}

static bool is_answered(void *call)
{
	return ((const struct call *)call)->answered;
}

static natsStatus status_of(enum jetstream_answer answer)
{
	static const natsStatus status[] = {[JETSTREAM_DONE] = NATS_OK,
					    [JETSTREAM_NOT_FOUND] = NATS_NOT_FOUND,
					    [JETSTREAM_NO_STREAM] = NATS_NO_RESPONDERS,
					    [JETSTREAM_FULL] = NATS_ERR,
					    [JETSTREAM_OTHER] = NATS_ERR};
	return status[answer];
}

static natsStatus ask(struct call *c, int64_t wait_ms)
{
	send(c);
	if (!fiber_wait(is_answered, c, fibers.now_us + wait_ms * 1000))
		return NATS_TIMEOUT;
	return status_of(c->answer);
}

static int64_t wait_of(const jsCtx *js, const jsOptions *o)
{
	return o && o->Wait > 0 ? o->Wait : js->wait_ms;
}

/* The library: connections. */

natsStatus natsOptions_Create(natsOptions **o)
{
	*o = mem_zalloc(sizeof **o);
	return NATS_OK;
}

void natsOptions_Destroy(natsOptions *o)
{
	free(o);
}

natsStatus natsOptions_SetServers(natsOptions *o, const char **servers, int n)
{
	(void)o;
	(void)servers;
	return n > 0 ? NATS_OK : NATS_INVALID_ARG;
}

natsStatus natsOptions_SetSecure(natsOptions *o, bool secure)
{
	(void)o;
	(void)secure;
	return NATS_OK;
}

natsStatus natsOptions_LoadCATrustedCertificates(natsOptions *o, const char *file)
{
	(void)o;
	(void)file;
	return NATS_OK;
}

natsStatus natsOptions_LoadCertificatesChain(natsOptions *o, const char *chain, const char *key)
{
	(void)o;
	(void)chain;
	(void)key;
	return NATS_OK;
}

natsStatus natsOptions_SetUserCredentialsFromFiles(natsOptions *o, const char *user,
						   const char *seed)
{
	(void)o;
	(void)user;
	(void)seed;
	return NATS_OK;
}

#define IGNORES(function, type)                                                                    \
	natsStatus function(natsOptions *o, type value)                                            \
	{                                                                                          \
		(void)o;                                                                           \
		(void)value;                                                                       \
		return NATS_OK;                                                                    \
	}
IGNORES(natsOptions_SetTimeout, int64_t)
IGNORES(natsOptions_SetWriteDeadline, int64_t)
IGNORES(natsOptions_SetPingInterval, int64_t)
IGNORES(natsOptions_SetMaxPingsOut, int)
IGNORES(natsOptions_SetReconnectWait, int64_t)
IGNORES(natsOptions_SetMaxReconnect, int)
IGNORES(natsOptions_SetSendAsap, bool)
IGNORES(natsOptions_SetName, const char *)

natsStatus natsOptions_SetDisconnectedCB(natsOptions *o, natsConnectionHandler h, void *closure)
{
	o->disconnected = h;
	o->closure = closure;
	return NATS_OK;
}

natsStatus natsOptions_SetReconnectedCB(natsOptions *o, natsConnectionHandler h, void *closure)
{
	o->reconnected = h;
	o->closure = closure;
	return NATS_OK;
}

natsStatus natsOptions_SetClosedCB(natsOptions *o, natsConnectionHandler h, void *closure)
{
	o->closed = h;
	o->closure = closure;
	return NATS_OK;
}

/* Here everything is permitted. */
natsStatus natsOptions_SetErrorHandler(natsOptions *o, natsErrHandler h, void *closure)
{
	(void)o;
	(void)h;
	(void)closure;
	return NATS_OK;
}

natsStatus natsConnection_GetLastError(natsConnection *nc, const char **said)
{
	(void)nc;
	*said = "";
	return NATS_OK;
}

natsStatus natsConnection_Connect(natsConnection **nc, natsOptions *o)
{
	int of = fibers_process();
	int64_t wait_us = net.cut[of] ? CONNECT_US : 2 * latency_us();
	fiber_wait(NULL, NULL, fibers.now_us + wait_us);
	if (!nats_client_reaches(of))
		return NATS_NO_SERVER;
	assert(net.n < CONNECTIONS);
	*nc = net.connection[net.n++] = mem_zalloc(sizeof **nc);
	(*nc)->of = of;
	(*nc)->options = *o;
	list_init(&(*nc)->kept);
	return NATS_OK;
}

static void tell_closed(void *connection)
{
	natsConnection *nc = connection;
	nc->options.closed(nc, nc->options.closure);
}

void natsConnection_Destroy(natsConnection *nc)
{
	if (!nc)
		return;
	nc->over = true;
	nc->generation++;
	if (nc->options.closed)
		fibers_after(latency_us(), nc->of, tell_closed, nc);
}

natsConnStatus natsConnection_Status(natsConnection *nc)
{
	return nats_client_reaches(nc->of) ? NATS_CONN_STATUS_CONNECTED
					   : NATS_CONN_STATUS_RECONNECTING;
}

natsStatus natsConnection_JetStream(jsCtx **js, natsConnection *nc, jsOptions *o)
{
	*js = mem_zalloc(sizeof **js);
	(*js)->connection = nc;
	(*js)->wait_ms = o && o->Wait > 0 ? o->Wait : API_MS;
	return NATS_OK;
}

void jsCtx_Destroy(jsCtx *js)
{
	free(js);
}

natsStatus natsInbox_Create(natsInbox **inbox)
{
	*inbox = mem_printf("_INBOX.%llx", (unsigned long long)chance_next(&net.chance));
	return NATS_OK;
}

void natsInbox_Destroy(natsInbox *inbox)
{
	free(inbox);
}

natsStatus natsConnection_Subscribe(natsSubscription **sub, natsConnection *nc, const char *subject,
				    natsMsgHandler handler, void *closure)
{
	(void)subject;
	*sub = mem_zalloc(sizeof **sub);
	(*sub)->connection = nc;
	nc->handler = handler;
	nc->handler_closure = closure;
	return NATS_OK;
}

natsStatus natsSubscription_SetPendingLimits(natsSubscription *sub, int messages, int bytes)
{
	(void)sub;
	(void)messages;
	(void)bytes;
	return NATS_OK;
}

natsStatus natsSubscription_SetOnCompleteCB(natsSubscription *sub, natsOnCompleteCB cb,
					    void *closure)
{
	sub->completed = cb;
	sub->closure = closure;
	return NATS_OK;
}

struct completion {
	natsOnCompleteCB completed;
	void *closure;
};

static void complete(void *what)
{
	struct completion *c = what;
	c->completed(c->closure);
	free(c);
}

void natsSubscription_Destroy(natsSubscription *sub)
{
	if (!sub)
		return;
	if (sub->completed) {
		struct completion *c = mem_alloc(sizeof *c);
		*c = (struct completion){sub->completed, sub->closure};
		sub->connection->handler = NULL;
		fibers_after(latency_us(), sub->connection->of, complete, c);
	}
	free(sub->stream);
	free(sub);
}

natsStatus natsConnection_PublishRequest(natsConnection *nc, const char *subject, const char *reply,
					 const void *data, int len)
{
	struct call *c = call_new(nc, CALL_PUBLISH, NULL, subject);
	c->reply = mem_strdup(reply);
	c->blob = jetstream_blob(subject, data, (size_t)len);
	send(c);
	return NATS_OK;
}

const char *natsStatus_GetText(natsStatus s)
{
	switch (s) {
	case NATS_OK:
		return "OK";
	case NATS_TIMEOUT:
		return "Timeout";
	case NATS_NOT_FOUND:
		return "Not Found";
	case NATS_NO_SERVER:
		return "No server available for connection";
	case NATS_NO_RESPONDERS:
		return "No responders";
	case NATS_ILLEGAL_STATE:
		return "Illegal State";
	default:
		return "Error";
	}
}

const char *nats_GetLastError(natsStatus *s)
{
	*s = NATS_ERR;
	return NULL;
}

/* Messages. */

void natsMsg_Destroy(natsMsg *m)
{
	if (!m)
		return;
	free(m->subject);
	free(m->data);
	free(m->stream);
	free(m);
}

const char *natsMsg_GetSubject(const natsMsg *m)
{
	return m->subject;
}

const char *natsMsg_GetData(const natsMsg *m)
{
	return m->data;
}

int natsMsg_GetDataLength(const natsMsg *m)
{
	return m->len;
}

uint64_t natsMsg_GetSequence(natsMsg *m)
{
	return m->sequence;
}

bool natsMsg_IsNoResponders(natsMsg *m)
{
	return m->no_responders;
}

natsStatus natsMsg_Ack(natsMsg *m, jsOptions *o)
{
	(void)o;
	struct jetstream_stream *s = jetstream_find(m->stream);
	if (s && s->read && m->sequence > s->acknowledged)
		s->acknowledged = m->sequence;
	return NATS_OK;
}

natsStatus natsMsg_GetMetaData(jsMsgMetaData **is, natsMsg *m)
{
	*is = mem_zalloc(sizeof **is);
	(*is)->Sequence.Stream = m->sequence;
	return NATS_OK;
}

void jsMsgMetaData_Destroy(jsMsgMetaData *is)
{
	free(is);
}

void natsMsgList_Destroy(natsMsgList *list)
{
	for (int i = 0; i < list->Count; i++)
		natsMsg_Destroy(list->Msgs[i]);
	free(list->Msgs);
	*list = (natsMsgList){.Count = 0};
}

/* JetStream. */

#define BEGINS(function, type)                                                                     \
	natsStatus function(type *o)                                                               \
	{                                                                                          \
		memset(o, 0, sizeof *o);                                                           \
		return NATS_OK;                                                                    \
	}
BEGINS(jsOptions_Init, jsOptions)
BEGINS(jsStreamConfig_Init, jsStreamConfig)
BEGINS(jsConsumerConfig_Init, jsConsumerConfig)
BEGINS(jsSubOptions_Init, jsSubOptions)
BEGINS(kvConfig_Init, kvConfig)

static natsStatus configure(jsCtx *js, int what, const jsStreamConfig *config, const jsOptions *o)
{
	struct call *c = call_new(js->connection, what, config->Name, config->Subjects[0]);
	/* The library writes it into JSON as it is. */
	assert(!config->Description || !strpbrk(config->Description, "\"\\"));
	c->data = mem_strdup(config->Description);
	return ask(c, wait_of(js, o));
}

natsStatus js_AddStream(jsStreamInfo **info, jsCtx *js, jsStreamConfig *c, jsOptions *o,
			jsErrCode *code)
{
	(void)info;
	(void)code;
	return configure(js, CALL_ADD, c, o);
}

natsStatus js_UpdateStream(jsStreamInfo **info, jsCtx *js, jsStreamConfig *c, jsOptions *o,
			   jsErrCode *code)
{
	(void)info;
	(void)code;
	return configure(js, CALL_UPDATE, c, o);
}

natsStatus js_DeleteStream(jsCtx *js, const char *stream, jsOptions *o, jsErrCode *code)
{
	(void)code;
	return ask(call_new(js->connection, CALL_DELETE, stream, NULL), wait_of(js, o));
}

natsStatus js_PurgeStream(jsCtx *js, const char *stream, jsOptions *o, jsErrCode *code)
{
	(void)code;
	struct call *c = call_new(js->connection, CALL_PURGE, stream, o->Stream.Purge.Subject);
	c->number = o->Stream.Purge.Sequence;
	c->keep = o->Stream.Purge.Keep;
	return ask(c, wait_of(js, o));
}

natsStatus js_GetStreamInfo(jsStreamInfo **info, jsCtx *js, const char *stream, jsOptions *o,
			    jsErrCode *code)
{
	(void)code;
	struct call *c = call_new(js->connection, CALL_INFO, stream,
				  o ? o->Stream.Info.SubjectsFilter : NULL);
	natsStatus s = ask(c, wait_of(js, o));
	*info = s == NATS_OK ? c->info : NULL;
	return s;
}

void jsStreamInfo_Destroy(jsStreamInfo *info)
{
	if (!info)
		return;
	for (int i = 0; info->State.Subjects && i < info->State.Subjects->Count; i++)
		free((char *)info->State.Subjects->List[i].Subject);
	if (info->State.Subjects)
		free(info->State.Subjects->List);
	free(info->State.Subjects);
	free(info->Cluster->Leader);
	free(info->Cluster);
	free((char *)info->Config->Name);
	free((char *)info->Config->Description);
	free((char *)info->Config->Subjects[0]);
	free(info->Config->Subjects);
	free(info->Config);
	free(info);
}

natsStatus js_StreamNames(jsStreamNamesList **names, jsCtx *js, jsOptions *o, jsErrCode *code)
{
	(void)code;
	struct call *c = call_new(js->connection, CALL_NAMES, NULL, NULL);
	natsStatus s = ask(c, wait_of(js, o));
	*names = s == NATS_OK ? c->names : NULL;
	return s;
}

void jsStreamNamesList_Destroy(jsStreamNamesList *names)
{
	for (int i = 0; i < names->Count; i++)
		free(names->List[i]);
	free(names->List);
	free(names);
}

natsStatus js_GetLastMsg(natsMsg **m, jsCtx *js, const char *stream, const char *subject,
			 jsOptions *o, jsErrCode *code)
{
	(void)code;
	struct call *c = call_new(js->connection, CALL_LAST, stream, subject);
	natsStatus s = ask(c, wait_of(js, o));
	*m = s == NATS_OK ? c->message : NULL;
	return s;
}

natsStatus js_AddConsumer(jsConsumerInfo **info, jsCtx *js, const char *stream,
			  jsConsumerConfig *cfg, jsOptions *o, jsErrCode *code)
{
	(void)info;
	(void)cfg;
	(void)code;
	return ask(call_new(js->connection, CALL_READER, stream, NULL), wait_of(js, o));
}

natsStatus js_DeleteConsumer(jsCtx *js, const char *stream, const char *reader, jsOptions *o,
			     jsErrCode *code)
{
	(void)reader;
	(void)code;
	struct call *c = call_new(js->connection, CALL_READER, stream, NULL);
	c->keeps_one = true;
	return ask(c, wait_of(js, o));
}

natsStatus js_PullSubscribe(natsSubscription **sub, jsCtx *js, const char *subject,
			    const char *durable, jsOptions *o, jsSubOptions *so, jsErrCode *code)
{
	(void)subject;
	(void)durable;
	(void)o;
	(void)code;
	*sub = mem_zalloc(sizeof **sub);
	(*sub)->connection = js->connection;
	(*sub)->stream = mem_strdup(so->Stream);
	return NATS_OK;
}

natsStatus natsSubscription_Fetch(natsMsgList *list, natsSubscription *sub, int batch,
				  int64_t timeout_ms, jsErrCode *code)
{
	(void)code;
	struct call *c = call_new(sub->connection, CALL_FETCH, sub->stream, NULL);
	int64_t until_us = fibers.now_us + timeout_ms * 1000;
	c->number = (uint64_t)batch;
	natsStatus s = ask(c, timeout_ms);
	if (s == NATS_OK) {
		*list = c->list;
		return NATS_OK;
	}
	if (s != NATS_TIMEOUT)
		fiber_wait(NULL, NULL, until_us);
	return NATS_TIMEOUT;
}

/* The bucket. */

static natsStatus open_bucket(kvStore **kv, jsCtx *js, const char *bucket, natsStatus s)
{
	if (s != NATS_OK)
		return s;
	*kv = mem_zalloc(sizeof **kv);
	(*kv)->js = js;
	(*kv)->bucket = mem_strdup(bucket);
	return NATS_OK;
}

natsStatus js_KeyValue(kvStore **kv, jsCtx *js, const char *bucket)
{
	char *stream = mem_printf("KV_%s", bucket);
	struct call *c = call_new(js->connection, CALL_INFO, stream, NULL);
	free(stream);
	return open_bucket(kv, js, bucket, ask(c, js->wait_ms));
}

natsStatus js_CreateKeyValue(kvStore **kv, jsCtx *js, kvConfig *cfg)
{
	char *stream = mem_printf("KV_%s", cfg->Bucket);
	char *subjects = mem_printf("$KV.%s.>", cfg->Bucket);
	struct call *c = call_new(js->connection, CALL_ADD, stream, subjects);
	c->keeps_one = true;
	natsStatus s = ask(c, js->wait_ms);
	free(stream);
	free(subjects);
	return open_bucket(kv, js, cfg->Bucket, s);
}

void kvStore_Destroy(kvStore *kv)
{
	if (!kv)
		return;
	free(kv->bucket);
	free(kv);
}

natsStatus kvStore_UpdateString(uint64_t *revision, kvStore *kv, const char *key, const char *data,
				uint64_t last)
{
	char *subject = mem_printf("$KV.%s.%s", kv->bucket, key);
	struct call *c = call_new(kv->js->connection, CALL_PUT, NULL, subject);
	free(subject);
	c->blob = jetstream_blob(c->subject, data, strlen(data));
	c->number = last;
	natsStatus s = ask(c, kv->js->wait_ms);
	if (s == NATS_OK && revision)
		*revision = c->sequence;
	return s;
}

natsStatus kvStore_CreateString(uint64_t *revision, kvStore *kv, const char *key, const char *data)
{
	return kvStore_UpdateString(revision, kv, key, data, 0);
}
