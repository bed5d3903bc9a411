// AgentChat: a conversation with agents, as a messenger shows it.

const NEAR_END_PX = 48;
const LOG_MIN_PX = 100;
const TOAST_MS = 4000;
const REDRAWN_MS = 2000;
const LOOK_MS = 20;
const QUIET_MS = 2000;
const CALM_AGAIN_MS = 20000;
const STIRRING = ["keydown", "pointerdown", "focusin", "wheel", "touchmove"];
const TOLD_CHARS = 500;
const TOLD_MS = 10000;
const ON_ITS_WAY = { sending: "sending …", queued: "queued, kernel is busy", asleep: "waits for the node", cut: "perhaps not heard" };
const CLICK_MS = 500;
let VIEWS = 0;

/** How to scroll where somebody looks on. */
function motion() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
}

/** One view of a chat. */
class ChatView {
  constructor(model, root) {
    this.uid = `aios-chat-${Date.now().toString(36)}-${++VIEWS}`;
    this.line = lineOf(model);
    this.store = storeOf(this.line, model);
    this.messages = new Map();
    this.ticking = new Set();
    this.atEnd = true;
    this.lastTop = 0;
    this.inSight = true;
    this.hasSize = false;
    this.build();
    root.append(this.root);
    this.store.views.add(this);
    this.line.say({ type: "hello", view: this.uid }, null, () => this.unheard());
    this.draw();
    this.watch();
  }

  build() {
    this.top = el("div", { class: "aios-top" });
    this.list = el("div", { class: "aios-list" });
    this.pendings = el("div", { class: "aios-pendings" });
    this.log = el("div", { class: "aios-log", role: "log", "aria-live": "off", tabindex: "0" }, this.top, this.list, this.pendings);
    this.jump = button("", () => this.toEnd(true), { class: "aios-jump", hidden: true });
    this.toaster = el("div", { class: "aios-toast", "aria-hidden": "true", hidden: true });
    this.trouble = el("div", { class: "aios-state", role: "status", hidden: true });
    this.teller = el("div", { class: "aios-sr", "aria-live": "polite" });
    this.news = el("span", { class: "aios-new", role: "separator" }, "new");
    this.head = new Head(this);
    this.sheet = new Sheet(this);
    const middle = el("div", { class: "aios-middle" }, this.log, this.jump, this.toaster, this.sheet.node);
    this.root = keepKeys(el("section", { class: "aios aios-chat" }, this.head.node, middle, this.trouble, this.teller));
    this.composer = new Composer(this);
    this.root.append(this.composer.node);
    codeBlock.tools = codeTools;
    this.root.addEventListener("aios-code", (event) => this.code(event.detail));
    this.root.addEventListener("keydown", (event) => this.escape(event));
    this.log.addEventListener("keydown", (event) => this.walk(event));
    this.log.addEventListener("scroll", () => this.scrolled());
  }

  watch() {
    this.seer = new IntersectionObserver((entries) => {
      this.inSight = entries[entries.length - 1].isIntersecting;
      this.store.findDraft(); // it is in the page now
      this.read();
    });
    this.seer.observe(this.log);
    this.sizer = new ResizeObserver(() => this.sized());
    this.sizer.observe(this.log);
    this.timer = setInterval(() => this.ticking.forEach((message) => message.tick(Date.now())), 1000);
    this.onVisible = () => this.read();
    document.addEventListener("visibilitychange", this.onVisible);
    this.pointedAt = 0;
    this.onPointer = () => (this.pointedAt = Date.now());
    document.addEventListener("pointerdown", this.onPointer, true);
    this.quiet = later(QUIET_MS, () => this.tellCalm(false));
    for (const event of STIRRING) this.root.addEventListener(event, () => this.stirred(), { passive: true });
    this.root.addEventListener("focusin", (event) => (this.focused = event.target));
    this.root.addEventListener("focusout", (event) => {
      this.focused = null;
      const clicked = Date.now() - this.pointedAt < CLICK_MS; // beside it, on nothing
      if (event.target === this.composer.area && !event.relatedTarget && !clicked) this.catchKeys();
      this.quiet();
      setTimeout(() => this.root.isConnected || this.keepFocus(event.target));
    });
    this.takeFocus(REDRAWN_MS / LOOK_MS);
  }

  /** Somebody does something here: what they look at is not drawn anew under their hands. */
  stirred() {
    this.tellCalm(true);
    this.quiet();
  }

