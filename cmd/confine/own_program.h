/* own_program.h - where the program lies that this process runs.
 *
 * /proc knows it, also where it was begun by a relative name; without /proc, as in a jail, the kernel still says by which name it
 * was begun.
 *
 * THREAD  Any, before the working directory changes.
 * ERRORS  "": it can't be told.
 */
#ifndef CMD_CONFINE_OWN_PROGRAM_H
#define CMD_CONFINE_OWN_PROGRAM_H

enum { OWN_PROGRAM = 4096 };

void own_program(char path[OWN_PROGRAM]);

void own_program_named(char path[OWN_PROGRAM]);
/* The name that it was begun by, whose symbolic links may lead to another program later. Where that is not known, or leads elsewhere
 * now, as above. */

#endif
