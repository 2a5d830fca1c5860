/* SPDX-License-Identifier: ISC */
#include "dkim/signature.h"

#include "base/base64.h"
#include "base/header_field.h"
#include "base/mem.h"
#include "base/words.h"

#include <assert.h>
#include <ctype.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_WANTED = 76, SIGNATURE_MAX = 2048 };

/* Fields that a reader sees, of MIME, and that are answered to; RFC 6376 5.4.1. A mailing list may name itself as
 * Sender and add its own List fields; of those that are there none may change. RFC 8058 4 wants
 * List-Unsubscribe-Post signed. */
static const char *const usual[] = {
	"From",
	"Reply-To",
	"Subject",
	"Date",
	"To",
	"Cc",
	"Message-ID",
	"In-Reply-To",
	"References",
	"MIME-Version",
	"Content-Type",
	"Content-Transfer-Encoding",
	"Sender?",
	"Resent-Date?",
	"Resent-From?",
	"Resent-Sender?",
	"Resent-To?",
	"Resent-Cc?",
	"Resent-Message-ID?",
	"List-Id?",
	"List-Help?",
	"List-Unsubscribe?",
	"List-Unsubscribe-Post?",
	"List-Subscribe?",
	"List-Post?",
	"List-Owner?",
	"List-Archive?",
	"Auto-Submitted?",
	"Feedback-ID?",
};

static EVP_MD *sha256;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fetch_sha256(void)
{
	sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

const EVP_MD *signature_sha256(void)
{
	pthread_once(&once, fetch_sha256);
	return sha256 ? sha256 : EVP_sha256();
}

bool signature_body_relaxed(const struct conf_dkim *d)
{
	return d->canonicalization == DKIM_RELAXED_RELAXED ||
	       d->canonicalization == DKIM_SIMPLE_RELAXED;
}

static bool header_relaxed(const struct conf_dkim *d)
{
	return d->canonicalization == DKIM_RELAXED_RELAXED ||
	       d->canonicalization == DKIM_RELAXED_SIMPLE;
}

bool signature_rsa(const struct conf_dkim *d)
{
	return EVP_PKEY_get_base_id(d->loaded) == EVP_PKEY_RSA;
}

void signature_field_relaxed(const char *field, size_t len, struct buf *to)
{
	const char *end = field + len, *p = field;
	size_t name = header_field_name(field, len);
	char *at = buf_reserve(to, len + 2), *begin = at;
	assert(name > 0);
	for (; p < field + name; p++)
		*at++ = (char)tolower((unsigned char)*p);
	p = (const char *)memchr(p, ':', (size_t)(end - p)) + 1;
	*at++ = ':';
	while (end > p && words_is_blank(end[-1]))
		end--;
	while (p < end && words_is_blank(*p))
		p++;
	for (bool blank = false; p < end; p++) {
		if (!words_is_blank(*p))
			*at++ = *p;
		else if (!blank)
			*at++ = ' ';
		blank = words_is_blank(*p);
	}
	*at++ = '\r';
	*at++ = '\n';
	buf_commit(to, (size_t)(at - begin));
}

static void put_field(const struct conf_dkim *d, const struct draft_field *f, struct buf *to)
{
	if (header_relaxed(d)) {
		signature_field_relaxed(f->text, f->len, to);
		return;
	}
	buf_append(to, f->text, f->len);
	/* The last line of a message that is all header may lack its end; the receiver has it. */
	if (f->text[f->len - 1] != '\n')
		buf_puts(to, "\r\n");
}

/* The h= tag, folded; and what is hashed because of it. */
struct names {
	const struct conf_dkim *by;
	const struct draft_field *field;
	int nfield;
	struct buf tag, hashed;
	size_t line; /* where in the tag its last line begins */
};

static void put_name(struct names *n, const char *name, size_t len)
{
	if (buf_len(&n->tag) > 0)
		buf_puts(&n->tag, ":");
	if (buf_len(&n->tag) - n->line + len > LINE_MAX_WANTED) {
		buf_puts(&n->tag, "\r\n\t");
		n->line = buf_len(&n->tag);
	}
	buf_append(&n->tag, name, len);
}

static void put_names(struct names *n, const char *listed)
{
	size_t len = strlen(listed);
	bool once_more = listed[len - 1] != '?';
	len -= !once_more;
	for (int i = n->nfield - 1; i >= 0; i--) {
		const struct draft_field *f = &n->field[i];
		/* Nearly always that is enough to know. */
		if (tolower((unsigned char)f->text[0]) != tolower((unsigned char)listed[0]))
			continue;
		size_t name = header_field_name(f->text, f->len);
		if (name != len || strncasecmp(f->text, listed, len) != 0)
			continue;
		put_name(n, listed, len);
		put_field(n->by, f, &n->hashed);
	}
	if (once_more)
		put_name(n, listed, len);
}

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "?"), m = strcspn(b, "?");
	return n == m && strncasecmp(a, b, n) == 0;
}

