// AgentHub in the page. Python searches and cuts pages; here are rows, keys and when rows may move.

const TYPED_MS = 120; // after the last key
const LEFT_MS = 600; // after the pointer has left, rows may move again
const MORE_ROWS = 50;
const ROWS_MAX = 200;
const WORDS_MAX = 500; // Python reads no more of them
const FEW_ROWS = 8; // above an invitation that need not be scrolled to
const ONLY = [
  ["all", "All agents"],
  ["live", "Agents whose node answers"],
  ["mine", "Agents of this notebook"],
];
let hubs = 0;

/** The button of a row that does this; tags are strangers' words, and go into no selector. */
function doing(part, what) {
  return [...(part?.querySelectorAll("[data-do]") || [])].find((one) => one.dataset.do === what);
}

class Hub {
  constructor({ model, el: place, host }) {
    this.model = model;
    this.line = lineOf(model);
    this.uid = `hub${++hubs}-${Math.random().toString(36).slice(2, 8)}`;
    this.ask = 0;
    this.words = "";
    this.only = "all";
    this.first = 0;
    this.count = MORE_ROWS;
    this.total = 0;
    this.order = [];
    this.rows = new Map();
    this.parts = new Map();
    this.cards = new Map();
    this.selected = null;
    this.picked = false; // by the person, not merely the first one
    this.opened = null;
    this.pending = null;
    this.waiting = false;
    this.near = null;
    this.around = {};
    this.state = "starting"; // asking, up, silent, offline
    this.inside = new Inside(this, host);
    this.build();
    place.append(this.root);
    this.leave = this.line.listen((message) => this.heard(message));
    this.timer = setInterval(() => this.age(), MINUTE_MS / 2);
    this.liveChanged = () => this.disconnected("The kernel was restarted. Run your cells again, this one too.");
    model.on("comm_live_update", this.liveChanged);
    this.restore();
    this.say({ type: "hello" });
    this.inside.show();
    if (isSaved(place)) this.disconnected("This is what was saved. Run your cells again, this one too.");
  }

  close() {
    this.leave();
    this.line.say({ type: "bye", view: this.uid });
    clearInterval(this.timer);
    clearTimeout(this.leaving);
    this.model.off("comm_live_update", this.liveChanged);
    this.inside.close();
  }

  say(message) {
    this.line.say({ ...message, view: this.uid }, null, () => this.unheard());
  }

  /** Its kernel is gone: nobody hears what is said in this view any more. */
  disconnected(why) {
    this.cut = true;
    this.line.rest();
    this.state = "offline";
    this.paintHead();
    this.tell("offline", why);
  }

  /** Python has not taken what was said: a cell keeps the kernel, or there is none. */
  unheard() {
    if (this.cut) return;
    this.tell("busy", "The kernel is busy or not running. This is what was seen last.");
    this.state = "silent";
    this.paintHead();
  }

  heardAgain() {
    if (this.banner.dataset.kind === "busy") this.tell();
    if (this.state !== "silent") return;
    this.state = this.order.length ? "up" : "asking";
    this.paintHead();
  }

  // What stands where -------------------------------------------------------------------------

