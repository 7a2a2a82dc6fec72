"""The page of a job in a real browser: its contents and its use by pointer and keyboard, on a desktop and a phone, served live and kept as
a file.

    python3 page_in_chromium_test.py --pictures FOLDER      makes the screenshots of docs/pictures
"""

import contextlib
import http.server
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import chromium
from warren_testing import BIN
from watching_test import JOB, Served, keep_job

DESKTOP = (1280, 1000)
PHONE = (360, 740)
RUNNING = "document.querySelectorAll('.cell.running').length >= {}"
LINES = "document.querySelectorAll('.line').length > {}"
LINES_OF = "document.querySelector('.line') && [...document.querySelectorAll('.line .who')].every(who => who.textContent === '{}')"
SELECT = "document.querySelector('.cell[data-i=\"{}\"]').click()"
# A script that returns the elements that extend beyond the page's right edge, except those that are hidden or in scrollable parts.
TOO_WIDE = ("[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 &&"
            " !e.closest('#command, .scroll, #topology, .unseen, .skip')).map(e => e.tagName + ' ' + e.id + ' ' + e.className)")
# A script that returns the lowest contrast ratio (as in WCAG) between text and its background, and the element with that text.
CONTRAST = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (color) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => { const f = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const behind = (node) => { for (; node; node = node.parentElement) { const c = rgb(getComputedStyle(node).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255]; };
  let worst = [99, ''];
  for (const node of document.querySelectorAll('body *')) {
    if (![...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) || !node.checkVisibility() || node.closest('option, noscript')) continue;
    const style = getComputedStyle(node);
    const a = light(rgb(node.namespaceURI.endsWith('svg') ? style.fill : style.color)), b = light(behind(node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) worst = [ratio, `${node.tagName} ${node.className} ${node.textContent.slice(0, 30)}`];
  }
  return worst;
})()"""


@contextlib.contextmanager
def link_at_another_site(target):
    """Serves a page with a link to `target` and yields its address. Browsers take localhost and 127.0.0.1 for different sites."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(f'<a href="{target}">the job</a>'.encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


@unittest.skipUnless(chromium.PROGRAM, "SKIPPED: no Chromium; apt-get install chromium")
class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.context = chromium.browser()
        cls.browser = cls.context.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.context.__exit__(None, None, None)

    def open(self, *arguments, size=DESKTOP, dark=False, at=62, **settings):
        """Opens the page of a job that began `at` seconds ago and waits until at least 6 running workers are drawn. Returns the server and
        the page."""
        served = Served("--at", str(at), *arguments, **settings)
        self.addCleanup(served.close)
        page = self.browser.new_page()
        self.addCleanup(page.close)
        page.resize(*size, dark=dark, phone=size == PHONE)
        page.open(f"http://127.0.0.1:{served.port}/?token={served.token}")
        page.wait_for(RUNNING.format(6))
        return served, page

    def test_it_shows_the_job_and_follows_it(self):
        served, page = self.open()
        self.assertEqual(page.value("location.search"), "", "the token stays in no address")
        self.assertIn("Rank 3 on node01 makes the others wait 41\u00a0%", page.value("document.getElementById('straggler').innerText"))
        self.assertTrue(page.value("rows.parentElement.hidden"), "nothing is being read")
        self.assertEqual(page.value("document.querySelector('.cell.stuck').getAttribute('aria-label')"), "rank 6, stuck, on node02")
        self.assertEqual(page.value("document.querySelectorAll('.series').length"), 4)
        page.wait_for(f"parseInt(document.getElementById('round').textContent) > {page.value('parseInt(round.textContent)')}")
        served.end()
        page.wait_for("document.getElementById('connection').textContent.startsWith('ended')")
        self.assertEqual(page.value("document.getElementById('state').textContent"), "succeeded")
        self.assertIn("Rank 3 on node01 made the others wait 41\u00a0%", page.value("document.getElementById('straggler').innerText"))
        page.value(SELECT.format(1))  # the server no longer answers
        page.wait_for(LINES_OF.format(1))
        self.assertEqual(page.complaints, [])

    def test_what_workers_write_is_only_text(self):
        _, page = self.open()
        page.value("document.getElementById('logs-search').value = 'onerror'; document.getElementById('logs-search').dispatchEvent(new Event('input'))")
        page.wait_for("document.querySelector('#logs-lines mark')")
        self.assertIn("<img src=x onerror=", page.value("document.getElementById('logs-lines').innerText"))
        self.assertEqual(page.value("document.querySelectorAll('img').length"), 0)
        self.assertNotEqual(page.value("document.title"), "broken")

    def test_a_worker_is_selected_by_keyboard_and_its_lines_alone_are_shown(self):
        _, page = self.open()
        page.value("document.querySelector('.cell').focus()")
        for key in ("ArrowRight", "ArrowRight", "ArrowRight"):
            page.press(key)
        page.press("Enter", "\r")
        page.wait_for("document.querySelector('#worker h3')?.textContent === 'rank 3: running'")
        page.wait_for(LINES_OF.format(3))
        time.sleep(1.5)  # time for the page to receive a change
        self.assertEqual(page.value("document.activeElement.textContent"), "3", "the focus stays where it was")
        page.value("document.querySelector('#evaluation-chart svg').focus()")
        page.press("ArrowLeft")
        page.wait_for("document.querySelector('#evaluation-chart .tooltip b')?.textContent.startsWith('Round')")
        self.assertEqual(page.complaints, [])

    def test_a_lost_connection_is_said_and_found_again(self):
        served, page = self.open()
        served.process.kill()
        page.wait_for("document.getElementById('connection').textContent.startsWith('connection lost')")

    def test_lines_that_cannot_be_asked_for_do_not_empty_the_box(self):
        served, page = self.open()
        page.wait_for(LINES.format(20))
        page.value("window.asked = ''; window.fetch = (url) => { asked += url; return Promise.reject(new Error('lost')); }; 0")
        page.value(SELECT.format(2))
        page.wait_for("asked.includes('worker=2')")
        self.assertGreater(page.value("document.querySelectorAll('.line').length"), 20, "what was read stays")
        served.end()  # the last event from the server contains the latest lines
        page.wait_for(LINES_OF.format(2))

    def test_it_opens_from_a_link_on_another_site(self):
        served = Served("--at", "62")
        self.addCleanup(served.close)
        with link_at_another_site(f"http://127.0.0.1:{served.port}/?token={served.token}") as url:
            page = self.browser.new_page()
            self.addCleanup(page.close)
            page.open(url)
            page.wait_for("document.querySelector('a')")
            page.value("document.querySelector('a').click()")
            page.wait_for("document.querySelectorAll('.cell.running').length >= 6 && document.querySelectorAll('.line').length > 20")

    def test_rows_are_shown_while_they_are_read(self):
        _, page = self.open("--speed", "0.01", at=3)
        self.assertEqual(page.value("rows.checkVisibility() && rows.textContent"), "3.21 M/s")

    def test_it_fits_a_phone_and_all_text_can_be_read(self):
        for size, dark in ((PHONE, False), (PHONE, True), (DESKTOP, False), (DESKTOP, True)):
            with self.subTest(size=size, dark=dark):
                _, page = self.open(size=size, dark=dark)
                page.value(SELECT.format(3))
                page.wait_for("document.querySelector('#worker h3')")
                self.assertEqual(page.value(TOO_WIDE), [])
                self.assertEqual(page.value("document.documentElement.scrollWidth"), size[0])
                contrast, where = page.value(CONTRAST)
                self.assertGreaterEqual(contrast, 4.5, where)
                self.assertEqual(page.complaints, [])

    def test_it_cancels_at_the_second_click_and_asks_for_stacks(self):
        served, page = self.open()
        page.wait_for("document.getElementById('cancel').checkVisibility()")
        page.value("document.getElementById('cancel').click()")
        self.assertEqual(page.value("document.getElementById('cancel').textContent"), "Click again to cancel the job")
        page.value(SELECT.format(2))
        page.wait_for("document.getElementById('take-stack').checkVisibility()")
        page.value("document.getElementById('take-stack').click()")
        self.assertEqual(served.process.stdout.readline(), "stack 2\n", "the first click has cancelled nothing")
        page.value("document.getElementById('cancel').dataset.sure === 'true' || document.getElementById('cancel').click()")
        page.value("document.getElementById('cancel').click()")
        self.assertEqual(served.process.stdout.readline(), "cancel\n")
        self.assertEqual(page.complaints, [])

    def test_viewers_see_no_buttons_and_no_other_jobs(self):
        served, page = self.open()
        page.wait_for("document.getElementById('view-link').checkVisibility()")
        address = page.value("document.getElementById('view-link').href")
        self.assertNotIn(served.token, address)
        viewer = self.browser.new_page()
        self.addCleanup(viewer.close)
        viewer.open(address)
        viewer.wait_for(RUNNING.format(6))
        viewer.wait_for(LINES.format(20))
        viewer.value(SELECT.format(2))
        for name in ("cancel", "view-link", "jobs", "stack", "compare-label"):
            self.assertFalse(viewer.value(f"document.getElementById('{name}').checkVisibility()"), name)
        complaints = [one for one in viewer.complaints if "/jobs" not in one]  # the browser reports that /jobs was refused
        self.assertEqual(complaints, [])

    def test_other_jobs_are_listed_opened_and_compared(self):
        with tempfile.TemporaryDirectory(prefix="warren-state-") as state:
            keep_job(state)
            for name, text in (("1", "null"), ("2", "[1]"), ("3", "{"), ("4", '{"command": 7, "name": {"a": 1}}')):
                pathlib.Path(state, f"warren/jobs/20261128T010203Z-{name}.json").write_text(text, encoding="ascii")
            pathlib.Path(state, f"warren/jobs/{JOB}.evaluations.json").write_text(
                '{"evaluations": [null, 5, [1, 0.5, null], [1, 0.5, {"train-rmse": 0.9}], [2, 1.0, {"train-rmse": 0.7}]]}', encoding="ascii")
            _, page = self.open(state_home=state)
            page.wait_for("document.querySelectorAll('#jobs-table tbody tr').length === 3")
            page.value("[...document.querySelectorAll('#jobs-table tbody tr')].slice(0, 2).forEach((row) => row.remove())")
            self.assertTrue(page.value("document.getElementById('cancel').checkVisibility()"))
            self.assertIn("rate-0.3\nsucceeded", page.value("document.querySelector('#jobs-table tbody tr').innerText").replace("\t", "\n"))
            before = page.value("document.querySelectorAll('#evaluation-chart .series').length")
            page.value("(() => { const box = document.getElementById('compare'); box.selectedIndex = 1; box.dispatchEvent(new Event('change')); })()")
            page.wait_for(f"document.querySelectorAll('#evaluation-chart .series').length === {before + 1}")
            self.assertEqual(page.value("[...document.querySelectorAll('#evaluation-chart .series')].filter(e => e.style.strokeDasharray).length"), 1)
            self.assertEqual(page.complaints, [])
            page.open(page.value("document.querySelector('#jobs-table a').href"))
            page.wait_for("document.querySelector('h1')?.textContent === 'the kept page'")
            page.wait_for("true")  # its script has run
            self.assertEqual(page.value("origin"), "null", "a kept page has no access to this server")

    def test_cores_and_memory_of_workers_are_drawn_over_time(self):
        _, page = self.open()
        page.wait_for("[...document.querySelectorAll('#over-time-choice button')].some(b => b.textContent === 'Cores')")
        page.value("[...document.querySelectorAll('#over-time-choice button')].find(b => b.textContent === 'Cores').click()")
        page.wait_for("document.querySelectorAll('#over-time-chart .series').length === 8")
        page.value(SELECT.format(1))
        page.wait_for("document.querySelectorAll('#over-time-chart .series').length === 1")
        self.assertEqual(page.complaints, [])

    def test_a_thousand_workers_are_changed_in_place(self):
        _, page = self.open("--workers", "1000")
        page.wait_for(RUNNING.format(900))
        page.value("window.first = document.querySelector('.cell'); window.seen = document.getElementById('elapsed').textContent")
        page.wait_for("document.getElementById('elapsed').textContent !== seen")
        self.assertTrue(page.value("first === document.querySelector('.cell')"))
        self.assertLess(page.value("document.querySelectorAll('*').length"), 8000)
        self.assertEqual(page.complaints, [])

    def test_the_kept_page_needs_no_network(self):
        with tempfile.TemporaryDirectory(prefix="warren-kept-") as folder:
            path = pathlib.Path(folder, "job.html")
            subprocess.run([BIN / "serve-synthetic-job", "--keep", str(path), "--at", "1000"], check=True)
            page = self.browser.new_page()
            page.resize(*DESKTOP)
            page.open(path.as_uri())
            page.wait_for("document.querySelectorAll('.cell.succeeded').length === 8")
            page.wait_for(LINES.format(100))
            page.value(SELECT.format(1))
            page.wait_for(LINES_OF.format(1))
            self.assertEqual([url for url in page.requests if not url.startswith(("file:", "data:"))], [])
            self.assertEqual(page.complaints, [])


def make_pictures(folder):
    with chromium.browser() as browser:
        for name, size, dark, scale in (("page-light", DESKTOP, False, 1), ("page-dark", DESKTOP, True, 1), ("page-phone", PHONE, False, 1.5)):
            served = Served("--at", "63")
            page = browser.new_page()
            page.resize(*size, dark=dark, scale=scale, phone=size == PHONE)
            page.open(f"http://127.0.0.1:{served.port}/?token={served.token}")
            page.wait_for(RUNNING.format(6))
            if dark:
                page.value(SELECT.format(3))
            page.wait_for(LINES.format(20))
            time.sleep(3)  # time for the page to receive changes
            page.screenshot(folder / f"{name}.png", whole=size != PHONE)
            served.close()


if __name__ == "__main__":
    if "--pictures" in sys.argv:
        make_pictures(pathlib.Path(sys.argv[-1]))
    else:
        unittest.main()
