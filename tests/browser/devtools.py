"""A headless Chromium, driven over the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/) by its
pipe: it reads messages from file descriptor 3 and writes them to 4, JSON ended by a zero byte each. No port, no
package.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless", "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check", "--disable-gpu",
         "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-extensions", "--mute-audio", "--force-color-profile=srgb", "--hide-scrollbars")
# The descriptors get their numbers in a process of their own, since in this one 3 and 4 may be anything.
LAUNCHER = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
CONTROL = 2  # a modifier of keys and of the mouse


class BrowserError(Exception):
    """The browser did not start, did not answer, or refused what was asked."""


def find_browser():
    """A path, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One page. As a context it ends the browser and removes its profile."""

    def __init__(self, program, timeout_s=60):
        self.timeout_s, self.events, self.rest, self.last, self.session = timeout_s, [], b"", 0, None
        self.profile = tempfile.mkdtemp(prefix="pipecast-browser-")
        try:
            self._start(program)
            target = self.send("Target.createTarget", url="about:blank")["targetId"]
            self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.send(domain + ".enable")
        except BaseException:
            self.close()
            raise

    def _start(self, program):
        to_read, self.to_write = os.pipe()
        self.to_receive, to_answer = os.pipe()
        command = [program, *FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else []), f"--user-data-dir={self.profile}",
                   "about:blank"]
        self.log = open(os.path.join(self.profile, "stderr.txt"), "w+b")
        # Whatever the browser keeps, a crash report too, it keeps in its profile.
        home = {"HOME": self.profile, "XDG_CONFIG_HOME": self.profile, "XDG_CACHE_HOME": self.profile}
        self.process = subprocess.Popen([sys.executable, "-c", LAUNCHER, str(to_read), str(to_answer), *command],
                                        pass_fds=(to_read, to_answer), stdin=subprocess.DEVNULL, env=os.environ | home,
                                        stdout=subprocess.DEVNULL, stderr=self.log)
        os.close(to_read)
        os.close(to_answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        process = getattr(self, "process", None)
        if process:
            os.close(self.to_write)  # the browser ends when nobody can talk to it
            os.close(self.to_receive)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self.log.close()
            self.process = None
        shutil.rmtree(self.profile, ignore_errors=True)

    # --- messages ---

    def send(self, method, **parameters):
        """Asks, and waits for the answer; events that come meanwhile are kept in `events`."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        try:
            os.write(self.to_write, json.dumps(message).encode() + b"\0")
        except BrokenPipeError as error:
            raise BrowserError(f"the browser ended: {self._words()}") from error
        end = time.monotonic() + self.timeout_s
        while True:
            answer = self._receive(end, method)
            if answer.get("id") == self.last:
                break
            self.events.append(answer)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    def wait_for(self, method):
        """The next event of this kind, also one that came already."""
        end = time.monotonic() + self.timeout_s
        seen = 0
        while True:
            for event in self.events[seen:]:
                seen += 1
                if event.get("method") == method:
                    return event["params"]
            self.events.append(self._receive(end, method))

    def events_of(self, *methods):
        return [event["params"] for event in self.events if event.get("method") in methods]

    def _receive(self, end, what):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.to_receive], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise BrowserError(f"{what}: no answer within {self.timeout_s} s")
            got = os.read(self.to_receive, 1 << 16)
            if not got:
                raise BrowserError(f"the browser ended: {self._words()}")
            self.rest += got
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def _words(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace").strip()[-500:] or "without a word"

    # --- what a reader does ---

    def open(self, url):
        self.events.clear()
        self.send("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def evaluate(self, script):
        """The value of an expression; what it throws is an error here."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(f"{script}: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def resize(self, width, height, is_phone=False):
        self.size = width, height, is_phone
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=is_phone)

    def scheme(self, name):
        """"light" or "dark", as the reader's machine may be set; "print" for paper."""
        if name == "print":
            self.send("Emulation.setEmulatedMedia", media="print", features=[])
        else:
            self.send("Emulation.setEmulatedMedia", media="screen",
                      features=[{"name": "prefers-color-scheme", "value": name}])

    def mouse(self, kind, x, y, **parameters):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **parameters)

    def click(self, x, y, count=1):
        for n in range(1, count + 1):
            self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=n)
            self.mouse("mouseReleased", x, y, button="left", clickCount=n)

    def key(self, key, text=None):
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def settle(self):
        """Two frames on, so that what was asked for is drawn."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def screenshot(self, path, whole=True):
        """PNG of the window, or of the whole page: the window grows, so that the page draws all that is in sight."""
        size = self.size
        if whole:
            height = self.send("Page.getLayoutMetrics")["cssContentSize"]["height"]
            self.resize(size[0], int(min(height, 16000)), size[2])
            self.settle()
        data = self.send("Page.captureScreenshot", format="png")["data"]
        if whole:
            self.resize(*size)
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
