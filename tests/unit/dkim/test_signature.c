/* SPDX-License-Identifier: ISC */
#include "tests/unit/dkim/unit.h"

#include "base/base64.h"
#include "base/tls_keys.h"
#include "dkim/signature.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

/* RFC 8463 A.1 */
static const char secret[] = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
static const char published[] = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

/* RFC 8463 A.3, but for its signature of RSA. */
static const char *const fields[] = {
	"From: Joe SixPack <joe@football.example.com>\r\n",
	"To: Suzie Q <suzie@shopping.example.net>\r\n",
	"Subject: Is dinner ready?\r\n",
	"Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\n",
	"Message-ID: <20030712040037.46341.5F8J@football.example.com>\r\n",
};
static const char field_of_rfc[] = "DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r\n"
				   " d=football.example.com; i=@football.example.com;\r\n"
				   " q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r\n"
				   " subject : date : message-id : from : subject : date;\r\n"
				   " bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n"
				   " b=";
static const char signature_of_rfc[] =
	"/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11BusFa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==";

static size_t decode(const char *text, unsigned char *to)
{
	struct buf raw = {0};
	assert_true(base64_decode(&raw, text, strlen(text)));
	size_t len = buf_len(&raw);
	memcpy(to, buf_data(&raw), len);
	buf_fini(&raw);
	return len;
}

static bool verify(EVP_PKEY *key, const struct buf *text, const char *signature)
{
	unsigned char hash[32], bytes[512];
	size_t len = decode(signature, bytes);
	bool rsa = EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA;
	EVP_Digest(buf_data(text), buf_len(text), hash, NULL, EVP_sha256(), NULL);
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	EVP_DigestVerifyInit(c, NULL, rsa ? EVP_sha256() : NULL, NULL, key);
	const unsigned char *what = rsa ? (const unsigned char *)buf_data(text) : hash;
	int good = EVP_DigestVerify(c, bytes, len, what, rsa ? buf_len(text) : sizeof hash);
	EVP_MD_CTX_free(c);
	return good == 1;
}

static EVP_PKEY *published_key(void)
{
	unsigned char raw[32];
	return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, raw, decode(published, raw));
}

static EVP_PKEY *secret_key(void)
{
	unsigned char raw[32];
	return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, raw, decode(secret, raw));
}

static void the_signature_of_rfc_8463_holds_over_what_is_hashed_here(void **state)
{
	(void)state;
	struct buf text = {0};
	EVP_PKEY *key = published_key();
	for (int i = 0; i < 5; i++)
		signature_field_relaxed(fields[i], strlen(fields[i]), &text);
	signature_field_relaxed(field_of_rfc, strlen(field_of_rfc), &text);
	text.tail -= 2;
	assert_true(verify(key, &text, signature_of_rfc));
	buf_data(&text)[0] ^= 1;
	assert_false(verify(key, &text, signature_of_rfc));
	EVP_PKEY_free(key);
	buf_fini(&text);
}

