/* SPDX-License-Identifier: ISC */
#include "replica/nats_setup.h"

#include "base/fence.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "replica/epoch.h"
#include "replica/format.h"
#include "replica/nats_link.h"
#include "replica/stream_form.h"

#include <assert.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	SERVERS = 32,
	CONNECT_MS = 2000,
	API_MS = 2000,
	PING_MS = 2000,
	PINGS = 2,
	AGAIN_MS = 250,
	CLOSE_LOOKS = 30 /* a second each */
};

#define INBOX "_INBOX."
#define SUBSCRIPTION "Subscription to "
#define PUBLISH "Publish to "

/* Whom the library's threads call, for as long as there is a connection. */
struct nats_watch {
	const struct nats_callbacks *call; /* or NULL */
	void *owner;
	sem_t ended; /* posted by the last that is called */
};

static void on_disconnected(natsConnection *nc, void *closure)
{
	const struct nats_watch *w = closure;
	(void)nc;
	if (w->call && w->call->disconnected)
		w->call->disconnected(w->owner);
}

static void on_reconnected(natsConnection *nc, void *closure)
{
	const struct nats_watch *w = closure;
	(void)nc;
	if (w->call && w->call->reconnected)
		w->call->reconnected(w->owner);
}

static void on_closed(natsConnection *nc, void *closure)
{
	struct nats_watch *w = closure;
	(void)nc;
	sem_post(&w->ended);
}

static void on_error(natsConnection *nc, natsSubscription *sub, natsStatus s, void *closure)
{
	const struct nats_watch *w = closure;
	const char *said = NULL;
	char text[NATS_SETUP_DENIAL];
	(void)sub;
	if (s != NATS_NOT_PERMITTED || !w->call || !w->call->denied)
		return;
	natsConnection_GetLastError(nc, &said);
	nats_setup_denial(text, said ? said : "");
	w->call->denied(w->owner, text);
}

/* The library as a whole is not closed, for then it frees what it thinks it alone has of OpenSSL. Looks are counted, and not the time
 * that they take: a process that was stopped for longer has the same left, and so has the library's thread. */
void nats_setup_await_end(sem_t *ended)
{
	struct timespec look = {.tv_sec = 0}; /* by the wall clock, which may be set meanwhile */
	int looks = 0;
	while (sem_timedwait(ended, &look) != 0) {
		looks += errno == ETIMEDOUT;
		assert(looks <= CLOSE_LOOKS && "a thread of NATS does not end");
		clock_gettime(CLOCK_REALTIME, &look);
		look.tv_sec++;
	}
}

void nats_setup_init(struct nats_setup *n, const struct conf *c, const char *node)
{
	*n = (struct nats_setup){.conf = &c->cluster, .node = mem_strdup(node), .wait_ms = API_MS};
}

void nats_setup_close(struct nats_setup *n)
{
	const bool connected = n->connection;
	jsCtx_Destroy(n->js);
	natsConnection_Destroy(n->connection);
	n->js = NULL;
	n->connection = NULL;
	if (connected)
		nats_setup_await_end(&n->watch->ended);
}

void nats_setup_fini(struct nats_setup *n)
{
	assert(!n->connection);
	if (n->watch)
		sem_destroy(&n->watch->ended);
	free(n->watch);
	free(n->node);
}

bool nats_setup_ends(const struct nats_setup *n)
{
	return n->ends && atomic_load(n->ends);
}

/* 'Permissions Violation for Subscription to "_INBOX.x.*"', in one or the other kind of quotes. */
static void name_denied(char text[NATS_SETUP_DENIAL], const char *what, const char *of)
{
	const char *subject = of + strspn(of, "\"'");
	int len = (int)strcspn(subject, "\"' ");
	if (strncmp(subject, INBOX, strlen(INBOX)) == 0)
		snprintf(text, NATS_SETUP_DENIAL, "NATS does not permit to %s " INBOX ">", what);
	else
		snprintf(text, NATS_SETUP_DENIAL, "NATS does not permit to %s %.*s", what, len,
			 subject);
}

