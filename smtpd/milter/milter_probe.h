/* milter_probe.h - whether a filter answers: a connection of its own, a negotiation, and QUIT.
 *
 *	milter_probe_begin() --> done(owner, NULL), or done(owner, why), once
 *
 * OWNERSHIP  The probe is whoever's that began it: milter_probe_end(), in done() too, or before.
 * THREAD     The loop's.
 * ERRORS     As why.
 */
#ifndef SMTPD_MILTER_MILTER_PROBE_H
#define SMTPD_MILTER_MILTER_PROBE_H

#include "base/conf.h"
#include "base/loop.h"

struct milter_probe;

struct milter_probe *milter_probe_begin(struct loop *, const struct conf_milter *,
					void (*done)(void *owner, const char *why), void *owner);
/* The filter has its timeout for it, but no longer than MILTER_PROBE_MS. done() is never called
 * from here. */

void milter_probe_end(struct milter_probe **); /* NULL is allowed */

enum { MILTER_PROBE_MS = 5000 };

#endif
