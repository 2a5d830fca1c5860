/* SPDX-License-Identifier: ISC */
#include "base/tls_groups.h"

#include <assert.h>
#include <ctype.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

struct names {
	const char *const *name;
	int n;
};

static const char *const defaults[] = {"X25519MLKEM768", "X25519", "P-256", "P-384"};

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static struct {
	bool hybrid; /* X25519MLKEM768 */
	bool syntax; /* "*": a key of this group is sent; "/": what follows is worse, whatever the client has sent */
} library;

static bool is_taken(const char *list)
{
	SSL_CTX *c = SSL_CTX_new(TLS_method());
	bool good = c && SSL_CTX_set1_groups_list(c, list) == 1;
	SSL_CTX_free(c);
	ERR_clear_error();
	return good;
}

static void ask_library(void)
{
	library.hybrid = is_taken(defaults[0]);
	library.syntax = is_taken("*X25519 / P-256");
}

static bool is_default(const struct conf_list *l)
{
	return l->n == 0 || (l->n == 1 && !*l->item[0]);
}

static struct names names_of(const struct conf_list *l)
{
	pthread_once(&asked, ask_library);
	if (l && !is_default(l))
		return (struct names){(const char *const *)l->item, l->n};
	int from = library.hybrid ? 0 : 1;
	return (struct names){defaults + from, (int)(sizeof defaults / sizeof defaults[0]) - from};
}

static bool is_hybrid(const char *name)
{
	return strcasestr(name, "MLKEM") != NULL;
}

static int count_hybrids(struct names of)
{
	int n = 0;
	for (int i = 0; i < of.n; i++)
		n += is_hybrid(of.name[i]);
	return n;
}

static bool can_be_classical(struct names of)
{
	int hybrids = count_hybrids(of);
	return hybrids > 0 && hybrids < of.n;
}

/* In the order of the list, which counts for more than which keys the client has sent. */
static void put_for_server(struct buf *to, struct names of)
{
	for (int i = 0; i < of.n; i++) {
		bool turn = i > 0 && is_hybrid(of.name[i - 1]) != is_hybrid(of.name[i]);
		buf_printf(to, "%s%s",
			   i == 0		    ? ""
			   : turn && library.syntax ? "/"
						    : ":",
			   of.name[i]);
	}
}

/* A key goes with the first, and with the first that is classical. */
static void put_for_client(struct buf *to, struct names of, bool classical)
{
	bool bare = can_be_classical(of) && classical, sent = false;
	for (int i = 0; i < of.n; i++) {
		bool hybrid = is_hybrid(of.name[i]);
		if (hybrid && bare)
			continue;
		bool key = library.syntax && (buf_len(to) == 0 || (!hybrid && !sent));
		buf_printf(to, "%s%s%s", buf_len(to) > 0 ? ":" : "", key ? "*" : "", of.name[i]);
		sent |= !hybrid;
	}
}

/* A sign beside a name has a meaning of its own in the library's lists. */
static bool is_name(const char *text)
{
	if (!isalnum((unsigned char)text[0]) || strcasecmp(text, "DEFAULT") == 0)
		return false;
	for (const char *c = text; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_')
			return false;
	return true;
}

/* 3.0 refuses a list with a group that is there twice, by whatever names; 3.5 passes over the second. */
static bool is_repeated(const struct conf_list *l, int i)
{
	for (int before = 0; before < i; before++)
		if (strcasecmp(l->item[before], l->item[i]) == 0)
			return true;
	return false;
}

bool tls_groups_good(const struct conf_list *l, int i, struct buf *why)
{
	struct buf list = {0};
	const char *name = l->item[i];
	assert(i >= 0 && i < l->n);
	pthread_once(&asked, ask_library);
	if (is_default(l))
		return true;
	put_for_server(&list, (struct names){(const char *const *)l->item, i + 1});
	if (!is_name(name) || !is_taken(name))
		buf_printf(why, "\"%s\" is no group that OpenSSL here knows", name);
	else if (is_repeated(l, i) || !is_taken(buf_cstr(&list)))
		buf_printf(why, "\"%s\" is there already, or is one too many", name);
	buf_fini(&list);
	return buf_len(why) == 0;
}

bool tls_groups_of_server(SSL_CTX *c, const struct conf_list *l)
{
	struct buf list = {0};
	put_for_server(&list, names_of(l));
	bool good = SSL_CTX_set1_groups_list(c, buf_cstr(&list)) == 1;
	buf_fini(&list);
	return good;
}

bool tls_groups_of_client(SSL_CTX *c)
{
	struct buf list = {0};
	put_for_client(&list, names_of(NULL), false);
	bool good = SSL_CTX_set1_groups_list(c, buf_cstr(&list)) == 1;
	buf_fini(&list);
	return good;
}

bool tls_groups_offer(SSL *ssl, const struct conf_list *l, bool classical)
{
	assert(SSL_in_before(ssl));
	struct buf list = {0};
	put_for_client(&list, names_of(l), classical);
	bool good = SSL_set1_groups_list(ssl, buf_cstr(&list)) == 1;
	buf_fini(&list);
	return good;
}

bool tls_groups_can_be_classical(const struct conf_list *l)
{
	return can_be_classical(names_of(l));
}

const char *tls_groups_negotiated(SSL *ssl)
{
	int id = (int)SSL_get_negotiated_group(ssl);
	return id != 0 ? SSL_group_to_name(ssl, id) : NULL;
}