  /**
   * Python draws the output anew to save it with the notebook, and then the view that takes its place has what this
   * one had: text, focus, place of reading. It waits for who types, scrolls, has a text in work, marks or chooses something.
   */
  tellCalm(stirred) {
    if (!this.root.isConnected) return;
    const { store, sheet, head, composer } = this;
    const marked = !getSelection().isCollapsed && this.root.contains(getSelection().anchorNode);
    const open = !sheet.node.hidden || head.isOpen() || !composer.names.hidden;
    const here = this.root.contains(document.activeElement);
    const calm = !stirred && !marked && !open && !(here && (store.draft || store.files.size));
    if (calm !== this.calm || (!calm && Date.now() - this.calmTold > CALM_AGAIN_MS)) {
      this.line.say({ type: "calm", view: this.uid, calm });
      this.calmTold = Date.now();
    }
    this.calm = calm;
    if (!calm) this.quiet();
  }

  leave() {
    if (this.focused) this.keepFocus(this.focused);
    this.store.leave(this);
    this.seer.disconnect();
    this.sizer.disconnect();
    clearInterval(this.timer);
    document.removeEventListener("visibilitychange", this.onVisible);
    document.removeEventListener("pointerdown", this.onPointer, true);
    this.line.say({ type: "bye", view: this.uid });
  }

  /** It is taken away under somebody's hands: the view that takes its place gets the focus. */
  keepFocus(node) {
    this.store.lostFocus = Date.now();
    const inside = [...this.messages].find(([, message]) => message.node.contains(node));
    this.store.lostAt = node === this.log ? this.log.className : inside?.[0];
    if (node === this.composer.area) this.catchKeys();
  }

