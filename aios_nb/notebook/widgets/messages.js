// One message of a chat: made once, changed in place. And code from it into a cell.

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const TALL_PX = 640;
const SLOW_MS = 3000;
const AT_ONCE_S = 0.05;
const EMPTY = "(empty answer)";
const AT_WORK = ["waits", "runs", "asks"];
const CUT = { kernel: "cut by the restart", saved: "not whole when it was saved" };
const ENDED = { failed: "failed", cancelled: "stopped", interrupted: "interrupted" };

function button(label, action, props) {
  return el("button", { type: "button", ...props, on: { click: action } }, label);
}

/** A button that looks like text. */
function quiet(label, title, action) {
  return button(label, action, { class: "aios-quiet", title, "aria-label": title });
}

function hint(...children) {
  return el("span", { class: "aios-hint" }, children);
}

/** Why something is not done, and what to do. */
function because(why, tip) {
  return tip ? [why, " ", hint(`(${tip})`)] : why;
}

function cut(text) {
  return el("span", { class: "aios-cut" }, text);
}

function avatar(who, colour, kind) {
  const initial = [...(who.name || "?")][0].toLocaleUpperCase();
  return el("div", { class: `aios-av ${kind || ""}`, "aria-hidden": "true", style: `background:${colour}` }, initial);
}

function dots() {
  return el("span", { class: "aios-dots", "aria-hidden": "true" }, el("i"), el("i"), el("i"));
}

/** Data as one pastes it: a table into a sheet, the rest as JSON. Nothing where there is none. */
function asText(data) {
  if (!data) return "";
  return data.json ?? [data.columns, ...data.rows].map((row) => row.join("\t")).join("\n");
}

function sizeOf(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  return bytes < 1 << 20 ? `${(bytes / 1024).toFixed(0)} KB` : `${(bytes / (1 << 20)).toFixed(1)} MB`;
}

