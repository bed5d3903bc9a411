// AgentChat: a conversation with agents, as a messenger shows it.

const NEAR_END_PX = 48;
const TOAST_MS = 4000;
const REDRAWN_MS = 2000;
const STORES = new Map();
let VIEWS = 0;

/** What there is to show, and what is on its way: for all views of one chat. */
class Store {
  constructor(line, saved) {
    this.line = line;
    this.items = new Map();
    this.pending = new Map();
    this.draft = "";
    this.mentioned = {};
    this.files = new Map();
    this.editing = null;
    this.ignored = null;
    this.head = null;
    this.problem = null;
    this.asleep = null; // why nothing comes: the node is away, or the kernel
    this.scroll = null;
    this.unread = new Set();
    this.divider = null;
    this.views = new Set();
    this.wanted = new Map();
    this.urls = new Map();
    this.acks = new Map();
    this.colours = new Map();
    this.lostFocus = 0;
    this.heardState = false;
    if (saved && saved.head) this.take(saved);
    line.listen((message, buffers) => this.heard(message, buffers));
  }

  changed(what, ...more) {
    for (const view of this.views) view.changed(what, ...more);
  }

  take(state) {
    if (this.head?.conversation !== state.head.conversation) this.colours = new Map();
    this.head = state.head;
    this.items = new Map(state.items.map((item) => [item.id, item]));
    for (const item of state.items) this.arrived(item);
  }

  /** Who speaks here has a colour of their own: by order of appearance, the agent one talks to first. */
  colour(who) {
    if (who.mine) return YOURS;
    if (!this.colours.size && this.head) this.colours.set(this.head.agent.id, 0);
    if (!this.colours.has(who.id)) this.colours.set(who.id, this.colours.size);
    return COLOURS[this.colours.get(who.id) % COLOURS.length];
  }

  /** Sent in its place, or an answer to what was. */
  isOld(item) {
    return Boolean(item.resent || (item.re && this.items.get(item.re)?.resent));
  }

  sorted() {
    const order = (a, b) => a.order[0] - b.order[0] || a.order[1] - b.order[1] || a.order[2] - b.order[2];
    return [...this.items.values()].sort(order);
  }

  lastOfMine() {
    return this.sorted().reverse().find((item) => item.who.mine && !item.re && item.text && !item.resent);
  }

  // What Python says ---------------------------------------------------------------------------

  heard(message, buffers) {
    const { type } = message;
    if (type === "ack") return this.acked(message.nr);
    if (type === "state") {
      this.asleep = null;
      this.take(message);
      this.heardState = true;
      this.changed("all");
      for (const one of this.pending.values()) if (!one.refused && !one.says) this.sayAgain(one);
    } else if (type === "items") {
      for (const item of message.items) {
        const known = this.items.get(item.id);
        this.items.set(item.id, item);
        this.arrived(item);
        this.changed("item", item, known);
      }
    } else if (type === "gone") {
      for (const id of message.ids) {
        this.items.delete(id);
        this.changed("gone", id);
      }
    } else if (type === "grow") {
      const item = this.items.get(message.id);
      if (!item) return;
      item.blocks = [...(item.blocks || []).slice(0, message.keep), ...message.blocks];
      this.changed("grow", item, message.keep);
    } else if (type === "head") {
      this.asleep = null;
      this.head = message.head;
      this.changed("head");
    } else if (type === "refused") {
      const one = this.pending.get(message.id);
      if (one) Object.assign(one, { refused: message, state: "refused" });
      this.changed("pending");
    } else if (type === "taken") {
      this.pending.delete(message.id);
      this.changed("pending");
    } else if (type === "unloadable") {
      this.files.delete(message.id);
      this.changed("files");
      this.changed("toast", message.text, "error");
    } else if (type === "offline") {
      this.asleep = message.problem;
      for (const one of this.pending.values()) if (!one.refused) Object.assign(one, { state: "asleep", says: 0 });
      this.changed("head");
      this.changed("pending");
    } else if (type === "file") this.gotPiece(message, buffers[0]);
    else if (type === "export") this.changed("export", message, buffers[0]);
    else if (type === "error") this.changed("toast", message.hint ? `${message.text} (${message.hint})` : message.text, "error");
    else this.changed(type, message);
  }

  /** What was on its way is there. */
  arrived(item) {
    const answers = item.who.mine && item.re && [...this.pending.values()].find((one) => one.question && one.text === item.text);
    if (this.pending.delete(item.id) | (answers && this.pending.delete(answers.id))) this.changed("pending");
  }

