"""The tests' own tools, and what every widget of ours stands on: messages both ways, always."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.audit import Window, findings
from tests.browser.chats import BUSY
from tests.browser.kernels import hears_beside_a_cell

PARROT = '''
import asyncio
import aios_nb as aios
from aios_nb.notebook.widgets.panel import Panel, asset

node = aios.up(name="parrots")

class Host:
    """The node, and a switch."""
    here, told = True, []
    def site(self): return node if self.here else None
    def problem(self): return "stopped"
    def subscribe(self, told): self.told.append(told); return lambda: self.told.remove(told)
    def turn(self, here):
        self.here = here
        for told in list(self.told): told()

class Parrot(Panel):
    _css = asset("common.css")
    _esm = asset("common.js") + """
    function render({ model, el: root }) {
      const line = lineOf(model);
      const field = keepKeys(el("input", { "aria-label": "say" }));
      const log = el("div", { role: "log" }), state = el("span", { role: "status" });
      line.listen((message) => {
        if (message.type === "said") log.append(el("p", null, message.text));
        if (message.type === "offline") state.textContent = message.problem;
        if (message.type === "here") state.textContent = "here";
      });
      model.on("msg:custom", () => (root.dataset.sent = 1 + Number(root.dataset.sent || 0)));
      field.addEventListener("keydown", (event) => {
        if (event.key !== "Enter") return;
        line.say({ type: "say", text: field.value });
        field.value = "";
      });
      root.append(el("div", { class: "aios" }, field, log, state));
    }
    export default { render };
    """
    heard = []

    async def attached(self, site):
        self.tell({"type": "here"})

    async def receive(self, message, buffers):
        self.heard.append(message["text"])
        for nr in range(6000 if message["text"] == "burst" else 1):
            self.tell({"type": "said", "text": f"{message['text']} {nr}"})

host = Host()
parrot = Parrot(host)
parrot
'''


@hears_beside_a_cell
def test_a_widget_talks_while_the_kernel_is_busy(open_notebook):
    book = open_notebook(PARROT, BUSY, "done = True", "host.turn(False)", "host.turn(True)")
    book.start_all()
    parrot = book.output(0)
    book.busy()

    def say(text: str) -> None:
        parrot.get_by_label("say").fill(text)
        parrot.get_by_label("say").press("Enter")

    # Under "Run All", with a cell that sleeps and others waiting.
    say("one")
    expect(parrot.get_by_role("log")).to_have_text("one 0")
    say("burst")
    expect(parrot.get_by_role("log").locator("p")).to_have_count(6001)
    assert parrot.locator("p").all_inner_texts() == ["one 0", *(f"burst {n}" for n in range(6000))]
    assert int(parrot.locator("[data-sent]").get_attribute("data-sent")) < 100
    expect(book.cell(1).locator(".jp-InputPrompt")).to_have_text("[*]:")
    book.interrupt()
    book.done(1, fails=True)
    book.idle()

    # A cell that is run by itself.
    book.start(1)
    book.busy()
    say("two")
    expect(parrot.get_by_role("log")).to_contain_text("two 0")
    book.interrupt()
    book.done(1, fails=True)
    assert book.value("Parrot.heard") == ["one", "burst", "two"]

    # The node goes and comes back.
    book.run(3)
    expect(parrot.get_by_role("status")).to_have_text("stopped")
    say("three")
    book.run(4)
    expect(parrot.get_by_role("status")).to_have_text("here")
    say("four")
    expect(parrot.get_by_role("log")).to_contain_text("four 0")
    expect(parrot.get_by_role("log")).not_to_contain_text("three")
    book.shot("harness-parrot")


def test_a_notebook_is_driven_like_by_a_person(open_notebook):
    book = open_notebook("import os; x = os.environ['AIOS_HOME']\nprint(x)", "1 / 0")
    book.run(0)
    book.run(1, fails=True)
    assert book.text(0) == str(book.home)
    assert "ZeroDivisionError" in book.text(1)
    assert book.value("x") == str(book.home)

    nr = book.add("x = 'again'; x")
    book.run(nr)
    book.reload()
    assert book.sources()[nr] == "x = 'again'; x"
    assert book.text(nr) == "'again'"
    assert book.value("x") == "again"

    book.restart()
    assert book.value("'x' in globals()") is False
    book.dark()
    expect(book.page.locator("body")).to_have_attribute("data-jp-theme-light", "false")
    book.narrow()
    assert book.shot("harness-narrow").stat().st_size > 1000


def test_what_goes_wrong_in_a_page_is_noticed(open_notebook):
    book = open_notebook("0")
    window = Window(book.page)
    book.page.evaluate(
        """async () => {
          console.error("oh");
          setTimeout(() => nothing());
          await fetch("http://example.invalid/x").catch(() => 0);
          document.body.append(document.createElement("section"));
          window.PWNED = 1;
        }"""
    )
    wanted = ["logged: oh", "asked for http://example.invalid/x", "nothing is not defined"]
    told = "\n".join(book.verdict())
    assert [part for part in wanted if part not in told] == []
    for part in (*wanted, "ERR_NAME_NOT_RESOLVED"):
        book.forgive(part)
    assert book.verdict() == []
    assert window.grown() == {"PWNED"}

    section = book.page.locator("body > section")
    bad = [
        '<b onclick="x()">',
        "<script></script>",
        '<a href=" java\tscript:x()" rel="noopener">',
        '<a href="https://a.example">',
        '<a download href="data:text/html,x">',
        '<img src="blab.png">',
        '<p style="background: url(x)">',
        "<p>&#x202e;evil",
    ]
    good = '<p class="x"><a href="https://a.example" rel="noopener">a</a></p>'
    told = []
    for part in (*bad, good):
        section.evaluate("(node, part) => { node.innerHTML = part }", part)
        told.append(bool(findings(section)))
    assert told == [True] * len(bad) + [False]
    book.forgive("status of 404")
