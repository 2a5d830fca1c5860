/* sanitized.h - whether this is a build with a sanitizer, in which all takes ten times as long.
 *
 * What is played by chance is played less often there: it is looked at for the memory and the threads, and for what it
 * finds in the plain build.
 */
#ifndef TESTS_UNIT_BASE_SANITIZED_H
#define TESTS_UNIT_BASE_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

#endif
