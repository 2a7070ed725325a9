"""The pages in a real browser: every screen, at three widths, light and dark, by keyboard, with hostile names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crossperf.campaign.progress import SitePlatformProgress, SiteProgress
from crossperf.serve.table import ENDPOINTS
from crossperf.serve.web.asking import PageQuestion
from tests.serve.web.world import HOSTILE, HOSTILE_PLATFORM, LONG, MARKUP, WRITE, World, asked, unknown

pytestmark = pytest.mark.slow

try:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import expect
except ImportError:  # the fixture of the browser says what is missing
    Axe = expect = None

WIDTHS = (1400, 800, 390)
#: A busy machine takes its time; a page that never comes is still an error.
PATIENCE_MS = 90_000
SCREENS = {
    "ask": "/",
    "answer": PageQuestion(asked()).link(),
    "unknown": PageQuestion(unknown()).link(),
    "why": PageQuestion(asked()).link("/answer/why"),
    "stranger": PageQuestion(asked()).link("/answer").replace("/answer?", "/answer?here=nowhere&"),
    "map": "/map",
    "map of applications": "/map?by=app&at=3",
    "a run on the map": PageQuestion(asked()).link("/map"),
    "platforms": "/platforms",
    "trust": "/trust",
    "campaign": "/campaign",
    "api": "/api",
    "log in": "/login",
    "problem": "/answer?run=made-up",
}
#: What WCAG 2.2 AA asks for; `region` and the like are best practice, and kept too.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


class Seen:
    """A page with every word in its console and every request that it made."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.messages: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))
        page.on("request", lambda request: self.asked.append(request.url))

    def go(self, path: str) -> None:
        self.page.goto(self.address + path)

    @property
    def foreign(self) -> list[str]:
        return [url for url in self.asked if not url.startswith((self.address, "data:", "blob:"))]


Opener = Callable[..., Any]


@pytest.fixture(scope="module")
def open_page(browser: Any, address: str) -> Opener:
    @contextmanager
    def opened(path: str = "/", **settings: Any) -> Iterator[Seen]:
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **settings})
        context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        seen = Seen(context.new_page(), address)
        try:
            seen.go(path)
            yield seen
        finally:
            context.close()

    return opened


@pytest.fixture(scope="module")
def shared(open_page: Opener) -> Iterator[Seen]:
    with open_page("/") as seen:
        yield seen


@pytest.mark.parametrize("screen", SCREENS)
def test_a_screen_fits_every_width_in_light_and_dark_without_a_barrier(shared: Seen, screen: str) -> None:
    page = shared.page
    shared.messages.clear()
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    shared.go(SCREENS[screen])
    assert page.locator("h1:visible").count() == 1
    assert page.title() != "owned"
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{screen} is {wide} wide on a screen of {width}"
        if width != 800:
            page.emulate_media(color_scheme="dark" if width == 390 else "light")
            assert violations(page) == [], f"{screen}, {width}"
    assert shared.foreign == []
    refused = screen in ("stranger", "problem")  # their status is an error, which a browser notes in its console
    assert [own for own in shared.messages if not (refused and "422" in own)] == []


def violations(page: Any) -> list[tuple[str, list[str]]]:
    """Return what axe-core finds, with the first elements of each."""
    options = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
    result = Axe().run(page, options=options)
    return [(own["help"], [node["html"][:300] for node in own["nodes"][:3]]) for own in result.response["violations"]]


def test_hostile_names_do_nothing_but_show(open_page: Opener) -> None:
    with open_page("/?q=img") as seen:
        page = seen.page
        assert page.locator("#workloads button").first.inner_text().startswith(MARKUP[:30])
        page.locator("#workloads button").first.click()
        page.wait_for_url("**/answer?**")
        assert page.title() != "owned"
        assert page.locator("main img, main script").count() == 0
        assert MARKUP[:30] in page.locator(".asked").inner_text()
        assert page.locator("main b[onmouseover]").count() == 0
        assert HOSTILE_PLATFORM in page.locator("table.answer").inner_text()
        assert seen.messages == []