  build() {
    const hidden = { hidden: true };
    this.counts = el("span", { class: "aios-tiny hub-counts" });
    this.pills = Object.fromEntries(
      ONLY.map(([key, title]) => [key, button(key, { class: "aios-pill", title, "aria-pressed": "false" }, () => this.pick(key))]),
    );
    this.input = el("input", {
      type: "text", role: "combobox", class: "hub-input", spellcheck: "false", autocomplete: "off", maxlength: WORDS_MAX,
      placeholder: "Describe the job, or a name, tag:math, node:bob, live:yes",
      "aria-label": "Search agents", "aria-autocomplete": "list", "aria-expanded": "true", "aria-haspopup": "grid",
      "aria-controls": `${this.uid}-grid`, "aria-describedby": `${this.uid}-keys`,
      on: { input: () => this.typed(), keydown: (event) => this.keyInSearch(event), focus: () => this.hold(), blur: () => this.letGo() },
    });
    this.wipe = button("×", { class: "hub-wipe", "aria-label": "Clear the search", ...hidden }, () => this.clear());
    this.banner = el("div", { class: "hub-banner", role: "status", ...hidden });
    this.fresh = button("", { class: "hub-fresh", ...hidden }, () => this.takePending(true));
    this.grid = el("div", {
      class: "hub-grid", role: "grid", id: `${this.uid}-grid`, "aria-label": "Agents",
      on: { keydown: (event) => this.keyInRow(event) },
    });
    this.empty = el("div", { class: "hub-empty" });
    const leaves = { pointerleave: () => this.left(), focusout: () => this.left() };
    this.scroll = el("div", { class: "hub-scroll", on: leaves }, this.fresh, this.grid, this.empty);
    this.extent = el("span", { class: "aios-tiny" });
    this.turns = el("span", { class: "hub-turns" });
    const keys = el("span", { class: "aios-tiny hub-keys", id: `${this.uid}-keys` }, "↑ ↓ choose · ⏎ chat · ⇧⏎ details · Esc back");
    this.foot = el("footer", { class: "hub-foot" }, this.extent, this.turns, el("span", { class: "aios-grow" }), keys);
    this.live = el("div", { class: "aios-sr", role: "status", "aria-live": "polite" });
    this.root = el("section", { class: "aios aios-hub", "aria-label": "AgentHub" },
      el("header", { class: "aios-head" },
        el("b", null, "AgentHub"), this.counts, el("span", { class: "aios-grow" }),
        el("div", { class: "hub-pills", role: "group", "aria-label": "Which agents" }, Object.values(this.pills))),
      el("div", { class: "hub-search" }, icon("M7 2a5 5 0 1 1 0 10A5 5 0 0 1 7 2z", "M10.8 10.8L14.5 14.5"), this.input, this.wipe),
      this.banner, this.scroll, this.foot, this.inside.root, this.live);
    keepKeys(this.root);
    this.paintHead();
  }

  paintHead() {
    const { agents, nodes, mine } = this.around;
    const words = { starting: "starting…", asking: "looking…", silent: "no answer", offline: "not connected", up: "live" };
    const parts = agents === undefined ? [] : [`${many(agents, "agent")} on ${many(nodes, "node")}`, " · "];
    this.counts.replaceChildren(...parts, el("span", { class: "hub-state", "data-state": this.state }, words[this.state]));
    this.pills.mine.textContent = mine === undefined ? "mine" : `mine ${mine}`;
    for (const [key, pill] of Object.entries(this.pills)) pill.setAttribute("aria-pressed", String(key === this.only));
    this.root.dataset.state = this.state;
  }

  /** A line under the search: a problem, or that Python does not answer. */
  tell(kind, text, ...more) {
    this.banner.hidden = !text;
    this.banner.dataset.kind = kind || "";
    this.banner.replaceChildren(text || "", ...more);
  }

  // From Python -------------------------------------------------------------------------------

  heard(message) {
    const handler = {
      ack: () => this.heardAgain(),
      welcome: () => this.welcome(),
      page: () => this.page(message),
      fresh: () => this.news(message),
      row: () => this.changedEverywhere(message.row),
      gone: () => this.gone(message.id),
      around: () => this.lookedAround(message),
      card: () => this.card(message),
      chat: () => this.inside.focus(),
      offline: () => this.offline(message.problem),
      error: () => this.failed(message),
    }[message.type];
    handler?.();
  }

  welcome() {
    if (this.state === "offline") this.tell();
    this.state = this.order.length ? "up" : "asking";
    this.paintHead();
  }

  page(message) {
    if (this.waiting && message.ask === undefined) return this.look({}); // what was asked without a node was not heard
    if (message.view === this.uid && message.ask !== undefined && message.ask !== null && message.ask < this.ask) return;
    if (document.activeElement !== this.input) this.input.value = message.words;
    this.state = "up";
    this.waiting = message.words !== this.input.value;
    this.tell();
    this.pending = null;
    this.take(message);
    this.announce(this.order.length ? many(this.total, "agent") : "No agents found");
  }

  /** While somebody types, fewer rows do not pull up the cells below. */
  hold() {
    this.scroll.style.minHeight = `${this.scroll.clientHeight}px`;
  }

  /** A little later: what is being clicked stays where it is. */
  letGo() {
    setTimeout(() => document.activeElement === this.input || (this.scroll.style.minHeight = ""), LEFT_MS);
  }

  /** For screen readers. */
  announce(text) {
    this.live.textContent = text;
  }

