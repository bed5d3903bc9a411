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
const theirs = { text: "", who: { id: "echo@here" }, order: [2, 0, 0] };
const last = () => said.all.at(-1);
const pending = () => [...store.pending.values()];
const soon = () => new Promise((done) => setTimeout(done));
const ack = () => store.heard({ type: "ack", nr: said.all.length });
class Slow { // a file of two pieces, the second of which comes when it is let go
  constructor(end) { Object.assign(this, { name: "big.bin", type: "", size: CHUNK + 1, end }); }
  slice(from) { return { arrayBuffer: async () => (from ? this.end : new ArrayBuffer(CHUNK)) }; }
}
const begun = async (end = new Promise(() => {})) => {
  store.upload(new Slow(end));
  await soon(); // its first piece is said
  store.send("look at this");
  ack();
};
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
    "what waits for the rest of a file goes back into the box with the kernel": (
        """
        await begun();
        store.sleep("kernel");
        return [store.draft, pending().length];""",
        ["look at this", 0],
    ),
    "what waits for the rest of a file is kept for the page that is loaded again": (
        """
        const end = Promise.withResolvers();
        await begun(end.promise);
        const before = store.unsent().map((one) => one.text);
        store.heard({ type: "ack", nr: 1 });
        await soon();
        end.resolve(new ArrayBuffer(1)); // the last piece: Python has all of it now
        await soon();
        return [before, last().last, store.unsent().length];""",
        [["look at this"], True, 0],
    ),
    "what another cell took over is not said from here too": (
        """
        const end = Promise.withResolvers();
        await begun(end.promise);
        store.yield();
        const count = said.all.length;
        store.heard({ type: "ack", nr: 1 });
        end.resolve(new ArrayBuffer(1));
        await soon();
        state(0);
        return [said.all.length - count, pending().length, store.draft];""",
        [0, 0, ""],
    ),
    "a piece of a file is said again to a view that takes the place of another": (
        """
        const view = { changed() {}, root: document.body };
        store.views.add(view);
        await begun();
        store.leave(view); // what Python says now is heard by nobody
        state(0);
        return said.all.slice(2).map((one) => [one.type, one.offset ?? one.text]);""",
        [["send", "look at this"], ["upload", 0]],
    ),
    "a file that cannot be read is told to Python and to the person, once": (
        """
        const told = [];
        store.views.add({ changed: (...what) => told.push(what), root: document.body });
        await begun(Promise.reject(new Error("it was changed")));
        store.heard({ type: "ack", nr: 1 });
        await soon();
        store.heard({ type: "unloadable", id: last().id, text: "big.bin cannot be read" });
        const toasts = told.filter(([what]) => what === "toast").map(([, text]) => text);
        return [last().unreadable, toasts, pending()[0].files[0].state];""",
        [True, ["big.bin cannot be read"], "lost"],
    ),
    "a chat that is closed leaves only what was not sent": (
        """
        const model = { get: (key) => (key === "line" ? "a third line" : null), on() {} };
        const end = widget.initialize({ model });
        const closed = storeOf(lineOf(model), model);
        closed.heard({ type: "state", head: head(0), items: [] });
        closed.write("half a thought");
        end();
        const left = [...STORES.keys(), ...LINES.keys(), ...CHATS].includes("a third line");
        return [left, [...KEEPERS.values()].map((one) => one.draft)];""",
        [False, ["half a thought"]],
    ),
    "an answer that comes with its conversation is news, and once": (
        """
        const told = [];
        const changed = (what, item) => what === "answer" && told.push(item.id);
        store.views.add({ changed, root: document.body });
        store.send("hello");
        const { id } = last();
        const answer = (nr, re, status = "") => ({ ...theirs, id: nr, re, status });
        const show = (place, ...items) => state(place, [answer("r-0", "m-before"), ...items]);
        show(0, mine(id, "hello"), answer("r-1", id), answer("r-2", id, "runs"));
        show(0, mine(id, "hello"), answer("r-1", id), answer("r-2", id));
        state(1); // another conversation, and back
        show(2, mine(id, "hello"), answer("r-1", id), answer("r-2", id));
        return told;""",
        ["r-1", "r-2"],
    ),
    "who says something else first is asked nothing, though two ask": (
        """
        const asks = (nr) => ({ reply: `r-${nr}`, question: `q-${nr}`, who: "echo" });
        const question = (nr) => ({ ...theirs, ...asks(nr), id: `q-${nr}`, who: agent });
        const items = [question(1), question(2)];
        store.heard({ type: "state", head: { ...head(0), asks: asks(1) }, items });
        const first = store.asks().question;
        store.putOff();
        store.takeUp(items[1]);
        const second = store.asks().question;
        store.putOff();
        return [first, second, Boolean(store.asks())];""",
        ["q-1", "q-2", False],
    ),
    "what was to be tried again and another cell took over may be tried again": (
        """
        state(0, [mine("m-1", "hello")]);
        store.again("m-1");
        store.heard({ type: "offline", problem: "stopped" });
        store.yield();
        store.again("m-1");
        return pending().length;""",
        1,
    ),
    "what nobody has heard may be taken back, and nothing else": (
        """
        const back = () => pending().map((one) => store.isHereOnly(one));
        store.send("perhaps heard");
        store.heard({ type: "offline", problem: "stopped" });
        store.send("to nobody");
        const { id } = last();
        const nr = said.all.length;
        const before = back();
        store.heard({ type: "offline", problem: "stopped", id: "of another page", nr });
        store.heard({ type: "offline", problem: "stopped", id, nr });
        const then = back();
        state(0);
        return [before, then, back()];""",
        [[False, False], [False, True], [False, False]],
    ),
    "what came while somebody looked on is shown whole in the next view, too": (
        """
        const newest = mine("m-2", "newest", { order: [3, 0, 0] });
        state(0, [mine("m-1", "old"), { ...theirs, id: "r-1", status: "runs" }, newest]);
        store.heard({ type: "items", items: [mine("m-3", "live", { order: [4, 0, 0] })] });
        const shown = [...store.unfolded];
        state(1);
        return [shown, store.unfolded.has("m-3")];""",
        [["r-1", "m-2", "m-3"], False],
    ),
    "what was to be tried again and was taken back may be tried again": (
        """
        state(0, [mine("m-1", "hello")]);
        store.again("m-1");
        store.again("m-1"); // a double click
        const tries = pending().length;
        store.putBack(pending()[0]);
        store.again("m-1");
        return [tries, pending().length];""",
        [1, 1],
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
    told = page.evaluate(f"async () => {{ {script}\n{BEGIN}\n{story} }}")
    page.close()
    assert told == ends