@pytest.mark.parametrize("app", HOSTILE.values(), ids=["markup", "long", "right to left"])
def test_an_answer_for_a_hostile_name_stays_within_its_page(open_page: Opener, app: str) -> None:
    run = PageQuestion(asked().__class__(**{**asked().__dict__, "app": app, "input": app})).link()
    with open_page(run, viewport={"width": 390, "height": 900}) as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
        assert seen.page.title() != "owned"
        height = seen.page.locator(".asked").bounding_box()["height"]
        assert height < 250, "a long name pushes everything else away"
        assert "\u202e" not in seen.page.locator(".asked").inner_text()
        assert seen.messages == []


def test_a_run_is_pasted_and_answered_and_the_answer_has_its_own_link(open_page: Opener) -> None:
    with open_page("/") as seen:
        page = seen.page
        page.get_by_role("textbox", name="A run as JSON").fill(json.dumps(asked().to_json()))
        page.get_by_role("button", name="Ask", exact=True).click()
        page.wait_for_url("**/answer?run=**")
        headline = page.locator("h1").inner_text()
        rows = page.locator("table.answer tbody tr")
        assert rows.count() == 4
        assert re.match(r"(Take|Stay on|Nothing is clearly faster)", headline)
        page.wait_for_selector("table.why")
        assert page.locator("table.why tbody tr").count() == 8
        address = page.url
    with open_page(address.removeprefix(seen.address)) as again:
        assert again.page.locator("h1").inner_text() == headline


def test_toggles_answer_again_without_loading_the_page(open_page: Opener) -> None:
    with open_page(SCREENS["answer"]) as seen:
        page = seen.page
        page.wait_for_selector("table.why")
        page.evaluate("window.same = true")
        widths = []
        for level in ("50 %", "95 %"):
            with page.expect_response(lambda response: "/answer?" in response.url and response.ok):
                page.locator(".toggles-beside").get_by_label(level).check()
            expect(page.locator("table.answer caption")).to_contain_text(f"{level[:2]} times in 100")
            widths.append(float(page.locator("table.answer rect.range").first.get_attribute("width").rstrip("%")))
        assert widths[0] < widths[1]
        with page.expect_response(lambda response: "gpu=no" in response.url):
            page.locator(".toggles-beside").get_by_label("no", exact=True).check()
        expect(page.locator("table.answer tbody tr")).to_have_count(2)
        assert page.evaluate("window.same"), "the page was loaded again"
        assert "gpu=no" in page.url
        page.go_back()
        assert seen.messages == []


def test_an_unknown_run_gets_hatched_bars_and_a_shopping_list_first(open_page: Opener) -> None:
    with open_page(SCREENS["unknown"]) as seen:
        page = seen.page
        assert page.locator("h1").inner_text().startswith("Can’t tell")
        fills = {bar.get_attribute("fill") for bar in page.locator("table.answer rect").all()}
        assert fills == {"url(#hatch)"}
        steps, table = page.locator("ol.steps").bounding_box(), page.locator("table.answer").bounding_box()
        assert steps["y"] < table["y"]
        assert page.locator(".badge").first.inner_text().endswith("unknown")


def test_copies_for_programs_are_what_the_api_answers(open_page: Opener, address: str) -> None:
    with open_page(SCREENS["answer"]) as seen:
        page = seen.page
        shown = json.loads(page.locator("#copy-json").text_content())
        curl = page.locator("#copy-curl").text_content()
        url, body = re.search(r"curl -s '?([^' ]+)'?", curl)[1], re.search(r"-d '(.*)'$", curl, re.S)[1]
        answer = page.request.post(url, data=body.replace("'\"'\"'", "'"), headers={"content-type": "application/json"})
        told = answer.json()["predictions"][0]
        for platform, time in shown["relative_time"].items():
            assert told["relative_time"][platform] == pytest.approx(time, rel=1e-6)
        table = page.request.get(address + PageQuestion(asked()).link("/answer.csv")).text()
        assert table.splitlines()[0].startswith("app,input,source,platform,relative_time")


