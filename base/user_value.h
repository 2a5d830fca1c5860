/* user_value.h - a row of the users' file: the keys or hashes of a login's password.
 *
 *	SCRAM-SHA-256$ITERATIONS:SALT$STOREDKEY:SERVERKEY	base64; SCRAM-SHA-1 likewise
 *	$y$...							a hash of libxcrypt
 *
 * One or several of these, separated by blanks; never a password. The row of the login "*", which nobody can
 * use, holds "key$BASE64", from which answers for unknown logins are derived.
 *
 * OWNERSHIP  user_value_fini() frees, and wipes.
 * THREAD     Any. Pure, but user_value_check() and those that make one take milliseconds of a
 *            processor: never in a loop that serves others.
 * ERRORS     As of the other values of tables.
 * SEE        RFC 5802 3 (the keys), 5803 (the form), 7677; crypt(5).
 */
#ifndef BASE_USER_VALUE_H
#define BASE_USER_VALUE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum user_hash { USER_SHA1, USER_SHA256, USER_HASHES };

enum {
	USER_KEY_MAX = 32,  /* bytes of a key: a hash's length */
	USER_SALT = 16,	    /* bytes of the salts that we make */
	USER_SALT_MAX = 64, /* that we take */
	USER_ITERATIONS = 10000,
	USER_ITERATIONS_MIN = 4096, /* RFC 7677 4 */
	USER_ITERATIONS_MAX = 10000000,
};

/* A password as a server keeps it for SCRAM. */
struct user_scram {
	int iterations; /* 0: there is none */
	size_t salt_bytes;
	unsigned char salt[USER_SALT_MAX], stored_key[USER_KEY_MAX], server_key[USER_KEY_MAX];
};

struct user_value {
	struct user_scram scram[USER_HASHES];
	char *crypt;			 /* or NULL */
	unsigned char key[USER_KEY_MAX]; /* of "*" */
	bool has_key;
};

const char *user_value_parse(const char *, struct user_value *, struct buf *why);
/* NULL: good. Else where it is not, and why. */

void user_value_fini(struct user_value *);

void user_value_print(const struct user_value *, struct buf *to); /* as parsed */

size_t user_hash_bytes(enum user_hash);

bool user_value_make_scram(struct user_value *, enum user_hash, const char *password,
			   int iterations);
/* With a random salt. False: the libraries can't. */

bool user_value_make_crypt(struct user_value *, const char *password);
/* By the method that libxcrypt prefers. */

bool user_value_make_key(struct user_value *); /* a random one */

bool user_value_check(const struct user_value *, const char *password);
/* Is that the password? By the strongest of what is there. Its time depends on the row, not on the
 * password. */

#endif
