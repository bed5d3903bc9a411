// %aios network: the picture, the same as a table, and one node at a time. Python tells what has changed.

const HERE_EVERY_MS = 20000;
const STALE_AFTER_MS = 8000;
const MODES = ["links", "traffic", "table"];

// All of it ------------------------------------------------------------------------------------

class Network {
  constructor(model) {
    this.model = model;
    this.line = lineOf(model);
    this.uid = Math.random().toString(36).slice(2);
    this.rows = new Map();
    this.own = null;
    this.mode = "links";
    this.chosen = null;
    this.inView = true;
    this.heardAt = 0;
    const choose = (id) => this.choose(id === this.chosen ? null : id);
    this.stage = new Stage(choose);
    this.table = new Table(choose);
    this.side = new Side(this.line, () => this.letGo());
    this.build();
    this.stops = [this.line.listen((message) => this.heard(message))];
    this.watch();
    const saved = model.get("saved");
    if (saved && saved.picture) this.show(saved.picture, false);
    this.hello();
  }

  build() {
    this.summary = el("span", { class: "aios-tiny aios-net-summary" });
    this.spark = svg("svg", { class: "aios-net-spark", viewBox: "0 0 84 20", role: "img", "aria-label": "Bytes a second in the last minute" },
      svg("path", { class: "area" }), svg("path", { class: "curve" }), svg("title", null, "bytes a second, last minute"));
    this.pills = MODES.map((mode) =>
      el("button", { type: "button", class: "aios-pill", "aria-pressed": String(mode === this.mode), on: { click: () => this.setMode(mode) } }, mode));
    this.banner = el("div", { class: "aios-net-banner", role: "status", hidden: true });
    this.note = el("div", { class: "aios-note", role: "status" }, "looking for the node…");
    this.how = el("div", { class: "aios-net-how", hidden: true });
    this.main = el("div", { class: "aios-net-main" }, this.note, this.stage.root, this.how, this.table.root);
    this.foot = el("div", { class: "aios-net-foot", hidden: true });
    this.spoken = el("div", { class: "aios-sr", role: "status", "aria-live": "polite" });
    this.body = el("div", { class: "aios-net-body" }, this.main, this.side.root);
    this.root = keepKeys(el("section", { class: "aios aios-net", "aria-label": "Network", "data-mode": this.mode, "data-live": "no" },
      el("div", { class: "aios-head" }, el("b", null, "Network"), this.summary, el("span", { class: "aios-grow" }), this.spark,
        el("div", { class: "aios-net-modes", role: "group", "aria-label": "Show" }, this.pills)),
      this.banner, this.body, this.foot, this.spoken));
    this.stage.root.style.display = "none";
  }

  // With Python ---------------------------------------------------------------------------------

  get seen() {
    return this.inView && !document.hidden;
  }

  hello() {
    this.line.say({ type: "hello", view: this.uid, visible: this.seen }, undefined, () => this.waitForKernel());
  }

  waitForKernel() {
    if (!this.answered) this.tellState("the kernel is busy: this fills in when it is free");
  }

  watch() {
    const changed = () => this.line.say({ type: "visible", view: this.uid, visible: this.seen });
    document.addEventListener("visibilitychange", changed);
    const eye = new IntersectionObserver((entries) => {
      const inView = entries[entries.length - 1].isIntersecting;
      if (inView === this.inView) return;
      this.inView = inView;
      changed();
    });
    eye.observe(this.root);
    const ruler = new ResizeObserver(() => this.measure());
    ruler.observe(this.main);
    const here = setInterval(() => this.seen && this.line.say({ type: "here", view: this.uid }), HERE_EVERY_MS);
    const stale = setInterval(() => this.seen && this.live && Date.now() - this.heardAt > STALE_AFTER_MS && this.fade(), 2000);
    this.stops.push(() => {
      document.removeEventListener("visibilitychange", changed);
      eye.disconnect();
      ruler.disconnect();
      clearInterval(here);
      clearInterval(stale);
    });
  }

