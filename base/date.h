/* date.h - the system's date, for display: log, Received and Date fields, reports, what commands show; and for what
 * everybody judges by it: certificates, signatures, what is to happen on a date.
 *
 * clock_wall_ms() is the queue's: where the system's clock has been set it goes on as if it had not, so that
 * nothing is too old or due at once. This one shows what was set, within a second.
 *
 * THREAD     Any. date_set(): main.
 * ERRORS     None.
 */
#ifndef BASE_DATE_H
#define BASE_DATE_H

#include <stdint.h>

int64_t date_ms(void); /* milliseconds since 1970 */
int64_t date_ahead_ms(void);
/* Of clock_wall_ms(): what one machine tells another are dates, since that clock is each one's own. */

void date_set(int64_t ahead_ms);
/* By so much the system's clock is ahead of clock_wall_ms(). */

#endif
