/* SPDX-License-Identifier: ISC */
#include "base/near.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

enum { LENGTH_MAX = 64, LONG = 6, EDITS_SHORT = 1, EDITS_LONG = 2 };

static int least_of_three(int a, int b, int c)
{
	int least = a < b ? a : b;
	return least < c ? least : c;
}

static bool is_same(char a, char b)
{
	return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Rows of the usual table: of the prefix of a before the last, the last, and this one. */
static int count_edits(const char *a, int na, const char *b, int nb)
{
	assert(na <= LENGTH_MAX && nb <= LENGTH_MAX);
	int rows[3][LENGTH_MAX + 1];
	for (int k = 0; k <= nb; k++)
		rows[0][k] = k;
	for (int i = 1; i <= na; i++) {
		int *row = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
		row[0] = i;
		for (int k = 1; k <= nb; k++) {
			row[k] = least_of_three(last[k] + 1, row[k - 1] + 1,
						last[k - 1] + !is_same(a[i - 1], b[k - 1]));
			bool swapped = i > 1 && k > 1 && is_same(a[i - 1], b[k - 2]) &&
				       is_same(a[i - 2], b[k - 1]);
			if (swapped && before[k - 2] + 1 < row[k])
				row[k] = before[k - 2] + 1;
		}
	}
	return rows[na % 3][nb];
}

bool near_is(const char *written, const char *meant)
{
	size_t na = strlen(written), nb = strlen(meant);
	if (na == 0 || na > LENGTH_MAX || nb == 0 || nb > LENGTH_MAX)
		return false;
	int edits = count_edits(written, (int)na, meant, (int)nb);
	return edits > 0 && edits <= (nb >= LONG ? EDITS_LONG : EDITS_SHORT);
}
