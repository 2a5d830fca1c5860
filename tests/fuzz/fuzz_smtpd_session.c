/* SPDX-License-Identifier: ISC */
/* A session from its connection to its end, by socket, with TLS where wanted; session_model.h says
 * what of it must have been accepted, and that nothing else was.
 *
 * The first byte chooses the listener and the spool's mood, the second the size of the pieces in
 * which the client sends; what follows is sent as it is, but for ` and one letter behind it:
 *
 *	`T  shake hands		`N  end TLS, not the connection		`E  send no more
 *	`P  past TLS: plain text on the socket from here on		`X  hang up
 *	`S  a minute passes	`A  the spool answers			`F  the disk is full, or not any more
 *	`L  a thousand octets	`K  sixteen thousand, in lines		`Z  the relay ends
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/keeper.h"
#include "tests/fuzz/session_model.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "smtpd/session.h"
#include "smtpd/session_run.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

enum how { /* the first byte */
	   HOW_TLS = 3,
	   HOW_NORMALISE = 4,
	   HOW_NO_CHUNKING = 8,
	   HOW_TIGHT = 16, /* limits that are soon reached */
	   HOW_LATE = 32,  /* the spool answers when told */
	   HOW_STRANGER = 64,
	   HOW_REFUSES = 128, /* the spool keeps no message */
	   HOW_LISTENERS = 16,
};

enum { MINUTE_US = 60000000, TIGHT_SIZE = 2000 };

static struct conf *conf[2]; /* 1: tight */
static struct service *service[2][HOW_LISTENERS];
static struct smtpd_worker *worker;
static struct spool *keeper;
static SSL_CTX *client_tls;
static int64_t now_us = 1000000000;

/* One run. */
static struct {
	struct model model;
	struct listener listener;
	atomic_long connections;
	uint8_t how;
	int fd, seen; /* seen: messages of the keeper that the model knows of */
	SSL *ssl;
	bool secure, raw, ended, hangs_up;
} client;

static void write_certificate(struct fuzz_file *f)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();
	BIO *to = BIO_new(BIO_s_mem());
	char *bytes;
	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), -86400);
	X509_gmtime_adj(X509_getm_notAfter(x), 86400 * 365);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
				   (const unsigned char *)"relay.test", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(x));
	X509_set_pubkey(x, key);
	X509_sign(x, key, EVP_sha256());
	PEM_write_bio_PrivateKey(to, key, NULL, NULL, 0, NULL, NULL);
	PEM_write_bio_X509(to, x);
	long len = BIO_get_mem_data(to, &bytes);
	fuzz_file_write(f, bytes, (size_t)len);
	BIO_free(to);
	X509_free(x);
	EVP_PKEY_free(key);
}

static struct conf *make_conf(bool tight, const char *pem)
{
	static const char *const tls[] = {"none", "optional", "required", "implicit"};
	static struct fuzz_file file[2];
	struct buf text, errors;
	buf_init(&text);
	buf_init(&errors);
	/* The model compares content that stays what it was. */
	buf_puts(&text, "hostname = \"relay.test\"\ndrop_headers = {}\n");
	if (tight)
		buf_printf(&text,
			   "message_size_limit = %d\nhopcount_limit = 3\n"
			   "session_memory_limit = 600\n",
			   TIGHT_SIZE);
	for (unsigned i = 0; i < HOW_LISTENERS; i++) {
		buf_printf(&text, "listener %c {\naddress = { \"127.0.0.1:%u\" }\ntls = %s\n",
			   'a' + (int)i, 1000 + i, tls[i & HOW_TLS]);
		buf_printf(&text, "certificate = \"%s\"\nkey = \"%s\"\n", pem, pem);
		if (i & HOW_NORMALISE)
			buf_puts(&text, "bare_newline = normalise\n");
		if (i & HOW_NO_CHUNKING)
			buf_puts(&text, "chunking = false\n");
		if (tight)
			buf_puts(&text, "error_limit = 5\njunk_command_limit = 4\n"
					"recipient_limit = 3\nline_limit = 1000\n");
		buf_puts(&text, "}\n");
	}
	fuzz_file_write(&file[tight], buf_data(&text), buf_len(&text));
	struct conf *c = conf_read_with(file[tight].path, CONF_WITH_KEYS, &errors);
	if (!c)
		fprintf(stderr, "%s", buf_cstr(&errors));
	assert(c && c->nlistener == HOW_LISTENERS);
	for (int i = 0; i < HOW_LISTENERS; i++)
		service[tight][c->listener[i].title[0] - 'a'] =
			service_new(c, &c->listener[i], &errors);
	buf_fini(&text);
	buf_fini(&errors);
	return c;
}

