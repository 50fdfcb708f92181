# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a command on a terminal of so many columns, and prints what it draws over itself: a line for each time.

Usage: bar_on_terminal.py COLUMNS COMMAND...; ends with the command's exit code. What is longer than the terminal is wide
would leave its beginning on the screen: that is refused.
"""
import fcntl
import os
import pty
import struct
import sys
import termios


def main(columns, command):
    process, terminal = pty.fork()
    if process == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.environ["TERM"] = "xterm"
        os.execvp(command[0], command)
    written = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # nobody has it open any more
            break
        if not piece:
            break
        written += piece
    status = os.waitpid(process, 0)[1]
    for drawn in written.decode().replace("\r\n", "\n").split("\r")[1:]:
        line, erased, _ = drawn.partition("\x1b[K")
        if erased and line:
            assert len(line) < columns, f"{len(line)} characters on {columns} columns: {line}"
            print(line)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
