/* SPDX-License-Identifier: ISC */
/* sluice dkim: keys for signing, and whether the DNS has them. Needs no relay. */
#include "base/file_io.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/tls_keys.h"
#include "cmd/cmd.h"
#include "cmd/local/check_access.h"
#include "cmd/local/dkim_look.h"
#include "cmd/options.h"
#include "dkim/key_record.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"usage: sluice dkim keygen DOMAIN SELECTOR [--type rsa2048|ed25519] [-o FILE]\n"
	"       sluice dkim check [-c FILE] [--json] [DOMAIN...]\n"
	"keygen writes a new private key, which only its owner and the relay's user may read, and\n"
	"prints the record to publish. check compares the keys of the configuration, or those of\n"
	"some domains, with the DNS; the exit status is 1 if a signature could not be verified\n"
	"with that.\n"
	"  --type TYPE  rsa2048, which everybody can verify, or ed25519\n"
	"  -o FILE      the file for the key, by default SELECTOR.pem; it must not exist yet\n"
	"  --json       one object for each key\n";

enum { OPTION_TYPE = OPTION_OWN, RSA_BITS = 2048 };

static const struct option longs[] = {
	{"type", required_argument, NULL, OPTION_TYPE},
	{"output", required_argument, NULL, 'o'},
	{"json", no_argument, NULL, OPTION_JSON},
	OPTIONS_COMMON,
};

struct dkim_args {
	const char *type, *file;
	bool json;
};

static EVP_PKEY *make_key(const char *type)
{
	return strcmp(type, "ed25519") == 0
		       ? EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")
		       : EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)RSA_BITS);
}

static bool write_key(EVP_PKEY *key, const char *file, const char *user)
{
	char *text = NULL;
	BIO *pem = BIO_new(BIO_s_secmem());
	int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool good = fd >= 0 && PEM_write_bio_PrivateKey(pem, key, NULL, NULL, 0, NULL, NULL) == 1;
	long len = good ? BIO_get_mem_data(pem, &text) : 0;
	good = good && file_write(fd, text, (size_t)len) && check_access_give(user, fd) &&
	       file_sync(fd, file);
	int error = errno;
	file_close(fd);
	if (fd >= 0 && !good)
		unlink(file);
	BIO_free(pem);
	if (!good)
		fprintf(stderr, "sluice: %s: %s\n", file, strerror(error));
	return good;
}

/* There may be no configuration yet, or one that names the key that is to be made. */
static char *user_of(const struct options *o)
{
	struct buf errors = {0};
	struct conf *conf = conf_read_with(o->conf_file, 0, &errors);
	struct conf *known = conf ? conf : conf_defaults();
	char *user = mem_strdup(known->user);
	conf_unref(known);
	buf_fini(&errors);
	return user;
}

static int generate_key(const struct options *o, const struct dkim_args *a, char **argv)
{
	char *domain = name_key(argv[0]);
	if (!conf_host_good(domain))
		options_wrong(o, "\"%s\" is not a domain", domain);
	if (!conf_dkim_selector_good(argv[1]))
		options_wrong(o, "\"%s\" is not a selector: letters, digits, hyphens, dots",
			      argv[1]);
	if (strcmp(a->type, "rsa2048") != 0 && strcmp(a->type, "ed25519") != 0)
		options_wrong(o, "--type is rsa2048 or ed25519, not \"%s\"", a->type);
	char *file = a->file ? mem_strdup(a->file) : mem_printf("%s.pem", argv[1]);
	struct buf text = {0}, line = {0};
	EVP_PKEY *key = make_key(a->type);
	char *user = user_of(o);
	bool done = key && write_key(key, file, user);
	if (done) {
		key_record_text(key, &text);
		key_record_line(argv[1], domain, buf_cstr(&text), &line);
		fputs(buf_cstr(&line), stdout);
		fprintf(stderr, "sluice: the private key is in %s\n", file);
	}
	EVP_PKEY_free(key);
	buf_fini(&text);
	buf_fini(&line);
	free(user);
	free(file);
	free(domain);
	return done && fflush(stdout) == 0 ? STATUS_DONE : STATUS_REFUSED;
}

/* Tables are read only where they are needed: some are secret. */
static struct conf *conf_with_rows(const struct options *o)
{
	struct conf *conf = options_conf(o);
	if (!conf || conf->dkim_keys.n == 0)
		return conf;
	conf_unref(conf);
	return options_conf_with(o, CONF_WITH_TABLES);
}

static int check_keys(const struct options *o, const struct dkim_args *a, int n, char **domain)
{
	struct conf *conf = conf_with_rows(o);
	if (!conf)
		return STATUS_REFUSED;
	bool good = dkim_look(conf, n, domain, a->json);
	conf_unref(conf);
	return good && fflush(stdout) == 0 ? STATUS_DONE : STATUS_REFUSED;
}

int cmd_dkim(int argc, char **argv)
{
	struct options o = {.usage = usage, .shorts = "c:o:", .longs = longs};
	struct dkim_args a = {.type = "rsa2048"};
	int option;
	tls_keys_prepare();
	while ((option = options_next(&o, argc, argv)) != -1) {
		if (option == OPTION_TYPE)
			a.type = optarg;
		else if (option == 'o')
			a.file = optarg;
		else
			a.json = true;
	}
	char **word = argv + optind;
	int n = argc - optind;
	if (n > 0 && strcmp(word[0], "check") == 0)
		return check_keys(&o, &a, n - 1, word + 1);
	if (n != 3 || strcmp(word[0], "keygen") != 0)
		options_wrong(&o, "dkim wants keygen DOMAIN SELECTOR, or check");
	return generate_key(&o, &a, word + 1);
}
