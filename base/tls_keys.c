/* SPDX-License-Identifier: ISC */
#include "base/tls_keys.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 4 << 20 }; /* bytes; a long chain has some thousands */

/* Is this thread making a key of what it has read? */
static _Thread_local bool at_keys;

static void wipe_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	if (p && at_keys)
		OPENSSL_cleanse(p, malloc_usable_size(p));
	free(p);
}

static void *wipe_alloc(size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return malloc(size);
}

static void *wipe_realloc(void *p, size_t size, const char *file, int line)
{
	if (!p || !at_keys)
		return realloc(p, size);
	size_t had = malloc_usable_size(p);
	void *moved = malloc(size);
	if (!moved)
		return NULL;
	memcpy(moved, p, had < size ? had : size);
	wipe_free(p, file, line);
	return moved;
}

void tls_keys_prepare(void)
{
	CRYPTO_set_mem_functions(wipe_alloc, wipe_realloc, wipe_free);
}

struct pem {
	char *text;
	size_t size;
	BIO *bio; /* reads from it */
};

static bool read_all(int fd, struct pem *pem)
{
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0)
		return false;
	if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX) {
		errno = S_ISREG(st.st_mode) ? EFBIG : EINVAL;
		return false;
	}
	pem->text = mem_alloc((size_t)st.st_size);
	for (ssize_t n = 1; n > 0 && pem->size < (size_t)st.st_size; pem->size += (size_t)n) {
		n = read(fd, pem->text + pem->size, (size_t)st.st_size - pem->size);
		if (n < 0)
			return false;
	}
	return true;
}

static void pem_fini(struct pem *pem)
{
	assert(at_keys);
	BIO_free(pem->bio);
	if (pem->text)
		OPENSSL_cleanse(pem->text, pem->size);
	free(pem->text);
	at_keys = false;
}

static bool pem_init(struct pem *pem, const char *file)
{
	*pem = (struct pem){0};
	assert(!at_keys); /* else the end of the other file would end the wiping of this one */
	at_keys = true;
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* a pipe is none */
	bool ok = read_all(fd, pem);
	if (!ok)
		ERR_raise(ERR_LIB_SYS, errno);
	if (fd >= 0)
		close(fd);
	pem->bio = ok ? BIO_new_mem_buf(pem->text, (int)pem->size) : NULL;
	return pem->bio != NULL;
}

/* The end of the file is told as an error, which is none behind a certificate. */
static bool add_chain(SSL_CTX *c, BIO *from)
{
	X509 *next;
	SSL_CTX_clear_chain_certs(c);
	while ((next = PEM_read_bio_X509(from, NULL, NULL, NULL))) {
		if (SSL_CTX_add0_chain_cert(c, next) != 1) {
			X509_free(next);
			return false;
		}
	}
	unsigned long error = ERR_peek_last_error();
	bool end =
		ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
	if (end)
		ERR_clear_error();
	return end;
}

bool tls_keys_use_certificate(SSL_CTX *c, const char *file)
{
	struct pem pem;
	X509 *own = pem_init(&pem, file) ? PEM_read_bio_X509_AUX(pem.bio, NULL, NULL, NULL) : NULL;
	bool ok = own && SSL_CTX_use_certificate(c, own) == 1 && add_chain(c, pem.bio);
	X509_free(own);
	pem_fini(&pem);
	return ok;
}

/* A callback that knows no password: else one is asked for at the terminal, and read from standard input where there is none. */
static int no_password(char *buf, int size, int rwflag, void *owner)
{
	bool *asked = owner;
	(void)buf;
	(void)size;
	(void)rwflag;
	*asked = true;
	return -1;
}

EVP_PKEY *tls_keys_private(const char *file)
{
	struct pem pem;
	bool asked = false;
	EVP_PKEY *key = pem_init(&pem, file)
				? PEM_read_bio_PrivateKey(pem.bio, NULL, no_password, &asked)
				: NULL;
	pem_fini(&pem);
	/* Which error that becomes depends on the form of the key. */
	if (asked) {
		ERR_clear_error();
		ERR_raise(ERR_LIB_PEM, PEM_R_BAD_PASSWORD_READ);
	}
	return key;
}

bool tls_keys_use_key(SSL_CTX *c, const char *file)
{
	EVP_PKEY *key = tls_keys_private(file);
	at_keys = true;
	bool ok = key && SSL_CTX_use_PrivateKey(c, key) == 1 && SSL_CTX_check_private_key(c) == 1;
	EVP_PKEY_free(key);
	at_keys = false;
	return ok;
}

EVP_MD_CTX *tls_keys_signing(EVP_PKEY *key)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	bool rsa = EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA;
	if (c && EVP_DigestSignInit(c, NULL, rsa ? EVP_sha256() : NULL, NULL, key) == 1)
		return c;
	EVP_MD_CTX_free(c);
	return NULL;
}

const char *tls_keys_words(unsigned long code)
{
	if (ERR_SYSTEM_ERROR(code))
		return strerror(ERR_GET_REASON(code));
	if (ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_BAD_PASSWORD_READ)
		return "it is locked by a passphrase, which nobody is asked for";
	return ERR_reason_error_string(code);
}

const char *tls_keys_reason(void)
{
	const char *text = tls_keys_words(ERR_peek_last_error());
	return text ? text : "it holds no private key";
}