void nats_setup_denial(char text[NATS_SETUP_DENIAL], const char *said)
{
	const char *subscription = strstr(said, SUBSCRIPTION), *publish = strstr(said, PUBLISH);
	if (subscription)
		name_denied(text, "subscribe to", subscription + strlen(SUBSCRIPTION));
	else if (publish)
		name_denied(text, "publish to", publish + strlen(PUBLISH));
	else
		snprintf(text, NATS_SETUP_DENIAL, "NATS does not permit it: %s", said);
}

bool nats_setup_denied(const struct nats_setup *n, char text[NATS_SETUP_DENIAL])
{
	const char *said = NULL;
	if (!n->connection ||
	    natsConnection_GetLastError(n->connection, &said) != NATS_NOT_PERMITTED)
		return false;
	nats_setup_denial(text, said ? said : "");
	return true;
}

static natsStatus set_servers(const struct nats_setup *n, natsOptions *o)
{
	char *urls[SERVERS], *save = NULL, *text = mem_strdup(n->conf->nats);
	int count = 0;
	for (char *s = strtok_r(text, ", ", &save); s && count < SERVERS;
	     s = strtok_r(NULL, ", ", &save)) {
		char *server = name_key(s);
		urls[count++] = mem_printf("%s://%s", n->conf->nats_tls ? "tls" : "nats", server);
		free(server);
	}
	natsStatus s = natsOptions_SetServers(o, (const char **)urls, count);
	for (int i = 0; i < count; i++)
		free(urls[i]);
	free(text);
	return s;
}

static natsStatus set_secrets(const struct nats_setup *n, natsOptions *o)
{
	const struct conf_cluster *c = n->conf;
	natsStatus s = NATS_OK;
	if (c->nats_tls)
		s = natsOptions_SetSecure(o, true);
	if (s == NATS_OK && c->nats_tls)
		s = natsOptions_LoadCATrustedCertificates(o, c->nats_ca);
	if (s == NATS_OK && *c->nats_certificate)
		s = natsOptions_LoadCertificatesChain(o, c->nats_certificate, c->nats_key);
	if (s == NATS_OK && *c->nats_credentials)
		s = natsOptions_SetUserCredentialsFromFiles(o, c->nats_credentials, NULL);
	return s;
}

/* A server that says nothing is left soon: the others have what is there. */
static natsStatus set_times(natsOptions *o)
{
	natsStatus s = natsOptions_SetTimeout(o, CONNECT_MS);
	if (s == NATS_OK)
		s = natsOptions_SetWriteDeadline(o, NATS_LINK_WRITE_MS);
	if (s == NATS_OK)
		s = natsOptions_SetPingInterval(o, PING_MS);
	if (s == NATS_OK)
		s = natsOptions_SetMaxPingsOut(o, PINGS);
	if (s == NATS_OK)
		s = natsOptions_SetReconnectWait(o, AGAIN_MS);
	if (s == NATS_OK)
		s = natsOptions_SetMaxReconnect(o, -1);
	return s == NATS_OK ? natsOptions_SetSendAsap(o, true) : s;
}

static natsStatus set_callbacks(natsOptions *o, struct nats_watch *w)
{
	natsStatus s = natsOptions_SetDisconnectedCB(o, on_disconnected, w);
	if (s == NATS_OK)
		s = natsOptions_SetReconnectedCB(o, on_reconnected, w);
	if (s == NATS_OK)
		s = natsOptions_SetErrorHandler(o, on_error, w);
	return s == NATS_OK ? natsOptions_SetClosedCB(o, on_closed, w) : s;
}

static void watch_for(struct nats_setup *n, const struct nats_callbacks *call, void *owner)
{
	if (!n->watch) {
		n->watch = mem_zalloc(sizeof *n->watch);
		sem_init(&n->watch->ended, 0, 0);
	}
	n->watch->call = call;
	n->watch->owner = owner;
}

