/* https_ca.h - whom libcurl believes.
 *
 * The same authorities as in connections for mail: libcurl by itself takes only those files of a folder whose names are
 * hashes, and refuses all others without a word.
 *
 * OWNERSHIP  Nothing is kept of ca.
 * THREAD     Whose the handle is.
 * SEE        base/tls_verify.h; CURLOPT_CAINFO(3), CURLOPT_CAINFO_BLOB(3).
 */
#ifndef BASE_HTTPS_CA_H
#define BASE_HTTPS_CA_H

#include <curl/curl.h>

void https_ca_set(CURL *, const char *ca);
/* ca: a PEM file, which is read at each connection, or a folder of such files, which is read now. Where there is no
 * authority in it, nobody is believed. */

#endif
