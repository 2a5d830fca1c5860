/* SPDX-License-Identifier: ISC */
#include "cmd/text/reply_words.h"

#include "base/utf8.h"

#include <string.h>

static void put_part(struct buf *to, const char *text, size_t len)
{
	char *clean = buf_reserve(to, len + 1);
	buf_commit(to, utf8_clean(clean, text, len));
}

/* "connect to HOST: Connection refused" is a text of ours. */
static bool put_refused(struct buf *to, const char *text)
{
	static const char before[] = "connect to ", behind[] = ": Connection refused";
	size_t len = strlen(text), ends = sizeof before + sizeof behind - 2;
	if (len <= ends || strncmp(text, before, sizeof before - 1) != 0 ||
	    strcmp(text + len - (sizeof behind - 1), behind) != 0)
		return false;
	put_part(to, text + sizeof before - 1, len - ends);
	buf_puts(to, " refused the connection");
	return true;
}

void reply_words_put(struct buf *to, const struct verdict *v, bool quoted)
{
	bool said = v->code > 0;
	if (!said && put_refused(to, v->text))
		return;
	if (*v->host && (said || !strstr(v->text, v->host))) {
		put_part(to, v->host, strlen(v->host));
		buf_puts(to, said ? " said " : ": ");
	}
	quoted = quoted && said;
	buf_puts(to, quoted ? "\"" : "");
	if (said)
		buf_printf(to, "%d ", v->code);
	if (!verdict_cites_dsn(v)) /* most replies do */
		buf_printf(to, "%s ", v->dsn);
	put_part(to, v->text, strlen(v->text));
	buf_puts(to, quoted ? "\"" : "");
}