  /** Show this page, rows in its order. */
  take(page) {
    const known = new Set(this.order);
    const moving = this.words === page.words && this.only === page.only && this.first === page.first;
    Object.assign(this, { words: page.words, only: page.only, first: page.first, count: page.count, total: page.total, near: page.near });
    this.order = page.rows.map((row) => row.id);
    const fresh = new Map(page.rows.map((row) => [row.id, row]));
    for (const id of known) if (!fresh.has(id)) this.parts.delete(id);
    this.rows = fresh;
    if (!this.rows.has(this.opened)) this.opened = null;
    if (!this.rows.has(this.selected)) {
      this.picked = false;
      this.selected = this.words.trim() ? this.order[0] || null : null;
    }
    if (!moving) {
      this.scroll.scrollTop = 0;
      if (!this.picked) this.selected = this.words.trim() ? this.order[0] || null : null;
    }
    this.paint(moving && known.size > 0);
  }

  /** The same question has another answer by now. Rows do not move under a reader. */
  news(page) {
    this.pending = page;
    for (const row of page.rows) if (this.rows.has(row.id)) this.changed(row);
    if (this.reading()) this.paintPending();
    else this.takePending(false);
  }

  reading() {
    const there = this.scroll.matches(":hover") || this.scroll.contains(document.activeElement);
    return this.order.length > 0 && (there || this.picked || this.opened !== null);
  }

  paintPending() {
    const page = this.pending;
    const added = page ? page.rows.filter((row) => !this.rows.has(row.id)).length : 0;
    const moved = page && (added || page.rows.length !== this.order.length || page.rows.some((row, nr) => row.id !== this.order[nr]));
    this.fresh.hidden = !moved;
    if (!moved) return;
    const text = added ? `${added} new` : "The list has changed";
    if (this.fresh.textContent !== text) this.announce(added ? many(added, "new agent") : text);
    this.fresh.textContent = text;
  }

  takePending(asked) {
    const page = this.pending;
    this.pending = null;
    this.fresh.hidden = true;
    if (!page) return;
    if (asked) {
      this.picked = false;
      this.opened = null;
    }
    this.take(page);
    if (asked) this.input.focus({ preventScroll: true });
  }

  left() {
    clearTimeout(this.leaving);
    this.leaving = setTimeout(() => this.pending && !this.reading() && this.takePending(false), LEFT_MS);
  }

  gone(id) {
    const row = this.rows.get(id) || (this.pending && this.pending.rows.find((one) => one.id === id));
    if (row) this.changedEverywhere({ ...row, gone: true });
  }

  /** In what is shown and in what waits to be shown. */
  changedEverywhere(row) {
    if (this.pending) this.pending.rows = this.pending.rows.map((one) => (one.id === row.id ? { ...row, why: one.why } : one));
    this.changed(row);
  }

  changed(row) {
    const before = this.rows.get(row.id);
    if (!before) return;
    this.rows.set(row.id, { ...row, why: row.why || before.why, gone: row.gone || false });
    this.paintRow(row.id);
  }

  lookedAround(message) {
    this.around = message;
    this.paintHead();
    for (const id of this.order) this.paintRow(id);
    this.paintEmpty();
  }

  offline(problem) {
    const starting = problem === "starting";
    this.notTaken();
    this.state = starting ? "starting" : "offline";
    this.paintHead();
    const why = problem && problem !== "stopped" ? `: ${problem}` : "";
    if (starting) this.tell();
    else this.tell("offline", `The node is not running${why}. `, el("code", null, "%aios up"), " starts it.");
    this.paintEmpty();
    this.paintFoot();
  }

  failed(message) {
    this.tell("error", message.text + (message.hint ? ` (${message.hint})` : ""));
    this.notTaken();
  }

  /** What was asked for does not come; a chat that somebody opens later takes no focus here. */
  notTaken() {
    this.inside.asked = false;
    this.settled();
  }

  /** No chat is on its way any more. */
  settled() {
    for (const part of this.parts.values()) part.removeAttribute("aria-busy");
  }

  restore() {
    const saved = this.model.get("saved");
    if (!saved || !saved.rows) return this.paint();
    this.around = saved.around || {};
    this.input.value = saved.words || "";
    this.take(saved);
    this.state = "asking";
    this.paintHead();
  }