static void put_list(struct names *n, const char *const *listed, int count)
{
	bool from = false;
	for (int i = 0; i < count; i++) {
		int before = 0;
		while (before < i && !same_name(listed[before], listed[i]))
			before++;
		if (before == i)
			put_names(n, listed[i]);
		from = from || same_name(listed[i], "From");
	}
	if (!from)
		put_names(n, "From");
}

static size_t sign_text(const struct conf_dkim *d, const struct buf *text,
			unsigned char to[SIGNATURE_MAX])
{
	unsigned char hash[SIGNATURE_HASH];
	const unsigned char *what = (const unsigned char *)buf_data(text);
	size_t len = buf_len(text), size = SIGNATURE_MAX;
	/* Ed25519 signs the hash, not the text (RFC 8463 3). */
	if (!signature_rsa(d)) {
		if (EVP_Digest(what, len, hash, NULL, signature_sha256(), NULL) != 1)
			return 0;
		what = hash;
		len = sizeof hash;
	}
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	bool ok = c && EVP_MD_CTX_copy_ex(c, d->signing) == 1;
	/* The digest is not gone on with, so that OpenSSL need not copy it once more. */
	if (ok)
		EVP_MD_CTX_set_flags(c, EVP_MD_CTX_FLAG_FINALISE);
	ok = ok && EVP_DigestSign(c, to, &size, what, len) == 1;
	EVP_MD_CTX_free(c);
	return ok ? size : 0;
}

static void put_base64(struct buf *to, const unsigned char *bytes, size_t len, size_t column)
{
	assert(column < LINE_MAX_WANTED);
	struct buf text = {0};
	base64_encode(&text, bytes, len);
	for (size_t at = 0; at < buf_len(&text);) {
		size_t n = LINE_MAX_WANTED - column;
		if (n > buf_len(&text) - at)
			n = buf_len(&text) - at;
		buf_append(to, buf_data(&text) + at, n);
		at += n;
		if (at < buf_len(&text))
			buf_puts(to, "\r\n\t");
		column = 0;
	}
	buf_fini(&text);
}

static void put_tags(const struct conf_dkim *d, const struct buf *names,
		     const unsigned char hash[SIGNATURE_HASH], int64_t now_s, int64_t until_s,
		     struct buf *to)
{
	const char *domain = d->title + (d->title[0] == '.');
	buf_printf(to, "DKIM-Signature: v=1; a=%s-sha256; c=%s/%s;\r\n\td=%s; s=%s;\r\n\tt=%lld;",
		   signature_rsa(d) ? "rsa" : "ed25519", header_relaxed(d) ? "relaxed" : "simple",
		   signature_body_relaxed(d) ? "relaxed" : "simple", domain, d->selector,
		   (long long)now_s);
	if (until_s > 0)
		buf_printf(to, " x=%lld;", (long long)until_s);
	buf_puts(to, "\r\n\th=");
	buf_append(to, buf_data(names), buf_len(names));
	buf_puts(to, ";\r\n\tbh=");
	put_base64(to, hash, SIGNATURE_HASH, strlen("bh="));
	buf_puts(to, ";\r\n\tb=");
}

char *signature_make(const struct conf_dkim *d, const struct draft_field *fields, int nfield,
		     const unsigned char body_hash[SIGNATURE_HASH], int64_t now_s, int64_t until_s)
{
	struct names n = {.by = d, .field = fields, .nfield = nfield};
	unsigned char signature[SIGNATURE_MAX];
	struct buf field = {0};
	assert(d->loaded && d->signing);
	if (d->headers.n > 0)
		put_list(&n, (const char *const *)d->headers.item, d->headers.n);
	else
		for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
			put_names(&n, usual[i]);
	put_tags(d, &n.tag, body_hash, now_s, until_s, &field);
	/* The field itself comes last, its signature empty, without an end. */
	const struct draft_field own = {buf_data(&field), buf_len(&field), NULL};
	put_field(d, &own, &n.hashed);
	buf_shorten(&n.hashed, 2);
	size_t len = sign_text(d, &n.hashed, signature);
	put_base64(&field, signature, len, strlen("b="));
	buf_puts(&field, "\r\n");
	char *text = len > 0 ? mem_strdup(buf_cstr(&field)) : NULL;
	buf_fini(&n.tag);
	buf_fini(&n.hashed);
	buf_fini(&field);
	return text;
}
