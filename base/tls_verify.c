/* SPDX-License-Identifier: ISC */
#include "base/tls_verify.h"

#include "base/address.h"
#include "base/file_io.h"
#include "base/mem.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 9, NAMES_SHOWN = 5, DIGEST_SIZE = 32 };

struct tls_authorities {
	X509_STORE *store;
	int n, unread;
};

static bool is_end_of_file(void)
{
	unsigned long error = ERR_peek_last_error();
	return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

/* One that is broken costs no other. */
static X509 *read_next(struct tls_authorities *a, FILE *from)
{
	X509 *one;
	for (;;) {
		ERR_clear_error();
		one = PEM_read_X509_AUX(from, NULL, NULL, NULL);
		if (one || is_end_of_file())
			return one;
		a->unread++;
	}
}

static bool begins_certificate(const char *line)
{
	static const char *const begins[] = {"-----BEGIN CERTIFICATE-----",
					     "-----BEGIN TRUSTED CERTIFICATE-----",
					     "-----BEGIN X509 CERTIFICATE-----"};
	for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
		if (strncmp(line, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

/* One whose last line is missing is read, and silently the next one passed over with its rest. */
static int count_begun(FILE *from)
{
	char *line = NULL;
	size_t size = 0;
	int n = 0;
	while (getline(&line, &size, from) >= 0)
		n += begins_certificate(line);
	free(line);
	rewind(from);
	return n;
}

/* Unlike that of OpenSSL's own loader, an error names the file. */
static bool add_file(struct tls_authorities *a, const char *file, struct buf *error)
{
	X509 *one;
	FILE *from = file_open(file);
	if (!from) {
		buf_printf(error, "%s: %s", file, strerror(errno));
		return false;
	}
	int unread = a->unread, left = count_begun(from);
	for (; (one = read_next(a, from)); left--) {
		/* Its extensions are read now, by one thread, and not by whichever verifies first. */
		X509_check_purpose(one, -1, 0);
		a->n += X509_STORE_add_cert(a->store, one) == 1;
		X509_free(one);
	}
	if (left > a->unread - unread)
		a->unread = unread + left;
	ERR_clear_error();
	fclose(from);
	return true;
}

/* Links and names by hash lead to the same certificates: the store has each once. */
static bool add_folder(struct tls_authorities *a, const char *folder, struct buf *error)
{
	struct dirent *entry;
	DIR *d = opendir(folder);
	if (!d) {
		buf_printf(error, "%s: %s", folder, strerror(errno));
		return false;
	}
	while ((entry = readdir(d))) {
		struct stat st;
		char *file = mem_printf("%s/%s", folder, entry->d_name);
		struct buf unread = {0};
		if (stat(file, &st) == 0 && S_ISREG(st.st_mode))
			add_file(a, file, &unread);
		buf_fini(&unread);
		free(file);
	}
	closedir(d);
	return true;
}

struct tls_authorities *tls_authorities_new(const char *path, struct buf *error)
{
	struct stat st;
	struct tls_authorities *a = mem_zalloc(sizeof *a);
	a->store = X509_STORE_new();
	bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	if (!(folder ? add_folder : add_file)(a, path, error)) {
		tls_authorities_free(&a);
	} else if (a->n == 0) {
		buf_printf(error, "%s: there is no certificate in it", path);
		tls_authorities_free(&a);
	}
	return a;
}

int tls_authorities_unread(const struct tls_authorities *a)
{
	return a->unread;
}

void tls_authorities_write(const struct tls_authorities *a, struct buf *pem)
{
	BIO *to = BIO_new(BIO_s_mem());
	STACK_OF(X509) *all = X509_STORE_get1_all_certs(a->store);
	char *text;
	for (int i = 0; i < sk_X509_num(all); i++)
		PEM_write_bio_X509(to, sk_X509_value(all, i));
	long len = BIO_get_mem_data(to, &text);
	buf_append(pem, text, (size_t)len);
	sk_X509_pop_free(all, X509_free);
	BIO_free(to);
}

void tls_authorities_free(struct tls_authorities **ap)
{
	if (!*ap)
		return;
	X509_STORE_free((*ap)->store);
	free(*ap);
	*ap = NULL;
}

const char *tls_verified_word(enum tls_verified v)
{
	static const char *const words[] = {
#define X(what, word) [TLS_VERIFIED_##what] = word,
		TLS_VERIFIED(X)
#undef X
	};
	assert((size_t)v < sizeof words / sizeof *words);
	return words[v];
}

static bool chain_good(SSL *ssl, const struct tls_authorities *a, X509 *own, struct buf *why)
{
	X509_STORE_CTX *c = X509_STORE_CTX_new();
	bool good = c && X509_STORE_CTX_init(c, a->store, own, SSL_get_peer_cert_chain(ssl)) == 1;
	if (good) {
		X509_VERIFY_PARAM *p = X509_STORE_CTX_get0_param(c);
		X509_STORE_CTX_set_default(c, "ssl_server");
		X509_VERIFY_PARAM_set_depth(p, DEPTH_MAX);
		X509_VERIFY_PARAM_set_auth_level(p, SSL_get_security_level(ssl));
		good = X509_verify_cert(c) == 1;
	}
	SSL_set_verify_result(ssl, c ? X509_STORE_CTX_get_error(c) : X509_V_ERR_OUT_OF_MEM);
	if (!good)
		buf_printf(why, "its certificate is not trusted: %s",
			   c ? X509_verify_cert_error_string(X509_STORE_CTX_get_error(c))
			     : "no memory");
	X509_STORE_CTX_free(c);
	ERR_clear_error();
	return good;
}

static void put_hex(struct buf *to, const unsigned char digest[DIGEST_SIZE])
{
	for (int i = 0; i < DIGEST_SIZE; i++)
		buf_printf(to, "%02x", digest[i]);
}

static bool digest_is(const unsigned char digest[DIGEST_SIZE], const char *hex, size_t len)
{
	struct buf own = {0};
	put_hex(&own, digest);
	bool same = buf_len(&own) == len && memcmp(buf_data(&own), hex, len) == 0;
	buf_fini(&own);
	return same;
}

static bool has_fingerprint(X509 *own, const char *hex, size_t len)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned char *key = NULL;
	bool same =
		X509_digest(own, EVP_sha256(), digest, NULL) == 1 && digest_is(digest, hex, len);
	int key_len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(own), &key);
	if (!same && key_len > 0)
		same = EVP_Digest(key, (size_t)key_len, digest, NULL, EVP_sha256(), NULL) == 1 &&
		       digest_is(digest, hex, len);
	OPENSSL_free(key);
	return same;
}

static bool has_name(X509 *own, const char *name)
{
	union address a;
	const unsigned flags =
		X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;
	if (address_parse(name, 0, &a))
		return X509_check_ip_asc(own, name, 0) == 1;
	return X509_check_host(own, name, 0, flags, NULL) == 1;
}

/* The names that the certificate has; one that is not printable is left out. */
static void put_names(struct buf *to, X509 *own)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(own, NID_subject_alt_name, NULL, NULL);
	int shown = 0, n = names ? sk_GENERAL_NAME_num(names) : 0;
	for (int i = 0; i < n; i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
		if (name->type != GEN_DNS)
			continue;
		const ASN1_STRING *s = name->d.dNSName;
		const char *text = (const char *)ASN1_STRING_get0_data(s);
		size_t len = (size_t)ASN1_STRING_length(s);
		if (memchr(text, '\0', len) || len > 255 || shown == NAMES_SHOWN)
			continue;
		buf_printf(to, "%s%.*s", shown++ ? ", " : "", (int)len, text);
	}
	if (shown == 0)
		buf_puts(to, "no name");
	GENERAL_NAMES_free(names);
}

enum { ITEM_MAX = 300 };

static const char sts_prefix[] = "mta-sts=";

/* Of all items: is one a fingerprint that fits, or a name that does; are there names at all? */
struct match {
	bool fingerprint, name, names;
};

static struct match look_at_items(X509 *own, const char *items)
{
	static const char prefix[] = "sha256=";
	struct match m = {0};
	for (bool more = true; more; more = *items++ != '\0') {
		char name[ITEM_MAX];
		size_t len = strcspn(items, ","), head = strlen(prefix);
		if (len > head && strncmp(items, prefix, head) == 0) {
			m.fingerprint |= has_fingerprint(own, items + head, len - head);
		} else if (len > 0 && len < sizeof name) {
			memcpy(name, items, len);
			name[len] = '\0';
			m.names = true;
			m.name |= has_name(own, name);
		}
		items += len;
	}
	return m;
}

enum tls_verified tls_verify(SSL *ssl, const struct tls_authorities *a, const char *items,
			     struct buf *why)
{
	X509 *own = SSL_get0_peer_certificate(ssl);
	if (!own) {
		buf_puts(why, "it has no certificate");
		return TLS_VERIFIED_NONE;
	}
	bool sts = strncmp(items, sts_prefix, strlen(sts_prefix)) == 0;
	items += sts ? strlen(sts_prefix) : 0;
	if (sts && !*items) {
		buf_puts(why, "the domain's MTA-STS policy does not have it");
		return TLS_VERIFIED_NONE;
	}
	struct match m = look_at_items(own, items);
	if (m.fingerprint)
		return TLS_VERIFIED_MATCHED;
	if (!m.names) {
		unsigned char digest[EVP_MAX_MD_SIZE];
		buf_puts(why, "its certificate has another fingerprint: sha256=");
		if (X509_digest(own, EVP_sha256(), digest, NULL) == 1)
			put_hex(why, digest);
		return TLS_VERIFIED_NONE;
	}
	if (!a) {
		buf_puts(why, "its certificate is not trusted: tls { ca } has no authorities");
		return TLS_VERIFIED_NONE;
	}
	if (!chain_good(ssl, a, own, why))
		return TLS_VERIFIED_NONE;
	if (m.name)
		return sts ? TLS_VERIFIED_STS : TLS_VERIFIED_MATCHED;
	buf_puts(why, "its certificate is for ");
	put_names(why, own);
	/* A word with a plus in front is no name, and stands last. */
	const char *end = strstr(items, ",+");
	buf_printf(why, ", not for %.*s%s", end ? (int)(end - items) : (int)strlen(items), items,
		   sts ? ", as MTA-STS wants it" : "");
	return TLS_VERIFIED_TRUSTED;
}