natsStatus nats_setup_connect(struct nats_setup *n, const struct nats_callbacks *call, void *owner)
{
	natsOptions *o = NULL;
	if (nats_setup_ends(n))
		return NATS_DRAINING;
	if (n->connection)
		return NATS_OK;
	watch_for(n, call, owner);
	nats_files_note(&n->files, n->conf);
	natsStatus s = natsOptions_Create(&o);
	if (s == NATS_OK)
		s = set_servers(n, o);
	if (s == NATS_OK)
		s = set_secrets(n, o);
	if (s == NATS_OK)
		s = set_times(o);
	if (s == NATS_OK)
		s = natsOptions_SetName(o, n->node);
	if (s == NATS_OK)
		s = set_callbacks(o, n->watch);
	if (s == NATS_OK)
		s = natsConnection_Connect(&n->connection, o);
	jsOptions js;
	jsOptions_Init(&js);
	js.Wait = n->wait_ms;
	if (s == NATS_OK)
		s = natsConnection_JetStream(&n->js, n->connection, &js);
	if (s != NATS_OK)
		nats_setup_close(n);
	natsOptions_Destroy(o);
	return s;
}

bool nats_setup_is_over(const struct nats_setup *n)
{
	if (!n->connection)
		return false;
	natsConnStatus is = natsConnection_Status(n->connection);
	return is == NATS_CONN_STATUS_CLOSED ||
	       (is != NATS_CONN_STATUS_CONNECTED && nats_files_changed(&n->files, n->conf));
}

static bool takes_only(const jsStreamConfig *c, const char *subjects)
{
	return c->SubjectsLen == 1 && strcmp(c->Subjects[0], subjects) == 0;
}

static jsOptions options_within(int64_t ms)
{
	jsOptions o;
	jsOptions_Init(&o);
	o.Wait = ms;
	return o;
}

static natsStatus ask_for_stream(struct nats_setup *n, const char *name, int64_t within_ms,
				 jsStreamInfo **info)
{
	jsOptions o = options_within(within_ms);
	return nats_setup_ends(n) ? NATS_DRAINING : js_GetStreamInfo(info, n->js, name, &o, NULL);
}

static bool has_description(const jsStreamConfig *c, const char *description)
{
	return c->Description && strcmp(c->Description, description) == 0;
}

static bool claim_of(const jsStreamConfig *c, struct replica_epoch *claim)
{
	return c->Description && replica_claim_get(c->Description, claim);
}

static natsStatus make_stream(struct nats_setup *n, const char *name, const char *subjects,
			      const char *description)
{
	jsStreamConfig c;
	jsStreamConfig_Init(&c);
	c.Name = name;
	c.Description = description;
	c.Subjects = &subjects;
	c.SubjectsLen = 1;
	c.Storage = js_FileStorage;
	c.Replicas = n->conf->nats_replicas;
	c.MaxMsgSize = REPLICA_MESSAGE_MAX;
	return js_AddStream(NULL, n->js, &c, NULL, NULL);
}

static bool takes_later(const jsStreamConfig *c, uint64_t epoch)
{
	for (int i = 0; i < c->SubjectsLen; i++) {
		const char *node = strchr(c->Subjects[i], '.');
		const char *of = node ? strchr(node + 1, '.') : NULL;
		if (of && strtoull(of + 1, NULL, 10) > epoch)
			return true;
	}
	return false;
}

static bool is_anothers(const jsStreamConfig *c, const struct replica_epoch *claim)
{
	struct replica_epoch there;
	return takes_later(c, claim->epoch) ||
	       (claim_of(c, &there) && epoch_is_later(&there, claim));
}

/* The stream's configuration as the server has told it stays as it was, for whoever frees it. */
static natsStatus change_stream(struct nats_setup *n, const jsStreamConfig *is,
				const char *subjects, const char *description)
{
	jsStreamConfig to = *is;
	stream_form_mend(&to);
	to.Subjects = &subjects;
	to.SubjectsLen = 1;
	to.Description = description;
	jsOptions o = options_within(n->wait_ms);
	return js_UpdateStream(NULL, n->js, &to, &o, NULL);
}

