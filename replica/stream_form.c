/* SPDX-License-Identifier: ISC */
#include "replica/stream_form.h"

#include "replica/format.h"

#include <stddef.h>

static bool keeps_each(const jsStreamConfig *c, int longest)
{
	const bool drops =
		c->MaxMsgs > 0 || c->MaxAge > 0 || (c->MaxBytes > 0 && c->Discard != js_DiscardNew);
	return !drops && !c->NoAck && (c->MaxMsgSize <= 0 || c->MaxMsgSize >= longest);
}

static void mend_each(jsStreamConfig *c, int longest)
{
	c->MaxMsgs = -1;
	c->MaxAge = 0;
	if (c->MaxBytes > 0)
		c->Discard = js_DiscardNew;
	if (c->MaxMsgSize > 0 && c->MaxMsgSize < longest)
		c->MaxMsgSize = longest;
	c->NoAck = false;
}

bool stream_form_keeps(const jsStreamConfig *c)
{
	return c->MaxMsgsPerSubject <= 0 && keeps_each(c, REPLICA_MESSAGE_MAX);
}

void stream_form_mend(jsStreamConfig *c)
{
	c->MaxMsgsPerSubject = -1;
	c->DiscardNewPerSubject = false;
	mend_each(c, REPLICA_MESSAGE_MAX);
}

bool stream_form_keeps_rows(const jsStreamConfig *c)
{
	return keeps_each(c, REPLICA_ROW_MAX);
}

void stream_form_mend_rows(jsStreamConfig *c)
{
	mend_each(c, REPLICA_ROW_MAX);
}

const char *stream_form_wrong(const jsStreamConfig *c)
{
	if (c->Storage != js_FileStorage)
		return "it is kept in memory";
	if (c->Retention != js_LimitsPolicy)
		return "its messages go when they are read";
	if (c->Sealed)
		return "it is sealed";
	if (c->DenyPurge)
		return "it denies purges";
	return c->Mirror ? "it is a mirror of another" : NULL;
}
