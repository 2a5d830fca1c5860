/* token_store.h - refresh tokens that survive a restart: a file for each file that `refresh:` names.
 *
 *	SPOOL/tokens/NAME-0123456789abcdef	NAME: the last part of the path, as far as it is plain;
 *						the digits: of the SHA-256 of the whole path
 *	sluice token 1
 *	file /etc/sluice/ann.oauth
 *	of 64 hexadecimal digits		which grant that file had: endpoint, client_id,
 *						refresh_token. Another one now: the file wins
 *	token ...				the newest, from the endpoint's last answer
 *	before ...				the one that got it, until the newest has worked
 *	crc 89ABCDEF				CRC32C of all before
 *
 * What a power cut or SIGKILL leaves, in the order in which it happens:
 *
 *	1  the endpoint has answered, nothing written	the old token, on the disk. It still works, or the
 *							endpoint has thrown away what nobody may have got
 *	2  NAME.new written, and synced			the same: NAME.new is not read, and written anew
 *	3  renamed to NAME, the folder not synced	one or the other, each complete; the new file has the
 *							old token too, as its second try
 *	4  the folder synced				the new one. Only now is the access token given out,
 *							and may the old one be used up by the next request
 *
 * The folder itself is made with the first token, and synced into the spool's before 2.
 *
 * Two processes may want a token of one file: the relay, and `sluice login`. token_store_lock() is held from
 * before the token is read until the answer is written.
 *
 * OWNERSHIP  token_grant_fini() overwrites what is in it.
 * THREAD     Any; calls block for a sync.
 * ERRORS     False, and why. A file that is damaged is like none, and said.
 * SEE        token.h; RFC 6749 6, 10.4 (rotation).
 */
#ifndef SMTPC_TOKEN_STORE_H
#define SMTPC_TOKEN_STORE_H

#include "smtpc/token.h"

#include <sys/types.h>
#include <time.h>

/* By which an access token is asked for. */
struct token_grant {
	char *newest; /* NULL: none, that is client_credentials */
	char *before; /* or NULL */
};

void token_grant_fini(struct token_grant *);

bool token_store_read(const char *spool, const char *file, const struct token_source *,
		      struct token_grant *, struct buf *why);
/* The token that is kept for the grant that the file has now. False: none is; why is empty where nothing ever was. */

bool token_store_write(const char *spool, const char *file, const struct token_source *,
		       const struct token_grant *, struct buf *why);
/* True: it is on the disk. False: what was there before is, or both are. */

int token_store_lock(const char *file, bool wait);
/* A descriptor, to be closed. -1: errno; EWOULDBLOCK: another process has it. */

/* When the file and what is kept for it were last written. */
struct token_stamp {
	ino_t inode[2];
	struct timespec written[2];
};

struct token_stamp token_store_stamp(const char *spool, const char *file);
bool token_stamp_same(const struct token_stamp *, const struct token_stamp *);

char *token_store_path(const char *spool, const char *file); /* the caller's to free() */

#endif
