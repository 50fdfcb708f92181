# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Types a line and a tab into an interactive shell on a terminal, and prints with which words fourfold is run then.

Usage: complete_in_shell.py SHELL FILE LINE: bash or zsh, with FILE as its completion of fourfold.
"""
import fcntl
import os
import pty
import re
import select
import struct
import sys
import tempfile
import termios
import time

PATIENCE_S = 60
START = {
    "bash": ("bash", "--norc", "--noprofile", "-i"),
    "zsh": ("zsh", "-f", "-i"),
}


FUNCTION = "fourfold() { printf 'ran<'; printf '[%s]' \"$@\"; printf '>\\n'; }"


def set_up(shell, completion):
    if shell == "bash":
        return f"PS1='ready> '; bind 'set bell-style none'; bind 'set show-all-if-ambiguous on'; bind 'set enable-bracketed-paste off'; . {completion}; {FUNCTION}\n"
    return f"PS1='ready> '; unsetopt zle_bracketed_paste beep prompt_sp; fpath=({os.path.dirname(completion)} $fpath); autoload -U compinit; compinit -u -D; {FUNCTION}\n"


def read_until(terminal, pattern):
    written, end = "", time.monotonic() + PATIENCE_S
    while not re.search(pattern, written):
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            sys.exit(f"nothing like {pattern!r} came: {written!r}")
        written += os.read(terminal, 65536).decode(errors="replace")
    return written


def main():
    shell, completion, line = sys.argv[1:]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tempfile.mkdtemp())
        os.environ.update(TERM="dumb", HISTFILE="/dev/null")
        os.execvp(START[shell][0], START[shell])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
    read_until(terminal, r"[$%#>] ")
    os.write(terminal, set_up(shell, completion).encode())
    read_until(terminal, r"(?s)\n.*ready> ")
    os.write(terminal, b"echo ready\n")
    read_until(terminal, r"(?s)\nready\r?\n.*ready> ")
    os.write(terminal, (line + "\t").encode())
    time.sleep(1)  # a shell that has no answer says nothing
    os.write(terminal, b"\n")
    print(re.search(r"ran<(.*?)>", read_until(terminal, r"(?s)\nran<.*>\r?\n")).group(1))
    os.close(terminal)
    return 0


if __name__ == "__main__":
    sys.exit(main())
