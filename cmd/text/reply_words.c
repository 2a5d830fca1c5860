/* SPDX-License-Identifier: ISC */
#include "cmd/text/reply_words.h"

#include "base/utf8.h"

#include <string.h>

/* "connect to HOST: Connection refused" is a text of ours. */
static bool put_refused(struct buf *to, const char *text)
{
	static const char before[] = "connect to ", behind[] = ": Connection refused";
	size_t len = strlen(text), ends = sizeof before + sizeof behind - 2;
	if (len <= ends || strncmp(text, before, sizeof before - 1) != 0 ||
	    strcmp(text + len - (sizeof behind - 1), behind) != 0)
		return false;
	utf8_put_most(to, text + sizeof before - 1, len - ends);
	buf_puts(to, " refused the connection");
	return true;
}

void reply_words_put(struct buf *to, const struct verdict *v, bool quoted)
{
	bool said = v->code > 0;
	if (!said && put_refused(to, v->text))
		return;
	if (*v->host && (said || !strstr(v->text, v->host))) {
		utf8_put(to, v->host);
		buf_puts(to, said ? " said " : ": ");
	}
	quoted = quoted && said;
	buf_puts(to, quoted ? "\"" : "");
	if (said)
		buf_printf(to, "%d ", v->code);
	if (!verdict_cites_dsn(v)) /* most replies do */
		buf_printf(to, "%s ", v->dsn);
	utf8_put(to, v->text);
	buf_puts(to, quoted ? "\"" : "");
}
