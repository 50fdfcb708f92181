# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a command on a terminal, and looks at what it draws there.

Usage: on_terminal.py bar COLUMNS COMMAND...: prints what the command draws over itself, a line for each time; ends with its
exit code. What is longer than the terminal is wide would leave its beginning on the screen: that is refused.

Usage: on_terminal.py watch KEYS COMMAND...: on 8 lines of 50 columns; KEYS are sent when the whole second page is there: Ctrl-C
makes a terminal forget what it has not yet shown ("": no keys). Prints the lines that are left on the terminal when the command
has ended, and ends with its exit code, or 128 and its signal.

Usage: on_terminal.py page COLUMNS COMMAND...: on 24 lines; a pager that waits for a key is told to quit. Prints what came, and
ends with its exit code.
"""
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios

ENTER, LEAVE, HOME, PAGE_END = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[H", b"\x1b[J"
ESCAPE = re.compile(rb"\x1b\[[?0-9;]*[A-Za-z]")
LINES, COLUMNS = 8, 50


def lead(lines, columns, command, tells):
    """Leads the session of a terminal, as a shell does. What nobody has read is lost when a leader ends: this one waits."""
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    os.environ["TERM"] = "xterm"
    process = os.fork()
    if process == 0:
        os.execvp(command[0], command)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the keys are meant for the command
    os.write(tells, str(os.waitpid(process, 0)[1]).encode())
    for each in 0, 1, 2:
        os.close(each)
    while True:
        signal.pause()


def has_second_page(written):
    return written.count(PAGE_END) >= 2


def waits_for_key(written):
    """What less shows below its first screen."""
    return ESCAPE.sub(b"", written).endswith(b"\n:")


def run(lines, columns, command, keys="", when=has_second_page):
    """What the command has written to its terminal, and its exit code, or 128 and its signal."""
    told, tells = os.pipe()
    leader, terminal = pty.fork()
    if leader == 0:
        lead(lines, columns, command, tells)
    os.close(tells)
    written = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # nobody has it open any more
            break
        if not piece:
            break
        written += piece
        if keys and when(written):
            os.write(terminal, keys.encode())
            keys = ""
    status = int(os.read(told, 64))
    os.kill(leader, signal.SIGKILL)
    os.waitpid(leader, 0)
    return written, 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def bar(columns, command):
    written, code = run(24, columns, command)
    for drawn in written.decode().replace("\r\n", "\n").split("\r")[1:]:
        line, erased, _ = drawn.partition("\x1b[K")
        if erased and line:
            assert len(line) < columns, f"{len(line)} characters on {columns} columns: {line}"
            print(line)
    return code


def watch(keys, command):
    written, code = run(LINES, COLUMNS, command, keys)
    written = written.replace(b"\r\r\n", b"\r\n")  # the terminal itself adds a return to each line end
    if ENTER in written:
        assert written.count(ENTER) == written.count(LEAVE) == 1, written
        drawn = written[written.index(ENTER) + len(ENTER):written.index(LEAVE)]
        for page in drawn.split(HOME)[1:]:
            page, end, rest = page.partition(PAGE_END)
            assert end and ESCAPE.sub(b"", rest) in (b"", b"^C"), (page, rest)
            lines = ESCAPE.sub(b"", page).split(b"\r\n")
            assert len(lines) <= LINES and all(len(line.decode()) <= COLUMNS for line in lines), lines
            assert b"\n" not in page.replace(b"\r\n", b""), page
        written = written[written.index(LEAVE) + len(LEAVE):]
    assert b"\x1b" not in written, written
    sys.stdout.write(written.decode().replace("\r\n", "\n"))
    return code


def page(columns, command):
    written, code = run(24, columns, command, "q", waits_for_key)
    sys.stdout.write(ESCAPE.sub(b"", written).decode().replace("\r", ""))
    return code


if __name__ == "__main__":
    kind, setting, *words = sys.argv[1:]
    sys.exit(watch(setting, words) if kind == "watch" else {"bar": bar, "page": page}[kind](int(setting), words))
