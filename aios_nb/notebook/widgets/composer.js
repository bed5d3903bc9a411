// Where a message is written: names while they are typed, files, the keys. Joined before chat.js.

const FILE_LIMIT = 20 << 20;
const FILES_MAX = 16;
const CHUNK = 1 << 20;
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const NAMING = /(?:^|[\s([{,;:!?"'])@([a-z0-9_-]*)$/;
const MENTIONS = /(^|[\s([{,;:!?"'])(@[a-z0-9][a-z0-9_-]*)/g;
const LINES_MAX = 8;

class Composer {
  constructor(chat) {
    this.chat = chat;
    this.store = chat.store;
    this.picked = -1;
    this.rows = [];
    const uid = chat.uid;
    this.area = el("textarea", {
      rows: 1, "aria-label": "Message", role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": `${uid}-names`,
      spellcheck: "true", on: { input: () => this.typed(), keydown: (event) => this.key(event), click: () => this.name(), blur: () => setTimeout(() => this.offer([]), 150),
        paste: (event) => this.pasted(event), scroll: () => (this.back.scrollTop = this.area.scrollTop) },
    });
    this.back = el("div", { class: "aios-back", "aria-hidden": "true" });
    this.names = el("div", { class: "aios-names", id: `${uid}-names`, role: "listbox", "aria-label": "Agents", hidden: true });
    this.bar = el("div", { class: "aios-bar", hidden: true });
    this.chips = el("div", { class: "aios-chips" });
    this.helpers = el("div", { class: "aios-helpers", hidden: true });
    this.input = el("input", { type: "file", multiple: true, hidden: true, tabindex: "-1", on: { change: () => {
      this.attach([...this.input.files]);
      this.input.value = "";
    } } });
    this.stopper = el("button", { type: "button", class: "aios-stop", hidden: true, on: { click: () => chat.stop() } }, el("span", { "aria-hidden": "true" }, "■ "), "Stop");
    this.sender = el("button", { type: "button", class: "aios-main", disabled: true, on: { click: () => this.send() } }, "Send");
    this.box = el("div", { class: "aios-box" }, this.bar,
      el("div", { class: "aios-field" }, this.back, this.area),
      el("div", { class: "aios-row" },
        el("button", { type: "button", class: "aios-quiet aios-attach", title: "Attach files (or paste, or drop them here)", on: { click: () => this.input.click() } },
          el("span", { "aria-hidden": "true" }, "+ "), "file"),
        this.chips, el("span", { class: "aios-grow" }), el("span", { class: "aios-keys" }, "⏎ send · ⇧⏎ new line · Esc stop"), this.stopper, this.sender), this.input);
    this.node = el("div", { class: "aios-compose" }, this.helpers, this.names, this.box);
    this.askHelpers = later(500, () => this.chat.line.say({ type: "drafting", text: this.area.value }));
    this.askNames = later(60, (typed) => this.chat.line.say({ type: "complete", typed }));
    for (const [event, over] of [["dragenter", true], ["dragover", true], ["dragleave", false]])
      this.box.addEventListener(event, (e) => this.drag(e, over));
    this.box.addEventListener("drop", (event) => {
      this.drag(event, false);
      this.attach([...event.dataTransfer.files]);
    });
    this.restore();
  }

  /** The draft is the chat's, not the view's: a view that is drawn anew goes on with it. */
  restore() {
    this.area.value = this.store.draft;
    this.grow();
    this.drawChips();
    this.refresh();
  }

  focus() {
    this.area.focus();
    this.area.selectionStart = this.area.value.length;
  }

  set(text) {
    this.area.value = text;
    this.focus();
    this.typed();
  }

  // What it is for right now -------------------------------------------------------------------

  get asks() {
    const asks = this.store.head?.asks;
    return asks && asks.question !== this.store.ignored ? asks : null;
  }

  refresh() {
    const { store } = this;
    const head = store.head;
    const name = head?.agent?.name || "an agent";
    const editing = store.editing && store.items.get(store.editing);
    if (editing) this.setBar("Edit and send again. What was said stays, marked.", "Cancel", () => this.endEdit());
    else if (this.asks) this.setBar(`${this.asks.who} waits for your answer.`, "Say something else", () => {
      store.ignored = this.asks.question;
      store.changed("head");
    });
    else this.bar.hidden = true;
    this.box.toggleAttribute("data-asked", Boolean(this.asks && !editing));
    this.area.placeholder = this.asks && !editing ? `Answer ${this.asks.who}` : `Message ${name}, or @ another agent`;
    this.stopper.hidden = !(head?.busy || []).length;
    this.sender.textContent = editing ? "Send again" : this.asks ? "Answer" : "Send";
    this.sender.disabled = !this.canSend();
  }

  setBar(text, label, action) {
    if (this.bar.dataset.said !== text) {
      this.bar.dataset.said = text;
      this.bar.replaceChildren(el("span", null, text), quiet(label, label, () => {
        action();
        this.focus();
      }));
    }
    this.bar.hidden = false;
  }

  canSend() {
    return Boolean(this.area.value.trim() || (!this.asks && this.store.files.size));
  }

  // Typing -------------------------------------------------------------------------------------

  typed() {
    this.store.draft = this.area.value;
    this.grow();
    this.name();
    this.refresh();
    this.askHelpers();
    if (this.area.value.trim().length < 8) this.help([]);
  }

  grow() {
    this.area.style.height = "auto";
    const line = parseFloat(getComputedStyle(this.area).lineHeight) || 20;
    const height = Math.min(this.area.scrollHeight, line * LINES_MAX + 4);
    if (height) this.area.style.height = `${height}px`;
    const parts = [];
    let done = 0;
    for (const found of this.area.value.matchAll(MENTIONS)) {
      const start = found.index + found[1].length;
      parts.push(this.area.value.slice(done, start), el("span", { class: "aios-at" }, found[2]));
      done = start + found[2].length;
    }
    this.back.replaceChildren(...parts, this.area.value.slice(done), "\n");
  }

  key(event) {
    if (event.isComposing) return;
    const { key } = event;
    if (this.rows.length && this.nameKey(key)) event.preventDefault();
    else if (key === "Enter" && !event.shiftKey && !event.altKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.send();
    } else if (key === "Escape") {
      event.preventDefault();
      if (this.store.editing) this.endEdit();
      else this.chat.stop();
    } else if (key === "ArrowUp" && !this.area.value) {
      const last = this.store.lastOfMine();
      if (last) {
        event.preventDefault();
        this.chat.edit(last);
      }
    }
  }

  send() {
    if (!this.canSend()) return;
    const text = this.area.value.trim();
    const { store } = this;
    if (store.editing) store.again(store.editing, text);
    else if (this.asks) store.answer(this.asks, text);
    else store.send(text);
    store.editing = null;
    this.clear();
    this.chat.toEnd();
  }

  clear() {
    this.store.draft = this.area.value = "";
    this.grow();
    this.offer([]);
    this.help([]);
    this.drawChips();
    this.refresh();
  }

  edit(item) {
    this.store.editing = item.id;
    this.set(item.text);
  }

  endEdit() {
    this.store.editing = null;
    this.clear();
    this.focus();
  }

  // Names --------------------------------------------------------------------------------------

  name() {
    const before = this.area.value.slice(0, this.area.selectionStart);
    const found = this.area.selectionStart === this.area.selectionEnd && NAMING.exec(before);
    this.naming = found ? found[1] : null;
    if (found) this.askNames(found[1]);
    else this.offer([]);
  }

  /** Names for what is being typed came from Python. */
  named(typed, rows) {
    if (typed === this.naming && this.chat.root.contains(document.activeElement)) this.offer(rows);
  }

  offer(rows) {
    this.rows = rows;
    this.picked = rows.length ? 0 : -1;
    this.names.hidden = !rows.length;
    this.area.setAttribute("aria-expanded", rows.length ? "true" : "false");
    this.names.replaceChildren(...rows.map((row, nr) => el("div", {
      role: "option", id: `${this.chat.uid}-name-${nr}`, class: "aios-name", on: { mousedown: (event) => {
        event.preventDefault();
        this.pick(nr);
      } },
    }, el("span", { class: "aios-dot", "data-state": row.state }), el("b", null, row.name), row.node && el("span", { class: "aios-hint" }, row.node),
    el("span", { class: "aios-about" }, row.about))));
    this.point();
  }

  point() {
    [...this.names.children].forEach((node, nr) => {
      node.setAttribute("aria-selected", nr === this.picked ? "true" : "false");
      if (nr === this.picked) node.scrollIntoView({ block: "nearest" });
    });
    if (this.picked >= 0) this.area.setAttribute("aria-activedescendant", `${this.chat.uid}-name-${this.picked}`);
    else this.area.removeAttribute("aria-activedescendant");
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
    const start = at - this.naming.length;
    this.area.setRangeText(`${row.name} `, start, at, "end");
    this.store.mentioned[row.name] = row.id;
    this.offer([]);
    this.typed();
    this.area.focus();
  }

  // Who could help -----------------------------------------------------------------------------

  help(rows) {
    const named = new Set([...this.area.value.matchAll(MENTIONS)].map((found) => found[2].slice(1)));
    const fresh = rows.filter((row) => !named.has(row.name));
    this.helpers.hidden = !fresh.length;
    this.helpers.replaceChildren(el("span", { class: "aios-hint" }, "could help:"), ...fresh.map((row) =>
      el("button", { type: "button", class: "aios-pill", title: row.about, "aria-label": `Ask ${row.name}: ${row.about}`, on: { click: () => {
        this.store.mentioned[row.name] = row.id;
        this.set(`@${row.name} ${this.area.value}`);
        this.help(fresh.filter((one) => one !== row));
      } } }, fresh.some((one) => one !== row && one.name === row.name) ? `+ ${row.name} · ${row.node}` : `+ ${row.name}`)));
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
    for (const file of files) {
      if (file.size > FILE_LIMIT) this.chat.toast(`${file.name} has ${sizeOf(file.size)}; a file may have 20 MB`, "error");
      else if (this.store.files.size >= FILES_MAX) return this.chat.toast(`a message may have ${FILES_MAX} files`, "error");
      else this.store.upload(file);
    }
    this.drawChips();
    this.refresh();
    this.area.focus();
  }

  drawChips() {
    this.chips.replaceChildren(...[...this.store.files.values()].map((file) => el("span", { class: "aios-chip", "data-state": file.state },
      el("span", { class: "aios-cut" }, file.name), file.state === "loading" ? el("span", { class: "aios-hint" }, ` ${Math.round((100 * file.sent) / (file.size || 1))} %`) : "",
      quiet("×", `Remove ${file.name}`, () => {
        this.store.files.delete(file.id);
        this.drawChips();
        this.refresh();
        this.area.focus();
      }))));
  }
}