/* The configuration that is to stand there. */
static struct replica_epoch claim_for(const jsStreamInfo *info, const struct replica_epoch *claim)
{
	struct replica_epoch to = *claim, there;
	if (to.alone == ALONE_AS_BEFORE && info && claim_of(info->Config, &there))
		to.alone = there.alone;
	return to;
}

/* is NULL: there is none. Not by an epoch that is over: what it says now would be believed where NATS has lost who has the queue since. */
static natsStatus write_claim(struct nats_setup *n, const jsStreamConfig *is, const char *name,
			      const char *subjects, const char *description)
{
	if (!fence_open())
		return NATS_TIMEOUT;
	if (nats_setup_ends(n))
		return NATS_DRAINING;
	return is ? change_stream(n, is, subjects, description)
		  : make_stream(n, name, subjects, description);
}

static void describe_stream(const jsStreamInfo *info, natsStatus s, struct nats_stream *is)
{
	*is = (struct nats_stream){.fresh = s == NATS_NOT_FOUND};
	if (s != NATS_OK)
		return;
	is->first = info->State.FirstSeq;
	is->last = info->State.LastSeq;
	is->messages = info->State.Msgs;
	is->lost = info->State.Lost ? (uint64_t)info->State.Lost->MsgsLen : 0;
	is->mended = !stream_form_keeps(info->Config);
	is->wrong = stream_form_wrong(info->Config);
	if (info->Cluster && info->Cluster->Leader)
		snprintf(is->leader, sizeof is->leader, "%s", info->Cluster->Leader);
}

natsStatus nats_setup_look(struct nats_setup *n, struct nats_stream *is)
{
	jsStreamInfo *info = NULL;
	char *name = replica_stream(n->node);
	natsStatus s = ask_for_stream(n, name, n->wait_ms, &info);
	describe_stream(info, s, is);
	jsStreamInfo_Destroy(info);
	free(name);
	return s == NATS_NOT_FOUND ? NATS_OK : s;
}

/* Whoever adopts a queue reads it, whatever its stream is. */
static bool is_unfit(const struct nats_stream *is, const struct replica_epoch *claim)
{
	return is->wrong && claim->state == REPLICA_UP;
}

natsStatus nats_setup_stream(struct nats_setup *n, const struct replica_epoch *claim,
			     struct nats_stream *is)
{
	jsStreamInfo *info = NULL;
	char *name = replica_stream(n->node);
	char *subjects = replica_subjects(n->node, claim->epoch);
	natsStatus s = ask_for_stream(n, name, n->wait_ms, &info);
	struct replica_epoch to = claim_for(s == NATS_OK ? info : NULL, claim);
	char *text = replica_claim(&to);
	describe_stream(info, s, is);
	is->alone = to.alone == ALONE_SAID;
	if (is->fresh)
		s = write_claim(n, NULL, name, subjects, text);
	else if (s == NATS_OK && is_anothers(info->Config, claim))
		s = NATS_ILLEGAL_STATE;
	else if (s == NATS_OK && is_unfit(is, claim))
		s = NATS_INVALID_ARG;
	else if (s == NATS_OK && (is->mended || !takes_only(info->Config, subjects) ||
				  !has_description(info->Config, text)))
		s = write_claim(n, info->Config, name, subjects, text);
	jsStreamInfo_Destroy(info);
	free(text);
	free(subjects);
	free(name);
	return s;
}

natsStatus nats_setup_claim(struct nats_setup *n, const char *node, struct replica_epoch *claim,
			    bool *there)
{
	jsStreamInfo *info = NULL;
	char *name = replica_stream(node);
	natsStatus s = ask_for_stream(n, name, n->wait_ms / NATS_SETUP_BRIEFLY, &info);
	*there = s == NATS_OK && claim_of(info->Config, claim);
	jsStreamInfo_Destroy(info);
	free(name);
	return s == NATS_NOT_FOUND ? NATS_OK : s;
}