  // To Python ---------------------------------------------------------------------------------

  look(change) {
    Object.assign(this, change);
    this.picked = false;
    this.opened = null;
    this.pending = null;
    this.fresh.hidden = true;
    this.waiting = true;
    this.say({ type: "look", ask: ++this.ask, words: this.input.value, only: this.only, first: this.first, count: this.count });
    this.paintHead();
  }

  typed() {
    this.wipe.hidden = !this.input.value;
    this.waiting = true; // the rows are not those of the words any more
    this.wait ??= later(TYPED_MS, () => this.look({ first: 0, count: MORE_ROWS }));
    this.wait();
  }

  clear() {
    this.search("");
  }

  pick(only) {
    this.look({ only, first: 0, count: MORE_ROWS });
  }

  put(words) {
    this.input.value = words.slice(0, WORDS_MAX);
    this.wipe.hidden = !words;
  }

  /** For these words, everywhere. */
  search(words) {
    this.put(words);
    this.look({ only: "all", first: 0, count: MORE_ROWS });
    this.input.focus();
  }

  filterBy(text) {
    const typed = wordsOf(this.input.value);
    if (!typed.includes(text)) typed.push(text);
    this.put(typed.join(" "));
    this.look({ first: 0, count: MORE_ROWS });
  }

  chat(id) {
    if (this.opened) this.open(this.opened, false);
    this.parts.get(id)?.setAttribute("aria-busy", "true");
    this.inside.asked = true;
    this.say({ type: "chat", agent: id });
  }

  /** A program of others, as it was shown: what came later is not meant. */
  approve(id, pin) {
    this.say({ type: "approve", agent: id, pin });
  }

  open(id, on) {
    const before = this.opened;
    this.opened = on ? id : null;
    if (before && before !== id) this.paintRow(before);
    if (on) {
      this.select(id, true);
      this.cards.delete(id);
      this.say({ type: "card", agent: id });
    }
    this.paintRow(id);
    this.parts.get(id)?.scrollIntoView({ block: "nearest" });
    this.left();
  }

  card(message) {
    this.cards.set(message.agent, message);
    if (this.opened === message.agent) {
      this.paintRow(message.agent);
      this.parts.get(message.agent)?.scrollIntoView({ block: "nearest" });
    }
  }

  /** What Enter and the main button do: talk, unless there is something to look at before. */
  act(id) {
    const row = this.rows.get(id);
    if (!row || row.gone || this.state === "offline") return;
    if (row.live && !row.changed) this.chat(id);
    else this.open(id, this.opened !== id);
  }

  // Keys --------------------------------------------------------------------------------------

  keyInSearch(event) {
    if (composing(event)) return;
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
    if (event.key in steps && !event.altKey) {
      event.preventDefault();
      this.step(steps[event.key]);
    } else if (event.key === "Enter" && this.waiting) {
      event.preventDefault(); // what stands there now is not what was asked for
    } else if (event.key === "Enter" && this.selected) {
      event.preventDefault();
      if (event.altKey || event.shiftKey) this.open(this.selected, this.opened !== this.selected);
      else this.act(this.selected);
    } else if (event.key === "Escape") {
      event.preventDefault();
      this.escape();
    }
  }

