# SPDX-FileCopyrightText: the fourfold authors
# SPDX-License-Identifier: Apache-2.0
"""Strangers at the port of a run's watch: strangers.py SECONDS PROCESS...

Looks up every port on which these processes listen, and for that long sends to each what no rank sends: newlines without end,
connections by the hundred, half-open ones, and others that send a byte now and then. Ends with 1 if no port is open, if a port
takes more than 16 MiB on one connection before it hangs up, or does not hang up at all."""
import os
import select
import socket
import sys
import time


def ports_of(processes):
    sockets = set()
    for process in processes:
        for name in os.listdir(f"/proc/{process}/fd"):
            try:
                sockets.add(os.readlink(f"/proc/{process}/fd/{name}"))
            except OSError:
                pass
    ports = {}
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{processes[0]}/net/{table}", encoding="ascii") as lines:
            for words in map(str.split, list(lines)[1:]):
                if words[3] == "0A" and f"socket:[{words[9]}]" in sockets:  # it listens
                    ports[int(words[1].rsplit(":")[1], 16)] = words[1].rsplit(":")[0]
    # What MPI listens on is bound to what it likes; the watch listens on all addresses, with both versions of IP.
    return [port for port, address in ports.items() if set(address) == {"0"} and len(address) == 32]


def connect(port):
    try:
        return socket.create_connection(("localhost", port), timeout=2)
    except OSError:
        return None


def flood(port, words, most, seconds):
    """Whether it was hung up on before it had sent so much."""
    stranger = connect(port)
    if stranger is None:
        return True
    sent, end = 0, time.monotonic() + seconds
    try:
        stranger.setblocking(False)
        while sent < most and time.monotonic() < end:
            readable, writable, _ = select.select([stranger], [stranger], [], 0.1)
            if readable and stranger.recv(1) == b"":
                return True
            if writable:
                sent += stranger.send(words)
    except OSError:
        return True
    finally:
        stranger.close()
    return False


def main():
    seconds, processes = float(sys.argv[1]), sys.argv[2:]
    ports = ports_of(processes)
    if not ports:
        sys.exit("no port is open")
    end = time.monotonic() + seconds
    connections = []
    while time.monotonic() < end:
        for port in ports:
            for words in (b"\n" * 65536, b"x" * 65536, b"0" * 64 + b"\n" * 65536, b'{"type":"hello","rank":0}\n' * 3000):
                if not flood(port, words, 16 << 20, 20):
                    sys.exit(f"port {port} takes {words[:30]} without end")
            connections += [one for one in (connect(port) for _ in range(100)) if one]
            for one in connections[::3]:
                try:
                    one.send(b"0")
                except OSError:
                    pass
            connections = connections[-600:]
    print(f"{len(ports)} ports")


main()
