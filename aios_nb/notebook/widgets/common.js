// What the widgets share. Joined in front of each widget's own file: no build step, no imports.
// Text from agents and strangers reaches the page through text nodes only.

const SVG = "http://www.w3.org/2000/svg";
const QUEUED_AFTER_MS = 1000;
const GREET_AGAIN_MS = 100;
const COPIED_MS = 1500;

/** An element. `props`: attributes, `on: {event: handler}`; null and false are left out. */
function el(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (name === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const SAYS = new WeakMap();

/** Have it show `parts()`, unless it says the same already: what is being pressed or is selected in it stays. */
function redraw(place, says, parts) {
  const now = JSON.stringify(says);
  if (SAYS.get(place) === now) return;
  SAYS.set(place, now);
  place.replaceChildren();
  fill(place, null, [parts()]);
}

// Rich text ------------------------------------------------------------------------------------

const TAGS = {
  p: "p", b: "strong", i: "em", s: "del", code: "code", quote: "blockquote", ul: "ul", ol: "ol", li: "li",
  br: "br", hr: "hr", table: "table", tr: "tr", th: "th", td: "td", tok: "span", lines: "p", at: "span",
};
const CLASSES = { lines: "aios-lines", at: "aios-at" };
/** Each of these runs from left or from right as its own words do. */
const DIRECTED = ["p", "lines", "ul", "quote"];
const LINK = /^(https?|mailto):/i;

/** DOM of a rich-text tree: texts, and nodes [tag, attributes, children]. What it does not know is text. */
function rich(nodes) {
  return nodes.map((node) => {
    if (typeof node === "string") return node;
    const [tag, attrs, children] = node;
    const inside = rich(children || []);
    if (tag === "a" && LINK.test(attrs.href))
      return el("a", { href: attrs.href, target: "_blank", rel: "noopener noreferrer" }, inside);
    if (tag === "h") return el(`h${Math.min(6, Math.max(1, attrs.level | 0) + 2)}`, { dir: "auto" }, inside);
    if (tag === "pre") return codeBlock(attrs, inside);
    if (tag === "ol") return el("ol", { start: attrs.start | 0 || 1, dir: "auto" }, inside);
    if (tag === "tok") return el("span", { class: `aios-tok-${String(attrs.c).replace(/[^a-z]/g, "")}` }, inside);
    if (tag === "th" || tag === "td")
      return el(tag, { dir: "auto", style: ["right", "center"].includes(attrs.align) ? `text-align:${attrs.align}` : null }, inside);
    if (tag === "table") return el("div", { class: "aios-scroll", tabindex: "0" }, el("table", { class: "aios-table" }, inside));
    return el(TAGS[tag] || "span", { class: CLASSES[tag], dir: DIRECTED.includes(tag) ? "auto" : null }, inside);
  });
}

/** A block of code; `codeBlock.tools` may add buttons. */
function codeBlock(attrs, inside) {
  const block = el("pre", { class: "aios-code", tabindex: "0" }, el("code", null, inside));
  const box = el("div", { class: "aios-codebox", "data-lang": attrs.lang || "" }, block);
  if (codeBlock.tools) box.append(codeBlock.tools(block, attrs));
  return box;
}

// The line to Python ---------------------------------------------------------------------------

/** Of those who listen, one that fails keeps nothing from the others; the page is told of it. */
function tellEach(listeners, tell) {
  for (const listener of [...listeners]) {
    try {
      tell(listener);
    } catch (problem) {
      reportError(problem);
    }
  }
}

/** Messages to and from Python, for all views of one model. */
class Line {
  constructor() {
    this.nr = 0;
    this.waiting = new Map();
    this.listeners = new Set();
  }

  /** A view of the model is there: hear through it as long as it is. */
  join(model) {
    this.model = model;
    this.seen = null;
    model.on("msg:custom", (content, buffers) => this.took(content, buffers || []));
  }

  /** Say it; `queued()` is called when a second has passed and Python has not taken it. */
  say(message, buffers, queued) {
    const nr = ++this.nr;
    if (message.type === "hello") {
      this.hello = message;
      this.greet(nr, GREET_AGAIN_MS);
    } else if (message.type === "bye" && message.view === this.hello?.view) this.greeting = null; // who goes greets no more
    if (queued) this.waiting.set(nr, setTimeout(queued, QUEUED_AFTER_MS));
    this.send(nr, message, buffers);
    return nr;
  }

  send(nr, message, buffers) {
    try {
      this.model.send({ ...message, nr }, undefined, buffers || []);
    } catch {
      // Its kernel is gone, and the view goes or says so when the second is over.
    }
  }

  /** JupyterLab finds a widget's way past a busy cell just after it has drawn it; what was said before waits. */
  greet(nr, pause) {
    this.greeting = nr;
    setTimeout(() => {
      if (this.greeting !== nr || pause > QUEUED_AFTER_MS) return;
      this.send(nr, this.hello);
      this.greet(nr, 2 * pause);
    }, pause);
  }

  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  took(content, buffers) {
    if (content.type !== "batch" || content === this.last) return; // heard through another view already
    this.last = content;
    const missed = this.seen !== null && content.n !== this.seen + 1;
    this.seen = content.n;
    if (missed) this.heard({ type: "missed" }, []);
    for (const message of content.messages || []) this.heard(message, buffers);
    if (missed && this.hello) this.say(this.hello);
  }

  heard(message, buffers) {
    if (message.type === "ack") {
      if (message.nr === this.greeting) this.greeting = null;
      clearTimeout(this.waiting.get(message.nr));
      this.waiting.delete(message.nr);
    } else if (message.type === "offline") this.rest();
    const [first, count] = message.buffers || [0, 0];
    tellEach(this.listeners, (listener) => listener(message, buffers.slice(first, first + count)));
  }

  /** Python has heard, and has no node: it takes nothing, and is not busy either. */
  rest() {
    this.greeting = null;
    for (const timer of this.waiting.values()) clearTimeout(timer);
    this.waiting.clear();
  }
}

/** Whether what is drawn in this place comes from a saved notebook and has no kernel behind it. */
function isSaved(place) {
  return Boolean(place.closest(".jupyter-widgets-disconnected"));
}

const LINES = new Map();

/** The one line of a model, however many views it has: each view is given a model object of its own. */
function lineOf(model) {
  const name = model.get("line");
  if (!LINES.has(name)) LINES.set(name, new Line());
  LINES.get(name).join(model);
  return LINES.get(name);
}

// Small things ---------------------------------------------------------------------------------

/** How an agent's node stands, in words. */
const STANDING = { alive: "alive", suspect: "not answering", gone: "gone" };

/** Letters that edit a text together with Ctrl or Cmd; others are commands of the page, as S is. */
const EDITS = "abciuvxyz";
const ON_A_MAC = /mac|iphone|ipad/i.test(navigator.platform);

/** Whether a key belongs to a letter that is being composed; Safari says so of the last one by its code alone. */
function composing(event) {
  return event.isComposing || event.keyCode === 229;
}

/** Jupyter's shortcuts must not hear what is typed into a widget, but Ctrl+S saves from everywhere. */
function keepKeys(node) {
  node.addEventListener("keydown", (event) => isCommand(event) && passOn(event, node));
  for (const event of ["keydown", "keypress", "keyup"]) node.addEventListener(event, (e) => e.stopPropagation());
  node.setAttribute("data-lm-suppress-shortcuts", "true");
  return node;
}

/** On a Mac, Ctrl with a letter moves the caret. */
function isCommand(event) {
  const held = ON_A_MAC ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  return held && !event.altKey && !composing(event) && /^[a-z]$/i.test(event.key) && !EDITS.includes(event.key.toLowerCase());
}

/** JupyterLab looks at a key before the widget does, and at nothing below the mark: press it again outside. */
function passOn(event, node) {
  const { key, code, keyCode, ctrlKey, metaKey, shiftKey } = event;
  const same = { key, code, keyCode, which: keyCode, ctrlKey, metaKey, shiftKey, bubbles: true, cancelable: true };
  if (!node.parentElement?.dispatchEvent(new KeyboardEvent("keydown", same))) event.preventDefault();
}

function clock(iso) {
  const at = new Date(iso);
  if (isNaN(at)) return "";
  const time = at.toLocaleTimeString([], { hour: "numeric", minute: "2-digit" });
  return at.toDateString() === new Date().toDateString() ? time : `${at.toLocaleDateString()} ${time}`;
}

/** So many of them, in words. */
function many(count, word) {
  return `${Number(count).toLocaleString()} ${word}${count === 1 ? "" : "s"}`;
}

function later(ms, action) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...args), ms);
  };
}

/** Whether it was copied. A page of plain http has only the old way, for which the text must be selected. */
async function copyText(text, root) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const focused = document.activeElement;
    const area = el("textarea", { style: "position:fixed;opacity:0" });
    area.value = text;
    (root || document.body).append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    focused?.focus({ preventScroll: true });
    return copied;
  }
}

/** A button that copies what `text()` gives; it says so for a moment. */
function copyButton(text, what, root, props, word = "copy") {
  const made = el("button", { type: "button", "aria-label": `Copy ${what}`, ...props }, word);
  made.addEventListener("click", async () => {
    made.textContent = (await copyText(text(), root)) ? "copied" : "not copied";
    setTimeout(() => (made.textContent = word), COPIED_MS);
  });
  return made;
}
