/* SPDX-License-Identifier: ISC */
#include "cmd/local/postfix_table.h"

#include "base/conf_value.h"
#include "base/mem.h"
#include "base/socketmap_name.h"

#include <stdlib.h>
#include <string.h>

/* Where the source of an indexed file, as postmap reads it, begins in the word; or NULL. */
static const char *text_of(const char *word)
{
	static const char *const types[] = {"hash", "btree", "lmdb", "dbm", "sdbm", "texthash"};
	const char *colon = strchr(word, ':');
	if (*word == '/')
		return word;
	for (size_t i = 0; colon && i < sizeof types / sizeof *types; i++)
		if ((size_t)(colon - word) == strlen(types[i]) &&
		    strncmp(word, types[i], strlen(types[i])) == 0)
			return colon + 1;
	return NULL;
}

const char *postfix_table_behind_proxy(const char *word)
{
	return strncmp(word, "proxy:", 6) == 0 ? word + 6 : word;
}

bool postfix_table_add(const char *word, bool may_ask, struct conf_list *to, struct buf *why)
{
	struct socketmap_name server;
	word = postfix_table_behind_proxy(word);
	const char *text = text_of(word);
	if (text) {
		conf_list_add(to, text);
	} else if (strncmp(word, "cdb:", 4) == 0) {
		char *path = mem_printf("%s.cdb", word + 4);
		conf_list_add(to, path);
		free(path);
	} else if (may_ask && socketmap_name_is(word)) {
		if (!socketmap_name_parse(word, &server, why))
			return false;
		conf_list_add(to, word);
	} else {
		buf_printf(why, "%s is a kind of table that sluice cannot read%s", word,
			   may_ask ? "; a server may have it: socketmap:" : "");
		return false;
	}
	return true;
}
