"""Measures the speed of `code-commit chat` at a terminal.

Usage: `python3 benches/chat.py PROGRAM [--beside codex=PATH] [--rounds N]`

The program runs in a pseudo-terminal of 120 by 40; its model is a server on this machine. Measured are the time from the
start to the first frame and to the model's name in the status bar, from a key to the frame that shows it (idle; while
2,000 deltas a second stream; at the end of 10,000 lines), to open a session of that length and to scroll it by a page,
peak memory, the bytes written to an idle screen, and frames per second. Goals: 50 ms, 16 ms, 1 s, 16 ms, 80 MB, 0 bytes,
60 frames.

`--beside codex=PATH` and `--beside gemini-cli=PATH` alternate with that agent, in a home directory of its own with an
invalid key, and measure the time to its first readable text and to its input, a key, and the memory of all its processes.
"""

import argparse
import fcntl
import http.server
import json
import os
import pty
import random
import re
import select
import signal
import statistics
import struct
import subprocess
import tempfile
import termios
import threading
import time

COLUMNS, ROWS = 120, 40
FRAME_END = b"\x1b[?2026l"
LINES = 10_000
RATE = 2_000
SECONDS = 6
# Letters that appear nowhere else on the screen.
LETTERS = "ЖЩЫЭЮЯБДЛФ"

# Other agents: the texts they show first and with their input, and the settings that keep them from asking questions.
OTHERS = {
    "codex": (rb"OpenAI Codex", rb"Ask Codex", ".codex/config.toml", '''model = "gpt-5"
model_provider = "local"
check_for_update_on_startup = false
[model_providers.local]
name = "local"
base_url = "http://127.0.0.1:9/v1"
env_key = "GEMINI_API_KEY"
wire_api = "responses"
[projects."PROJECT"]
trust_level = "trusted"
'''),
    "gemini-cli": (rb"Gemini CLI|shortcuts", rb"Gemini CLI v[^$]*shortcuts", ".gemini/settings.json", """{
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
        "general": {"enableAutoUpdate": false}}"""),
}
ESCAPES = re.compile(rb"\x1b\][^\x07\x1b]*(\x07|\x1b\\\\)|\x1b\[[0-9;?>=]*[A-Za-z]")


