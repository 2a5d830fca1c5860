/* login_device.h - get a refresh token by device code, and leave it where the relay looks for it.
 *
 *	FILE of refresh: --> device_endpoint --> address and code, printed
 *			     endpoint, each interval --> somebody has said yes --> token_store_write()
 *
 * It is written by this process, with the rights of the relay's user, whom the caller has become: so it needs no
 * running relay, and what it leaves the relay can read. The lock of the token store keeps the two apart. A relay that
 * waits for a token sees the file change.
 *
 * THREAD     Main, with a loop of its own.
 * ERRORS     Told on stderr; false. SIGINT and SIGTERM end it, with nothing changed.
 * SEE        smtpc/token_device.h, smtpc/token_store.h.
 */
#ifndef CMD_LOCAL_LOGIN_DEVICE_H
#define CMD_LOCAL_LOGIN_DEVICE_H

#include "base/conf.h"
#include "base/credential.h"

#include <stdbool.h>

bool login_device(const struct conf *, const struct credential *);

#endif