def test_a_file_is_dropped_and_many_runs_are_listed(open_page: Opener, tmp_path: Path) -> None:
    lines = [json.dumps({**asked().to_json(), "app": name}) for name in ("one", "two")]
    (tmp_path / "runs.jsonl").write_text("\n".join(lines) + "\n")
    with open_page("/") as seen:
        page = seen.page
        page.set_input_files("#file", tmp_path / "runs.jsonl")
        page.get_by_role("button", name="Ask", exact=True).click()
        page.wait_for_selector("table.many")
        assert page.locator("table.many tbody tr").count() == 2
        page.get_by_role("link", name="two").click()
        page.wait_for_url("**/answer?run=**")
        assert "two" in page.locator(".asked").inner_text()


def test_a_dot_of_the_map_shows_what_was_measured_by_pointer_and_by_keyboard(open_page: Opener) -> None:
    with open_page("/map") as seen:
        page = seen.page
        page.locator(".dots a").nth(5).click(force=True)
        page.wait_for_selector("table.truth")
        first = page.locator("#truth h2").inner_text()
        times = page.locator("table.truth tbody tr td:nth-child(3)").all_text_contents()
        assert times[0] == "1.00×"
        assert [float(own.rstrip("×").replace(",", "")) for own in times] == sorted(
            float(own.rstrip("×").replace(",", "")) for own in times
        )
        page.locator(".dots a[tabindex='0']").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator("#truth h2")).not_to_have_text(first, use_inner_text=True)
        assert seen.messages == []


def test_the_whole_way_from_question_to_answer_needs_only_a_keyboard(open_page: Opener) -> None:
    with open_page("/") as seen:
        page = seen.page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == "text":
                break
        page.keyboard.insert_text(json.dumps(asked().to_json()))
        for _ in range(40):
            page.keyboard.press("Tab")
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            if page.evaluate("document.activeElement.textContent") == "Ask":
                break
        page.keyboard.press("Enter")
        page.wait_for_url("**/answer?run=**")


def test_it_works_without_script(open_page: Opener) -> None:
    with open_page("/", java_script_enabled=False) as seen:
        page = seen.page
        page.get_by_role("textbox", name="A run as JSON").fill(json.dumps(asked().to_json()))
        page.get_by_role("button", name="Ask", exact=True).click()
        expect(page.locator("table.answer tbody tr")).to_have_count(4)
        page.locator(".toggles-beside").get_by_label("no", exact=True).check()
        page.get_by_role("button", name="Answer again").click()
        expect(page.locator("table.answer tbody tr")).to_have_count(2)
        page.get_by_role("link", name="Show what drives the answer").click()
        expect(page.locator("table.why tbody tr")).to_have_count(8)
        seen.go("/map?at=2")
        assert page.locator("table.truth tbody tr").count() >= 2
        seen.go("/platforms?compare=cpu-a&compare=gpu-a&only=differences")
        assert page.locator("table.facts thead th").count() == 3


def test_a_price_is_changed_with_a_token_and_shows_in_answers(open_page: Opener) -> None:
    with open_page("/platforms") as seen:
        page = seen.page
        assert page.locator("form.price").count() == 0
        seen.go("/login")
        page.get_by_label("Token").fill(WRITE)
        page.get_by_role("button", name="Log in").click()
        seen.go("/platforms")
        page.get_by_label("Price per hour of cpu-b").fill("7.25")
        page.get_by_role("button", name="Save the price of cpu-b").click()
        page.wait_for_load_state()
        assert page.get_by_label("Price per hour of cpu-b").input_value() == "7.25"
        seen.go(SCREENS["answer"])
        row = page.locator("table.answer tbody tr", has=page.get_by_text("cpu-b", exact=True))
        seconds = row.locator("td[data-head=time]").inner_text()
        price = row.locator("td[data-head^=price]").inner_text()
        unit = {"ms": 1e-3, "s": 1.0}[seconds.split()[1]]
        runs = int(
            re.search(r"price of ([\d,]+) runs", page.locator("table.answer thead").inner_text())[1].replace(",", "")
        )
        expected = float(seconds.split()[0]) * unit * 7.25 / 3600 * runs
        assert float(price.replace(",", "")) == pytest.approx(expected, rel=0.02)


def test_a_price_is_not_changed_without_a_token(address: str, open_page: Opener) -> None:
    with open_page("/platforms") as seen:
        form = {"name": "cpu-a", "price_per_hour": "99"}
        answer = seen.page.request.post(f"{address}/platforms", multipart=form, headers={"origin": address})
        assert answer.status == 403
        assert "write scope" in answer.text()