static void a_relaxed_field_is_that_of_rfc_6376_3_4_5(void **state)
{
	(void)state;
	static const struct {
		const char *field, *wanted;
	} rows[] = {
		{"A: X\r\n", "a:X\r\n"},
		{"B : Y\t\r\n\tZ  \r\n", "b:Y Z\r\n"},
		{"Subject:\r\n \r\n\tfolded  \r\n everywhere\r\n", "subject:folded everywhere\r\n"},
		{"X-Empty:\r\n", "x-empty:\r\n"},
		{"X-Empty: \t\r\n \r\n", "x-empty:\r\n"},
		{"Last: no end", "last:no end\r\n"},
		{"U: \xc3\xa9  \xc3\xa9:b\r\n", "u:\xc3\xa9 \xc3\xa9:b\r\n"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct buf got = {0};
		signature_field_relaxed(rows[i].field, strlen(rows[i].field), &got);
		assert_string_equal(buf_cstr(&got), rows[i].wanted);
		buf_fini(&got);
	}
}

struct signed_field {
	char *text, *names, *signature; /* h= and b= without blanks */
};

static char *tag(const char *text, const char *name)
{
	const char *p = strstr(text, name) + strlen(name);
	struct buf value = {0};
	for (; *p && *p != ';'; p++)
		if (!strchr(" \t\r\n", *p))
			buf_append(&value, p, 1);
	return buf_steal(&value, NULL);
}

static char *make(struct conf_dkim *by, const char *const *header, int n)
{
	struct draft_field f[8];
	unsigned char hash[SIGNATURE_HASH] = {1};
	for (int i = 0; i < n; i++)
		f[i] = (struct draft_field){header[i], strlen(header[i]), NULL};
	return signature_make(by, f, n, hash, 1000, by->expire ? 1000 + by->expire / 1000 : 0);
}

static void expect_names(struct conf_list headers, const char *const *header, int n,
			 const char *wanted)
{
	struct conf_dkim by = {.title = (char[]){"example.org"},
			       .selector = (char[]){"s"},
			       .headers = headers,
			       .loaded = secret_key()};
	by.signing = tls_keys_signing(by.loaded);
	char *text = make(&by, header, n);
	char *names = tag(text, "\th=");
	assert_string_equal(names, wanted);
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\r") <= 78);
	free(names);
	free(text);
	EVP_MD_CTX_free(by.signing);
	EVP_PKEY_free(by.loaded);
}

static void each_name_is_signed_as_often_as_it_is_there_and_once_more(void **state)
{
	(void)state;
	static const char *const header[] = {"from: a@b\r\n", "X: 1\r\n", "Subject: x\r\n",
					     "FROM : c@d\r\n"};
	char from[] = "From", subject[] = "subject?", x[] = "X?", y[] = "Y", again[] = "x";
	char *some[] = {subject, x, y, again}, *all[] = {from};
	expect_names((struct conf_list){4, some}, header, 4, "subject:X:Y:From:From:From");
	expect_names((struct conf_list){1, all}, header, 4, "From:From:From");
	expect_names((struct conf_list){0, NULL}, header, 4,
		     "From:From:From:Reply-To:Subject:Subject:Date:To:Cc:Message-ID:In-Reply-To:"
		     "References:MIME-Version:Content-Type:Content-Transfer-Encoding");
}

static void what_is_made_holds(void **state)
{
	(void)state;
	static const char *const header[] = {"Subject: one\r\n", "From: a@b\r\n",
					     "Subject:  two\r\n  three\r\n"};
	char from[] = "From", subject[] = "Subject";
	char *list[] = {subject, from};
	for (int form = 0; form < 4; form++) {
		struct conf_dkim by = {
			.title = (char[]){".example.org"},
			.selector = (char[]){"s1"},
			.headers = {2, list},
			.expire = 60000,
			.canonicalization = form,
			.loaded = form & 1 ? secret_key()
					   : EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024)};
		by.signing = tls_keys_signing(by.loaded);
		bool relaxed = form == DKIM_RELAXED_RELAXED || form == DKIM_RELAXED_SIMPLE;
		char *text = make(&by, header, 3), *signature = tag(text, "\tb=");
		struct buf hashed = {0};
		static const int order[] = {2, 0, 1};
		for (int i = 0; i < 3; i++)
			if (relaxed)
				signature_field_relaxed(header[order[i]], strlen(header[order[i]]),
							&hashed);
			else
				buf_puts(&hashed, header[order[i]]);
		size_t own = (size_t)(strstr(text, "\tb=") + 3 - text);
		if (relaxed)
			signature_field_relaxed(text, own, &hashed);
		else
			buf_append(&hashed, text, own);
		hashed.tail -= relaxed ? 2 : 0;
		assert_true(verify(by.loaded, &hashed, signature));
		assert_non_null(strstr(text, "d=example.org; s=s1;\r\n\tt=1000; x=1060;"));
		EVP_MD_CTX_free(by.signing);
		EVP_PKEY_free(by.loaded);
		buf_fini(&hashed);
		free(signature);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_signature_of_rfc_8463_holds_over_what_is_hashed_here),
		cmocka_unit_test(a_relaxed_field_is_that_of_rfc_6376_3_4_5),
		cmocka_unit_test(each_name_is_signed_as_often_as_it_is_there_and_once_more),
		cmocka_unit_test(what_is_made_holds),
	};
	return RUN(tests);
}
