// What the widgets share. Joined in front of each widget's own file: no build step, no imports.
// Text from agents and strangers reaches the page through text nodes only.

const SVG = "http://www.w3.org/2000/svg";
const QUEUED_AFTER_MS = 1000;

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

// Rich text ------------------------------------------------------------------------------------

const TAGS = {
  p: "p", b: "strong", i: "em", s: "del", code: "code", quote: "blockquote", ul: "ul", ol: "ol", li: "li",
  br: "br", hr: "hr", table: "table", tr: "tr", th: "th", td: "td", tok: "span",
};
const LINK = /^(https?|mailto):/i;

/** DOM of a rich-text tree: texts, and nodes [tag, attributes, children]. What it does not know is text. */
function rich(nodes) {
  return nodes.map((node) => {
    if (typeof node === "string") return node;
    const [tag, attrs, children] = node;
    const inside = rich(children || []);
    if (tag === "a" && LINK.test(attrs.href))
      return el("a", { href: attrs.href, target: "_blank", rel: "noopener noreferrer" }, inside);
    if (tag === "h") return el(`h${Math.min(6, Math.max(1, attrs.level | 0) + 2)}`, null, inside);
    if (tag === "pre") return codeBlock(attrs, inside);
    if (tag === "ol") return el("ol", { start: attrs.start | 0 || 1 }, inside);
    if (tag === "tok") return el("span", { class: `aios-tok-${String(attrs.c).replace(/[^a-z]/g, "")}` }, inside);
    if (tag === "th" || tag === "td")
      return el(tag, { style: ["right", "center"].includes(attrs.align) ? `text-align:${attrs.align}` : null }, inside);
    if (tag === "table") return el("div", { class: "aios-scroll", tabindex: "0" }, el("table", { class: "aios-table" }, inside));
    return TAGS[tag] ? el(TAGS[tag], null, inside) : el("span", null, inside);
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

/** Messages to and from Python, for all views of one model. */
class Line {
  constructor(model) {
    this.model = model;
    this.nr = 0;
    this.waiting = new Map();
    this.listeners = new Set();
    model.on("msg:custom", (content, buffers) => {
      for (const message of content.messages || []) this.heard(message, buffers || []);
    });
  }

  /** Say it; `queued()` is called when a second has passed and Python has not taken it. */
  say(message, buffers, queued) {
    const nr = ++this.nr;
    if (queued) this.waiting.set(nr, setTimeout(queued, QUEUED_AFTER_MS));
    this.model.send({ ...message, nr }, undefined, buffers || []);
    return nr;
  }

  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  heard(message, buffers) {
    if (message.type === "ack") {
      clearTimeout(this.waiting.get(message.nr));
      this.waiting.delete(message.nr);
    }
    const [first, count] = message.buffers || [0, 0];
    for (const listener of [...this.listeners]) listener(message, buffers.slice(first, first + count));
  }
}

const LINES = new WeakMap();

/** The one line of a model, however many views it has. */
function lineOf(model) {
  if (!LINES.has(model)) LINES.set(model, new Line(model));
  return LINES.get(model);
}

// Small things ---------------------------------------------------------------------------------

/** Jupyter's shortcuts must not hear what is typed into a widget. */
function keepKeys(node) {
  for (const event of ["keydown", "keypress", "keyup"]) node.addEventListener(event, (e) => e.stopPropagation());
  node.setAttribute("data-lm-suppress-shortcuts", "true");
  return node;
}

function clock(iso) {
  const at = new Date(iso);
  if (isNaN(at)) return "";
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return at.toDateString() === new Date().toDateString() ? time : `${at.toLocaleDateString()} ${time}`;
}

function later(ms, action) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...args), ms);
  };
}

async function copyText(text, root) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", { style: "position:fixed;opacity:0" });
    area.value = text;
    (root || document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