function took(seconds) {
  if (seconds < 60) return `${seconds.toFixed(seconds < 9.95 ? 1 : 0)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** Download what is in memory under this name. */
function download(blob, name, root) {
  const url = URL.createObjectURL(blob);
  const link = el("a", { href: url, download: name, hidden: true });
  root.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

/** Whether it is an answer with nothing in it. */
function isEmpty(item) {
  const said = item.text || item.blocks?.length || item.data || item.files?.length || item.status;
  return Boolean(item.who.agent) && (item.kind || "said") === "said" && !said;
}

class Message {
  /** `chat`: the view it is in. */
  constructor(chat, item) {
    this.chat = chat;
    this.store = chat.store;
    this.shown = [];
    this.said = "";
    this.face = el("div", { class: "aios-face" });
    this.acts = el("span", { class: "aios-actions" });
    this.by = el("div", { class: "aios-by" }, this.acts);
    this.body = el("div", { class: "aios-rich" });
    this.extra = el("div", { class: "aios-extra" });
    this.mark = el("div", { class: "aios-mark" });
    const what = el("div", { class: "aios-what" }, this.by, this.body, this.extra, this.mark);
    this.node = el("article", { class: "aios-msg", tabindex: "-1" }, this.face, what);
    this.node.addEventListener("focusin", () => this.reach());
    this.node.addEventListener("focusout", () => setTimeout(() => this.reach()));
    this.update(item);
  }

  update(item) {
    this.item = item;
    this.setBlocks(item.blocks || [], 0);
    const { blocks, order, seq, ...rest } = item;
    const said = JSON.stringify([rest, this.store.isOld(item), this.store.isAway(item), this.store.isCut(item)]);
    if (said !== this.said) this.setFrame(item);
    this.said = said;
    this.reach();
  }

  grow(keep) {
    this.setBlocks(this.item.blocks, keep);
    this.reach();
  }

  /** Draw the blocks. Those before `from` are there, and others that are the same stay as they are. */
  setBlocks(blocks, from) {
    for (let i = from; i < blocks.length; i++) {
      const said = JSON.stringify(blocks[i]);
      if (this.shown[i]?.said === said) continue;
      const made = rich([blocks[i]])[0];
      const node = typeof made === "string" ? document.createTextNode(made) : made;
      if (this.shown[i]) this.shown[i].node.replaceWith(node);
      else this.body.append(node);
      this.shown[i] = { said, node };
    }
    for (const extra of this.shown.splice(blocks.length)) extra.node.remove();
    this.body.hidden = !blocks.length;
    // While it asks, its question is what there is to see.
    this.node.hidden = this.item.status === "asks" && !blocks.length;
  }

  /** Tab passes by what is in a message until one is in it: a hundred messages are not a hundred stops. */
  reach() {
    const inside = this.node.contains(document.activeElement);
    const within = this.node.querySelectorAll("a, button:not(.aios-small), pre, summary, .aios-scroll");
    for (const node of within) node.tabIndex = inside ? 0 : -1;
  }

  // Around the text ----------------------------------------------------------------------------

  setFrame(item) {
    const { node } = this;
    const cut = this.store.isCut(item);
    const busy = AT_WORK.includes(item.status) && !cut;
    node.dataset.status = item.status || "";
    node.dataset.kind = item.kind || "said";
    node.toggleAttribute("data-mine", Boolean(item.who.mine));
    node.toggleAttribute("data-old", this.store.isOld(item));
    node.toggleAttribute("data-away", cut || this.store.isAway(item));
    node.setAttribute("aria-busy", String(busy));
    if (item.kind === "note") {
      node.setAttribute("aria-label", "note");
      node.replaceChildren(el("div", { class: "aios-event" }, el("b", null, item.who.name), ` ${item.text}`));
      return;
    }
    node.setAttribute("aria-label", item.kind === "asks" ? `${item.who.name} asks` : item.who.name);
    this.face.replaceChildren(avatar(item.who, this.store.colour(item.who)));
    while (this.by.firstChild !== this.acts) this.by.firstChild.remove();
    this.by.prepend(...this.byLine(item));
    this.setActions(item, busy);
    this.setExtra(item);
    this.mark.replaceChildren(...this.marks(item));
    this.chat.tick(this, busy);
  }

  byLine(item) {
    const { who, status } = item;
    const away = this.store.isAway(item) || this.store.isCut(item);
    const time = el("time", { datetime: item.at, title: new Date(item.at).toLocaleString() }, clock(item.at));
    const meta = [
      status !== "waits" && who.node,
      time,
      item.took_s >= AT_ONCE_S && took(item.took_s),
      item.kind === "asks" && (item.question ? "asks you" : "asked"),
      item.edited && "edited",
      status === "waits" && !away && (who.node ? `waiting for ${who.node}` : "waits for its turn"),
      status === "runs" && !away && "typing",
      status === "asks" && "waits for your answer",
    ].filter(Boolean);
    const to = (item.to || []).map((name) => el("span", { class: "aios-at" }, `@${name} `));
    this.clock = el("span");
    return [
      el("b", null, who.name),
      to.length ? el("span", { class: "aios-to" }, "→ ", to) : "",
      el("span", { class: "aios-meta" }, meta.flatMap((part, nr) => (nr ? [" · ", part] : [part])), this.clock),
    ];
  }

  /** Buttons that are the same stay: one is being pressed perhaps while the message changes. */
  setActions(item, busy) {
    const { chat } = this;
    const copies = !busy && Boolean(item.text || item.blocks?.length || item.data);
    const partly = !item.text && item.data?.rows?.length < item.data?.of_rows;
    const edits = Boolean(item.who.mine && !item.re && !item.resent && item.text);
    const does = [copies, partly, edits, busy].join();
    if (does === this.does) return;
    this.does = does;
    const text = () => this.item.text || asText(this.item.data) || this.body.innerText;
    this.acts.replaceChildren(...[
      copies && quiet("copy", partly ? "Copy the rows that are shown" : "Copy this message", () => chat.copy(text())),
      edits && quiet("edit", "Edit and send again", () => chat.composer.edit(this.item)),
      busy && quiet("stop", `Stop ${item.who.name}`, () => chat.stop(item.id)),
    ].filter(Boolean));
  }

  /** Its data and files, which change seldom: pictures are not loaded anew. */
  setExtra({ data, files }) {
    const has = JSON.stringify([data, files]);
    if (has === this.has) return;
    this.has = has;
    this.extra.replaceChildren(...[data && this.data(data), this.files(files)].filter(Boolean));
  }

  marks(item) {
    const { chat } = this;
    const small = { class: "aios-small" };
    const marks = [];
    const away = this.store.isAway(item);
    if (this.store.isCut(item)) marks.push(el("div", { class: "aios-typing" }, CUT[this.store.asleep] || "cut: the node was stopped"));
    else if (away) marks.push(el("div", { class: "aios-typing" }, `connection lost, waiting for ${item.who.node || item.who.name}`));
    else if (item.status === "runs" || (item.status === "waits" && item.who.node))
      marks.push(el("div", { class: "aios-typing" }, dots(), item.progress && el("span", null, item.progress)));
    if (isEmpty(item)) marks.push(hint(EMPTY));
    if (ENDED[item.status]) {
      const stopped = item.status === "cancelled";
      marks.push(el("div", { class: "aios-ended", "data-kind": item.status },
        el("span", { class: "aios-why" }, el("b", null, ENDED[item.status]),
          !stopped && item.problem && [": ", because(item.problem, item.hint)]),
        !this.store.isOld(item) && button("Retry", () => chat.retry(item), small)));
    }
    if (item.kind === "asks" && item.question) marks.push(button("Answer", () => chat.composer.answer(this.item), small));
    if (item.resent)
      marks.push(hint("sent again ", quiet("below ↓", "Go to the new message", () => chat.goTo(item.resent))));
    if (item.reactions?.length) marks.push(hint(item.reactions.join(" ")));
    return marks;
  }

  /** A reply that takes long says for how long already. */
  tick(now) {
    const { status, who, at } = this.item;
    const since = now - new Date(at);
    const counts = since > SLOW_MS && (status !== "waits" || who.node) && !this.store.isAway(this.item) && !this.store.isCut(this.item);
    this.clock.textContent = counts ? ` · ${took(since / 1000)}` : "";
  }

  // Data and files -----------------------------------------------------------------------------

  data(data) {
    if (data.json === undefined) return this.table(data);
    const lines = data.json.split("\n").length;
    const more = data.of ? `, the first ${data.json.length} of ${data.of} characters` : "";
    return el("details", { class: "aios-data", open: Boolean(data.open) && lines < 30 },
      el("summary", null, `data (${lines} line${lines > 1 ? "s" : ""}${more})`),
      codeBlock({ lang: "json" }, [data.json]));
  }

  table(data) {
    const right = new Set(data.numbers);
    const kind = (nr) => (right.has(nr) ? "aios-num" : null);
    const head = data.columns.map((name, nr) => el("th", { class: kind(nr), scope: "col" }, name));
    const rows = data.rows.map((row) => el("tr", null, row.map((cell, nr) => el("td", { class: kind(nr) }, cell))));
    const short = [];
    if (rows.length < data.of_rows) short.push(`${rows.length} of ${data.of_rows.toLocaleString()} rows`);
    if (head.length < data.of_columns) short.push(`${head.length} of ${data.of_columns} columns`);
    return el("div", { class: "aios-data" },
      el("div", { class: "aios-scroll", tabindex: "-1", role: "region", "aria-label": "table" },
        el("table", { class: "aios-table" }, el("thead", null, el("tr", null, head)), el("tbody", null, rows))),
      short.length ? hint(`… ${short.join(" and ")}`) : "");
  }

  files(files) {
    const show = (file) => (PICTURES.includes(file.mime) ? this.picture(file) : this.fileButton(file));
    const made = (files || []).map(show);
    return made.length ? el("div", { class: "aios-files" }, made) : null;
  }

  fileButton(file) {
    const title = `Download ${file.name}, ${sizeOf(file.size)}`;
    const save = async () => {
      const blob = await this.store.fetched.file(file);
      if (blob) download(blob, file.name, this.node);
    };
    const label = [el("span", { "aria-hidden": "true" }, "↓ "), cut(file.name), hint(` ${sizeOf(file.size)}`)];
    return button(label, save, { class: "aios-file", title, "aria-label": title });
  }

  picture(file) {
    const figure = el("figure", { class: "aios-picture" }, hint(`${file.name} …`));
    const asFile = () => figure.replaceWith(this.fileButton(file));
    this.store.fetched.file(file).then((blob) => {
      if (!blob?.type) return asFile();
      const image = el("img", { alt: file.name, src: this.store.fetched.url(file, blob) });
      image.addEventListener("load", () => this.chat.follow());
      image.addEventListener("error", asFile);
      const save = quiet("download", `Download ${file.name}`, () => download(blob, file.name, this.node));
      figure.replaceChildren(image, el("figcaption", null, cut(file.name), hint(sizeOf(file.size)), save));
      this.reach();
    });
    return figure;
  }

  /** A long text that was said before is folded; what comes while one looks is not. */
  fold() {
    const { unfolded } = this.store;
    if (this.folded || unfolded.has(this.item.id) || this.body.offsetHeight <= TALL_PX) return;
    this.folded = true;
    this.body.classList.add("aios-folded");
    const open = button("Show all", () => {
      unfolded.add(this.item.id);
      this.body.classList.remove("aios-folded");
      open.remove();
      this.node.focus({ preventScroll: true });
    }, { class: "aios-small" });
    this.body.after(open);
  }
}

// Code -------------------------------------------------------------------------------------------

/** The buttons of a block of code; the view hears of them by an event. */
function codeTools(block) {
  const say = (to) => (event) => {
    const detail = { code: block.textContent.replace(/\n$/, ""), to };
    event.target.dispatchEvent(new CustomEvent("aios-code", { bubbles: true, detail }));
  };
  return el("div", { class: "aios-codetools" },
    quiet("copy", "Copy this code", say("copy")),
    quiet("to cell", "Put this code into a new cell below", say("cell")));
}

/** Put the code into a new cell below the one this node is in; false where that is not possible. */
async function toCell(code, node) {
  const cell = node.closest(".jp-Cell");
  const notebook = cell?.closest(".jp-Notebook");
  if (!notebook) return false;
  const known = new Set(notebook.querySelectorAll(".jp-Cell"));
  // As a person would: the focus on the cell, and "b" for a cell below.
  cell.focus();
  if (!cell.contains(document.activeElement)) return false;
  const key = { key: "b", code: "KeyB", keyCode: 66, which: 66, bubbles: true, cancelable: true };
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", key));
  for (let tries = 0; tries < 20; tries++) {
    const fresh = [...notebook.querySelectorAll(".jp-Cell")].find((one) => !known.has(one));
    const editor = fresh?.querySelector(".cm-content");
    if (editor) return fillEditor(editor, code);
    await new Promise((next) => setTimeout(next, 50));
  }
  return false;
}

function fillEditor(editor, code) {
  const view = (editor.cmView || editor.cmTile)?.view;
  if (view?.dispatch) {
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: code } });
  } else {
    // Without a way to the editor itself: it takes a paste like anyone's.
    const data = new DataTransfer();
    data.setData("text/plain", code);
    editor.focus();
    editor.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  }
  return editor.textContent.trim() !== "";
}
