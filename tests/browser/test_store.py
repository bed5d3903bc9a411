"""What a page knows of its chat, whatever is lost on the way from Python: stories in words."""

from __future__ import annotations

import pytest

from aios_nb.notebook.widgets.chat import AgentChat

BEGIN = """
class Said {
  constructor() { this.all = []; }
  say(message) { return this.all.push({ ...message }); }
  listen() {}
}
const said = new Said();
const store = new Store(said, "a line", null);
const agent = { id: "echo@here", name: "echo" };
const head = (place) => ({ place, agent, home: "here", conversation: `c-${place}`, ready: true });
const state = (place, items = []) => store.heard({ type: "state", head: head(place), items });
const mine = (id, text, more) => ({ id, text, who: { mine: true }, order: [1, 0, 0], ...more });
const last = () => said.all.at(-1);
const pending = () => [...store.pending.values()];
state(0);
"""
STORIES = {
    "what is said in a new conversation goes into no other": (
        """
        store.begin();
        store.send("anew");
        store.heard({ type: "offline", problem: "stopped" });
        state(0);
        return [last().type, last().text, last().place];""",
        ["send", "anew", 1],
    ),
    "what was taken elsewhere does not stay here": (
        """
        store.begin();
        store.send("anew");
        store.heard({ type: "taken", id: last().id });
        const before = pending().length;
        state(1);
        const there = pending().length;
        state(2);
        return [before, there, pending().length];""",
        [1, 1, 0],
    ),
    "what was said before anything was heard is for what is shown first": (
        """
        const early = new Store(said, "another line", null);
        early.send("soon");
        early.heard({ type: "state", head: head(3), items: [] });
        early.heard({ type: "taken", id: last().id });
        early.heard({ type: "state", head: head(4), items: [] });
        return early.pending.size;""",
        0,
    ),
    "what is in the log does not come back into the box": (
        """
        store.send("one");
        const { id } = last();
        store.heard({ type: "missed" });
        store.heard({ type: "taken", id });
        store.sleep("kernel");
        return [store.draft, pending().length];""",
        ["", 1],
    ),
    "an answer that is there was not refused": (
        """
        store.answer({ reply: "r-1", question: "q-1" }, "Ada");
        const { id } = last();
        state(0, [mine("m-9", "Ada", { re: "m-1" })]);
        store.heard({ type: "refused", id, text: "this waits for no answer" });
        return pending().length;""",
        0,
    ),
    "an answer that another question got before was refused": (
        """
        state(0, [mine("m-9", "yes", { re: "m-1" })]);
        store.answer({ reply: "r-2", question: "q-2" }, "yes");
        store.heard({ type: "refused", id: last().id, text: "this waits for no answer" });
        return pending().map((one) => one.refused.text);""",
        ["this waits for no answer"],
    ),
    "what was refused stays until somebody decides": (
        """
        store.send("two");
        store.heard({ type: "refused", id: last().id, text: "no" });
        state(1);
        return pending().map((one) => one.refused.text);""",
        ["no"],
    ),
}


@pytest.mark.parametrize(("story", "ends"), STORIES.values(), ids=STORIES)
def test_a_page_is_never_wrong_about_what_was_said(browser, story, ends):
    script = AgentChat._esm.replace("export default", "const widget =")
    page = browser.page()
    told = page.evaluate(f"() => {{ {script}\n{BEGIN}\n{story} }}")
    page.close()
    assert told == ends
