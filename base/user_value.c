/* SPDX-License-Identifier: ISC */
#include "base/user_value.h"

#include "base/base64.h"
#include "base/mem.h"
#include "base/words.h"

#include <assert.h>
#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

static const struct hash {
	const char *prefix;
	size_t bytes;
	const EVP_MD *(*md)(void);
} hashes[USER_HASHES] = {
	[USER_SHA1] = {"SCRAM-SHA-1$", 20, EVP_sha1},
	[USER_SHA256] = {"SCRAM-SHA-256$", 32, EVP_sha256},
};

size_t user_hash_bytes(enum user_hash h)
{
	assert(h < USER_HASHES);
	return hashes[h].bytes;
}

/* Base64 of least to most bytes, up to the character that ends it. NULL: it is none. */
static const char *take_bytes(const char *at, const char *end, char stop, size_t least, size_t most,
			      unsigned char *to, size_t *n)
{
	struct buf decoded = {0};
	const char *last = stop ? memchr(at, stop, (size_t)(end - at)) : end;
	bool good = last && base64_decode(&decoded, at, (size_t)(last - at)) &&
		    buf_len(&decoded) >= least && buf_len(&decoded) <= most;
	if (good) {
		*n = buf_len(&decoded);
		memcpy(to, buf_data(&decoded), *n);
	}
	buf_wipe(&decoded);
	return good ? last + (stop != '\0') : NULL;
}

static bool parse_scram(struct user_scram *s, enum user_hash h, const char *at, const char *end)
{
	size_t bytes = hashes[h].bytes, n;
	char *colon;
	long iterations = strtol(at, &colon, 10);
	if (s->iterations || colon == at || *colon != ':' || iterations < USER_ITERATIONS_MIN ||
	    iterations > USER_ITERATIONS_MAX)
		return false;
	at = take_bytes(colon + 1, end, '$', 1, USER_SALT_MAX, s->salt, &s->salt_bytes);
	if (at)
		at = take_bytes(at, end, ':', bytes, bytes, s->stored_key, &n);
	if (at)
		at = take_bytes(at, end, '\0', bytes, bytes, s->server_key, &n);
	if (at)
		s->iterations = (int)iterations;
	return at != NULL;
}

static bool parse_crypt(struct user_value *v, const char *word, size_t len)
{
	if (v->crypt)
		return false;
	v->crypt = mem_strndup(word, len);
	int form = crypt_checksalt(v->crypt);
	return form == CRYPT_SALT_OK || form == CRYPT_SALT_METHOD_LEGACY;
}

static bool parse_word(struct user_value *v, const char *word, size_t len)
{
	const char *end = word + len;
	size_t n;
	for (int h = 0; h < USER_HASHES; h++) {
		size_t prefix = strlen(hashes[h].prefix);
		if (len > prefix && strncmp(word, hashes[h].prefix, prefix) == 0)
			return parse_scram(&v->scram[h], (enum user_hash)h, word + prefix, end);
	}
	if (len > 4 && strncmp(word, "key$", 4) == 0) {
		v->has_key = take_bytes(word + 4, end, '\0', USER_KEY_MAX, USER_KEY_MAX, v->key,
					&n) != NULL;
		return v->has_key;
	}
	return word[0] == '$' && parse_crypt(v, word, len);
}

const char *user_value_parse(const char *text, struct user_value *v, struct buf *why)
{
	const char *rest = text, *word;
	size_t len;
	int words = 0;
	*v = (struct user_value){.crypt = NULL};
	while ((word = words_next(&rest, &len)) && len > 0) {
		words++;
		if (!parse_word(v, word, len)) {
			/* Its text may be a password that somebody has put here. */
			buf_puts(why, "neither a key of SCRAM, as sluice passwd writes it, nor a "
				      "hash of crypt(5)");
			return word;
		}
	}
	if (words > 0)
		return NULL;
	buf_puts(why, "there is no hash");
	return text;
}

void user_value_fini(struct user_value *v)
{
	mem_free_secret(v->crypt);
	explicit_bzero(v, sizeof *v);
}

static void print_scram(const struct user_scram *s, enum user_hash h, struct buf *to)
{
	size_t bytes = hashes[h].bytes;
	buf_printf(to, "%s%s%d:", buf_len(to) ? " " : "", hashes[h].prefix, s->iterations);
	base64_encode(to, s->salt, s->salt_bytes);
	buf_puts(to, "$");
	base64_encode(to, s->stored_key, bytes);
	buf_puts(to, ":");
	base64_encode(to, s->server_key, bytes);
}

