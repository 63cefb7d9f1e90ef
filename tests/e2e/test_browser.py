# SPDX-License-Identifier: Apache-2.0
"""A tour of the sample site in a real browser: what is served becomes pages, pictures and a video that people see."""

import base64
import io
import json
import os
import pathlib
import wave

import pytest

from harness import build
from harness.browser import open_browser

pytestmark = [pytest.mark.browser, pytest.mark.single_protocol]

REFERENCE = pathlib.Path(__file__).parent / "screenshots" / "index.png"
RENEW = "MONKEY_RENEW_SCREENSHOTS"
COLUMNS, ROWS = 32, 24
CELL_TOLERANCE = 24  # of 255: edges of letters differ between versions of font and browser
CELLS_TOLERATED = 15  # of 768


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("browser"), ", THE TOUR IS NOT MADE") as browser:
        yield browser


@pytest.fixture
def page(browser):
    page = browser.page()
    page.call("Network.setCacheDisabled", cacheDisabled=True)  # all that comes, comes from the server
    yield page
    page.close()


def statuses(page, server):
    """Path to the statuses with which it was answered."""
    found = {}
    for answer in page.answers():
        if answer["url"].startswith("data:"):  # the browser's own buttons
            continue
        assert answer["url"].startswith(f"{server.url}/"), "the page asks nobody but its server"
        found.setdefault(answer["url"].removeprefix(server.url), []).append(answer["status"])
    return found


def style(page, selector, key):
    return page.evaluate(f"getComputedStyle(document.querySelector({json.dumps(selector)})).{key}")


def test_first_page(page, tour):
    page.navigate(f"{tour.url}/")
    assert page.evaluate("document.title") == "monkey: it works"
    assert page.evaluate("document.characterSet") == "UTF-8"
    assert page.evaluate("document.compatMode") == "CSS1Compat"
    assert style(page, "body", "backgroundColor") == "rgb(251, 248, 242)", "style.css is applied"
    assert style(page, ".hero", "textAlign") == "center"
    assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    found = statuses(page, tour)
    assert found["/"] == found["/style.css"] == found["/logo.svg"] == [200]


def test_second_visit(page, tour):
    """The browser has the files and asks whether they have changed."""
    page.call("Network.setCacheDisabled", cacheDisabled=False)
    page.navigate(f"{tour.url}/")
    page.events.clear()
    page.call("Page.reload")
    page.wait("Page.loadEventFired")
    page.evaluate("fetch('style.css', {cache: 'no-cache'}).then(answer => answer.text())")
    extra = [e["params"]["statusCode"] for e in page.events if e["method"] == "Network.responseReceivedExtraInfo"]
    assert 304 in extra and set(extra) <= {200, 304}
    assert style(page, ".hero", "textAlign") == "center"


def test_formats(page, tour):
    """A picture, a drawing, and a module that fetches JSON."""
    page.navigate(f"{tour.url}/formats.html")
    picture = "document.querySelector('img[src=\"jungle.png\"]')"
    size = page.evaluate(f"{picture}.decode().then(() => [{picture}.naturalWidth, {picture}.naturalHeight])")
    assert size == [576, 288]
    answer = "document.querySelector('#answer code').textContent"
    page.evaluate(f"""new Promise(done => {{
        const look = () => {answer}.startsWith("200 ") ? done() : setTimeout(look, 10);
        look();
    }})""")
    assert page.evaluate(answer).startswith("200 application/json\n")
    types = {head["url"].rpartition("/")[2]: head["mimeType"] for head in page.answers()}
    assert types["jungle.png"] == "image/png" and types["logo.svg"] == "image/svg+xml"
    assert types["fetch.mjs"] == "text/javascript" and types["monkeys.json"] == "application/json"


