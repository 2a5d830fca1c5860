/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/share.h"

bool share_allows(const struct conf_queue *limits, int64_t concurrency, int64_t free_workers)
{
	if (free_workers <= 0)
		return false;
	return concurrency < limits->max_message_concurrency ||
	       (double)concurrency < (double)limits->scale_max_concurrency * (double)free_workers;
}
