/* SPDX-License-Identifier: ISC */
/* What a server of tables says: the same, whole or in parts; and nothing beyond it is read. */
#include "base/mem.h"
#include "smtpd/socketmap_reply.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* In memory of just this size. */
static enum socketmap_said read_copy(const uint8_t *data, size_t len, size_t *used)
{
	struct socketmap_reply r = {0};
	char *exact = mem_alloc(len + !len);
	memcpy(exact, data, len);
	enum socketmap_said said = socketmap_reply_read(exact, len, &r);
	if (said >= SOCKETMAP_REPLY_OK) {
		assert(r.used <= len && r.text >= exact && r.text + r.len < exact + r.used);
		assert(!memchr(r.text, '\0', r.len));
	}
	*used = r.used;
	free(exact);
	return said;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t used, again;
	enum socketmap_said said = read_copy(data, len, &used);
	if (said >= SOCKETMAP_REPLY_OK) {
		assert(read_copy(data, used, &again) == said && again == used);
		assert(read_copy(data, used - 1, &again) == SOCKETMAP_REPLY_PART);
	}
	/* What is a part stays one when less of it has come. */
	if (said == SOCKETMAP_REPLY_PART && len > 0)
		assert(read_copy(data, len - 1, &again) == SOCKETMAP_REPLY_PART);
	return 0;
}
