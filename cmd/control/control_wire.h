/* control_wire.h - the bytes on the control socket.
 *
 *	client: = WORD NUL = WORD NUL ... NUL      a NUL in the place of a word ends the request
 *	relay:  FRAME FRAME ... FRAME              the last one is empty, and then comes a STATUS
 *	                                           byte
 *	FRAME:  four bytes of length, highest first, and so many bytes; the top bit of the length
 *	        says that they belong on standard error
 *
 * A first word --progress is no part of the request: the client shows frames for standard error
 * that begin with CR on one line of its terminal, each in place of the one before.
 *
 * One request a connection. For the orders to stop and to restart, the relay closes the connection only when all
 * of it has stopped.
 */
#ifndef CMD_CONTROL_CONTROL_WIRE_H
#define CMD_CONTROL_CONTROL_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum {
	CONTROL_REQUEST_MAX = 16 << 20, /* bytes: a million ids */
	CONTROL_FRAME_MAX = 1 << 20,
	CONTROL_HEAD = 4,
};

#define CONTROL_WANTS_PROGRESS "--progress"
#define CONTROL_PROGRESS "\r"
#define CONTROL_ERROR_BIT UINT32_C(0x80000000)

static inline void control_head(unsigned char head[CONTROL_HEAD], size_t len, int is_error)
{
	uint32_t n = (uint32_t)len | (is_error ? CONTROL_ERROR_BIT : 0);
	for (int i = 0; i < CONTROL_HEAD; i++)
		head[i] = (unsigned char)(n >> (24 - 8 * i));
}

static inline uint32_t control_head_read(const unsigned char head[CONTROL_HEAD])
{
	uint32_t n = 0;
	for (int i = 0; i < CONTROL_HEAD; i++)
		n = n << 8 | head[i];
	return n;
}

#endif