bool nats_setup_nodes(struct nats_setup *n, void (*found)(void *owner, const char *node),
		      void *owner)
{
	jsStreamNamesList *all = NULL;
	char node[REPLICA_NODE_MAX + 1];
	jsOptions o = options_within(n->wait_ms / NATS_SETUP_BRIEFLY);
	if (nats_setup_ends(n) || js_StreamNames(&all, n->js, &o, NULL) != NATS_OK)
		return false;
	for (int i = 0; i < all->Count; i++)
		if (replica_stream_parse(all->List[i], node))
			found(owner, node);
	jsStreamNamesList_Destroy(all);
	return true;
}

const char *nats_setup_text(natsStatus s)
{
	natsStatus last;
	const char *detail = s == NATS_ERR ? nats_GetLastError(&last) : NULL;
	return detail && *detail ? detail : natsStatus_GetText(s);
}

/* No epoch has the number 0. */
static natsStatus settle_stream(struct nats_setup *n, const struct nats_stream *is)
{
	if (is->wrong)
		return NATS_OK;
	char *name = replica_stream(n->node), *nothing = replica_subjects(n->node, 0);
	jsOptions o = options_within(n->wait_ms);
	jsErrCode code = 0;
	o.Stream.Purge.Subject = nothing;
	natsStatus s = nats_setup_ends(n) ? NATS_DRAINING : js_PurgeStream(n->js, name, &o, &code);
	free(nothing);
	free(name);
	return s == NATS_NOT_FOUND || code == JSStreamNotFoundErr ? NATS_OK : s;
}

static natsStatus look_at_same(struct nats_setup *n, const struct nats_stream *was,
			       struct nats_stream *is)
{
	natsStatus s = nats_setup_look(n, is);
	bool another = s == NATS_OK && !was->fresh && strcmp(is->leader, was->leader) != 0;
	return another ? NATS_TIMEOUT : s;
}

natsStatus nats_setup_look_settled(struct nats_setup *n, const struct nats_stream *was,
				   struct nats_stream *is)
{
	natsStatus s = settle_stream(n, was);
	return s == NATS_OK ? look_at_same(n, was, is) : s;
}

static natsStatus ask_last(struct nats_setup *n, uint64_t *epoch, uint32_t *beat)
{
	char token[REPLICA_TOKEN];
	natsMsg *m = NULL;
	struct replica_head h;
	const uint8_t *payload;
	char *name = replica_stream(n->node);
	char *all = mem_printf("sluice.%s.>", replica_token(n->node, token));
	natsStatus s = nats_setup_ends(n) ? NATS_DRAINING
					  : js_GetLastMsg(&m, n->js, name, all, NULL, NULL);
	if (s == NATS_OK && replica_message_get(natsMsg_GetData(m),
						(size_t)natsMsg_GetDataLength(m), &h, &payload)) {
		*epoch = h.epoch;
		*beat = h.beat;
	}
	natsMsg_Destroy(m);
	free(all);
	free(name);
	return s == NATS_NOT_FOUND ? NATS_OK : s;
}

natsStatus nats_setup_last(struct nats_setup *n, uint64_t *epoch, uint32_t *beat)
{
	struct nats_stream was, is;
	*epoch = 0;
	*beat = 0;
	natsStatus s = nats_setup_look(n, &was);
	if (s == NATS_OK && was.fresh)
		return NATS_OK;
	if (s == NATS_OK)
		s = settle_stream(n, &was);
	if (s == NATS_OK)
		s = ask_last(n, epoch, beat);
	if (s == NATS_OK)
		s = look_at_same(n, &was, &is);
	return s;
}

natsStatus nats_setup_purge(struct nats_setup *n, const char *subject, uint64_t before,
			    uint64_t keep)
{
	char *name = replica_stream(n->node);
	jsOptions o;
	jsOptions_Init(&o);
	o.Wait = API_MS;
	if (*subject)
		o.Stream.Purge.Subject = subject;
	o.Stream.Purge.Sequence = before;
	o.Stream.Purge.Keep = keep;
	natsStatus s = nats_setup_ends(n) ? NATS_DRAINING : js_PurgeStream(n->js, name, &o, NULL);
	free(name);
	return s;
}
