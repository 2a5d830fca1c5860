/* SPDX-License-Identifier: ISC */
/* An address as a client writes it: what is accepted is accepted again in the form that is kept,
 * and has nothing in it that could end a line. */
#include "tests/fuzz/fuzz.h"

#include "base/mailaddr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mailaddr a, again;
	char decoded[100];
	if (size < 1)
		return 0;
	bool utf8 = data[0] & 1;
	char *text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	const char *at = text;
	xtext_decode(text, strlen(text), decoded, sizeof decoded);
	mailaddr_domain_valid(text);
	if (mailaddr_path(&at, utf8, &a) == MAILADDR_OK) {
		size_t len = strlen(a.text);
		assert(at > text && at[-1] == '>' && len < sizeof a.text && a.at <= len);
		for (size_t i = 0; i < len; i++)
			assert((unsigned char)a.text[i] >= 32 && a.text[i] != 127);
		if (a.text[a.at]) {
			assert(a.at <= MAILADDR_LOCAL_MAX && utf8 >= a.utf8);
			assert(mailaddr_domain(a.text) == a.text + a.at + 1);
			assert(mailaddr_mailbox(a.text, len, utf8, &again) == MAILADDR_OK);
			assert(strcmp(a.text, again.text) == 0);
		}
	}
	free(text);
	return 0;
}
