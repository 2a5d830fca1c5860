/* tlsrecord.h - a TLS 1.3 record with any content, which OpenSSL would never send.
 *
 * The secrets come from the key log of the context; records of a side are numbered from 0 after its
 * handshake, so what the side has sent itself since then counts (a server: tickets).
 *
 * SEE  RFC 8446 5.2, 5.3, 7.1, 7.3.
 */
#ifndef TESTS_UNIT_BASE_TLSRECORD_H
#define TESTS_UNIT_BASE_TLSRECORD_H

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>

enum { TLSRECORD_SECRET = 48, TLSRECORD_MOST = 5 + 64 + 1 + 16 };

struct tlsrecord_secrets {
	unsigned char client[TLSRECORD_SECRET], server[TLSRECORD_SECRET];
};

static struct tlsrecord_secrets tlsrecord_secrets;

static void tlsrecord_unhex(const char *hex, unsigned char *to)
{
	assert(strlen(hex) == 2 * TLSRECORD_SECRET);
	for (int i = 0; i < TLSRECORD_SECRET; i++) {
		unsigned byte;
		sscanf(hex + 2 * i, "%2x", &byte);
		to[i] = (unsigned char)byte;
	}
}

/* For SSL_CTX_set_keylog_callback(). */
static void tlsrecord_keylog(const SSL *ssl, const char *line)
{
	const char *secret = strrchr(line, ' ') + 1;
	(void)ssl;
	if (strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24) == 0)
		tlsrecord_unhex(secret, tlsrecord_secrets.client);
	else if (strncmp(line, "SERVER_TRAFFIC_SECRET_0 ", 24) == 0)
		tlsrecord_unhex(secret, tlsrecord_secrets.server);
}

/* HKDF-Expand-Label of one block, without a context. */
static void tlsrecord_derive(const unsigned char *secret, const char *label, unsigned char *to,
			     unsigned char size)
{
	unsigned char info[64] = {0, size}, block[EVP_MAX_MD_SIZE];
	size_t n = strlen(label);
	info[2] = (unsigned char)(6 + n);
	memcpy(info + 3, "tls13 ", 6);
	memcpy(info + 9, label, n);
	info[9 + n] = 0;
	info[10 + n] = 1;
	HMAC(EVP_sha384(), secret, TLSRECORD_SECRET, info, 11 + n, block, NULL);
	memcpy(to, block, size);
}

/* Content of that type as the record of that number under the secret; returns the size of the record. */
static size_t tlsrecord_make(const unsigned char *secret, uint64_t number, unsigned char type,
			     const void *content, size_t size, unsigned char record[TLSRECORD_MOST])
{
	unsigned char key[32], iv[12], text[64 + 1];
	int n, end;
	assert(size < sizeof text);
	if (size > 0)
		memcpy(text, content, size);
	text[size] = type;
	size_t sealed = size + 1 + 16;
	const unsigned char head[] = {0x17, 3, 3, 0, (unsigned char)sealed};
	memcpy(record, head, sizeof head);
	tlsrecord_derive(secret, "key", key, sizeof key);
	tlsrecord_derive(secret, "iv", iv, sizeof iv);
	for (int i = 0; i < 8; i++)
		iv[11 - i] ^= (unsigned char)(number >> 8 * i);
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, key, iv);
	EVP_EncryptUpdate(c, NULL, &n, head, sizeof head);
	EVP_EncryptUpdate(c, record + sizeof head, &n, text, (int)size + 1);
	EVP_EncryptFinal_ex(c, record + sizeof head + n, &end);
	EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, 16, record + sizeof head + size + 1);
	EVP_CIPHER_CTX_free(c);
	return sizeof head + sealed;
}

#endif
