/* http_host.h - whether the Host field of a request names this relay.
 *
 * A foreign page may have its own name resolve to our address, and then ask us as if we were its
 * site. Its browser says so in the Host field: only names that nobody else can give are answered.
 *
 * THREAD     Any.
 * ERRORS     None.
 * SEE        RFC 9110 7.2.
 */
#ifndef CMD_HTTP_HTTP_HOST_H
#define CMD_HTTP_HTTP_HOST_H

#include <stdbool.h>

bool http_host_is_ours(const char *field, const char *hostname);
/* An address literal, localhost or the hostname; with or without a port. */

#endif