def test_links(page, tour):
    """Every link of every page leads to something, except for the one that must not."""
    for name in ("", "docs.html", "formats.html", "video.html", "directory/", "404.html"):
        page.navigate(f"{tour.url}/{name}")
        links = page.evaluate("[...document.links].map(link => link.href)")
        bad = page.evaluate(f"""Promise.all({json.dumps(links)}.map(link => fetch(link, {{cache: "no-cache"}})))
            .then(answers => answers.filter(answer => answer.status != 200).map(answer => answer.url))""")
        assert bad == ([f"{tour.url}/nothing-here"] if name == "" else [])


def test_page_that_does_not_exist(page, tour):
    """The site's own page, wherever the address seems to lie."""
    for path in ("/nothing-here", "/nothing/here/at/all"):
        page.navigate(tour.url + path)
        assert statuses(page, tour)[path] == [404]
        assert page.evaluate("document.querySelector('h1').textContent") == "Nothing here."
        assert style(page, ".hero", "textAlign") == "center", "its style sheet is found from everywhere"
        assert page.evaluate("document.querySelector('.hero img').naturalWidth") > 0
        assert page.evaluate("location.pathname") == path


@pytest.mark.parametrize("scheme, back", [("light", 255), ("dark", 18)])
def test_built_in_error_page(page, serve, scheme, back):
    """With a sentence, for both kinds of screens; the browser asks for nothing else, not even for an icon."""
    server = serve({"KeepAlive": "Off", "Timeout": "3s"})  # for connections that the browser opens and does not use
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.navigate(f"{server.url}/nothing")
    assert statuses(page, server) == {"/nothing": [404]}
    assert page.evaluate("document.title") == "404 Not Found"
    assert page.evaluate("document.body.textContent").strip() == "404 Not FoundThere is nothing at this address."
    assert page.evaluate("document.documentElement.outerHTML.length") < 1024
    picture = page.screenshot()
    assert page.evaluate(GRID % (base64.b64encode(picture).decode(), 1, 24))[-1] == [back] * 3
    keep_picture(f"error-{scheme}.png", picture)


# ── seeking ──

SEEK = """new Promise((done, fail) => {
    const media = document.querySelector("video, audio");
    media.onerror = () => fail(new Error(media.error.message));
    media.onseeked = () => done(media.currentTime);
    media.currentTime = %f;
})"""
METADATA = """new Promise((done, fail) => {
    const media = document.querySelector("video, audio");
    const tell = () => done([media.duration, media.videoWidth || 0, media.videoHeight || 0]);
    media.onerror = () => fail(new Error(media.error.message));
    media.onloadedmetadata = tell;
    if (media.readyState >= 1) tell();
    if (media.error) media.onerror();
})"""
ENDED = """new Promise(done => {
    const media = document.querySelector("video");
    media.onended = () => done();
    if (media.ended) done();
})"""
# the bar at the lower edge of the clip grows with the time: how much of it is there, between 0 and 1
BAR = """(() => {
    const video = document.querySelector("video"), canvas = document.createElement("canvas");
    canvas.width = video.videoWidth;
    canvas.height = video.videoHeight;
    const context = canvas.getContext("2d");
    context.drawImage(video, 0, 0);
    const row = context.getImageData(0, canvas.height - 4, canvas.width, 1).data;
    let bright = 0;
    for (let i = 0; i < row.length; i += 4) bright += row[i] > 128;
    return bright / canvas.width;
})()"""


def test_video(page, tour):
    page.navigate(f"{tour.url}/video.html")
    duration, *size = page.evaluate(METADATA)
    assert abs(duration - 10) < 0.1 and size == [480, 270]
    for second in (5.5, 2.5, 0.5, 9.5):
        assert abs(page.evaluate(SEEK % second) - second) < 0.05
        assert abs(page.evaluate(BAR) - second / 10) < 0.02, f"the picture is that of second {second}"
    assert set(statuses(page, tour)["/jungle.webm"]) == {206}
    page.evaluate("document.querySelector('video').play()")
    page.evaluate(ENDED)


