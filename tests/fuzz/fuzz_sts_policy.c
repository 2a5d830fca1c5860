/* SPDX-License-Identifier: ISC */
/* A record and a policy of MTA-STS, from any bytes: what is read keeps to its bounds, and is read again as it
 * was when it is written. */
#include "tests/fuzz/fuzz.h"

#include "base/conf.h"
#include "base/sts_policy.h"

static void check_policy(const struct sts_policy *p)
{
	struct buf first = {0}, second = {0}, why = {0};
	assert(p->max_age_s >= 0 && p->max_age_s <= STS_MAX_AGE_S && p->nmx <= STS_MX_MAX);
	assert(p->mode == STS_NONE || p->nmx > 0);
	for (int i = 0; i < p->nmx; i++) {
		bool star = p->mx[i][0] == '*';
		assert(conf_host_good(p->mx[i] + (star ? 2 : 0)));
		char *host = mem_printf("%s%s", star ? "a." : "", p->mx[i] + (star ? 2 : 0));
		assert(sts_policy_has(p, host));
		free(host);
	}
	sts_policy_write(p, &first);
	struct sts_policy *again = sts_policy_parse(buf_data(&first), buf_len(&first), &why);
	assert(again);
	sts_policy_write(again, &second);
	assert(strcmp(buf_cstr(&first), buf_cstr(&second)) == 0);
	sts_policy_unref(again);
	buf_fini(&first);
	buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char id[STS_ID_SIZE];
	struct buf why = {0};
	char *txt = mem_strndup((const char *)data, size);
	struct sts_policy *p = sts_policy_parse((const char *)data, size, &why);
	assert((p == NULL) == (buf_len(&why) > 0));
	if (p)
		check_policy(p);
	sts_policy_unref(p);
	bool is = sts_record_parse(txt, id);
	assert(strlen(id) < STS_ID_SIZE && (is || !*id));
	free(txt);
	buf_fini(&why);
	return 0;
}
