// Where a message is written: names while they are typed, who could help, files, the keys.

const NAMING = /(?:^|[\s([{,;:!?"'])@([a-z0-9_-]*)$/;
const FIRST = /^@([a-z0-9][a-z0-9_-]*)(?:@[a-z2-7]+)?[,:]?(?=\s|$)/;
const MENTIONS = /(^|[\s([{,;:!?"'])(@[a-z0-9][a-z0-9_-]*)/g;
const LINES_MAX = 8;
const LONG_CHARS = 20000;
const DRAFT_CHARS = 8;
const NAMES_PX = 230;
/** What the box is while names are offered; else it is what HTML makes of it, a text of several lines. */
const CHOOSING = { role: "combobox", "aria-expanded": "true" };

/** To the fraction of a pixel: half of one would move all that is below. */
function heightOf(node) {
  return node.getBoundingClientRect().height;
}

class Composer {
  constructor(chat) {
    this.chat = chat;
    this.store = chat.store;
    this.rows = [];
    this.picked = -1;
    this.naming = null;
    this.askHelpers = later(500, () => chat.line.say({ type: "drafting", view: chat.uid, text: this.area.value }));
    this.askNames = later(60, (typed) => chat.line.say({ type: "complete", typed }));
    this.asked = "";
    this.askKnown = later(60, (names) => chat.line.say({ type: "names", names }));
    this.build(chat.uid);
    this.listen();
    this.area.value = this.store.draft;
    this.grow();
    this.drawChips();
    this.refresh();
  }

  build(uid) {
    this.area = el("textarea", {
      rows: 1, dir: "auto", spellcheck: "true", "aria-label": "Message", "aria-autocomplete": "list", "aria-controls": `${uid}-names`,
    });
    this.back = el("div", { class: "aios-back", dir: "auto", "aria-hidden": "true" });
    this.names = el("div", { class: "aios-names", id: `${uid}-names`, role: "listbox", "aria-label": "Agents", hidden: true });
    this.bar = el("div", { class: "aios-bar", hidden: true });
    this.chips = el("div", { class: "aios-chips" });
    this.helpers = el("div", { class: "aios-helpers", hidden: true });
    this.input = el("input", { type: "file", multiple: true, hidden: true, tabindex: "-1" });
    const plus = el("span", { "aria-hidden": "true" }, "+ ");
    const square = el("span", { "aria-hidden": "true" }, "■ ");
    const title = "Attach files (or paste, or drop them here)";
    this.keys = el("span", { class: "aios-keys" });
    this.stopper = button([square, "Stop"], () => this.chat.stop(), { hidden: true });
    this.sender = button("Send", () => this.send(), { class: "aios-main", disabled: true });
    this.box = el("div", { class: "aios-box" },
      this.bar,
      el("div", { class: "aios-field" }, this.back, this.area),
      el("div", { class: "aios-row" },
        button([plus, "file"], () => this.input.click(), { class: "aios-quiet", title }),
        this.chips,
        el("span", { class: "aios-grow" }),
        this.keys,
        this.stopper,
        this.sender),
      this.input);
    this.node = el("div", { class: "aios-compose" }, this.helpers, this.names, this.box);
  }

  listen() {
    const { area, input } = this;
    const { root } = this.chat;
    area.addEventListener("input", () => this.typed());
    area.addEventListener("keydown", (event) => this.key(event));
    area.addEventListener("click", () => this.name());
    area.addEventListener("keyup", () => this.caret() !== this.looked && this.name());
    area.addEventListener("blur", () => setTimeout(() => this.offer([]), 150));
    area.addEventListener("paste", (event) => this.pasted(event));
    area.addEventListener("scroll", () => (this.back.scrollTop = area.scrollTop));
    input.addEventListener("change", () => {
      this.attach([...input.files]);
      input.value = "";
    });
    for (const event of ["dragenter", "dragover"]) root.addEventListener(event, (e) => this.drag(e, true));
    root.addEventListener("dragleave", (event) => this.drag(event, false));
    root.addEventListener("drop", (event) => {
      this.drag(event, false);
      this.attach([...event.dataTransfer.files]);
    });
  }

  focus(how) {
    this.area.focus(how);
    this.area.selectionStart = this.area.value.length;
  }

  set(text) {
    this.area.value = text;
    this.focus();
    this.typed();
  }

  /** Below what somebody has typed, in place of another suggestion; as if it was typed: Ctrl+Z takes it back. */
  suggest(text) {
    const { area } = this;
    const others = this.store.head.agent.examples;
    const all = others.includes(area.value) ? text : together(area.value, text);
    this.focus();
    area.select();
    if (!document.execCommand("insertText", false, all)) this.set(all);
  }

  // What it is for right now -------------------------------------------------------------------

  /** The question that gets this text, unless that begins with the name of somebody else. */
  answered(text) {
    const asks = this.store.isEditing() ? null : this.store.asks();
    const first = asks && FIRST.exec(text);
    return first && this.store.isForOthers(first[1], asks) ? null : asks;
  }

  /** The name of who gets it anyway is no part of a text. */
  without(name, text) {
    const first = FIRST.exec(text);
    return (first?.[1] === name && text.slice(first[0].length).trim()) || text;
  }

  refresh() {
    const { store } = this;
    const editing = store.isEditing();
    const asks = editing ? null : store.asks();
    const answers = Boolean(this.answered(this.area.value.trim()));
    const later = answers && store.files.size ? " Files go with your next message." : "";
    const to = (editing && store.items.get(store.editing).to) || [];
    const whom = to.length ? ` to ${to.join(" and ")}` : "";
    if (editing) this.setBar(`Edit and send again${whom}. What was said stays, marked.`, "Cancel", () => this.endEdit());
    else if (asks) this.setBar(`${asks.who} waits for your answer.${later}`, "Say something else", () => store.putOff());
    else this.bar.hidden = true;
    this.box.toggleAttribute("data-asked", answers);
    const name = to.join(" and ") || store.head?.agent.name || "an agent";
    this.area.placeholder = asks ? `Answer ${asks.who}` : `Message ${name}, or @ another agent`;
    this.stopper.hidden = !store.isBusy();
    this.keys.textContent = `⏎ send · ⇧⏎ new line · Esc ${editing ? "cancel" : "stop"}`;
    this.sender.textContent = editing ? "Send again" : answers ? "Answer" : "Send";
    this.sender.disabled = !this.canSend();
    this.sender.toggleAttribute("data-out", store.isCutOff());
    this.chat.follow();
  }

  /** How much higher it is than with one line and nothing else. */
  extra() {
    const lines = Math.max(0, heightOf(this.area) - Math.round(this.line));
    return heightOf(this.helpers) + heightOf(this.bar) + lines;
  }

  setBar(text, label, action) {
    this.bar.hidden = false;
    if (this.bar.dataset.said === text) return;
    this.bar.dataset.said = text;
    this.bar.replaceChildren(el("span", null, text), quiet(label, label, () => {
      action();
      this.focus();
    }));
  }

  canSend() {
    const text = this.area.value.trim();
    return Boolean(text || (!this.answered(text) && this.store.files.size));
  }

  // Typing -------------------------------------------------------------------------------------

  /** The text is another one than was typed here. */
  drafted() {
    if (this.area.value === this.store.draft) return;
    this.area.value = this.store.draft;
    this.grow();
    this.unname();
    this.refresh();
    if (this.area.value.trim().length < DRAFT_CHARS) this.help([]);
  }

  typed() {
    this.store.write(this.area.value); // another view may be there already, to take the place of this one
    this.grow();
    this.name();
    this.refresh();
    this.askHelpers();
    if (this.area.value.trim().length < DRAFT_CHARS) this.help([]);
  }

  /** As high as its text, which is drawn behind it with the names in colour. */
  grow() {
    const { area } = this;
    this.line = parseFloat(getComputedStyle(area).lineHeight) || 20;
    const highest = this.line * LINES_MAX + 4;
    const long = area.value.length > LONG_CHARS; // to lay it out twice with each key takes its time
    this.box.toggleAttribute("data-long", long);
    if (!long) area.style.height = "auto";
    const height = long ? highest : Math.min(area.scrollHeight, highest);
    if (height) area.style.height = `${height}px`;
    if (long) return this.back.replaceChildren();
    const parts = [];
    const names = new Set();
    let done = 0;
    for (const found of area.value.matchAll(MENTIONS)) {
      names.add(found[2].slice(1));
      if (!this.store.names.get(found[2].slice(1))) continue;
      const start = found.index + found[1].length;
      parts.push(area.value.slice(done, start), el("span", { class: "aios-at" }, found[2]));
      done = start + found[2].length;
    }
    this.back.replaceChildren(...parts, area.value.slice(done), "\n");
    const asks = [...names].join(" ");
    if (asks && asks !== this.asked) this.askKnown([...names]);
    this.asked = asks;
  }

  key(event) {
    if (composing(event)) return;
    const { key } = event;
    const bare = !event.shiftKey && !event.altKey && !event.ctrlKey && !event.metaKey;
    const last = key === "ArrowUp" && !this.area.value && this.store.lastOfMine();
    if (this.rows.length && this.nameKey(key)) event.preventDefault();
    else if (key === "Enter" && bare) {
      event.preventDefault();
      this.send();
    } else if (key === "Escape") {
      event.preventDefault();
      if (this.store.isEditing()) this.endEdit();
      else this.chat.stop();
    } else if (last) {
      event.preventDefault();
      this.edit(last);
    }
  }

  send() {
    if (!this.canSend() || this.chat.refusesAll()) return;
    const { store } = this;
    const text = this.area.value.trim();
    const asks = this.answered(text);
    if (store.isEditing()) store.again(store.editing, text);
    else if (asks) store.answer(asks, this.without(asks.who, text));
    else store.send(text);
    this.clear();
    this.chat.toEnd();
  }

  /** What was being written is done with; what was put aside for it comes back. */
  clear() {
    this.store.editing = null;
    this.area.value = this.store.takeAside();
    this.grow();
    this.unname();
    this.help([]);
    this.store.write(this.area.value); // another view shows it too, and must not send it again
    this.store.changed("files");
  }

  answer(item) {
    this.store.takeUp(item);
    this.focus();
  }

  edit(item) {
    if (this.store.editing === item.id) return this.focus();
    this.store.aside = this.store.written();
    this.store.editing = item.id;
    this.set(item.text);
  }

  endEdit() {
    this.clear();
    this.focus();
  }

  // Names --------------------------------------------------------------------------------------

  caret() {
    return `${this.area.selectionStart}-${this.area.selectionEnd}`;
  }

  /** Look whether a name is being typed where the caret is. */
  name() {
    this.looked = this.caret();
    const { value, selectionStart, selectionEnd } = this.area;
    const found = selectionStart === selectionEnd && NAMING.exec(value.slice(0, selectionStart));
    if (!found) return this.unname();
    this.naming = found[1];
    this.askNames(found[1]);
  }

  /** No name is being typed: what Python still says of one comes too late. */
  unname() {
    this.naming = null;
    this.offer([]);
  }

  /** Names for what was typed came from Python. */
  named(typed, rows) {
    if (typed === this.naming && this.chat.root.contains(document.activeElement)) this.offer(rows);
  }

  offer(rows) {
    this.rows = rows;
    for (const row of rows) this.store.names.set(row.name, true);
    this.picked = rows.length ? 0 : -1;
    this.names.hidden = !rows.length;
    if (rows.length) fill(this.area, CHOOSING, []);
    else for (const name of Object.keys(CHOOSING)) this.area.removeAttribute(name);
    this.names.replaceChildren(...rows.map((row, nr) => {
      const option = el("div", { role: "option", id: `${this.chat.uid}-name-${nr}`, class: "aios-name" },
        el("span", { class: "aios-dot", "data-state": row.state }), el("b", null, row.name), row.node && hint(row.node),
        el("span", { class: "aios-about" }, row.about));
      option.addEventListener("mousedown", (event) => {
        event.preventDefault();
        this.pick(nr);
      });
      return option;
    }));
    if (rows.length) this.names.style.maxHeight = `${Math.min(NAMES_PX, this.roomAbove())}px`;
    this.point();
  }

  /** What stands out above the chat is cut off. */
  roomAbove() {
    return this.node.getBoundingClientRect().top - this.chat.root.getBoundingClientRect().top - 4;
  }

  point() {
    [...this.names.children].forEach((node, nr) => {
      node.setAttribute("aria-selected", String(nr === this.picked));
      if (nr === this.picked) node.scrollIntoView({ block: "nearest" });
    });
    if (this.picked < 0) this.area.removeAttribute("aria-activedescendant");
    else this.area.setAttribute("aria-activedescendant", `${this.chat.uid}-name-${this.picked}`);
  }

  nameKey(key) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (step) {
      this.picked = (this.picked + step + this.rows.length) % this.rows.length;
      this.point();
    } else if (key === "Enter" || key === "Tab") this.pick(this.picked);
    else if (key === "Escape") this.offer([]);
    else return false;
    return true;
  }

  pick(nr) {
    const row = this.rows[nr];
    const at = this.area.selectionStart;
    this.area.setRangeText(`${row.name} `, at - this.naming.length, at, "end");
    this.store.mentioned[row.name] = row.id;
    this.offer([]);
    this.typed();
    this.area.focus();
  }

  // Who could help -----------------------------------------------------------------------------

  help(rows) {
    if (this.area.value.trim().length < DRAFT_CHARS) rows = []; // said of what stands here no more
    const named = new Set([...this.area.value.matchAll(MENTIONS)].map((found) => found[2].slice(1)));
    const fresh = rows.filter((row) => !named.has(row.name));
    const twice = (row) => fresh.some((one) => one !== row && one.name === row.name);
    this.helpers.hidden = !fresh.length;
    this.helpers.replaceChildren(hint("could help:"), ...fresh.map((row) => {
      const label = twice(row) ? `+ ${row.name} · ${row.node}` : `+ ${row.name}`;
      const ask = () => {
        this.store.mentioned[row.name] = row.id;
        this.store.names.set(row.name, true);
        this.set(`@${row.name} ${this.area.value}`);
        this.help(fresh);
      };
      return button(label, ask, { class: "aios-pill", title: row.about, "aria-label": `Ask ${row.name}: ${row.about}` });
    }));
    this.chat.follow();
  }

  // Files --------------------------------------------------------------------------------------

  drag(event, over) {
    if (![...(event.dataTransfer?.types || [])].includes("Files")) return;
    event.preventDefault();
    event.stopPropagation();
    this.box.toggleAttribute("data-drop", over);
  }

  pasted(event) {
    const files = [...(event.clipboardData?.files || [])];
    if (!files.length) return;
    event.preventDefault();
    this.attach(files);
  }

  attach(files) {
    if (!files.length || this.chat.refusesAll()) return;
    for (const file of files) {
      if (this.store.files.size >= FILES_MAX) this.chat.toast(`a message may have ${FILES_MAX} files`, "error");
      else if (file.size > FILE_LIMIT)
        this.chat.toast(`${file.name} has ${sizeOf(file.size)}; a file may have 20 MB`, "error");
      else this.store.upload(file);
    }
    this.store.changed("files");
    this.area.focus();
  }

  drawChips() {
    this.chips.replaceChildren(...[...this.store.files.values()].map((file) => {
      const percent = Math.round((100 * file.sent) / (file.size || 1));
      const remove = () => {
        this.store.files.delete(file.id);
        this.store.changed("files");
        this.area.focus();
      };
      return el("span", { class: "aios-chip", "data-state": file.state },
        cut(file.name), file.state === "loading" && hint(` ${percent} %`), quiet("×", `Remove ${file.name}`, remove));
    }));
  }
}