def test_a_campaign_is_followed_while_it_runs(open_page: Opener, world: World) -> None:
    with open_page("/campaign") as seen:
        page = seen.page
        before = page.locator(".numbers b").first.inner_text()
        expect(page.locator(".live")).to_have_text("live")
        running = world.start_campaign()
        try:
            expect(page.locator(".numbers b").first).not_to_have_text(before, use_inner_text=True)
            expect(page.locator("#failures + .caveats")).to_be_visible()
        finally:
            running.terminate()
            running.wait(20)
        assert "exit status 3" in page.locator("#progress").inner_text()
        assert seen.messages == []


def test_a_campaign_on_a_site_shows_its_jobs_while_they_run(open_page: Opener, world: World) -> None:
    folder = world.folder / "campaign"
    with open_page("/campaign") as seen:
        expect(seen.page.locator(".live")).to_have_text("live")
        own = SitePlatformProgress("here", 9, 1, running=2, waits="<b>Resources</b>")
        try:
            SiteProgress((own,), 1.0, unreachable="no answer.").write(folder)
            expect(seen.page.get_by_role("columnheader", name="pending")).to_be_visible()
            text = seen.page.locator("#progress").inner_text()
            assert "6 <b>Resources</b>" in " ".join(text.split())
            assert "Slurm does not answer: no answer. Jobs that run go on." in text
        finally:
            (folder / "status.json").unlink()
        assert seen.messages == []


def test_past_predictions_and_evaluations_are_on_trust(open_page: Opener, address: str) -> None:
    with open_page("/trust") as seen:
        page, run = seen.page, asked()
        headers = {"authorization": f"Bearer {WRITE}", "content-type": "application/json"}
        kept = page.request.post(f"{address}/api/v1/predict?keep=true", data=json.dumps(run.to_json()), headers=headers)
        predicted = kept.json()["predictions"][0]["seconds"]["cpu-b"]
        finished = {**run.to_json(), "platform": "cpu-b", "runtime_s": 2.0 * predicted}
        page.request.post(f"{address}/api/v1/runs", data=json.dumps(finished), headers=headers)
        seen.go("/trust")
        past = page.locator("section", has=page.locator("#past")).inner_text()
        assert "2.00×" in past
        assert "100 % longer" in past
        page.get_by_label("new applications").check()
        page.get_by_role("button", name="Show", exact=True).click()
        page.wait_for_url("**evaluation=app**")
        assert "applications it has never seen" in page.locator(".lead").inner_text()
        page.get_by_role("link", name="Open the whole report").click()
        page.wait_for_selector("section#figures", state="attached")
        assert seen.messages == []
        assert seen.foreign == []


def test_every_example_of_the_api_runs_from_the_page(open_page: Opener) -> None:
    with open_page("/api") as seen:
        page = seen.page
        for details in page.locator("details.endpoint").all():
            details.evaluate("element => { element.open = true; }")
        forms = page.locator("form.example")
        for form in forms.all():
            form.get_by_role("button").click()
        expect(page.locator("form.example output[hidden]")).to_have_count(0)
        by_name = {
            form.locator("xpath=../..").get_attribute("id"): form.locator("output").inner_text() for form in forms.all()
        }
        writes = {"put_platform", "add_runs"}
        wrong = {
            name: text[:200] for name, text in by_name.items() if not text.startswith("200 ") and name not in writes
        }
        assert wrong == {}
        assert all(by_name[name].startswith("403 ") for name in writes), "without a token nothing is written"
        assert by_name.keys() == {endpoint.name for endpoint in ENDPOINTS}


def test_the_theme_can_be_chosen_and_is_kept(open_page: Opener) -> None:
    with open_page("/", color_scheme="light") as seen:
        page = seen.page
        ground = "getComputedStyle(document.documentElement).backgroundColor"
        light = page.evaluate(ground)
        page.get_by_role("button", name="Show this page dark").click()
        assert page.evaluate(ground) != light
        seen.go("/map")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_longest_name_is_long() -> None:
    assert len(LONG) == 10_000