  leave() {
    this.line.say({ type: "bye", view: this.uid });
    for (const stop of this.stops) stop();
  }

  heard(message) {
    this.answered = true;
    if (message.type === "picture") this.show(message, true);
    else if (message.type === "details") this.side.told(message);
    else if (message.type === "ruled") this.side.ruled(message);
    else if (message.type === "online") this.hello();
    else if (message.type === "offline") this.offline(message.problem);
    else if (message.type === "error") this.tellState(message.hint ? `${message.text} (${message.hint})` : message.text, "error");
  }

  offline(problem) {
    this.setLive(false);
    if (problem === "starting") this.tellState("the node is starting…");
    else this.tellState(problem === "stopped" ? "the node is stopped" : problem, problem === "stopped" ? "" : "error", "%aios up");
  }

  /** Its kernel is gone: nobody tells this view anything any more. */
  disconnected(why) {
    this.line.rest();
    this.setLive(false);
    this.tellState(why);
  }

  fade() {
    this.setLive(false);
    const at = new Date(this.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
    this.tellState(`not live: as of ${at}; the kernel is busy or gone`);
  }

  setLive(live) {
    this.live = live;
    this.root.dataset.live = live ? "yes" : "no";
  }

  /** One line above the picture; where there is none yet, in its place. */
  tellState(text, kind, command) {
    const words = [text || "", command ? " · start it: " : "", command ? el("code", null, command) : ""];
    const place = this.picture ? this.banner : this.note;
    this.banner.hidden = place !== this.banner || !text;
    this.note.hidden = place !== this.note || !text;
    place.dataset.kind = kind || "";
    place.replaceChildren(...words);
  }

  // Showing -------------------------------------------------------------------------------------

  show(picture, live) {
    if (picture.whole) this.rows = new Map();
    for (const id of picture.gone) this.rows.delete(id);
    for (const row of picture.rows) {
      const { sent = 0, received = 0, rate = 0 } = this.rows.get(row.id) || {};
      this.rows.set(row.id, { ...row, sent, received, rate });
    }
    for (const [id, [sent, received, rate]] of Object.entries(picture.flows)) Object.assign(this.rows.get(id) || {}, { sent, received, rate });
    Object.assign(this, { own: picture.own, picture, at: picture.at });
    this.note.hidden = true;
    if (live) {
      this.heardAt = Date.now();
      this.setLive(true);
      this.tellState("");
    } else {
      const at = new Date(picture.at);
      this.tellState(`as of ${at.toLocaleDateString()} ${at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })}`);
    }
    this.stage.root.style.display = "";
    this.stage.show(picture.own, this.rows, picture.rings);
    if (!this.stage.width) this.measure();
    this.draw();
    this.speak(picture);
  }

  draw() {
    const { picture, own } = this;
    if (!picture) return;
    const table = this.mode === "table" && this.rows.size > 0;
    this.stage.root.style.display = table ? "none" : "";
    this.table.root.hidden = !table;
    if (table) this.table.show(this.rows, this.chosen);
    if (this.summary.textContent !== picture.summary) this.summary.textContent = picture.summary;
    this.side.show(own, this.rows.get(this.chosen));
    this.drawSpark(picture.past);
    this.drawHow();
    this.drawFoot(picture);
  }

  drawSpark(past) {
    this.spark.style.display = past.length < 10 ? "none" : "";
    if (past.length < 10) return;
    const top = Math.max(200, ...past);
    const points = past.map((value, i) => `${(84 - (past.length - 1 - i) * (84 / 59)).toFixed(1)},${(18 - (16 * value) / top).toFixed(1)}`);
    const first = points[0].split(",")[0];
    this.spark.children[0].setAttribute("d", `M${points.join("L")}L84,19L${first},19Z`);
    this.spark.children[1].setAttribute("d", `M${points.join("L")}`);
  }

  drawHow() {
    const alone = this.rows.size === 0;
    this.how.hidden = !alone;
    const waiting = this.picture.waiting.join(", ");
    const shape = alone ? `${this.own.url} ${waiting}` : "";
    if (this.howShape === shape) return;
    this.howShape = shape;
    if (!alone) return this.how.replaceChildren();
    const join = `%aios up --join ${this.own.url}#${this.own.node_id}`;
    this.how.replaceChildren(...[
      el("p", null, el("b", null, "No other node yet")),
      waiting && el("p", null, "Nobody answers yet at ", el("code", null, waiting), "; it is tried again."),
      el("p", null, "A second notebook on this machine that runs ", el("code", null, "%load_ext aios_nb"), " shows up by itself."),
      el("p", null, "To reach one elsewhere: ", el("code", null, "%aios up --join URL"), " or ", el("code", null, "aios.up(join=\"URL\")"), "."),
      el("p", null, "Others reach this one by ", copyButton(() => join, "the line", this.root, { class: "aios-net-quiet" }), el("br"), el("code", null, join)),
    ].filter(Boolean));
  }

  drawFoot({ showing, rates }) {
    this.foot.hidden = this.rows.size === 0;
    const key = (word, text) => el("span", { class: "aios-net-key" }, el("span", { class: "aios-dot", "data-word": word }), text);
    const keys = this.mode === "table" ? [] : [
      el("span", { class: "aios-net-key" }, el("i"), this.mode === "traffic" ? "link, thicker is busier" : "linked"),
      this.mode === "traffic" && el("span", { class: "aios-net-key" }, el("i", { class: "dotted" }), "datagrams"),
      key("alive", "alive"), key("heard", "alive, no link"), key("not answering", "not answering"), key("gone", "gone"),
      "larger: more agents"].filter(Boolean);
    const flows = this.mode === "links" || rates.link === undefined ? "" : `links ${speed(rates.link)} · gossip ${speed(rates.gossip)} · DHT ${speed(rates.dht)}`;
    const shape = `${this.mode} ${showing} ${flows}`;
    if (this.footShape === shape) return;
    this.footShape = shape;
    this.foot.replaceChildren(...keys, el("span", { class: "aios-grow" }), flows, showing ? el("span", null, showing) : "");
  }

  /** Said aloud when somebody came or went, not each second. */
  speak({ counts }) {
    const now = JSON.stringify(counts);
    if (this.counted === now) return;
    this.counted = now;
    const links = [...this.rows.values()].filter((row) => row.link).length;
    this.spoken.textContent = `${many(counts.nodes, "node")} with this one: ${counts.alive} alive, ${counts["not answering"]} not answering, ${counts.gone} gone; ${many(links, "open link")}.`;
  }

  setMode(mode) {
    this.mode = mode;
    this.root.dataset.mode = mode;
    MODES.forEach((each, i) => this.pills[i].setAttribute("aria-pressed", String(each === mode)));
    if (mode !== "table") this.stage.setMode(mode);
    this.draw();
    this.measure();
  }

  measure() {
    this.stage.resize(this.main.clientWidth, this.root.clientWidth);
  }

  /** Close what is known of a node, and be where one was. */
  letGo() {
    const id = this.chosen;
    this.choose(null);
    const line = this.table.lines.get(id);
    if (this.mode === "table" && line) line.root.querySelector("button").focus();
    else this.stage.focus(this.stage.nodes.get(id) || this.stage.own);
  }

  choose(id) {
    this.chosen = id;
    this.stage.select(id);
    this.side.open(id);
    this.draw();
  }
}

function render({ model, el: host }) {
  const view = new Network(model);
  const restarted = () => view.disconnected("the kernel was restarted: run your cells again, this one too");
  host.append(view.root);
  model.on("comm_live_update", restarted);
  if (isSaved(host)) view.disconnected("this is what was saved: run your cells again, this one too");
  return () => {
    model.off("comm_live_update", restarted);
    view.leave();
  };
}

export default { render };
