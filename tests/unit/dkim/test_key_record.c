/* SPDX-License-Identifier: ISC */
#include "tests/unit/dkim/unit.h"

#include "dkim/key_record.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static EVP_PKEY *rsa, *ed;

static int begin(void **state)
{
	(void)state;
	rsa = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
	ed = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	return 0;
}

static int end(void **state)
{
	(void)state;
	EVP_PKEY_free(rsa);
	EVP_PKEY_free(ed);
	return 0;
}

static void a_key_fits_its_own_record_and_no_other(void **state)
{
	(void)state;
	EVP_PKEY *const keys[] = {rsa, ed};
	for (int i = 0; i < 2; i++) {
		struct buf text = {0}, why = {0};
		key_record_text(keys[i], &text);
		assert_true(key_record_fits(buf_cstr(&text), keys[i], &why));
		assert_int_equal(buf_len(&why), 0);
		assert_false(key_record_fits(buf_cstr(&text), keys[!i], &why));
		buf_fini(&text);
		buf_fini(&why);
	}
}

static void long_records_are_cut_into_strings(void **state)
{
	(void)state;
	struct buf text = {0}, line = {0};
	key_record_text(rsa, &text);
	key_record_line("s1", "example.org", buf_cstr(&text), &line);
	char *rest = strchr(buf_cstr(&line), '"');
	assert_int_equal(
		strncmp(buf_cstr(&line), "s1._domainkey.example.org. IN TXT ( \"v=DKIM1; ", 46), 0);
	size_t all = 0;
	while (rest) {
		size_t n = strcspn(rest + 1, "\"");
		assert_true(n > 0 && n <= 255);
		all += n;
		rest = strchr(rest + n + 2, '"');
	}
	assert_int_equal(all, buf_len(&text));
	buf_fini(&text);
	buf_fini(&line);
}

static void expect(const char *form, bool fits, const char *phrase)
{
	struct buf own = {0}, text = {0}, why = {0};
	key_record_text(ed, &own);
	buf_printf(&text, form, strstr(buf_cstr(&own), "p=") + 2);
	assert_int_equal(key_record_fits(buf_cstr(&text), ed, &why), fits);
	assert_non_null(strstr(buf_cstr(&why), phrase));
	buf_fini(&own);
	buf_fini(&text);
	buf_fini(&why);
}

static void each_tag_counts(void **state)
{
	(void)state;
	expect("k=ed25519; p=%s", true, "");
	expect("v=DKIM1;k=ed25519;p=%s;", true, "");
	expect(" v = DKIM1 ; k = ed25519 ; n=a note; p = %s ; t=s", true, "");
	expect("k=ed25519; v=DKIM1; p=%s", false, "v=DKIM1");
	expect("v=DKIM1; p=%s", false, "another kind");
	expect("v=DKIM1; k=ed25519; x=%s", false, "no key");
	expect("v=DKIM1; k=ed25519; p=; x=%s", false, "revoked");
	expect("v=DKIM1; k=ed25519; p=%.10s", false, "cannot be read");
	expect("v=DKIM1; k=ed25519; h=sha1:SHA256; s=*; p=%s", true, "");
	expect("v=DKIM1; k=ed25519; h=sha1; p=%s", false, "sha256");
	expect("v=DKIM1; k=ed25519; s=other; p=%s", false, "not for mail");
	expect("v=DKIM1; k=ed25519; t=y:s; p=%s", true, "tested");
	expect("p%.0s", false, "no key");
	expect(";;=;%.0s", false, "no key");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_fits_its_own_record_and_no_other),
		cmocka_unit_test(long_records_are_cut_into_strings),
		cmocka_unit_test(each_tag_counts),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
