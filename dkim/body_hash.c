/* SPDX-License-Identifier: ISC */
#include "dkim/body_hash.h"

#include "base/mem.h"
#include "dkim/canonical_body.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>

enum { PIECE = 64 << 10 };

/* The body in one of its forms. */
struct form {
	struct canonical_body body;
	EVP_MD_CTX *digest;
};

static void digest_bytes(void *owner, const char *bytes, size_t len)
{
	struct form *f = owner;
	EVP_DigestUpdate(f->digest, bytes, len);
}

static bool form_begin(struct form *f, bool relaxed)
{
	canonical_body_init(&f->body, relaxed, digest_bytes, f);
	f->digest = EVP_MD_CTX_new();
	return f->digest && EVP_DigestInit_ex(f->digest, signature_sha256(), NULL) == 1;
}

static bool form_end(struct form *f, unsigned char hash[SIGNATURE_HASH])
{
	canonical_body_end(&f->body);
	return EVP_DigestFinal_ex(f->digest, hash, NULL) == 1;
}

static bool is_form_wanted(const struct conf_dkim *const by[], int n, bool relaxed)
{
	for (int i = 0; i < n; i++)
		if (signature_body_relaxed(by[i]) == relaxed)
			return true;
	return false;
}

static void put_bytes(struct form form[2], const char *bytes, size_t len)
{
	for (int i = 0; i < 2; i++)
		if (form[i].digest)
			canonical_body_put(&form[i].body, bytes, len);
}

static int read_body(const struct draft *d, struct form form[2])
{
	size_t len;
	const char *all = draft_body_bytes(d, &len);
	if (all) {
		put_bytes(form, all, len);
		return 0;
	}
	char *piece = mem_alloc(PIECE);
	ssize_t n;
	for (uint64_t at = 0; (n = draft_body(d, at, piece, PIECE)) > 0; at += (uint64_t)n)
		put_bytes(form, piece, (size_t)n);
	int error = n < 0 ? errno : 0;
	free(piece);
	return error;
}

int body_hash(const struct draft *d, const struct conf_dkim *const by[], int n,
	      struct body_hash *hash)
{
	struct form *form = mem_alloc(2 * sizeof *form);
	assert(n > 0);
	bool ok = true;
	form[0].digest = form[1].digest = NULL;
	for (int i = 0; i < 2; i++)
		ok = ok && (!is_form_wanted(by, n, i) || form_begin(&form[i], i));
	int error = ok ? read_body(d, form) : EIO;
	for (int i = 0; i < 2; i++) {
		if (form[i].digest && !form_end(&form[i], hash->of[i]))
			ok = false;
		EVP_MD_CTX_free(form[i].digest);
	}
	free(form);
	return error || ok ? error : EIO;
}

const unsigned char *body_hash_for(const struct body_hash *hash, const struct conf_dkim *by)
{
	return hash->of[signature_body_relaxed(by)];
}
