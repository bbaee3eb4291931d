"""The report in a browser: it is quiet, asks nothing of anybody, shows every pass, zooms, and fits a phone.

usage: test_page.py PIPECAST FOLDER
Screenshots go to FOLDER. Exit status 77, which meson takes for skipped, where there is no Chromium.
"""
import pathlib
import sys
import tempfile
import unittest

import devtools
import example

PIPECAST, SHOTS = sys.argv[1], pathlib.Path(sys.argv[2])
SKIPPED = 77
WIDE, NARROW = (1440, 900), (400, 800)
TIMELINE = 'figure[data-path="v-half.svg"]'

# What the page is asked, in its own language.
PASSES = """[...document.querySelectorAll('%s svg [data-panel="timeline"]')].map((one) => [one.dataset.stage,
            one.dataset.kind, one.dataset.chunk, one.dataset.microbatch].join(' '))"""
MIDDLE = """(() => { const box = document.querySelector(`%s`).getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2]; })()"""
FIGURES = """[...document.querySelectorAll('figure svg')].map((svg) => { const box = svg.getBoundingClientRect();
             return [box.width, box.height, svg.getAttribute('aria-label')]; })"""
DANGLING = """(() => { const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
              const wanted = [...document.documentElement.outerHTML.matchAll(/(?:href=["']|url\\(["']?)#([^"')]+)/g)]
                .map((match) => match[1]);
              return [ids.filter((id, i) => ids.indexOf(id) !== i), wanted.filter((id) => !ids.includes(id))]; })()"""
COLUMN = "[...document.querySelectorAll('tbody tr')].map((row) => row.cells[%d].textContent)"


