/* near.h - what somebody may have meant who wrote a name wrongly.
 *
 * THREAD     Any. Pure.
 */
#ifndef BASE_NEAR_H
#define BASE_NEAR_H

#include <stdbool.h>

bool near_is(const char *written, const char *meant);
/* A letter or two are wrong, missing, too many, or in each other's place (Damerau's distance, without regard to case);
 * in short names, one. Not where there is no difference. */

#endif