  keyInRow(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const spot = event.target.dataset.do;
      event.preventDefault();
      this.step(event.key === "ArrowDown" ? 1 : -1);
      const part = this.parts.get(this.selected);
      (doing(part, spot) || part?.querySelector("[data-do]"))?.focus({ preventScroll: true });
    } else if (event.key === "Escape") {
      event.preventDefault();
      this.escape();
      this.input.focus();
    }
  }

  /** One step back: the details, then the choice, then the words. */
  escape() {
    if (this.opened) this.open(this.opened, false);
    else if (this.picked) {
      this.select(this.words.trim() ? this.order[0] || null : null, false);
      this.left();
    } else if (this.input.value || this.only !== "all") this.clear();
  }

  step(by) {
    if (!this.order.length) return;
    const at = this.order.indexOf(this.selected);
    const to = at < 0 ? (by > 0 ? 0 : this.order.length - 1) : Math.min(this.order.length - 1, Math.max(0, at + by));
    this.select(this.order[to], true);
    this.parts.get(this.selected)?.scrollIntoView({ block: "nearest" });
  }

  select(id, picked) {
    const before = this.selected;
    this.selected = id;
    this.picked = picked && id !== null;
    for (const one of [before, id]) if (one && this.parts.has(one)) this.mark(one);
    this.pointOut();
  }

  mark(id) {
    const part = this.parts.get(id);
    const chosen = id === this.selected;
    part.setAttribute("aria-selected", String(chosen));
    part.querySelector(".hub-act")?.classList.toggle("aios-main", chosen);
    for (const button of part.querySelectorAll("[data-do]")) button.tabIndex = chosen || (!this.selected && id === this.order[0]) ? 0 : -1;
  }

  pointOut() {
    const part = this.parts.get(this.selected);
    if (part) this.input.setAttribute("aria-activedescendant", part.id);
    else this.input.removeAttribute("aria-activedescendant");
  }

  // Painting ----------------------------------------------------------------------------------

  /** All rows in their order; with `pointing`, newcomers are pointed out for a moment. */
  paint(pointing = false) {
    this.wipe.hidden = !this.input.value;
    let place = this.grid.firstChild;
    this.order.forEach((id, nr) => {
      if (!this.parts.has(id)) {
        const part = el("div", { class: "hub-row", role: "row", id: `${this.uid}-${++this.made}` });
        part.addEventListener("click", (event) => event.target.closest("[data-do], .hub-details") || this.select(id, true));
        this.parts.set(id, part);
        if (pointing) part.classList.add("hub-new");
      }
      const part = this.parts.get(id);
      part.setAttribute("aria-rowindex", String(this.first + nr + 1));
      this.paintRow(id);
      if (part === place) place = place.nextSibling;
      else this.grid.insertBefore(part, place);
    });
    while (place) {
      const next = place.nextSibling;
      place.remove();
      place = next;
    }
    this.grid.setAttribute("aria-rowcount", String(this.total));
    this.grid.hidden = !this.order.length;
    this.pointOut();
    this.paintHead();
    this.paintEmpty();
    this.paintFoot();
  }

  made = 0;

  paintRow(id) {
    const part = this.parts.get(id);
    const row = this.rows.get(id);
    if (!part || !row) return;
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    part.dataset.life = lifeOf(row);
    part.setAttribute("aria-label", labelOf(row));
    fillRow(this, part, row);
    this.mark(id);
    if (focused && !focused.isConnected) doing(part, focused.dataset.do)?.focus({ preventScroll: true });
  }

  /** Who is silent is silent for longer now. */
  age() {
    for (const [id, row] of this.rows) if (!row.live) this.paintRow(id);
  }

  paintEmpty() {
    const says = [this.state, this.order.length > 0, isAlone(this), this.words.trim(), this.only, this.near];
    redraw(this.empty, says, () => emptinessOf(this));
    this.root.classList.toggle("hub-alone", isAlone(this) && this.order.length <= FEW_ROWS);
  }

  paintFoot() {
    const shown = this.order.length;
    const to = this.first + shown;
    const byWords = wordsOf(this.words).some((word) => !/^(tag|node|name|live):./i.test(word));
    const more = this.total > to;
    const [from, until, all] = [this.first + 1, to, this.total].map((number) => number.toLocaleString());
    this.extent.hidden = !(more || this.first);
    this.extent.textContent = byWords ? `the best ${shown}` : `${from}–${until} of ${all}`;
    const turns = [];
    if (this.first && !byWords) turns.push([`‹ Previous ${ROWS_MAX}`, { first: Math.max(0, this.first - ROWS_MAX), count: ROWS_MAX }]);
    const longer = Math.min(ROWS_MAX, Math.max(shown, this.count) + MORE_ROWS);
    if (more && shown < ROWS_MAX && !this.first) turns.push(["Show more", { count: longer }]);
    else if (more && !byWords) turns.push([`Next ${ROWS_MAX} ›`, { first: to, count: ROWS_MAX }]);
    else if (more) turns.push(["more words find better ones"]);
    const turn = ([text, change]) => (change ? button(text, null, () => this.look(change)) : el("span", { class: "aios-tiny" }, text));
    redraw(this.turns, turns, () => turns.map(turn));
    this.foot.hidden = !shown;
  }
}

export default {
  render(given) {
    const hub = new Hub(given);
    return () => hub.close();
  },
};
