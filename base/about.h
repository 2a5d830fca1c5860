/* about.h - a time that is a little longer or shorter each time.
 *
 * Who asks again and again after such times does not meet one who is out at even intervals out each time, nor do all
 * who began together ask together.
 *
 * THREAD     Any. Pure.
 */
#ifndef BASE_ABOUT_H
#define BASE_ABOUT_H

#include <stdint.h>

enum { ABOUT_PART = 8 }; /* by such a part of it, at most */

/* now_ms: its last digits are the chance. */
static inline int64_t about_ms(int64_t wait_ms, int64_t now_ms)
{
	enum { HALF = 0x8000 };
	int64_t mixed = (uint32_t)now_ms * UINT32_C(2654435761) >> 16;
	return wait_ms + wait_ms * (mixed - HALF) / HALF / ABOUT_PART;
}

#endif