static void begin(void)
{
	static struct fuzz_file pem;
	fuzz_quiet();
	clock_stand(now_us);
	signal(SIGPIPE, SIG_IGN);
	write_certificate(&pem);
	for (int tight = 0; tight < 2; tight++)
		conf[tight] = make_conf(tight, pem.path);
	keeper = keeper_new();
	worker = smtpd_worker_new(conf[0], keeper, clients_new());
	client_tls = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_min_proto_version(client_tls, TLS1_2_VERSION);
}

/* --- the neighbours take their turns */

static void remember(const struct spool_store *s)
{
	struct model *m = &client.model;
	size_t len;
	const char *bytes = keeper_content(s, &len);
	assert(m->nkept < MODEL_KEPT_MAX);
	m->kept[m->nkept++] = (struct kept){.sender = mem_strdup(s->envelope->sender),
					    .content = mem_strndup("", 0),
					    .len = len,
					    .nrcpt = s->envelope->nrcpt,
					    .refused = client.how & HOW_REFUSES};
	struct kept *k = &m->kept[m->nkept - 1];
	k->content = mem_realloc(k->content, len + 1);
	memcpy(k->content, bytes, len);
}

static bool spool_turn(bool answers)
{
	bool came = mailbox_drain(&keeper->loop->mailbox);
	while (client.seen < keeper->nwaiting)
		remember(keeper->waiting[client.seen++]);
	if (keeper->nwaiting == 0 || !answers)
		return came;
	keeper_answer(keeper, !(client.how & HOW_REFUSES));
	client.seen--;
	return true;
}

static bool hear(void)
{
	char bytes[4096];
	if (client.ended)
		return false;
	ssize_t n = client.secure ? SSL_read(client.ssl, bytes, sizeof bytes)
				  : recv(client.fd, bytes, sizeof bytes, MSG_DONTWAIT);
	if (n > 0) {
		/* During the handshake it is not SMTP that comes. */
		if (client.model.state != MODEL_HANDSHAKE || client.secure)
			buf_append(&client.model.heard, bytes, (size_t)n);
		return true;
	}
	if (client.secure)
		client.ended = SSL_get_error(client.ssl, (int)n) != SSL_ERROR_WANT_READ;
	else
		client.ended = n == 0 || (errno != EAGAIN && errno != EINTR);
	return false;
}

static void turns(bool answers)
{
	for (int quiet = 0; quiet < 3; quiet++) {
		ev_run(worker->loop->ev, EVRUN_NOWAIT);
		if (spool_turn(answers))
			quiet = 0;
		/* Those that shake hands read for themselves. */
		while (!(client.ssl && !client.secure) && hear())
			quiet = 0;
	}
	model_run(&client.model);
}

static void run(void)
{
	turns(!(client.how & HOW_LATE));
}

/* --- what the client does */

static void shake_hands(void)
{
	struct model *m = &client.model;
	bool implicit = (client.how & HOW_TLS) == LISTENER_TLS_IMPLICIT;
	bool may = !client.ssl && !client.raw && !client.ended &&
		   (m->state == MODEL_HANDSHAKE || (implicit && m->state == MODEL_GREETING));
	if (!may)
		return;
	client.ssl = SSL_new(client_tls);
	SSL_set_fd(client.ssl, client.fd);
	SSL_set_connect_state(client.ssl);
	for (int i = 0; i < 8 && !client.secure; i++) {
		client.secure = SSL_do_handshake(client.ssl) == 1;
		if (!client.secure)
			turns(false);
	}
	client.raw = !client.secure;
	if (client.secure && m->state == MODEL_HANDSHAKE)
		m->state = MODEL_COMMAND;
	m->tls = client.secure;
	m->hello = false;
	model_forget(m);
	run();
}

/* What is sent past TLS, or before it where it must be, says nothing to a server. */
static void send_piece(const char *bytes, size_t len)
{
	struct model *m = &client.model;
	bool implicit = (client.how & HOW_TLS) == LISTENER_TLS_IMPLICIT;
	bool counts = !client.raw && (client.secure || (m->state != MODEL_HANDSHAKE && !implicit));
	ssize_t n = client.secure && !client.raw ? SSL_write(client.ssl, bytes, (int)len)
						 : send(client.fd, bytes, len, MSG_NOSIGNAL);
	if (n > 0 && counts)
		buf_append(&m->said, bytes, (size_t)n);
	run();
}

