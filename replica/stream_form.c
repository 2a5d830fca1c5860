/* SPDX-License-Identifier: ISC */
#include "replica/stream_form.h"

#include "replica/format.h"

#include <stddef.h>

bool stream_form_keeps(const jsStreamConfig *c)
{
	const bool drops = c->MaxMsgs > 0 || c->MaxAge > 0 || c->MaxMsgsPerSubject > 0 ||
			   (c->MaxBytes > 0 && c->Discard != js_DiscardNew);
	return !drops && !c->NoAck && (c->MaxMsgSize <= 0 || c->MaxMsgSize >= REPLICA_MESSAGE_MAX);
}

void stream_form_mend(jsStreamConfig *c)
{
	c->MaxMsgs = c->MaxMsgsPerSubject = -1;
	c->MaxAge = 0;
	c->DiscardNewPerSubject = false;
	if (c->MaxBytes > 0)
		c->Discard = js_DiscardNew;
	if (c->MaxMsgSize > 0 && c->MaxMsgSize < REPLICA_MESSAGE_MAX)
		c->MaxMsgSize = REPLICA_MESSAGE_MAX;
	c->NoAck = false;
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