  /** What is typed before the next view has the focus goes to nobody else: it is kept for that view. */
  catchKeys() {
    const { store } = this;
    store.endCatching();
    const caught = (event) => {
      if (document.activeElement !== document.body) return store.endCatching();
      if (event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      event.stopPropagation();
      store.write(store.draft + event.key);
    };
    // A key that went down in the old view may come to its letter when that is gone.
    for (const event of CAUGHT) document.addEventListener(event, caught, true);
    store.catching = caught;
    setTimeout(() => store.catching === caught && store.endCatching(), REDRAWN_MS);
  }

  takeFocus(tries) {
    const lost = Date.now() - this.store.lostFocus < REDRAWN_MS;
    if (lost && this.root.isConnected && document.activeElement === document.body) {
      this.store.lostFocus = 0;
      this.store.endCatching();
      const { lostAt } = this.store;
      const was = lostAt === this.log.className ? this.log : this.messages.get(lostAt)?.node;
      (was || this.composer).focus({ preventScroll: true });
    } else if (tries) setTimeout(() => this.takeFocus(tries - 1), LOOK_MS);
  }

  /** Python has not answered for a second: what was saved is all there is for now. */
  unheard() {
    if (!this.store.heardState && !this.store.asleep) this.store.sleep("queued");
  }

  // What has changed ---------------------------------------------------------------------------

  changed(what, ...more) {
    const does = `on_${what}`;
    if (does in this) this[does](...more);
  }

  on_all() {
    this.draw();
    this.read();
  }

  on_item(item, known) {
    const message = this.messageOf(item);
    if (known?.order.join() !== item.order.join()) {
      const place = this.store.sorted();
      const below = place.slice(place.indexOf(item) + 1).map((one) => this.messages.get(one.id)?.node);
      const next = below.find((node) => node?.parentElement === this.list);
      if (next) next.before(message.node);
      else this.list.append(message.node);
    }
    if (known?.resent !== item.resent) this.redrawAnswersTo(item);
    const done = !AT_WORK.includes(item.status) && (!known || AT_WORK.includes(known.status));
    if (done && !item.who.mine) this.arrived(item);
    this.drawTop();
    this.follow();
    if (done && !item.who.mine && !known?.blocks?.length) this.fromTop(message.node);
  }

  on_answer(item) {
    this.arrived(item);
  }

  on_grow(item, keep) {
    this.messages.get(item.id)?.grow(keep);
    this.follow();
  }

  on_head() {
    this.drawAround();
    for (const message of this.ticking) message.update(message.item);
    this.follow();
  }

  on_names() {
    this.composer.grow();
    this.composer.refresh();
  }

  on_pending() {
    this.drawPending();
  }

  on_draft() {
    this.composer.drafted();
  }

  on_files() {
    this.composer.drawChips();
    this.composer.refresh();
  }

  on_toast(text, kind) {
    this.toast(text, kind);
  }

  on_export(message, [bytes]) {
    if (message.view !== this.uid) return; // another one asked
    download(new Blob([bytes], { type: message.mime }), message.name, this.root);
  }

  on_complete(message) {
    this.composer.named(message.typed, message.rows);
  }

  on_helpers(message) {
    if (message.view === this.uid) this.composer.help(message.rows);
  }

  on_chats(message) {
    if (message.view === this.uid) this.sheet.showChats(message.rows);
  }

  // Drawing ------------------------------------------------------------------------------------

  draw() {
    const items = this.store.sorted();
    for (const id of [...this.messages.keys()]) if (!this.store.items.has(id)) this.remove(id);
    const first = this.list.firstElementChild;
    const reading = first && !this.atEnd && this.log.scrollTop < 80;
    const before = reading ? first.getBoundingClientRect().top : 0;
    this.news.remove(); // it is no message: they are put one after the other
    let last = null;
    for (const item of items) {
      const { node } = this.messageOf(item);
      const place = last ? last.nextElementSibling : this.list.firstElementChild;
      if (place !== node) this.list.insertBefore(node, place);
      last = node;
    }
    this.drawAround();
    this.drawPending();
    for (const message of this.messages.values()) message.fold();
    if (reading && first.isConnected) this.log.scrollTop += first.getBoundingClientRect().top - before;
    else this.restoreScroll();
  }

  messageOf(item) {
    const known = this.messages.get(item.id);
    if (known) known.update(item);
    else this.messages.set(item.id, new Message(this, item));
    return this.messages.get(item.id);
  }

  remove(id) {
    this.ticking.delete(this.messages.get(id));
    this.messages.get(id)?.node.remove();
    this.messages.delete(id);
  }

  redrawAnswersTo(item) {
    for (const one of this.store.items.values()) if (one.re === item.id) this.messages.get(one.id)?.update(one);
  }

  /** Count the seconds of what is under way. */
  tick(message, busy) {
    if (busy) this.ticking.add(message);
    else this.ticking.delete(message);
  }

  drawAround() {
    const name = this.store.head?.agent.name;
    this.root.setAttribute("aria-label", name ? `Chat with ${name}` : "Chat");
    this.log.setAttribute("aria-label", name ? `Conversation with ${name}` : "Conversation");
    this.head.draw();
    this.composer.refresh();
    this.drawTop();
    const trouble = troubleOf(this.store);
    this.trouble.hidden = !trouble;
    this.trouble.dataset.kind = trouble ? trouble[0] : "";
    this.trouble.replaceChildren(...(trouble || []).slice(1).filter(Boolean));
  }

  /** Above the messages: that there are earlier ones, or what to do where there are none. */
  drawTop() {
    const { head, asleep } = this.store;
    const empty = !this.store.items.size && !this.store.pending.size;
    const said = JSON.stringify([empty, head?.earlier, empty && head?.agent, head?.ready, asleep]);
    if (said === this.topSaid) return;
    this.topSaid = said;
    this.log.toggleAttribute("data-empty", empty);
    if (empty) this.top.replaceChildren(...this.welcome(head, asleep));
    else if (head?.earlier) this.top.replaceChildren(button("Show earlier messages",
      () => this.earlier(), { class: "aios-pill aios-earlier" }));
    else this.top.replaceChildren();
  }

  welcome(head, asleep) {
    if (!head?.ready) return asleep && asleep !== "starting" ? [] : [el("div", { class: "aios-note" }, dots())];
    const { agent } = head;
    const tries = agent.examples.map((text) => button(text, () => this.composer.suggest(text), { class: "aios-pill" }));
    return [el("div", { class: "aios-welcome" },
      avatar(agent, this.store.colour(agent), "aios-av-large"),
      el("b", null, agent.name),
      agent.about && el("p", null, agent.about),
      tries.length ? el("div", { class: "aios-tries" }, hint("try:"), tries) : "")];
  }

  drawPending() {
    this.pendings.replaceChildren(...[...this.store.pending.values()].map((one) => this.pendingMessage(one)));
    this.drawTop();
    this.follow();
  }

  pendingMessage(one) {
    const { refused } = one;
    const meta = refused ? "not sent" : one.taken ? "" : ON_ITS_WAY[one.state];
    const small = { class: "aios-small" };
    const edit = () => {
      this.store.putBack(one);
      this.composer.focus();
    };
    const back = this.store.isHereOnly(one) && quiet("take back", "Take back", edit);
    const why = refused && el("div", { class: "aios-ended", "data-kind": "failed" },
      el("span", { class: "aios-why" }, el("b", null, "not sent"), ": ", because(refused.text, refused.hint)),
      button("Retry", () => this.sendAgain(one), small),
      button("Edit", edit, small),
      button("Discard", () => {
        this.store.forget(one.id);
        this.composer.focus();
      }, small));
    return el("article", { class: "aios-msg", "data-mine": true, "data-status": refused ? "failed" : "pending", "aria-label": "you" },
      el("div", { class: "aios-face" }, avatar({ name: "you" }, YOURS)),
      el("div", { class: "aios-what" },
        el("div", { class: "aios-by" }, el("b", null, "you"), el("span", { class: "aios-meta" }, meta), back),
        el("div", { class: "aios-rich" }, el("p", { class: "aios-lines", dir: "auto" }, one.text)),
        one.files.length ? hint(one.files.map((file) => file.name).join(", ")) : "",
        why));
  }

  // Reading ------------------------------------------------------------------------------------

  /** What comes and goes around the box takes its room from the log: the cells below stay where they are. */
  makeRoom() {
    const extra = this.composer?.extra() || 0;
    if (!extra && !this.extra) return;
    this.extra = extra;
    const { log } = this;
    const top = log.scrollTop;
    log.style.minHeight = log.style.maxHeight = "";
    if (extra) log.style.minHeight = log.style.maxHeight = `${Math.max(LOG_MIN_PX, heightOf(log) - extra)}px`;
    log.scrollTop = top;
  }

  follow() {
    this.makeRoom();
    if (!this.atEnd) return;
    const high = heightOf(this.log);
    this.putAt(this.log.scrollHeight);
    // A longer log pushes the box down: who writes in it keeps it in sight, and with it the end.
    const writing = document.activeElement === this.composer?.area;
    if (writing && high > this.high) this.composer.node.scrollIntoView({ block: "nearest" });
    this.high = high;
  }

  /** It is our doing; whoever scrolls from there leaves it, though no event has told of it yet. */
  putAt(top) {
    this.log.scrollTop = top;
    this.lastTop = this.log.scrollTop;
  }

  /** An answer that came all at once and is higher than the log is read from its beginning. */
  fromTop(node) {
    const { log } = this;
    if (!this.atEnd || heightOf(node) <= log.clientHeight) return;
    this.atEnd = false;
    log.scrollTop += node.getBoundingClientRect().top - log.getBoundingClientRect().top;
    this.store.scroll = log.scrollTop;
    this.read();
  }

  scrolled() {
    const top = this.log.scrollTop;
    // What grows below moves the end away; only who scrolls up has left it.
    if (this.log.scrollHeight - top - this.log.clientHeight < NEAR_END_PX) this.atEnd = true;
    else if (top < this.lastTop - 2) this.atEnd = false;
    this.lastTop = top;
    this.store.scroll = this.atEnd ? null : top;
    this.read();
  }

  /** What is drawn, or was out of the page, has its place before anybody sees it: later it would undo what they do. */
  sized() {
    const had = this.hasSize;
    this.hasSize = this.log.clientHeight > 0;
    if (this.hasSize && !had) this.restoreScroll();
    else this.follow();
  }

  restoreScroll() {
    this.atEnd = this.store.scroll === null;
    if (this.atEnd) this.follow();
    else this.putAt(this.store.scroll);
  }

  toEnd(gently) {
    this.atEnd = true;
    this.store.scroll = null;
    this.store.divider = null;
    this.log.scrollTo({ top: this.log.scrollHeight, behavior: gently ? motion() : "auto" });
    this.read();
  }

  goTo(id) {
    const node = this.messages.get(id)?.node;
    if (!node) return;
    node.scrollIntoView({ block: "center", behavior: motion() });
    node.classList.add("aios-flash");
    setTimeout(() => node.classList.remove("aios-flash"), 1500);
  }

  seen() {
    return this.atEnd && this.inSight && document.visibilityState === "visible";
  }

  /** A message of somebody else is whole: say it to who listens, mark it for who does not look. */
  arrived(item) {
    const said = item.problem ? `${ENDED[item.status]}: ${item.problem}` : this.messages.get(item.id).body.innerText || (isEmpty(item) ? EMPTY : "");
    this.tell(`${item.who.name}: ${said.slice(0, TOLD_CHARS)}`);
    const looks = [...this.store.views].some((view) => view.seen());
    if (looks || !this.store.heardState || !this.root.isConnected) return;
    if (!this.store.unread.size) this.store.divider = item.id;
    this.store.unread.add(item.id);
    this.read();
  }

  /** Say it to who listens: all of what comes at once, and what is shown for a moment only. */
  tell(text) {
    const said = el("p", null, text);
    this.teller.append(said);
    setTimeout(() => said.remove(), TOLD_MS);
  }

  read() {
    if (this.seen()) this.store.unread.clear();
    const count = this.store.unread.size;
    this.jump.hidden = this.atEnd && !count;
    this.jump.textContent = count ? `${count} new ↓` : "↓";
    this.jump.setAttribute("aria-label", count ? `${count} new, go to the end` : "Go to the end");
    const mark = this.messages.get(this.store.divider)?.node;
    if (mark) mark.before(this.news);
    else this.news.remove();
  }

  earlier() {
    this.line.say({ type: "earlier" });
    this.log.focus({ preventScroll: true });
  }

  // What people do -----------------------------------------------------------------------------

  /** One reply, else all that is at work. The button that was pressed goes away: the focus goes to the box, not to nowhere. */
  stop(reply) {
    if (this.store.isBusy()) this.line.say({ type: "stop", reply });
    if (document.activeElement?.closest("button")) this.composer.focus();
  }

  /** Whether nobody hears what is said here; then it is said so. */
  refusesAll() {
    const cut = this.store.isCutOff();
    if (cut) this.toast("Run your cells again first. Your text is kept.", "error");
    return cut;
  }

  retry(item) {
    if (this.refusesAll()) return;
    this.store.again(item.id);
    this.composer.focus();
    this.toEnd();
  }

  /** What was not sent, once more. */
  sendAgain(one) {
    if (this.refusesAll()) return;
    this.store.sendHere(one);
    this.composer.focus();
  }

  async copy(text) {
    if (await copyText(text, this.root)) this.toast("copied");
    else this.toast("The browser did not let it be copied.", "error");
  }

  async code({ code, to }) {
    if (to !== "cell") return this.copy(code);
    if (await toCell(code, this.root)) return;
    if (await copyText(code, this.root)) this.toast("copied, paste it into a cell");
    else this.toast("No cell could be made, and nothing was copied.", "error");
  }

  toast(text, kind) {
    clearTimeout(this.toasting);
    this.toaster.textContent = text;
    this.toaster.dataset.kind = kind || "";
    this.toaster.hidden = false;
    this.tell(text);
    this.toasting = setTimeout(() => (this.toaster.hidden = true), kind === "error" ? 2 * TOAST_MS : TOAST_MS);
  }

  escape(event) {
    if (event.key !== "Escape" || event.defaultPrevented || composing(event)) return;
    if (!this.sheet.node.hidden) this.sheet.close();
    else if (this.store.isBusy()) this.stop();
    else if (this.log.contains(document.activeElement)) this.composer.focus();
  }

  /** In the log the arrows go from message to message. */
  walk(event) {
    const here = document.activeElement;
    if (here !== this.log && here.parentElement !== this.list) return;
    const all = [...this.list.querySelectorAll("article:not([hidden])")];
    const at = here === this.log ? all.length : all.indexOf(here);
    const to = all[{ ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: all.length - 1 }[event.key]];
    if (!to) return;
    event.preventDefault();
    to.focus({ preventScroll: true });
    to.scrollIntoView({ block: "nearest" });
  }
}

function render({ model, el: root }) {
  const view = new ChatView(model, root);
  model.on("comm_live_update", () => view.store.sleep("kernel"));
  if (isSaved(root)) view.store.sleep("saved");
  return () => view.leave();
}

/** A model is there, long before a view of it may be drawn. */
function initialize({ model }) {
  const name = model.get("line");
  const heed = () => (model.get("resting") ? CHATS.delete(name) : CHATS.add(name));
  heed();
  model.on("change:resting", heed);
  model.on("comm_live_update", () => CHATS.delete(name));
  return () => {
    // It is closed for good; a text that was not sent is kept for another one.
    for (const known of [CHATS, STORES, LINES]) known.delete(name);
  };
}

export default { initialize, render };