void user_value_print(const struct user_value *v, struct buf *to)
{
	struct buf text = {0};
	for (int h = USER_HASHES - 1; h >= 0; h--)
		if (v->scram[h].iterations)
			print_scram(&v->scram[h], (enum user_hash)h, &text);
	if (v->crypt)
		buf_printf(&text, "%s%s", buf_len(&text) ? " " : "", v->crypt);
	if (v->has_key) {
		buf_printf(&text, "%skey$", buf_len(&text) ? " " : "");
		base64_encode(&text, v->key, sizeof v->key);
	}
	buf_puts(to, buf_cstr(&text));
	buf_wipe(&text);
}

static bool compute_hmac(enum user_hash h, const unsigned char *key, const char *text,
			 unsigned char *to)
{
	return HMAC(hashes[h].md(), key, (int)hashes[h].bytes, (const unsigned char *)text,
		    strlen(text), to, NULL) != NULL;
}

/* RFC 5802 3: Hi() is PBKDF2; StoredKey = H(HMAC(Hi, "Client Key")), ServerKey = HMAC(Hi, ...). */
static bool derive_keys(enum user_hash h, const char *password, const struct user_scram *with,
			struct user_scram *to)
{
	unsigned char salted[USER_KEY_MAX], client[USER_KEY_MAX];
	const struct hash *by = &hashes[h];
	assert(with->iterations > 0 && with->salt_bytes > 0 && with->salt_bytes <= USER_SALT_MAX);
	bool done = PKCS5_PBKDF2_HMAC(password, (int)strlen(password), with->salt,
				      (int)with->salt_bytes, with->iterations, by->md(),
				      (int)by->bytes, salted) == 1 &&
		    compute_hmac(h, salted, "Client Key", client) &&
		    EVP_Digest(client, by->bytes, to->stored_key, NULL, by->md(), NULL) == 1 &&
		    compute_hmac(h, salted, "Server Key", to->server_key);
	explicit_bzero(salted, sizeof salted);
	explicit_bzero(client, sizeof client);
	return done;
}

bool user_value_make_scram(struct user_value *v, enum user_hash h, const char *password,
			   int iterations)
{
	struct user_scram *s = &v->scram[h];
	s->iterations = iterations;
	s->salt_bytes = USER_SALT;
	return RAND_bytes(s->salt, USER_SALT) == 1 && derive_keys(h, password, s, s);
}

static char *crypt_with(const char *password, const char *setting)
{
	struct crypt_data *data = mem_zalloc(sizeof *data);
	const char *hash = crypt_r(password, setting, data);
	char *copy = hash && hash[0] != '*' ? mem_strdup(hash) : NULL;
	explicit_bzero(data, sizeof *data);
	free(data);
	return copy;
}

bool user_value_make_crypt(struct user_value *v, const char *password)
{
	char *setting = crypt_gensalt_ra(NULL, 0, NULL, 0);
	assert(!v->crypt);
	v->crypt = setting ? crypt_with(password, setting) : NULL;
	free(setting);
	return v->crypt != NULL;
}

bool user_value_make_key(struct user_value *v)
{
	v->has_key = RAND_bytes(v->key, sizeof v->key) == 1;
	return v->has_key;
}

static bool check_scram(const struct user_scram *s, enum user_hash h, const char *password)
{
	struct user_scram made;
	bool same = derive_keys(h, password, s, &made) &&
		    CRYPTO_memcmp(made.stored_key, s->stored_key, hashes[h].bytes) == 0;
	explicit_bzero(&made, sizeof made);
	return same;
}

static bool check_crypt(const char *hash, const char *password)
{
	char *made = crypt_with(password, hash);
	size_t len = strlen(hash);
	bool same = made && strlen(made) == len && CRYPTO_memcmp(made, hash, len) == 0;
	mem_free_secret(made);
	return same;
}

bool user_value_check(const struct user_value *v, const char *password)
{
	for (int h = USER_HASHES - 1; h >= 0; h--)
		if (v->scram[h].iterations)
			return check_scram(&v->scram[h], (enum user_hash)h, password);
	return v->crypt && check_crypt(v->crypt, password);
}
