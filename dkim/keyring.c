/* SPDX-License-Identifier: ISC */
#include "dkim/keyring.h"

#include "base/condition.h"
#include "base/file_io.h"
#include "base/keyed_hash.h"
#include "base/mem.h"
#include "base/refs.h"
#include "base/tls_keys.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RSA_BITS_MIN = 1024 }; /* RFC 8301 3.2 */

struct kept {
	struct conf_dkim by; /* first */
	atomic_int refs;     /* one is the ring's, while it is in there */
	char *name;
	struct stat stamp;
	UT_hash_handle hh;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *ring; /* in the order in which they were used */

static void release_key(struct kept *k)
{
	if (!refs_drop(&k->refs))
		return;
	EVP_MD_CTX_free(k->by.signing);
	EVP_PKEY_free(k->by.loaded);
	free(k->by.title);
	free(k->by.selector);
	free(k->by.key);
	free(k->name);
	free(k);
}

/* With a reference more; NULL: it is to be read. */
static struct kept *find_key(const char *name, const struct stat *now)
{
	struct kept *k;
	pthread_mutex_lock(&lock);
	HASH_FIND_STR(ring, name, k);
	if (k)
		HASH_DEL(ring, k);
	if (k && !file_is_same(&k->stamp, now)) {
		release_key(k);
		k = NULL;
	} else if (k) {
		HASH_ADD_KEYPTR(hh, ring, k->name, strlen(k->name), k);
		refs_take(&k->refs);
	}
	pthread_mutex_unlock(&lock);
	return k;
}

/* Another thread may have read it meanwhile: that one goes. */
static void keep_key(struct kept *k)
{
	struct kept *other;
	pthread_mutex_lock(&lock);
	HASH_FIND_STR(ring, k->name, other);
	if (!other && HASH_COUNT(ring) >= KEYRING_MAX)
		other = ring;
	if (other) {
		HASH_DEL(ring, other);
		release_key(other);
	}
	HASH_ADD_KEYPTR(hh, ring, k->name, strlen(k->name), k);
	assert(HASH_COUNT(ring) <= KEYRING_MAX);
	pthread_mutex_unlock(&lock);
}

static const char *key_fault(EVP_PKEY *key)
{
	int kind = EVP_PKEY_get_base_id(key);
	if (kind == EVP_PKEY_RSA && EVP_PKEY_get_bits(key) < RSA_BITS_MIN)
		return "it is RSA of less than 1024 bits";
	return kind == EVP_PKEY_RSA || kind == EVP_PKEY_ED25519 ? NULL
								: "it is neither RSA nor Ed25519";
}

static bool load_key(struct conf_dkim *by, struct buf *why)
{
	by->loaded = tls_keys_private(by->key);
	const char *bad = by->loaded ? key_fault(by->loaded) : tls_keys_reason();
	if (!bad && !(by->signing = tls_keys_signing(by->loaded)))
		bad = tls_keys_reason();
	if (bad)
		buf_printf(why, "the key %s can not be used: %s", by->key, bad);
	ERR_clear_error();
	condition_turn(CONDITION_dkim_key_unreadable, bad != NULL, by->key, bad);
	return !bad;
}

const struct conf_dkim *keyring_take(const char *domain, const char *selector, const char *file,
				     struct buf *why)
{
	struct stat now = {0};
	char *name = mem_printf("%s %s %s", domain, selector, file);
	stat(file, &now);
	struct kept *k = find_key(name, &now);
	if (k) {
		free(name);
		return &k->by;
	}
	k = mem_zalloc(sizeof *k);
	k->name = name;
	k->stamp = now;
	k->by.title = mem_strdup(domain);
	k->by.selector = mem_strdup(selector);
	k->by.key = mem_strdup(file);
	atomic_init(&k->refs, 1);
	if (!load_key(&k->by, why)) {
		release_key(k);
		return NULL;
	}
	refs_take(&k->refs);
	keep_key(k);
	return &k->by;
}

void keyring_give(const struct conf_dkim *by)
{
	if (by)
		release_key((struct kept *)(uintptr_t)by);
}
