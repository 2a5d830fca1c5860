/* postfix_table.h - what a table of Postfix's is called here.
 *
 *	hash:/etc/postfix/access	/etc/postfix/access: the text that postmap reads
 *	cdb:/etc/postfix/access		/etc/postfix/access.cdb
 *	socketmap:unix:/run/map:name	the same, where a server may have the table
 *
 * THREAD     Any.
 * ERRORS     A kind of table that there is not here is false, and why says so.
 * SEE        POSTFIX DATABASE_README; base/table.h.
 */
#ifndef CMD_LOCAL_POSTFIX_TABLE_H
#define CMD_LOCAL_POSTFIX_TABLE_H

#include "base/buf.h"
#include "base/conf.h"

const char *postfix_table_behind_proxy(const char *word);
/* Without "proxy:", by which another process reads the table, for who may not or is in a jail. */

bool postfix_table_add(const char *word, bool may_ask, struct conf_list *to, struct buf *why);
/* may_ask: a server may have it. */

#endif
