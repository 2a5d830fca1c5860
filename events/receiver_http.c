/* SPDX-License-Identifier: ISC */
/* An HTTP server, to which batches of lines are posted. 2xx takes them; 400, 413 and 422 say that it will
 * never take these; all else, also a redirection, says later. */
#include "base/clock.h"
#include "base/file_io.h"
#include "base/https_ca.h"
#include "events/receiver_impl.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAX = 64 << 10, TOKEN_MAX = 8 << 10, SECONDS_MAX = 3600 };

struct post {
	struct receiver *receiver;
	int64_t began_ms;
	size_t answered; /* bytes of what it says behind the head, which nobody reads */
};

static void close_connection(struct receiver *r)
{
	if (r->curl)
		curl_easy_cleanup(r->curl);
	r->curl = NULL;
}

static size_t ignore_answer(char *data, size_t size, size_t n, void *context)
{
	struct post *p = context;
	(void)data;
	p->answered += size * n;
	return p->answered > ANSWER_MAX ? 0 : size * n;
}

static int may_go_on(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	struct post *p = context;
	(void)a, (void)b, (void)c, (void)d;
	return !receiver_in_time(p->receiver, p->began_ms);
}

/* NULL: why. */
static struct curl_slist *make_header(const struct receiver *r, struct buf *why)
{
	static const char bearer[] = "Authorization: Bearer ";
	struct curl_slist *header = curl_slist_append(NULL, "Content-Type: application/x-ndjson");
	char line[sizeof bearer + TOKEN_MAX];
	header = curl_slist_append(header, "Expect:");
	if (!*r->conf->events.token)
		return header;
	memcpy(line, bearer, sizeof bearer);
	if (file_read_line(r->conf->events.token, line + sizeof bearer - 1, TOKEN_MAX + 1, why)) {
		header = curl_slist_append(header, line);
	} else {
		curl_slist_free_all(header);
		header = NULL;
	}
	explicit_bzero(line, sizeof line);
	return header;
}

static void forget_header(struct curl_slist *header)
{
	for (struct curl_slist *h = header; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl_slist_free_all(header);
}

static bool prepare_curl(struct receiver *r)
{
	if (r->curl)
		return true;
	CURL *c = r->curl = curl_easy_init();
	if (!c)
		return false;
	curl_easy_setopt(c, CURLOPT_URL, r->where);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L); /* as in base/https.c */
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, may_go_on);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, ignore_answer);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "sluice");
	if (*r->conf->tls.ca)
		https_ca_set(c, r->conf->tls.ca);
	return true;
}

/* So many lines, and the bytes that they take. */
static size_t batch_of(const struct receiver *r, const char *lines, size_t len)
{
	const char *at = lines, *end = lines + len;
	for (int64_t n = 0; n < r->conf->events.batch && at < end; n++)
		at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
	return (size_t)(at - lines);
}

/* The status is the answer, also of one that is cut short behind it, or by it. */
static enum receiver_answer judge_answer(struct receiver *r, CURLcode how, const char *error,
					 struct buf *why)
{
	long status = 0;
	curl_off_t seconds = 0;
	curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
	if (how != CURLE_OK && status < 200) {
		buf_printf(why, "%s: %s", r->where, *error ? error : curl_easy_strerror(how));
		return RECEIVER_AWAY;
	}
	curl_easy_getinfo(r->curl, CURLINFO_RETRY_AFTER, &seconds);
	if (status / 100 == 2)
		return RECEIVER_TOOK;
	buf_printf(why, "%s answers %ld", r->where, status);
	if (status == 400 || status == 413 || status == 422)
		return RECEIVER_REFUSES;
	r->retry_ms = 1000 * (int64_t)(seconds < SECONDS_MAX ? seconds : SECONDS_MAX);
	return RECEIVER_AWAY;
}

static enum receiver_answer post_lines(struct receiver *r, const char *lines, size_t len,
				       struct curl_slist *header, struct buf *why)
{
	struct post p = {.receiver = r, .began_ms = clock_steady_ms()};
	char error[CURL_ERROR_SIZE] = "";
	CURL *c = r->curl;
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)r->conf->events.timeout);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, header);
	curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, (long)len);
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, lines);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, &p);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, &p);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, error);
	CURLcode how = curl_easy_perform(c);
	enum receiver_answer answer = judge_answer(r, how, error, why);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, NULL);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, NULL);
	return answer;
}

static enum receiver_answer give_lines(struct receiver *r, const char *lines, size_t len,
				       size_t *taken, struct buf *why)
{
	size_t batch = batch_of(r, lines, len);
	struct curl_slist *header = make_header(r, why);
	if (!header)
		return RECEIVER_AWAY;
	enum receiver_answer answer = RECEIVER_AWAY;
	if (prepare_curl(r))
		answer = post_lines(r, lines, batch, header, why);
	else
		buf_puts(why, "libcurl cannot be used");
	forget_header(header);
	if (answer != RECEIVER_AWAY)
		*taken = batch;
	return answer;
}

const struct receiver_kind receiver_http = {give_lines, close_connection};
