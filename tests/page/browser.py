"""browser.py CHROMIUM PAGE [--shot FILE WIDTH HEIGHT light|dark [TOP] | --try EXPRESSION]

Opens a page in headless Chromium and prints one JSON object: the requests, whether any script was found, the
width of the page on a phone, its colours in light and dark mode, and the load time. With --try, prints the value
of the expression in the page as JSON, along with the requests and the scripts. Controls Chromium over --remote-debugging-pipe: file descriptors 3 and 4, JSON ended by NUL.
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
from pathlib import Path

PATIENCE = 60

# Evaluated in the page by the debugger; the page itself runs nothing.
LOOK = """(() => {
  const all = document.querySelectorAll('details');
  const closed = document.documentElement.scrollWidth;
  all.forEach(details => details.open = true);
  const opened = document.documentElement.scrollWidth;
  const style = getComputedStyle(document.body);
  const alien = 'script,img,iframe,object,embed,link,form,input,base,audio,video,source,template,x-hostile';
  const handlers = [...document.querySelectorAll('*')].filter(
    element => [...element.attributes].some(attribute => /^on|^src/.test(attribute.name)));
  return {width: Math.max(closed, opened), background: style.backgroundColor, color: style.color,
    aliens: document.querySelectorAll(alien).length + handlers.length,
    ran: typeof window.hostile !== 'undefined', title: document.title,
    links: [...document.links].map(link => link.getAttribute('href')).filter(
      href => !(href.startsWith('#') && document.getElementById(href.slice(1)))),
    elements: document.querySelectorAll('*').length};
})()"""


class Browser:
    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="browser-")
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()
        self.buffer, self.number, self.events = b"", 0, []

        def descriptors():
            low, high = os.dup2(theirs_in, 20, False), os.dup2(theirs_out, 21, False)
            os.dup2(low, 3, True)
            os.dup2(high, 4, True)

        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            [program, "--headless", *sandbox, "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--disable-background-networking", f"--user-data-dir={self.profile}",
             "--remote-debugging-pipe", "about:blank"],
            preexec_fn=descriptors, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)

    def receive(self, until):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.into], [], [], max(0, until - time.time()))
            if not ready:
                return None
            chunk = os.read(self.into, 1 << 16)
            if not chunk:
                sys.exit("chromium ended")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.time() + PATIENCE
        while (answer := self.receive(until)) is not None:
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)
        sys.exit(f"no answer to {method}")

    def wait_for(self, event):
        until = time.time() + PATIENCE
        while not any(seen.get("method") == event for seen in self.events):
            message = self.receive(until)
            if message is None:
                sys.exit(f"no {event}")
            self.events.append(message)

    def open(self, page, width, height, scheme):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Debugger"):
            self.call(f"{domain}.enable", session)
        self.call("Emulation.setDeviceMetricsOverride", session, width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", session,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        began = time.time()
        self.call("Page.navigate", session, url=Path(page).resolve().as_uri())
        self.wait_for("Page.loadEventFired")
        seconds = time.time() - began
        seen = [event for event in self.events if event.get("sessionId") == session]
        parameters = lambda method: [event["params"] for event in seen if event.get("method") == method]
        return target, session, {
            "seconds": round(seconds, 3),
            "requests": len(parameters("Network.requestWillBeSent")),
            "scripts": len(parameters("Debugger.scriptParsed")),
        }

    def look(self, page, width, scheme):
        target, session, found = self.open(page, width, 844, scheme)
        self.events.clear()
        looked = self.call("Runtime.evaluate", session, returnByValue=True, expression=LOOK)
        found.update(looked["result"]["value"])
        late = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        found["requests"] += len(late)
        self.call("Target.closeTarget", targetId=target)
        return found

    def shoot(self, page, to, width, height, scheme, top):
        _, session, _ = self.open(page, width, height, scheme)
        clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
        shot = self.call("Page.captureScreenshot", session, format="png", clip=clip, captureBeyondViewport=True)
        Path(to).write_bytes(base64.b64decode(shot["data"]))

    def attempt(self, page, expression):
        _, session, found = self.open(page, 1280, 844, "light")
        tried = self.call("Runtime.evaluate", session, returnByValue=True, awaitPromise=True, expression=expression)
        found["result"] = tried["result"].get("value")
        return found

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


def main(program, page, *rest):
    browser = Browser(program)
    try:
        if rest and rest[0] == "--try":
            print(json.dumps(browser.attempt(page, rest[1])))
        elif rest:
            _, to, width, height, scheme, *top = rest
            browser.shoot(page, to, int(width), int(height), scheme, int(*top or [0]))
        else:
            views = {"light": (1280, "light"), "dark": (1280, "dark"), "phone": (390, "light")}
            print(json.dumps({name: browser.look(page, *view) for name, view in views.items()}))
    finally:
        browser.close()


main(*sys.argv[1:])
