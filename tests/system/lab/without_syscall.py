# SPDX-License-Identifier: ISC
"""Run a program for which one system call, by its number on x86-64, does not exist: as on an older kernel."""

import ctypes
import errno
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


class Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def main():
    """NUMBER PROGRAM ARGUMENT..."""
    steps = [(LOAD, 0, 0, 0), (EQUAL, 0, 1, int(sys.argv[1])), (RETURN, 0, 0, ERRNO | errno.ENOSYS), (RETURN, 0, 0, ALLOW)]
    program = Program(len(steps), b"".join(struct.pack("HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(program)):
        sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")
    os.execv(sys.argv[2], sys.argv[2:])


main()
