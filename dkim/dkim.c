/* SPDX-License-Identifier: ISC */
#include "dkim/dkim.h"

static void begin(struct passage *p)
{
	passage_next(p);
}

const struct passage_stage dkim_stage = {.name = "dkim", .begin = begin};
