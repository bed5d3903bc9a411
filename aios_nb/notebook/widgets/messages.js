// One message of a chat: made once, changed in place. Joined between common.js and chat.js.

const COLOURS = ["#1976d2", "#2e7d4f", "#8e5bb5", "#b0521b", "#00798a", "#a8385d", "#5d6b2f", "#4a5aa8"];
const YOURS = "#5b6b7b";
const TALL_PX = 640;
const SLOW_MS = 3000;
const AT_WORK = ["waits", "runs", "asks"];
const ENDED = { failed: "failed", cancelled: "stopped", interrupted: "interrupted" };

function avatar(who, colour, large) {
  const initial = [...(who.name || "?")][0].toLocaleUpperCase();
  return el("div", { class: large ? "aios-av aios-av-large" : "aios-av", "aria-hidden": "true", style: `background:${colour}` }, initial);
}

function sizeOf(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  return bytes < 1 << 20 ? `${(bytes / 1024).toFixed(0)} KB` : `${(bytes / (1 << 20)).toFixed(1)} MB`;
}

function took(seconds) {
  if (seconds < 60) return `${seconds.toFixed(seconds < 9.95 ? 1 : 0)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

function quiet(label, title, action) {
  return el("button", { type: "button", class: "aios-quiet", title, "aria-label": title, on: { click: action } }, label);
}

const dots = () => el("span", { class: "aios-dots", "aria-hidden": "true" }, el("i"), el("i"), el("i"));

/** Download what is in memory under this name. */
function download(blob, name, root) {
  const url = URL.createObjectURL(blob);
  const link = el("a", { href: url, download: name, hidden: true });
  root.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

class Message {
  /** `chat`: the view it is in. */
  constructor(chat, item) {
    this.chat = chat;
    this.shown = [];
    this.said = "";
    this.body = el("div", { class: "aios-rich" });
    this.by = el("div", { class: "aios-by" });
    this.extra = el("div", { class: "aios-extra" });
    this.mark = el("div", { class: "aios-mark" });
    this.face = el("div", { class: "aios-face" });
    this.node = el("article", { class: "aios-msg", tabindex: "-1" }, this.face,
      el("div", { class: "aios-what" }, this.by, this.body, this.extra, this.mark));
    this.node.addEventListener("focusin", () => this.reach());
    this.node.addEventListener("focusout", () => setTimeout(() => this.reach()));
    this.update(item);
  }

  update(item) {
    this.item = item;
    this.setBlocks(item.blocks || [], 0);
    const { blocks, order, seq, ...rest } = item;
    const said = JSON.stringify([rest, this.chat.store.isOld(item)]);
    if (said !== this.said) this.setFrame(item);
    this.said = said;
    this.reach();
  }

  grow(keep) {
    this.setBlocks(this.item.blocks, keep);
    this.reach();
  }

  /** Tab passes by what is in a message until one is in it: a hundred messages are not a hundred stops. */
  reach() {
    const inside = this.node.contains(document.activeElement);
    for (const node of this.node.querySelectorAll("a, button:not(.aios-small), pre, summary, .aios-scroll")) node.tabIndex = inside ? 0 : -1;
  }

  /** Draw the blocks; those before `from` are known to be there, and others that are the same stay as they are. */
  setBlocks(blocks, from) {
    for (let i = from; i < blocks.length; i++) {
      const said = JSON.stringify(blocks[i]);
      if (this.shown[i] && this.shown[i].said === said) continue;
      const made = rich([blocks[i]])[0];
      const node = typeof made === "string" ? document.createTextNode(made) : made;
      if (this.shown[i]) this.shown[i].node.replaceWith(node);
      else if (i) this.shown[i - 1].node.after(node);
      else this.body.prepend(node);
      this.shown[i] = { said, node };
    }
    for (const extra of this.shown.splice(blocks.length)) extra.node.remove();
    this.body.hidden = !blocks.length;
    // While it asks, its question is what there is to see.
    this.node.hidden = this.item.status === "asks" && !blocks.length;
  }

  // Around the text ----------------------------------------------------------------------------

  setFrame(item) {
    const busy = AT_WORK.includes(item.status);
    const { node } = this;
    node.dataset.status = item.status || "";
    node.dataset.kind = item.kind || "said";
    node.toggleAttribute("data-mine", Boolean(item.who.mine));
    node.toggleAttribute("data-old", this.chat.store.isOld(item));
    node.setAttribute("aria-busy", busy ? "true" : "false");
    node.setAttribute("aria-label", item.kind === "note" ? "note" : `${item.who.name}${item.kind === "asks" ? " asks" : ""}`);
    if (item.kind === "note") {
      node.replaceChildren(el("div", { class: "aios-event" }, el("b", null, item.who.name), ` ${item.text}`));
      return;
    }
    this.face.replaceChildren(avatar(item.who, this.chat.store.colour(item.who)));
    this.by.replaceChildren(...this.byLine(item), this.actions(item));
    this.extra.replaceChildren(...[item.data && this.data(item.data), this.files(item)].filter(Boolean));
    this.mark.replaceChildren(...this.marks(item));
    this.chat.tick(this, busy);
  }

  byLine(item) {
    const meta = [];
    if (item.who.node && item.status !== "waits") meta.push(item.who.node);
    const time = clock(item.at);
    if (time) meta.push(el("time", { datetime: item.at, title: new Date(item.at).toLocaleString() }, time));
    if (item.took_s >= 0.05) meta.push(took(item.took_s));
    if (item.kind === "asks") meta.push(item.question ? "asks you" : "asked");
    if (item.edited) meta.push("edited");
    if (item.status === "waits") meta.push(item.who.node ? `waiting for ${item.who.node}` : "waiting for its turn");
    if (item.status === "runs") meta.push("typing");
    if (item.status === "asks") meta.push("waits for your answer");
    this.clock = el("span");
    const parts = meta.flatMap((part, nr) => (nr ? [" · ", part] : [part]));
    return [
      el("b", null, item.who.name),
      item.to && item.to.length ? el("span", { class: "aios-to" }, "→ ", item.to.map((name) => el("span", { class: "aios-at" }, `@${name} `))) : "",
      el("span", { class: "aios-meta" }, parts, this.clock),
    ];
  }

  actions(item) {
    const { chat } = this;
    const busy = AT_WORK.includes(item.status);
    return el("span", { class: "aios-actions" },
      !busy && Boolean(item.text || item.blocks?.length) && quiet("copy", "Copy this message", () => chat.copy(item.text || this.body.innerText)),
      item.who.mine && !item.re && !item.resent && item.text && quiet("edit", "Edit and send again", () => chat.edit(item)),
      busy && quiet("stop", "Stop (Esc)", () => chat.stop()));
  }

  marks(item) {
    const { chat } = this;
    const marks = [];
    const running = item.status === "runs" || item.status === "waits";
    if (running) marks.push(el("div", { class: "aios-typing" }, dots(), item.progress && el("span", null, item.progress)));
    if (ENDED[item.status]) {
      const again = !chat.store.isOld(item);
      const why = item.status === "cancelled" ? "" : item.problem || "";
      marks.push(el("div", { class: "aios-ended", "data-kind": item.status },
        el("span", { class: "aios-why" }, el("b", null, ENDED[item.status]), why && `: ${why}`,
          item.hint && item.status !== "cancelled" && el("span", { class: "aios-hint" }, ` ${item.hint}`)),
        again && el("button", { type: "button", class: "aios-small", on: { click: () => chat.retry(item) } }, "Retry")));
    }
    if (item.kind === "asks" && item.question)
      marks.push(el("button", { type: "button", class: "aios-small", on: { click: () => chat.composer.focus() } }, "Answer"));
    if (item.resent) marks.push(el("div", { class: "aios-hint" }, "sent again ",
      quiet("below ↓", "Go to the new message", () => chat.goTo(item.resent))));
    if (item.reactions && item.reactions.length) marks.push(el("div", { class: "aios-hint" }, item.reactions.join(" ")));
    return marks;
  }

  /** A reply that takes long says for how long already. */
  tick(now) {
    const since = now - new Date(this.item.at);
    this.clock.textContent = since > SLOW_MS ? ` · ${took(since / 1000)}` : "";
  }

  // Data and files -----------------------------------------------------------------------------

  data(data) {
    if (data.json !== undefined) {
      const lines = data.json.split("\n").length;
      const more = data.of ? `, the first ${data.json.length} of ${data.of} characters` : "";
      return el("details", { class: "aios-data", open: Boolean(data.open) && lines < 30 },
        el("summary", null, `data (${lines} line${lines > 1 ? "s" : ""}${more})`), codeBlock({ lang: "json" }, [data.json]));
    }
    const right = new Set(data.numbers);
    const cells = (row, tag) => row.map((cell, nr) => el(tag, { class: right.has(nr) ? "aios-num" : null, scope: tag === "th" ? "col" : null }, cell));
    const short = [];
    if (data.rows.length < data.of_rows) short.push(`${data.rows.length} of ${data.of_rows.toLocaleString()} rows`);
    if (data.columns.length < data.of_columns) short.push(`${data.columns.length} of ${data.of_columns} columns`);
    return el("div", { class: "aios-data" },
      el("div", { class: "aios-scroll", tabindex: "0", role: "region", "aria-label": "table" },
        el("table", { class: "aios-table" }, el("thead", null, el("tr", null, cells(data.columns, "th"))),
          el("tbody", null, data.rows.map((row) => el("tr", null, cells(row, "td")))))),
      short.length ? el("div", { class: "aios-hint" }, `… ${short.join(" and ")}`) : "");
  }

  files(item) {
    const made = (item.files || []).map((file) => (PICTURES.includes(file.mime) ? this.picture(file) : this.fileButton(file)));
    return made.length ? el("div", { class: "aios-files" }, made) : null;
  }

  fileButton(file) {
    const save = async () => download(await this.chat.store.file(file), file.name, this.node);
    return el("button", { type: "button", class: "aios-file", title: `Download ${file.name}`, "aria-label": `Download ${file.name}, ${sizeOf(file.size)}`, on: { click: save } },
      el("span", { "aria-hidden": "true" }, "↓ "), el("span", { class: "aios-cut" }, file.name), el("span", { class: "aios-hint" }, ` ${sizeOf(file.size)}`));
  }

  picture(file) {
    const figure = el("figure", { class: "aios-picture" }, el("div", { class: "aios-hint" }, `${file.name} …`));
    this.chat.store.file(file).then((blob) => {
      if (!blob.type) return figure.replaceWith(this.fileButton(file));
      const image = el("img", { alt: file.name, src: this.chat.store.url(file, blob) });
      image.addEventListener("load", () => this.chat.follow());
      image.addEventListener("error", () => figure.replaceWith(this.fileButton(file)));
      figure.replaceChildren(image, el("figcaption", { class: "aios-hint" }, el("span", { class: "aios-cut" }, file.name), ` ${sizeOf(file.size)} `,
        quiet("download", `Download ${file.name}`, () => download(blob, file.name, this.node))));
    }, () => {});
    return figure;
  }

  /** A long text that was said before is folded; what comes while one looks is not. */
  fold() {
    if (this.folded !== undefined || this.body.offsetHeight <= TALL_PX) return;
    this.folded = true;
    this.body.classList.add("aios-folded");
    const open = el("button", { type: "button", class: "aios-small aios-unfold", on: { click: () => {
      this.body.classList.remove("aios-folded");
      open.remove();
    } } }, "Show all");
    this.body.after(open);
  }
}

// Code into a cell -------------------------------------------------------------------------------

/** Put the code into a new cell below the one this node is in; false where that is not possible. */
async function toCell(code, node) {
  const cell = node.closest(".jp-Cell");
  const notebook = cell && cell.closest(".jp-Notebook");
  if (!notebook) return false;
  const known = new Set(notebook.querySelectorAll(".jp-Cell"));
  const active = document.activeElement;
  // As a person would: the focus on the cell, and "b" for a cell below.
  cell.focus();
  if (!cell.contains(document.activeElement)) return false;
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "b", code: "KeyB", keyCode: 66, which: 66, bubbles: true, cancelable: true }));
  for (let tries = 0; tries < 20; tries++) {
    const fresh = [...notebook.querySelectorAll(".jp-Cell")].find((one) => !known.has(one));
    const editor = fresh && fresh.querySelector(".cm-content");
    if (editor) return fillEditor(editor, code);
    await new Promise((next) => setTimeout(next, 50));
  }
  if (active instanceof HTMLElement) active.focus();
  return false;
}

function fillEditor(editor, code) {
  const view = (editor.cmView || editor.cmTile)?.view;
  if (view && view.dispatch) {
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
