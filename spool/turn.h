/* turn.h - one turn of the spool's loop: commit, start due messages, carry out commands, clean up.
 *
 * THREAD  spool, after each batch of notes and whenever its timer says so.
 */
#ifndef SPOOL_TURN_H
#define SPOOL_TURN_H

void turn_run(void *spool);	 /* notes have been received */
void turn_gathered(void *spool); /* receive those that have come, and the same */

#endif