class Model(http.server.BaseHTTPRequestHandler):
    """Answers a request that names `LINES` with that many lines at once, and one that names `STREAM` delta by delta."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        # The last request; reminders may surround it.
        words = re.findall("LINES|STREAM", json.dumps(asked["messages"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        usage = {"input_tokens": 1000, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"], "content": [],
                   "stop_reason": None, "stop_sequence": None, "usage": usage}
        self.events([{"type": "message_start", "message": message},
                     {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}])
        if words and words[-1] == "LINES":
            self.events([delta("".join(lines(LINES)))])
        elif words:
            self.stream()
        else:
            self.events([delta("It is done.")])
        self.events([{"type": "content_block_stop", "index": 0},
                     {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                      "usage": {"output_tokens": 9}}, {"type": "message_stop"}])
        self.wfile.write(b"0\r\n\r\n")

    def stream(self):
        """Sends deltas of one word at the requested rate, several at a time."""
        pieces = re.findall(r"\S+\s*", "".join(lines(LINES)))[:RATE * SECONDS]
        assert len(pieces) == RATE * SECONDS
        began, sent = time.perf_counter(), 0
        while sent < len(pieces):
            due = min(len(pieces), int((time.perf_counter() - began) * RATE))
            if due > sent:
                self.events([delta(piece) for piece in pieces[sent:due]])
                sent = due
            time.sleep(0.002)

    def events(self, events):
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.flush()


def delta(text):
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


def lines(count):
    """Returns Markdown with paragraphs, lists and code, one line each."""
    kinds = ["A paragraph with some *words*, about `this` and that, number {}.\n\n", "- an item, number {}\n",
             "- **another** one\n\n", "```rust\nlet x = {};\n```\n\n"]
    at = 0
    while at < count:
        line = kinds[at % len(kinds)].format(at)
        at += line.count("\n")
        yield line


class Screen:
    """A program running in a terminal."""

    def __init__(self, command, directory, environment):
        self.began = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            # Set the size before the program can ask for it.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.chdir(directory)
            os.execve(command[0], command, environment)
        self.seen = b""

    def read(self, limit):
        """Returns the output as soon as there is any; b"" if there is none within the given number of seconds."""
        if not select.select([self.fd], [], [], max(0, limit))[0]:
            return b""
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:
            return b""
        self.seen += data
        self.reply(data)
        return data

    def reply(self, data):
        """Answers queries to the terminal, since other agents wait for the answers."""
        for asked, answer in ((b"\x1b[6n", b"\x1b[1;1R"), (b"\x1b[c", b"\x1b[?62;c"), (b"\x1b[?u", b"\x1b[?0u"),
                              (b"\x1b]10;?", b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\"),
                              (b"\x1b]11;?", b"\x1b]11;rgb:0000/0000/0000\x1b\\")):
            if asked in data:
                os.write(self.fd, answer)

    def until(self, text, limit=60.0):
        """Returns the time when the next frame with text that matches this regular expression has ended."""
        begin, until = len(self.seen), time.perf_counter() + limit
        while True:
            found = re.search(text, self.seen[begin:])
            # The frames of other agents may have no end mark.
            if found and (FRAME_END in self.seen[begin + found.start():] or text and FRAME_END not in self.seen):
                return time.perf_counter()
            if time.perf_counter() > until:
                raise SystemExit(f"{text!r} was not seen:\n{self.seen[begin:][-2000:]!r}")
            self.read(0.5)

    def readable(self, text):
        """Returns the time when this text has been written, ignoring escape sequences in it and ends of frames."""
        until = time.perf_counter() + 60
        while not re.search(text, ESCAPES.sub(b"", self.seen)):
            if time.perf_counter() > until:
                raise SystemExit(f"{text!r} was not seen:\n{self.seen[-2000:]!r}")
            self.read(0.5)
        return time.perf_counter()

    def quiet(self, seconds=0.3):
        """Waits until nothing has been written for the given time."""
        while self.read(seconds):
            pass

    def key(self, key, text=b""):
        """Returns the time from a key press to a frame with this text."""
        began = time.perf_counter()
        os.write(self.fd, key.encode())
        return self.until(text) - began

    def letters(self, count, pause):
        """Returns the time that each of the given number of letters takes."""
        times = []
        for at in range(count):
            letter = LETTERS[at % len(LETTERS)]
            times.append(self.key(letter, letter.encode()))
            # Vary the moment: before and after the next frame of the stream is due.
            self.drain(pause + random.random() * pause)
        return times

    def drain(self, seconds):
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            self.read(until - time.perf_counter())

    def memory(self, field="VmHWM"):
        """Returns the memory in use, in MB."""
        with open(f"/proc/{self.pid}/status") as status:
            return int(re.search(rf"{field}:\s+(\d+)", status.read())[1]) / 1024

    def family_memory(self):
        """Returns the memory in use by the program and its children, with shared pages divided among their users, in MB."""
        total, pids = 0, [self.pid]
        while pids:
            pid = pids.pop()
            children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
            pids += [int(child) for child in children.stdout.split()]
            try:
                with open(f"/proc/{pid}/smaps_rollup") as rollup:
                    total += int(re.search(r"Pss:\s+(\d+)", rollup.read())[1]) / 1024
            except OSError:
                pass
        return total

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        until = time.perf_counter() + 3
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.perf_counter() > until:
                os.kill(self.pid, signal.SIGKILL)
            self.read(0.05)
        os.close(self.fd)


def show(what, times, goal):
    times = sorted(time * 1000 for time in times)
    nine = times[int(len(times) * 0.95)] if len(times) > 4 else times[-1]
    print(f"{what:<58} {statistics.median(times):>8.1f} ms, 95 %: {nine:.1f} ms (goal: {goal})", flush=True)


class Bench:
    def __init__(self, program, folder, url):
        self.program, self.folder = os.path.abspath(program), folder
        self.project, self.home = os.path.join(folder, "project"), os.path.join(folder, "home")
        for path in (self.project, self.home):
            os.makedirs(path)
        subprocess.run(["git", "init", "--quiet"], cwd=self.project, check=True)
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.home, "TERM": "xterm-256color",
                            "LANG": "C.UTF-8", "AGENT_HOME": os.path.join(self.home, "agent"),
                            "ANTHROPIC_API_KEY": "sk-ant-bench", "ANTHROPIC_BASE_URL": url}

    def chat(self, *arguments):
        return Screen([self.program, "chat", *arguments], self.project, self.environment)

    def starts(self, rounds, others):
        first, ready = [], []
        figures = {name: ([], [], [], []) for name in others}
        for _ in range(rounds):
            screen = self.chat()
            first.append(screen.until(b"") - screen.began)
            ready.append(screen.readable(b"claude-sonnet") - screen.began)
            screen.end()
            for name, path in others.items():
                for figure, all_figures in zip(self.other(name, path), figures[name]):
                    all_figures.append(figure)
        show("start to the first frame", first, "50 ms")
        show("start to the input and the model's name", ready, "none")
        for name, (first, ready, keys, sizes) in figures.items():
            show(f"{name}: start to something that can be read", first, "none")
            show(f"{name}: start to the input", ready, "none")
            show(f"{name}: a key to the screen, idle", keys, "none")
            print(f"{name}: memory of all its processes, idle".ljust(58) + f" {statistics.median(sizes):>8.1f} MB")

    def other(self, name, path):
        """Measures another agent: the time to its first text and to its input, the time for a key, and its memory."""
        first, ready, file, settings = OTHERS[name]
        home = tempfile.mkdtemp(dir=self.folder)
        file = os.path.join(home, file)
        os.makedirs(os.path.dirname(file))
        with open(file, "w") as text:
            text.write(settings.replace("PROJECT", self.project))
        environment = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "xterm-256color", "LANG": "C.UTF-8",
                       "COLORTERM": "truecolor", "GEMINI_API_KEY": "none"}
        screen = Screen([path], self.project, environment)
        first, ready = screen.readable(first) - screen.began, screen.readable(ready) - screen.began
        screen.drain(2)
        key = statistics.median(screen.letters(5, 0.1))
        size = screen.family_memory()
        screen.end()
        return first, ready, key, size

    def idle(self, count):
        screen = self.chat()
        screen.until(b"claude-sonnet")
        screen.quiet()
        show("a key to the screen, idle", screen.letters(count, 0.03), "16 ms")
        screen.quiet(1)
        before = len(screen.seen)
        screen.drain(5)
        print(f"{'written to an idle screen in 5 s':<58} {len(screen.seen) - before:>8} bytes (goal: 0)")
        print(f"{'memory at the peak, idle':<58} {screen.memory():>8.1f} MB (goal: 80)")
        print(f"{'memory of all its processes, idle':<58} {screen.family_memory():>8.1f} MB", flush=True)
        screen.end()

    def streaming(self, count):
        screen = self.chat()
        screen.until(b"claude-sonnet")
        screen.quiet()
        os.write(screen.fd, b"STREAM\r")
        screen.until(b"Streaming")
        screen.drain(0.5)
        began, frames = time.perf_counter(), screen.seen.count(FRAME_END)
        times = screen.letters(count, 0.03)
        frames, took = screen.seen.count(FRAME_END) - frames, time.perf_counter() - began
        assert took < SECONDS - 1, f"the keys took {took} s: the stream was over"
        show(f"a key to the screen, {RATE} deltas a second", times, "16 ms")
        print(f"{'frames a second meanwhile':<58} {frames / took:>8.1f} (goal: at most 60)")
        screen.quiet(1)
        print(f"{'memory at the peak, streaming':<58} {screen.memory():>8.1f} MB (goal: 80)", flush=True)
        screen.end()

    def long(self, count, rounds):
        screen = self.chat()
        screen.until(b"claude-sonnet")
        os.write(screen.fd, b"LINES\r")
        screen.until(b"paragraph|another|number")
        screen.quiet(1.5)
        show(f"a key to the screen, at the end of {LINES} lines", screen.letters(count, 0.03), "16 ms")
        print(f"{'memory at the peak then':<58} {screen.memory():>8.1f} MB (goal: 80)", flush=True)
        screen.end()
        opened = []
        for _ in range(rounds):
            screen = self.chat("--resume")
            opened.append(screen.until(b"paragraph|another|number") - screen.began)
            screen.quiet()
            screen.end()
        show(f"opening a session of {LINES} lines", opened, "1 s")
        screen = self.chat("--resume")
        screen.until(b"paragraph|another|number")
        screen.quiet()
        pages = []
        for at in range(2 * count):
            # There and back: what was laid out once has to be laid out again.
            pages.append(screen.key("\x1b[5~" if at < count else "\x1b[6~"))
            screen.drain(0.03)
        show("a page of it", pages, "16 ms")
        times = [screen.key("\x1b[1;5H"), screen.key("\x1b[1;5F")]
        show("to its first line, and to its last", times, "16 ms")
        print(f"{'memory at the peak, opened and paged':<58} {screen.memory():>8.1f} MB (goal: 80)", flush=True)
        screen.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--beside", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--keys", type=int, default=80)
    parser.add_argument("--only", choices=["starts", "idle", "streaming", "long"])
    options = parser.parse_args()
    others = dict(other.split("=", 1) for other in options.beside)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        bench = Bench(options.program, folder, f"http://127.0.0.1:{server.server_port}")
        if options.only in (None, "starts"):
            bench.starts(options.rounds, others)
        if options.only in (None, "idle"):
            bench.idle(options.keys)
        if options.only in (None, "streaming"):
            bench.streaming(options.keys)
        if options.only in (None, "long"):
            bench.long(options.keys, options.rounds)
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")


main()