def test_seeking_in_a_long_file(page, serve):
    """Three minutes of sound, 36 MB: the browser asks for the end without loading what lies before it."""
    sound = io.BytesIO()
    with wave.open(sound, "wb") as file:
        file.setparams((2, 2, 48_000, 0, "NONE", ""))
        file.writeframes(bytes(48_000 * 4 * 190))
    files = {"index.html": b"<!doctype html><audio src=long.wav preload=metadata>", "long.wav": sound.getvalue()}
    server = serve(files=files)
    page.navigate(f"{server.url}/")
    assert page.evaluate(METADATA)[0] == 190
    for second in (185, 90):
        assert page.evaluate(SEEK % second) == second
    heads = [head for head in page.answers() if head["url"].endswith("long.wav")]
    assert {head["status"] for head in heads} == {206}
    starts = [int(head["headers"]["Content-Range"].removeprefix("bytes ").split("-")[0]) for head in heads]
    assert max(starts) > 180 * 192_000, "the end was asked for by its own range"


# ── what it looks like ──

# the mean colours of the cells of a picture
GRID = """(async () => {
    const blob = await (await fetch("data:image/png;base64,%s")).blob();
    const picture = await createImageBitmap(blob), {width, height} = picture;
    const context = new OffscreenCanvas(width, height).getContext("2d");
    context.drawImage(picture, 0, 0);
    const cells = [], w = width / %d, h = height / %d;
    for (let y = 0; y < height; y += h)
        for (let x = 0; x < width; x += w) {
            const sum = [0, 0, 0], data = context.getImageData(x, y, w, h).data;
            for (let i = 0; i < data.length; i++) if (i %% 4 < 3) sum[i %% 4] += data[i];
            cells.push(sum.map(all => all / w / h));
        }
    return cells;
})()"""
# whatever fonts a machine has: those of fonts-dejavu-core
FONTS = """document.head.append(Object.assign(document.createElement("style"), {
    textContent: `* { font-family: "DejaVu Sans" !important }
                  code, code * { font-family: "DejaVu Sans Mono" !important }`
}))"""


def keep_picture(name, png):
    """To be seen; returns its path."""
    path = build.TOP / "build" / "screenshots" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png)
    return path


def look_at(page, server, *without):
    """A screenshot of the first page, as it is when these files do not arrive."""
    page.call("Network.setBlockedURLs", urls=[f"*/{name}" for name in without])
    page.navigate(f"{server.url}/")
    page.evaluate(FONTS)
    page.evaluate("document.fonts.ready.then(() => new Promise(done => requestAnimationFrame(done)))")
    return page.screenshot()


def count_differences(page, one, other):
    """How many cells of two pictures have clearly different colours."""
    grids = [page.evaluate(GRID % (base64.b64encode(png).decode(), COLUMNS, ROWS)) for png in (one, other)]
    assert all(len(grid) == COLUMNS * ROWS for grid in grids)
    return sum(max(abs(a - b) for a, b in zip(*cells)) > CELL_TOLERANCE for cells in zip(*grids))


def test_screenshot(page, tour):
    png = look_at(page, tour)
    if os.environ.get(RENEW):
        REFERENCE.write_bytes(png)
    differences = count_differences(page, png, REFERENCE.read_bytes())
    if differences > CELLS_TOLERATED:
        new = keep_picture("index.png", png)
        pytest.fail(
            f"{differences} of {COLUMNS * ROWS} cells of the first page look different from {REFERENCE}. How it looks "
            f"now is in {new}; if that is as it should be, run this test with {RENEW}=1 and commit the reference."
        )


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["style.css", "logo.svg"])
def test_screenshot_would_tell(page, tour, missing):
    """A page without its style sheet or without its picture does not look like the reference."""
    assert count_differences(page, look_at(page, tour, missing), REFERENCE.read_bytes()) > CELLS_TOLERATED
