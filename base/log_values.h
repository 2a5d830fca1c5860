/* log_values.h - the ring of formatted values behind log_number() and its sisters.
 *
 * THREAD     Any; each has a ring of its own.
 * SEE        log.h.
 */
#ifndef BASE_LOG_VALUES_H
#define BASE_LOG_VALUES_H

#include <stdbool.h>

bool log_is_number(const char *value);
/* Was it made by log_number() or log_seconds(), and is it still in the ring? */

#endif