static void say(const char *bytes, size_t len, size_t piece)
{
	for (size_t at = 0, n; at < len && !client.ended; at += n) {
		n = len - at < piece ? len - at : piece;
		send_piece(bytes + at, n);
	}
}

static void say_much(size_t len, size_t line)
{
	char *bytes = mem_alloc(len);
	for (size_t i = 0; i < len; i++)
		bytes[i] = i % line == line - 2 ? '\r' : i % line == line - 1 ? '\n' : 'x';
	say(bytes, len, len);
	free(bytes);
}

static void act(uint8_t what)
{
	switch (what) {
	case 'T':
		shake_hands();
		break;
	case 'N':
		if (client.secure && !client.raw)
			SSL_shutdown(client.ssl);
		client.raw |= client.secure;
		break;
	case 'P':
		client.raw |= client.secure;
		break;
	case 'E':
		shutdown(client.fd, SHUT_WR);
		break;
	case 'S':
		clock_stand(now_us += MINUTE_US);
		break;
	case 'A':
		turns(true);
		break;
	case 'F':
		keeper->accepting = !keeper->accepting;
		break;
	case 'L':
		say_much(1000, 2000);
		break;
	case 'K':
		say_much(16000, 80);
		break;
	case 'Z':
		worker->closing = true;
		break;
	default:
		say("`", 1, 1);
	}
	run();
}

static void open_session(uint8_t how)
{
	static const char *const peer[] = {"127.0.0.1", "203.0.113.9"};
	union address a;
	int fd[2];
	bool tight = how & HOW_TIGHT;
	memset(&client, 0, sizeof client);
	client.how = how;
	client.model.normalise = how & HOW_NORMALISE;
	client.model.offers_tls = (how & HOW_TLS) != LISTENER_TLS_NONE;
	client.model.needs_tls = (how & HOW_TLS) == LISTENER_TLS_REQUIRED;
	client.model.size_max = (uint64_t)conf[tight]->message_size_limit;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) != 0)
		abort();
	client.fd = fd[0];
	client.listener = (struct listener){.worker = worker,
					    .service = service[tight][how % HOW_LISTENERS],
					    .connections = &client.connections};
	address_parse(peer[how & HOW_STRANGER ? 1 : 0], 4000, &a);
	atomic_store(&client.connections, 1);
	if (clients_enter(worker->clients, &a, 0, client.listener.service->listener, now_us) !=
	    CLIENTS_WELCOME)
		abort();
	descriptors_count(DESCRIPTORS_CLIENTS);
	session_open(&client.listener, fd[1], &a);
	run();
}

static void close_session(void)
{
	bool unheard = client.hangs_up && keeper->nwaiting > 0;
	while (!client.hangs_up && keeper->nwaiting > 0)
		turns(true);
	/* Whoever has said a whole command, and reads, is answered. */
	bool waits = client.model.state == MODEL_COMMAND && !client.raw && !client.ended &&
		     model_find(&client.model, "\r\n", 2);
	assert(!waits || unheard);
	SSL_free(client.ssl);
	client.ssl = NULL;
	client.ended = true;
	close(client.fd);
	for (int i = 0; i < 3; i++) {
		turns(true);
		clock_stand(now_us += MINUTE_US);
	}
	assert(list_empty(&worker->sessions) && list_empty(&worker->loop->lingering));
	assert(client.connections == 0 && keeper->expected == 0 && keeper->nwaiting == 0);
	model_close(&client.model, unheard);
	model_fini(&client.model);
	worker->closing = false;
	keeper->accepting = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	if (!worker)
		begin();
	size_t piece = data[1] ? data[1] : size;
	const uint8_t *at = data + 2, *end = data + size;
	open_session(data[0]);
	while (at < end && !client.ended) {
		const uint8_t *mark = memchr(at, '`', (size_t)(end - at));
		say((const char *)at, (size_t)((mark ? mark : end) - at), piece);
		if (!mark)
			break;
		client.hangs_up = mark + 1 < end && mark[1] == 'X';
		if (client.hangs_up)
			break;
		if (mark + 1 < end)
			act(mark[1]);
		at = mark + 2;
	}
	close_session();
	return 0;
}