def faults(browser):
    """What the page said to its console, threw, or asked of others: a list of words, best empty."""
    said = [f"{one['type']}: {[value.get('value') for value in one['args']]}"
            for one in browser.events_of("Runtime.consoleAPICalled")]
    said += [one["exceptionDetails"]["text"] for one in browser.events_of("Runtime.exceptionThrown")]
    said += [f"{one['entry']['level']}: {one['entry']['text']}" for one in browser.events_of("Log.entryAdded")]
    urls = [one["request"]["url"] for one in browser.events_of("Network.requestWillBeSent")]
    return said + [f"asks for {url}" for url in urls[1:] if not url.startswith("data:")]


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.results = example.make_page(PIPECAST, cls.folder.name)
        cls.url = pathlib.Path(cls.folder.name, "page.html").as_uri()
        cls.browser = devtools.Browser(devtools.find_browser())
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.open(self.url, WIDE)

    def tearDown(self):
        self.assertEqual(faults(self.browser), [])

    def open(self, url, size):
        self.browser.mouse("mouseMoved", 0, 0)
        self.browser.scheme("light")
        self.browser.resize(*size, size == NARROW)
        self.browser.open(url)
        self.browser.settle()

    def ask(self, script):
        return self.browser.evaluate(script)

    def view(self):
        """x, y, width, height of what the timeline shows."""
        words = self.ask(f"document.querySelector('{TIMELINE} svg').getAttribute('viewBox')").split()
        return [float(word) for word in words]

    def middle(self, selector):
        """Where in the window a reader sees it: what comes into sight is laid out first."""
        for _ in range(2):
            self.ask(f"document.querySelector(`{selector}`).scrollIntoView({{block: 'center'}})")
            self.browser.settle()
        return self.ask(MIDDLE % selector)

    # --- what is there ---

    def test_every_figure_has_a_size_and_a_name(self):
        figures = self.ask(FIGURES)
        self.assertEqual(len(figures), 4)
        for width, height, name in figures:
            self.assertGreater(width, 500)
            self.assertGreater(height, 150)
            self.assertTrue(name)

    def test_every_pass_is_there_once(self):
        for row in self.results.rows("small", microbatches=8):
            events = [one for one in self.results.trace("small", row.name) if one.event == "pass"]
            passes = [f"{one.device} {one.kind} {one.chunk} {one.microbatch}" for one in events]
            self.assertEqual(len(passes), 4 * 8 * {"1f1b": 2, "zb-h1": 3, "v-half": 6}[row.schedule])
            self.assertEqual(sorted(self.ask(PASSES % f'figure[data-path="{row.schedule}.svg"]')), sorted(passes))

    def test_ids_are_unique_and_what_refers_to_them_finds_them(self):
        self.assertEqual(self.ask(DANGLING), [[], []])

    def test_contents_lead_to_every_part(self):
        links = self.ask("[...document.querySelectorAll('.contents a')].map((a) => a.textContent)")
        heads = self.ask("[...document.querySelectorAll('main h2, main h3')].map((head) => head.textContent)")
        self.assertEqual(links, heads)
        self.ask("document.querySelector('.contents a[href=\"#all-of-them\"]').click()")
        self.browser.settle()
        self.assertLess(abs(self.ask("document.getElementById('all-of-them').getBoundingClientRect().top")), 100)

    def test_contents_follow_the_reader(self):
        self.browser.resize(WIDE[0], 200)
        self.ask("document.getElementById('all-of-them').scrollIntoView()")
        self.browser.settle()
        self.browser.settle()
        self.assertEqual(self.ask("document.querySelector('[aria-current]').textContent"), "All of them")
        self.assertLess(self.ask("document.querySelector('[aria-current]').getBoundingClientRect().bottom"), 200)

    # --- zoom ---

    def test_wheel_with_control_zooms_at_the_pointer_and_double_click_resets(self):
        whole = self.view()
        x, y = self.middle(f"{TIMELINE} svg")
        self.browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-120, modifiers=devtools.CONTROL)
        self.browser.settle()
        near = self.view()
        self.assertLess(near[2], 0.8 * whole[2])
        self.assertAlmostEqual(near[2] / near[3], whole[2] / whole[3])
        self.assertAlmostEqual(near[0] + near[2] / 2, whole[2] / 2, delta=whole[2] / 100)  # the middle stays there
        self.browser.click(x, y, count=2)
        self.browser.settle()
        self.assertEqual(self.view(), whole)

    def test_wheel_alone_scrolls_the_page(self):
        whole, (x, y) = self.view(), self.middle(f"{TIMELINE} svg")
        before = self.ask("scrollY")
        self.browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=120)
        self.ask("new Promise((done) => setTimeout(done, 300))")
        self.assertEqual(self.view(), whole)
        self.assertGreater(self.ask("scrollY"), before)

    def test_keys_zoom_pan_and_reset(self):
        whole = self.view()
        self.ask(f"document.querySelector('{TIMELINE} svg').focus()")
        self.browser.key("+", "+")
        self.browser.key("+", "+")
        near = self.view()
        self.assertAlmostEqual(near[2], whole[2] / 1.5 ** 2, places=3)
        self.browser.key("ArrowRight")
        self.assertAlmostEqual(self.view()[0], near[0] + 0.15 * near[2], places=3)
        for _ in range(30):
            self.browser.key("ArrowDown")
        x, y, width, height = self.view()
        self.assertAlmostEqual(y + height, whole[3], places=3)  # not beyond the picture
        self.browser.key("-", "-")
        self.assertAlmostEqual(self.view()[2], whole[2] / 1.5, places=3)
        self.browser.key("0", "0")
        self.assertEqual(self.view(), whole)

    def test_buttons_and_drag(self):
        whole = self.view()
        self.browser.click(*self.middle(f"{TIMELINE} .tools button:nth-child(1)"))
        near = self.view()
        self.assertAlmostEqual(near[2], whole[2] / 1.5, places=3)
        x, y = self.middle(f"{TIMELINE} svg")
        scale = near[2] / self.ask(f"document.querySelector('{TIMELINE} svg').getBoundingClientRect().width")
        self.browser.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        self.browser.mouse("mouseMoved", x - 60, y + 10, button="left", buttons=1)
        self.browser.mouse("mouseReleased", x - 60, y + 10, button="left", clickCount=1)
        self.assertAlmostEqual(self.view()[0], near[0] + 60 * scale, delta=0.5)
        self.assertAlmostEqual(self.view()[1], near[1] - 10 * scale, delta=0.5)
        self.ask(f"document.querySelector('{TIMELINE} .tools button:nth-child(3)').click()")
        self.assertEqual(self.view(), whole)

    # --- words ---

    def test_a_pass_says_its_microbatch_and_times(self):
        name, = [row.name for row in self.results.rows("small", microbatches=8, schedule="v-half")]
        one = [event for event in self.results.trace("small", name) if event.event == "pass"][20]
        shape = (f'{TIMELINE} [data-panel="timeline"][data-stage="{one.device}"][data-kind="{one.kind}"]'
                 f'[data-chunk="{one.chunk}"][data-microbatch="{one.microbatch}"]')
        self.browser.mouse("mouseMoved", *self.middle(shape))
        self.browser.settle()
        words = self.ask("document.querySelector('.tip:not([hidden])').textContent")
        self.assertIn(f"microbatch {one.microbatch}", words)
        for time in (one.start_ps, one.end_ps):
            self.assertIn(f"{time / 1e9:g}", words)
        self.assertEqual(self.ask("document.querySelectorAll('svg .hot').length"), 1)
        self.assertEqual(self.ask("document.querySelectorAll('svg .same').length"), 4 * 6)  # F, B, W of two chunks
        self.assertEqual(self.ask("document.querySelectorAll('svg .hot > title').length"), 0)  # no second box
        self.browser.mouse("mouseMoved", 2, 2)
        self.browser.settle()
        self.assertTrue(self.ask("document.querySelector('.tip').hidden"))

    def test_a_point_of_a_chart_says_its_run(self):
        point = 'figure[data-path="bubbles.svg"] use[data-title]'
        self.browser.mouse("mouseMoved", *self.middle(point))
        self.browser.settle()
        self.assertIn("small.", self.ask("document.querySelector('.tip:not([hidden])').textContent"))

    def test_tables_sort_and_go_back(self):
        names, times = self.ask(COLUMN % 0), self.ask(COLUMN % 2)
        for order in (sorted(times, key=lambda text: float(text.split()[0])), None, times):
            self.ask("document.querySelectorAll('th button')[2].click()")
            self.assertEqual(self.ask(COLUMN % 2), order or sorted(times, key=lambda text: -float(text.split()[0])))
        self.assertEqual(self.ask(COLUMN % 0), names)

    # --- sizes, colours, paper ---

    def test_nothing_overflows_sideways(self):
        for width in (1440, 1000, 400, 320):
            with self.subTest(width=width):
                self.browser.resize(width, 800, width <= 400)
                self.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                self.browser.settle()
                self.assertLessEqual(self.ask("document.documentElement.scrollWidth"), width)

    def test_day_night_and_paper(self):
        def colour():
            return self.ask("getComputedStyle(document.body).backgroundColor")
        day = colour()
        self.browser.scheme("dark")
        self.assertNotEqual(colour(), day)
        self.browser.scheme("print")
        self.assertEqual(self.ask("getComputedStyle(document.querySelector('.contents')).display"), "none")
        self.ask("dispatchEvent(new Event('beforeprint'))")
        self.assertTrue(self.ask("[...document.querySelectorAll('details')].every((one) => one.open)"))

    def test_screenshots(self):
        SHOTS.mkdir(parents=True, exist_ok=True)
        for name, size in (("wide", WIDE), ("narrow", NARROW)):
            self.open(self.url, size)
            path = SHOTS / f"{name}.png"
            self.browser.screenshot(path)
            self.assertEqual(path.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")
            self.assertEqual(int.from_bytes(path.read_bytes()[16:20], "big"), size[0])  # the width, in the header
            print(f"screenshot: {path}")


class TheTestItself(unittest.TestCase):
    def test_noise_is_heard(self):
        """Each of these alone must be seen, or the silence above says nothing."""
        noises = ["<script>console.log('x')</script>", "<script>console.error('x')</script>",
                  "<script>null.x</script>", '<img src="file:///nowhere.png">', '<img src="http://127.0.0.1:9/x.png">',
                  "<script>setTimeout(() => Promise.reject(new Error('x')))</script>"]
        with tempfile.TemporaryDirectory() as folder, devtools.Browser(devtools.find_browser()) as browser:
            page = pathlib.Path(folder, "x.html")
            for noise in ["", *noises]:
                page.write_text(f'<!DOCTYPE html><link rel="icon" href="data:,"><title>x</title>{noise}')
                browser.open(page.as_uri())
                browser.settle()
                self.assertEqual(bool(faults(browser)), bool(noise), noise)


if __name__ == "__main__":
    if not devtools.find_browser():
        print(f"skipped: no browser; expected one of {', '.join(devtools.NAMES)} (Debian's package chromium)")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1], verbosity=2)
