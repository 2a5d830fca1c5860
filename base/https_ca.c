/* SPDX-License-Identifier: ISC */
#include "base/https_ca.h"

#include "base/tls_verify.h"

#include <sys/stat.h>

static bool set_folder(CURL *c, const char *ca)
{
	struct buf pem = {0}, error = {0};
	struct tls_authorities *a = tls_authorities_new(ca, &error);
	if (a)
		tls_authorities_write(a, &pem);
	struct curl_blob blob = {(void *)buf_cstr(&pem), buf_len(&pem), CURL_BLOB_COPY};
	bool good = a && curl_easy_setopt(c, CURLOPT_CAINFO_BLOB, &blob) == CURLE_OK;
	tls_authorities_free(&a);
	buf_fini(&pem);
	buf_fini(&error);
	return good;
}

void https_ca_set(CURL *c, const char *ca)
{
	struct stat st;
	bool folder = stat(ca, &st) == 0 && S_ISDIR(st.st_mode);
	/* A folder is no file of certificates: where nothing was found in it, each connection fails. */
	if (!folder || !set_folder(c, ca))
		curl_easy_setopt(c, CURLOPT_CAINFO, ca);
	/* An authority that was removed is believed no longer: neither from memory nor by a session of before. */
	curl_easy_setopt(c, CURLOPT_CA_CACHE_TIMEOUT, 0L);
	curl_easy_setopt(c, CURLOPT_SSL_SESSIONID_CACHE, 0L);
}