  // What is said to Python ---------------------------------------------------------------------

  send(text) {
    const files = [...this.files.values()];
    const mentioned = this.mentioned;
    this.files = new Map();
    this.mentioned = {};
    this.push({ text, files, message: { type: "send", text, files: files.map((file) => file.id), mentioned } });
  }

  again(of, text) {
    const item = this.items.get(of);
    const request = item.who.mine ? item : this.items.get(item.re);
    this.push({ text: text ?? request?.text ?? "", files: request?.files || [], message: { type: "again", of, ...(text === undefined ? {} : { text }) } });
  }

  answer(asks, text) {
    this.push({ text, files: [], question: asks.question, message: { type: "answer", reply: asks.reply, question: asks.question, text } });
  }

  push(one) {
    const bytes = crypto.getRandomValues(new Uint8Array(8));
    one.id = `m${Date.now().toString(16)}${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    one.at = new Date().toISOString();
    this.pending.set(one.id, one);
    this.sayAgain(one);
  }

  /** Under the same id: whatever became of the first try, it is said once. */
  sayAgain(one) {
    one.refused = null;
    one.state = "sending";
    one.says = this.line.say({ ...one.message, id: one.id }, null, () => {
      if (this.pending.has(one.id) && one.state === "sending") one.state = "queued";
      this.changed("pending");
    });
    this.acks.set(one.says, () => {
      if (one.state === "queued") one.state = "sending";
      this.changed("pending");
    });
    this.changed("pending");
  }

  acked(nr) {
    this.acks.get(nr)?.();
    this.acks.delete(nr);
  }

  // Files --------------------------------------------------------------------------------------

  async upload(file) {
    const id = `f${Date.now().toString(16)}${Math.random().toString(16).slice(2)}`;
    const chip = { id, name: file.name || "pasted.png", mime: file.type, size: file.size, sent: 0, state: "loading" };
    this.files.set(id, chip);
    for (let offset = 0; offset === 0 || offset < file.size; offset += CHUNK) {
      const piece = await file.slice(offset, offset + CHUNK).arrayBuffer();
      const last = offset + CHUNK >= file.size;
      const message = { type: "upload", id, name: chip.name, mime: chip.mime, last };
      await new Promise((next) => this.acks.set(this.line.say(message, [piece]), next));
      chip.sent = Math.min(file.size, offset + CHUNK);
      if (last) chip.state = "there";
      this.changed("files");
    }
  }

  /** The bytes of a file; a picture's have its type. Fetched once. */
  file(file) {
    if (!this.wanted.has(file.sha256)) {
      const want = { pieces: [], got: 0, file };
      want.promise = new Promise((done, fail) => Object.assign(want, { done, fail }));
      this.wanted.set(file.sha256, want);
      this.line.say({ type: "fetch", sha256: file.sha256 });
    }
    return this.wanted.get(file.sha256).promise;
  }

  gotPiece(message, piece) {
    const want = this.wanted.get(message.sha256);
    if (!want || message.offset !== want.got) return;
    want.pieces.push(piece);
    want.got += piece.byteLength;
    if (want.got >= message.size) want.done(new Blob(want.pieces, message.picture ? { type: want.file.mime } : {}));
  }

  url(file, blob) {
    if (!this.urls.has(file.sha256)) this.urls.set(file.sha256, URL.createObjectURL(blob));
    return this.urls.get(file.sha256);
  }
}

/** One view of a chat. */
class ChatView {
  constructor(model, root) {
    this.uid = `aios-chat-${Date.now().toString(36)}-${++VIEWS}`;
    this.line = lineOf(model);
    const name = model.get("line");
    if (!STORES.has(name)) STORES.set(name, new Store(this.line, model.get("saved")));
    this.store = STORES.get(name);
    this.messages = new Map();
    this.ticking = new Set();
    this.atEnd = true;
    this.lastTop = 0;
    this.inSight = true;
    this.build(root);
    this.store.views.add(this);
    this.line.say({ type: "hello", view: this.uid }, null, () => this.noAnswer());
    this.draw();
    this.watch();
  }

  build(root) {
    this.composer = null;
    this.head = el("div", { class: "aios-head" });
    this.top = el("div", { class: "aios-top" });
    this.list = el("div", { class: "aios-list" });
    this.log = el("div", { class: "aios-log", role: "log", "aria-live": "off", tabindex: "0", "aria-label": "Conversation" }, this.top, this.list);
    this.pendings = el("div", { class: "aios-pendings" });
    this.log.append(this.pendings);
    this.jump = el("button", { type: "button", class: "aios-jump", hidden: true, on: { click: () => this.toEnd(true) } });
    this.state = el("div", { class: "aios-state", role: "status" });
    this.toaster = el("div", { class: "aios-toast", role: "status", hidden: true });
    this.teller = el("div", { class: "aios-sr", "aria-live": "polite" });
    this.sheet = el("div", { class: "aios-sheet", hidden: true });
    this.line0 = el("span", { class: "aios-new", role: "separator" }, "new");
    this.root = keepKeys(el("section", { class: "aios aios-chat", "aria-label": "Chat" }, this.head,
      el("div", { class: "aios-middle" }, this.log, this.jump, this.toaster, this.sheet), this.state, this.teller));
    this.composer = new Composer(this);
    this.root.append(this.composer.node);
    root.append(this.root);
    codeBlock.tools = codeTools;
    this.root.addEventListener("aios-code", (event) => this.code(event.detail));
    this.root.addEventListener("keydown", (event) => this.escape(event));
    this.log.addEventListener("keydown", (event) => this.walk(event));
  }

  watch() {
    this.log.addEventListener("scroll", () => this.scrolled());
    this.seer = new IntersectionObserver((entries) => {
      this.inSight = entries[entries.length - 1].isIntersecting;
      if (this.inSight) this.restoreScroll();
      this.read();
    });
    this.seer.observe(this.log);
    this.sizer = new ResizeObserver(() => this.follow());
    this.sizer.observe(this.log);
    this.timer = setInterval(() => this.ticking.forEach((message) => message.tick(Date.now())), 1000);
    this.onVisible = () => this.read();
    document.addEventListener("visibilitychange", this.onVisible);
    const calm = later(300, () => {
      const now = !this.root.contains(document.activeElement);
      if (now !== this.calm) this.line.say({ type: "calm", view: this.uid, calm: now });
      this.calm = now;
    });
    this.root.addEventListener("focusin", () => ((this.focused = true), calm()));
    this.root.addEventListener("focusout", () => {
      this.focused = false;
      calm();
      setTimeout(() => this.root.isConnected || this.keepFocus());
    });
    this.takeFocus(REDRAWN_MS / 50);
  }

  /** It is taken away under somebody's hands: the view that takes its place gets the focus. */
  keepFocus() {
    this.store.lostFocus = Date.now();
  }

  takeFocus(tries) {
    const lost = Date.now() - this.store.lostFocus < REDRAWN_MS;
    if (lost && this.root.isConnected && document.activeElement === document.body) {
      this.store.lostFocus = 0;
      this.composer.focus();
    } else if (tries) setTimeout(() => this.takeFocus(tries - 1), 50);
  }

  leave() {
    if (this.focused) this.keepFocus();
    this.store.views.delete(this);
    this.seer.disconnect();
    this.sizer.disconnect();
    clearInterval(this.timer);
    document.removeEventListener("visibilitychange", this.onVisible);
    this.line.say({ type: "bye", view: this.uid });
  }

  noAnswer() {
    if (this.store.heardState || this.store.asleep) return;
    this.store.asleep = "queued";
    this.drawState();
  }

  // What has changed ---------------------------------------------------------------------------

  changed(what, ...more) {
    const does = {
      all: () => this.draw(),
      item: (item, known) => this.drawItem(item, known),
      gone: (id) => this.remove(id),
      grow: (item, keep) => this.grow(item, keep),
      head: () => this.drawHead(),
      pending: () => this.drawPending(),
      files: () => (this.composer.drawChips(), this.composer.refresh()),
      toast: (text, kind) => this.toast(text, kind),
      export: (message, bytes) => download(new Blob([bytes], { type: message.mime }), message.name, this.root),
      complete: (message) => this.composer.named(message.typed, message.rows),
      helpers: (message) => this.composer.help(message.rows),
      chats: (message) => this.drawChats(message.rows),
    }[what];
    if (does) does(...more);
  }

  draw() {
    const items = this.store.sorted();
    for (const id of [...this.messages.keys()]) if (!this.store.items.has(id)) this.remove(id);
    const earliest = this.list.firstElementChild;
    const before = earliest && this.log.scrollTop < 80 && !this.atEnd ? earliest.getBoundingClientRect().top : null;
    let last = null;
    for (const item of items) {
      const message = this.messageOf(item);
      if (last ? last.nextElementSibling !== message.node : this.list.firstElementChild !== message.node)
        last ? last.after(message.node) : this.list.prepend(message.node);
      last = message.node;
    }
    this.drawHead();
    this.drawPending();
    this.messages.forEach((message, id) => id !== items[items.length - 1]?.id && message.fold());
    if (before !== null && earliest.isConnected) this.log.scrollTop += earliest.getBoundingClientRect().top - before;
    else this.restoreScroll();
  }

  messageOf(item) {
    const known = this.messages.get(item.id);
    if (known) known.update(item);
    else this.messages.set(item.id, new Message(this, item));
    return this.messages.get(item.id);
  }

  drawItem(item, known) {
    const message = this.messageOf(item);
    const moved = !known || known.order.join() !== item.order.join();
    if (moved) {
      const place = this.store.sorted();
      const next = place.slice(place.indexOf(item) + 1).map((one) => this.messages.get(one.id)?.node).find((node) => node?.isConnected);
      if (next) next.before(message.node);
      else this.list.append(message.node);
    }
    if (known?.resent !== item.resent) for (const other of this.store.items.values()) if (other.re === item.id) this.messages.get(other.id)?.update(other);
    if (!AT_WORK.includes(item.status) && !item.who.mine && (!known || AT_WORK.includes(known.status))) this.arrived(item);
    this.drawEmpty();
    this.follow();
  }

  grow(item, keep) {
    this.messages.get(item.id)?.grow(keep);
    this.follow();
  }

  remove(id) {
    this.ticking.delete(this.messages.get(id));
    this.messages.get(id)?.node.remove();
    this.messages.delete(id);
    this.drawEmpty();
  }

  /** Keep counting the seconds of what is under way. */
  tick(message, busy) {
    if (busy) this.ticking.add(message);
    else this.ticking.delete(message);
  }

  // Scrolling and what was not seen --------------------------------------------------------------

  follow() {
    if (this.atEnd) this.log.scrollTop = this.log.scrollHeight;
  }

  scrolled() {
    const top = this.log.scrollTop;
    // What grows below moves the end away; only who scrolls up has left it.
    if (this.log.scrollHeight - top - this.log.clientHeight < NEAR_END_PX) this.atEnd = true;
    else if (top < this.lastTop - 2) this.atEnd = false;
    this.lastTop = top;
    this.store.scroll = this.atEnd ? null : this.log.scrollTop;
    this.read();
  }

  restoreScroll() {
    if (this.store.scroll === null) {
      this.atEnd = true;
      this.follow();
    } else {
      this.log.scrollTop = this.store.scroll;
      this.atEnd = false;
    }
  }

  toEnd(gently) {
    this.atEnd = true;
    this.store.scroll = null;
    this.store.divider = null;
    this.log.scrollTo({ top: this.log.scrollHeight, behavior: gently ? "smooth" : "auto" });
    this.read();
  }

  goTo(id) {
    const message = this.messages.get(id);
    if (!message) return;
    message.node.scrollIntoView({ block: "center", behavior: "smooth" });
    message.node.classList.add("aios-flash");
    setTimeout(() => message.node.classList.remove("aios-flash"), 1500);
  }

  seen() {
    return this.atEnd && this.inSight && document.visibilityState === "visible";
  }

  arrived(item) {
    const said = item.problem ? `${ENDED[item.status] || ""}: ${item.problem}` : this.messages.get(item.id).body.innerText;
    this.teller.replaceChildren(el("p", null, `${item.who.name}: ${said.slice(0, 500)}`));
    if (this.seen() || !this.store.heardState || !this.root.isConnected) return;
    if (!this.store.unread.size) this.store.divider = item.id;
    this.store.unread.add(item.id);
    this.read();
  }

  read() {
    if (this.seen()) this.store.unread.clear();
    const count = this.store.unread.size;
    this.jump.hidden = this.atEnd && !count;
    this.jump.textContent = count ? `${count} new ↓` : "↓";
    this.jump.setAttribute("aria-label", count ? `${count} new, go to the end` : "Go to the end");
    const mark = this.store.divider && this.messages.get(this.store.divider)?.node;
    if (mark) mark.before(this.line0);
    else this.line0.remove();
  }

  // The head and the states ---------------------------------------------------------------------

  drawHead() {
    const { head } = this.store;
    this.drawState();
    this.composer.refresh();
    this.drawEmpty();
    if (this.renaming) return;
    if (!head) return this.head.replaceChildren(el("b", null, "AgentChat"));
    const { agent } = head;
    const words = { alive: "alive", suspect: "not answering", gone: "gone" }[agent.state] || "";
    const about = [];
    if (head.title && !head.title.startsWith("Chat with ")) about.push(head.title);
    if (agent.node) about.push(agent.ours ? `${agent.node}, this notebook` : agent.node);
    if (agent.state === "suspect" || agent.state === "gone") about.push(words);
    else if (agent.changed) about.push("card changed since you used it");
    else if (agent.ours) about.push("yours");
    else if (agent.signed) about.push("signed");
    if (head.also.length) about.push(`also here: ${head.also.join(", ")}`);
    const said = JSON.stringify([agent, about, head.conversation]);
    if (said === this.headSaid) return;
    this.headSaid = said;
    this.log.setAttribute("aria-label", `Conversation with ${agent.name}`);
    this.root.setAttribute("aria-label", `Chat with ${agent.name}`);
    this.head.replaceChildren(
      el("span", { class: "aios-dot", "data-state": agent.state, title: words, role: "img", "aria-label": words || "state unknown" }),
      el("b", { class: "aios-cut", title: agent.id }, agent.name),
      el("span", { class: "aios-tiny aios-cut aios-grow", title: about.join(" · ") }, about.join(" · ")),
      this.menu("Export", "Export", "aios-wide", this.exports()),
      this.menu("⋯", "More", "", [
        ["New conversation", () => this.line.say({ type: "new" })],
        ["Conversations…", () => this.line.say({ type: "chats" })],
        ...(head.conversation ? [["Rename…", () => this.rename()], ...this.exports().map(([label, action]) => [`Export as ${label}`, action, "aios-slim"]),
          ["Delete…", () => this.askDelete(head.conversation, head.title)]] : []),
      ]));
  }

  exports() {
    if (!this.store.head.conversation) return [];
    return [["Markdown", "md"], ["JSON", "json"], ["Notebook", "ipynb"]].map(([label, form]) => [label, () => this.line.say({ type: "export", form })]);
  }

  menu(label, name, extra, entries) {
    const list = el("div", { class: "aios-menu", role: "menu", "aria-label": name, hidden: true });
    const button = el("button", { type: "button", class: extra, "aria-haspopup": "menu", "aria-expanded": "false", "aria-label": name, disabled: !entries.length, on: { click: () => show(list.hidden) } }, label);
    const items = entries.map(([text, action, kind]) => el("button", { type: "button", role: "menuitem", class: kind, tabindex: "-1", on: { click: () => {
      show(false);
      button.focus();
      action();
    } } }, text));
    list.append(...items);
    const show = (open) => {
      list.hidden = !open;
      button.setAttribute("aria-expanded", open ? "true" : "false");
      if (open) items[0].focus();
    };
    const holder = el("span", { class: `aios-holder ${extra}` }, button, list);
    holder.addEventListener("keydown", (event) => {
      const seen = items.filter((item) => item.offsetParent);
      const at = seen.indexOf(document.activeElement);
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape" && !list.hidden) {
        event.stopPropagation();
        show(false);
        button.focus();
      } else if (step && list.hidden) show(true);
      else if (step) seen[(at + step + seen.length) % seen.length].focus();
      else return;
      event.preventDefault();
    });
    holder.addEventListener("focusout", (event) => holder.contains(event.relatedTarget) || show(false));
    return holder;
  }

  /** What keeps this chat from going on, if anything does. */
  drawState() {
    const { head, asleep } = this.store;
    const agent = head?.agent;
    let said = null;
    if (asleep === "queued") said = ["", "The kernel is busy. What was said before is below; the rest comes when it has time."];
    else if (asleep === "starting") said = ["", "The node is starting …"];
    else if (asleep === "kernel") said = ["warn", "The kernel was restarted. Run this cell again: the conversation is kept."];
    else if (asleep === "stopped") said = ["warn", "The node is stopped. ", el("code", null, "%aios up"), " starts it, and this chat goes on by itself."];
    else if (asleep) said = ["warn", `The node is not running: ${asleep}. `, el("code", null, "%aios up"), " tries again."];
    else if (head?.problem) said = ["warn", head.problem.text, head.problem.hint ? `. ${head.problem.hint}` : ""];
    else if (head?.ready && agent?.state === "gone") said = ["warn", agent.ours
      ? `Nobody offers ${agent.name} here now. It is back as soon as its cell is run again; @ brings in another agent.`
      : `${agent.name} is gone: its node left, or offers it no more. What you send waits for it for 10 minutes.`];
    else if (agent?.state === "suspect") said = ["warn", `${agent.node || agent.name} does not answer right now. What you send waits for it for 10 minutes.`];
    this.state.hidden = !said;
    if (said) this.state.replaceChildren(...said.slice(1));
    this.state.dataset.kind = said ? said[0] : "";
  }

  drawEmpty() {
    const { head } = this.store;
    const empty = !this.store.items.size && !this.store.pending.size;
    const said = JSON.stringify([empty, head?.earlier, empty && head?.agent, head?.ready, this.store.asleep]);
    if (said === this.topSaid) return;
    this.topSaid = said;
    this.top.replaceChildren();
    this.log.toggleAttribute("data-empty", empty);
    if (head?.earlier && !empty) this.top.append(el("button", { type: "button", class: "aios-pill aios-earlier", on: { click: () => this.line.say({ type: "earlier" }) } }, "Show earlier messages"));
    if (!empty) return;
    if (!head || !head.ready) {
      if (!this.store.asleep || this.store.asleep === "starting") this.top.append(el("div", { class: "aios-note" }, dots()));
      return;
    }
    const { agent } = head;
    this.top.append(el("div", { class: "aios-welcome" }, avatar(agent, this.store.colour(agent), true), el("b", null, agent.name), agent.about && el("p", null, agent.about),
      agent.examples.length ? el("div", { class: "aios-tries" }, el("span", { class: "aios-hint" }, "try:"), agent.examples.map((example) =>
        el("button", { type: "button", class: "aios-pill", on: { click: () => this.composer.set(example) } }, example))) : ""));
  }

  drawPending() {
    const words = { sending: "sending …", queued: "queued, kernel is busy", asleep: "waits for the node" };
    this.pendings.replaceChildren(...[...this.store.pending.values()].map((one) => {
      const refused = one.refused;
      return el("article", { class: "aios-msg", "data-mine": true, "data-status": refused ? "failed" : "pending", "aria-label": "you" },
        el("div", { class: "aios-face" }, avatar({ name: "you" }, YOURS)),
        el("div", { class: "aios-what" },
          el("div", { class: "aios-by" }, el("b", null, "you"), el("span", { class: "aios-meta" }, refused ? "not sent" : words[one.state] || "")),
          el("div", { class: "aios-rich" }, el("p", { class: "aios-lines" }, one.text)),
          one.files.length ? el("div", { class: "aios-hint" }, one.files.map((file) => file.name).join(", ")) : "",
          refused && el("div", { class: "aios-ended", "data-kind": "failed" },
            el("span", { class: "aios-why" }, el("b", null, "not sent"), `: ${refused.text}`, refused.hint && el("span", { class: "aios-hint" }, ` ${refused.hint}`)),
            el("button", { type: "button", class: "aios-small", on: { click: () => this.store.sayAgain(one) } }, "Retry"),
            el("button", { type: "button", class: "aios-small", on: { click: () => this.takeBack(one) } }, "Edit"))));
    }));
    this.drawEmpty();
    this.follow();
  }

  takeBack(one) {
    this.store.pending.delete(one.id);
    for (const file of one.files) if (file.state) this.store.files.set(file.id, file);
    this.drawPending();
    this.composer.set(one.text);
    this.composer.drawChips();
  }

  // What people do ------------------------------------------------------------------------------

  stop() {
    if ((this.store.head?.busy || []).length) this.line.say({ type: "stop" });
  }

  retry(item) {
    this.store.again(item.id);
    this.toEnd();
  }

  edit(item) {
    this.composer.edit(item);
  }

  async copy(text) {
    await copyText(text, this.root);
    this.toast("copied");
  }

  async code({ code, node, to }) {
    if (to !== "cell") return this.copy(code);
    if (await toCell(code, this.root)) return;
    await copyText(code, this.root);
    this.toast("copied, paste it into a cell");
  }

  toast(text, kind) {
    clearTimeout(this.toasting);
    this.toaster.textContent = text;
    this.toaster.dataset.kind = kind || "";
    this.toaster.hidden = false;
    this.toasting = setTimeout(() => (this.toaster.hidden = true), kind === "error" ? 2 * TOAST_MS : TOAST_MS);
  }

  escape(event) {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    if (!this.sheet.hidden) this.closeSheet();
    else if ((this.store.head?.busy || []).length) this.stop();
    else if (this.log.contains(document.activeElement)) this.composer.focus();
  }

  /** In the log the arrows go from message to message. */
  walk(event) {
    const here = document.activeElement;
    if (here !== this.log && here.parentElement !== this.list) return;
    const all = [...this.list.querySelectorAll("article:not([hidden])")];
    const at = all.indexOf(here);
    const to = { ArrowUp: at < 0 ? all.length - 1 : at - 1, ArrowDown: at < 0 ? all.length : at + 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || !all[to]) return;
    event.preventDefault();
    all[to].focus({ preventScroll: true });
    all[to].scrollIntoView({ block: "nearest" });
  }

  rename() {
    const { head } = this.store;
    this.renaming = true;
    const field = el("input", { type: "text", maxlength: "200", "aria-label": "Title of this conversation", class: "aios-title" });
    field.value = head.title;
    const end = (title) => {
      this.renaming = false;
      this.headSaid = "";
      if (title) this.line.say({ type: "rename", title });
      this.drawHead();
      this.composer.focus();
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") (event.preventDefault(), end(field.value.trim()));
      else if (event.key === "Escape") (event.preventDefault(), end(""));
    });
    this.head.replaceChildren(field, el("button", { type: "button", class: "aios-main", on: { click: () => end(field.value.trim()) } }, "Rename"),
      el("button", { type: "button", on: { click: () => end("") } }, "Cancel"));
    field.focus();
    field.select();
  }

  // Conversations, over the messages --------------------------------------------------------------

  openSheet(title, ...content) {
    this.sheet.replaceChildren(el("div", { class: "aios-sheet-head" }, el("b", null, title), el("span", { class: "aios-grow" }),
      quiet("×", "Close", () => this.closeSheet())), ...content);
    this.sheet.hidden = false;
    (this.sheet.querySelector(".aios-chats button, .aios-confirm button") || this.sheet.querySelector("button")).focus();
  }

  closeSheet() {
    this.sheet.hidden = true;
    this.composer.focus();
  }

  drawChats(rows) {
    const list = rows.map((row) => el("div", { class: "aios-chatrow", "data-current": row.current },
      el("button", { type: "button", "aria-current": row.current ? "true" : null, on: { click: () => {
        this.closeSheet();
        this.line.say({ type: "open", conversation: row.conversation });
      } } }, el("span", { class: "aios-cut" }, el("b", null, row.title)), el("span", { class: "aios-hint aios-cut" }, `${clock(row.at)} · ${row.agents.join(", ")}${row.last ? ` · ${row.last}` : ""}`)),
      quiet("delete", `Delete ${row.title}`, () => this.askDelete(row.conversation, row.title, true))));
    this.openSheet("Conversations", list.length ? el("div", { class: "aios-chats" }, list) : el("div", { class: "aios-note" }, "Nothing has been said yet."));
  }

  askDelete(conversation, title, listed) {
    this.openSheet("Delete this conversation?", el("div", { class: "aios-confirm" },
      el("p", null, el("b", null, title || "This conversation"), " and everything said in it will be gone. This cannot be undone."),
      el("button", { type: "button", on: { click: () => this.closeSheet() } }, "Keep"),
      el("button", { type: "button", class: "aios-danger", on: { click: () => {
        this.closeSheet();
        this.line.say({ type: "delete", conversation, listed: Boolean(listed) });
      } } }, "Delete")));
  }
}

/** The buttons of a block of code; the view hears of them by an event. */
function codeTools(block) {
  const say = (to) => (event) => event.target.dispatchEvent(new CustomEvent("aios-code", { bubbles: true, detail: { code: block.textContent.replace(/\n$/, ""), to } }));
  return el("div", { class: "aios-codetools" }, quiet("copy", "Copy this code", say("copy")), quiet("to cell", "Put this code into a new cell below", say("cell")));
}

function render({ model, el: root }) {
  const view = new ChatView(model, root);
  const gone = () => {
    view.store.asleep = "kernel";
    view.store.changed("head");
  };
  model.on("comm_live_update", gone);
  return () => view.leave();
}

export default { render };
