// The picture of the network: nodes and lines in an SVG, each where graph.py puts it. Names are text nodes.

const OWN = "own";
const FLOWS_MAX = 40;
const FEW = 8;
const LETTER = 5.9; // how wide one is, more or less
const NAMES_SHORT = [14, 8, 5]; // letters of a name that has no room for more
const YOU = " (you)";
const MANY = 120; // then nodes are drawn smaller, and the picture is higher

function bytes(count) {
  let value = count;
  for (const unit of ["B", "KB", "MB", "GB"]) {
    if (value < 1024 || unit === "GB") return `${unit === "B" || value >= 100 ? Math.round(value) : value.toFixed(1)} ${unit}`;
    value /= 1024;
  }
}

const speed = (rate) => `${bytes(rate)}/s`;
const waited = (ms) => (ms === null ? "not measured" : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`);
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

const cut = (text, most) => ([...text].length <= most ? text : `${[...text].slice(0, most - 1).join("").trimEnd()}…`);

/** One line on a node, for those who cannot see where it is. */
function said(row) {
  const words = [row.name, row.word];
  if (row.link) words.push("linked");
  if (row.agents) words.push(many(row.agents, "agent"));
  if (row.ms !== null) words.push(waited(row.ms));
  return words.join(", ");
}

/** Nodes and lines in an SVG; moves them gently to where they belong. */
class Stage {
  constructor(choose) {
    this.choose = choose;
    this.nodes = new Map();
    this.own = null;
    this.rings = [];
    this.mode = "links";
    this.selected = null;
    this.frame = 0;
    this.ringLayer = svg("g", { "aria-hidden": "true" });
    this.edgeLayer = svg("g", { "aria-hidden": "true" });
    this.nodeLayer = svg("g");
    this.ownLayer = svg("g");
    this.root = svg(
      "svg",
      { class: "aios-net-stage", role: "group", "aria-label": "Nodes. Arrow keys move, Enter shows one.", on: { keydown: (e) => this.key(e) } },
      this.ringLayer, this.edgeLayer, this.nodeLayer, this.ownLayer,
    );
    this.width = 0;
  }

  /** Draw for this width from now on; as high as fits a card of that whole width. */
  resize(width, whole) {
    const count = this.nodes.size;
    const [share, least, most] = count > MANY ? [0.52, 300, 480] : count > FEW ? [0.4, 260, 360] : [0.3, 230, 270];
    const height = count ? Math.round(Math.max(least, Math.min(most, whole * share))) : 150;
    if (width < 40 || (width === this.width && height === this.height)) return;
    [this.width, this.height, this.whole] = [width, height, whole];
    this.rx = width / 2 - (width > 620 ? 74 : 34);
    this.ry = this.height / 2 - 30;
    this.root.setAttribute("viewBox", `0 0 ${width} ${this.height}`);
    this.root.setAttribute("height", this.height);
    this.drawRings();
    for (const node of this.all()) this.aim(node, true);
    this.move();
    this.name();
  }

  all() {
    return this.own ? [this.own, ...this.nodes.values()] : [...this.nodes.values()];
  }

  show(own, rows, rings) {
    const first = !this.own;
    this.own = this.own || this.make(OWN, null);
    this.update(this.own, { id: OWN, name: `${own.name}${YOU}`, word: "alive", link: true, agents: own.agents, ms: null, rate: 0, x: 0, y: 0 });
    for (const [id, node] of this.nodes)
      if (!rows.has(id)) {
        this.nodes.delete(id);
        node.edge.remove();
        node.group.classList.add("leaving");
        setTimeout(() => node.group.remove(), 600);
      }
    for (const [id, row] of rows) {
      const node = this.nodes.get(id) || this.make(id, row);
      this.nodes.set(id, node);
      this.update(node, row);
    }
    this.rings = rings;
    this.setBusiest();
    this.resize(this.width, this.whole);
    this.drawRings();
    for (const node of this.all()) this.aim(node, first);
    this.move();
    if (!this.frame) this.name();
    this.tabStop();
  }

  make(id, row) {
    const own = id === OWN;
    const halo = svg("circle", { class: "halo" });
    const dot = svg("circle", { class: "dot" });
    const hit = svg("circle", { class: "hit" });
    const text = svg("text", { dy: "0.34em" });
    const hint = svg("title");
    const group = svg(
      "g",
      {
        class: "aios-net-node coming", role: "button", tabindex: "-1", "data-own": own ? "yes" : null,
        on: {
          click: () => this.choose(id),
          pointerenter: () => this.near(id, true), pointerleave: () => this.near(id, false),
          focus: () => { this.near(id, true); this.at = id; }, blur: () => this.near(id, false),
          animationend: () => group.classList.remove("coming"), // a group that is moved would come again
        },
      },
      halo, hit, dot, text, hint,
    );
    const edge = svg("line", { class: "aios-net-edge" });
    if (!own) this.edgeLayer.append(edge);
    (own ? this.ownLayer : this.nodeLayer).append(group);
    return { id, group, halo, dot, hit, text, hint, edge, x: null, y: null, row };
  }

  update(node, row) {
    node.row = row;
    const own = node.id === OWN;
    const r = own ? 10 : this.radius(row);
    node.r = r;
    node.dot.setAttribute("r", r);
    node.halo.setAttribute("r", r + (own ? 7 : 4));
    node.hit.setAttribute("r", Math.max(r + 3, 10));
    node.group.dataset.word = row.word;
    node.group.dataset.link = row.link ? "yes" : "no";
    node.group.setAttribute("aria-label", own ? `${row.name}, this node, ${many(row.agents, "agent")}` : said(row));
    node.group.setAttribute("aria-pressed", String(this.selected === node.id));
    node.hint.textContent = own ? "this node" : said(row).replaceAll(", ", " · ");
    const label = this.label(node);
    if (label !== node.label) node.text.textContent = node.label = label; // else it stays as it was made to fit
    this.line(node);
  }

  radius(row) {
    const most = this.nodes.size > MANY ? 7.5 : 11;
    return Math.min(most, (this.nodes.size > MANY ? 3.4 : 4.6) + 1.3 * Math.sqrt(row.agents));
  }

  label(node) {
    const row = node.row;
    if (node.id === OWN) return row.name;
    if (this.mode === "traffic") return row.rate ? `${row.name} · ${speed(row.rate)}` : row.name;
    if (row.word !== "alive") return `${row.name} · ${row.word}`;
    return row.agents ? `${row.name} · ${many(row.agents, "agent")}` : row.name;
  }

  /** The line to a node: there is a link, or, where traffic is shown, bytes went to and fro. */
  line(node) {
    const { row, edge } = node;
    const flows = this.mode === "traffic" && row.rate > 0 && row.rate >= this.busiest;
    edge.toggleAttribute("hidden", !(row.link || flows));
    edge.style.display = row.link || flows ? "" : "none";
    edge.dataset.by = row.link ? "link" : "datagrams";
    const load = Math.log2(1 + row.rate / 50);
    edge.style.strokeWidth = this.mode === "traffic" ? Math.min(7, 1 + load * 0.75).toFixed(1) : "";
    edge.style.strokeOpacity = this.mode === "traffic" ? Math.min(0.75, 0.22 + load * 0.07).toFixed(2) : "";
  }

  /** From which rate on a node without a link gets a line: some dozens can be told apart. */
  setBusiest() {
    const rates = [...this.nodes.values()].filter((node) => !node.row.link).map((node) => node.row.rate).sort((a, b) => b - a);
    this.busiest = rates[FLOWS_MAX] || 0;
  }

  near(id, yes) {
    const node = this.nodes.get(id);
    if (node) node.edge.dataset.near = yes ? "yes" : "no";
    // Its name is above all others; moving a group would end a focus in it.
    if (yes && node && node.group !== this.nodeLayer.lastChild && !this.nodeLayer.contains(document.activeElement)) this.nodeLayer.append(node.group);
  }

  setMode(mode) {
    this.mode = mode;
    if (!this.own) return;
    for (const node of this.all()) this.update(node, node.row);
    this.name();
  }

  select(id) {
    this.selected = id;
    for (const node of this.all()) node.group.setAttribute("aria-pressed", String(node.id === id));
    this.name();
  }

  drawRings() {
    if (!this.width) return;
    const [cx, cy] = [this.width / 2, this.height / 2];
    this.ringLayer.replaceChildren(
      ...this.rings.flatMap(([name, radius]) => [
        svg("ellipse", { class: "aios-net-ring", cx, cy, rx: radius * this.rx + 18, ry: radius * this.ry + 12 }),
        svg("text", { class: "aios-net-ringname" }, name),
      ]),
    );
  }

  // Moving --------------------------------------------------------------------------------------

  aim(node, jump) {
    if (!this.width) return;
    node.tx = this.width / 2 + node.row.x * this.rx;
    node.ty = this.height / 2 + node.row.y * this.ry;
    if (jump || node.x === null) {
      // Newcomers appear at their place; those that were there walk to theirs.
      [node.x, node.y] = [node.tx, node.ty];
      this.put(node);
    }
  }

  put(node) {
    node.group.setAttribute("transform", `translate(${node.x.toFixed(1)} ${node.y.toFixed(1)})`);
    const { edge } = node;
    edge.setAttribute("x1", this.width / 2);
    edge.setAttribute("y1", this.height / 2);
    edge.setAttribute("x2", node.x.toFixed(1));
    edge.setAttribute("y2", node.y.toFixed(1));
  }

  move() {
    if (this.frame || !this.width) return;
    let last = 0;
    const step = (now) => {
      const share = still() ? 1 : 1 - Math.exp(-Math.min(64, last ? now - last : 16) / 160);
      last = now;
      let moving = false;
      for (const node of this.all()) {
        const [dx, dy] = [node.tx - node.x, node.ty - node.y];
        if (!dx && !dy) continue;
        const there = Math.abs(dx) + Math.abs(dy) < 0.4;
        node.x = there ? node.tx : node.x + dx * share;
        node.y = there ? node.ty : node.y + dy * share;
        moving ||= !there;
        this.put(node);
      }
      this.frame = moving ? requestAnimationFrame(step) : 0;
      if (!moving) this.name();
    };
    if (this.all().some((node) => node.tx !== node.x || node.ty !== node.y)) this.frame = requestAnimationFrame(step);
  }

  /** Names for zones and for the nearest, each where it touches nothing; others have theirs when pointed at. */
  name() {
    if (!this.width) return;
    const taken = this.all().map((n) => ({ n, l: n.x - n.r - 1, r: n.x + n.r + 1, t: n.y - n.r, b: n.y + n.r }));
    const fits = (box, n) =>
      box.l > 2 && box.r < this.width - 2 && box.t > 2 && box.b < this.height - 2 &&
      !taken.some((o) => o.n !== n && box.l < o.r && o.l < box.r && box.t < o.b && o.t < box.b);
    this.nameRings(taken, fits);
    const crowd = this.nodes.size > MANY;
    let left = this.width > 620 ? 16 : 7;
    for (const [place, node] of this.byWorth().entries()) {
      const own = node.id === OWN;
      const free = own || (left > 0 && !(crowd && place > 40)) ? this.spotFor(node, fits, crowd) : null;
      if (free) taken.push(free);
      left -= free ? 1 : 0;
      const { text, anchor, dx, dy } = free || this.besides(node);
      node.group.dataset.named = free ? "yes" : "no";
      if (node.text.textContent !== text) node.text.textContent = text;
      node.text.setAttribute("text-anchor", anchor);
      node.text.setAttribute("x", dx);
      node.text.setAttribute("y", dy);
    }
  }

  /** Where a node's name stands: all of it if that is possible, a shorter one before none. */
  spotFor(node, fits, crowd) {
    const pick = (texts) => {
      const spots = texts.flatMap((text) => this.spots(node, text)).filter((box) => fits(box, node));
      return spots.find((box) => !this.crossed(box)) || spots[0];
    };
    const [name, rest] = node.id === OWN ? [node.row.name.slice(0, -YOU.length), YOU] : [node.row.name, ""];
    const short = NAMES_SHORT.filter((most) => most < [...name].length).map((most) => cut(name, most) + rest);
    const free = pick([...new Set([node.label, name + rest])]) || (crowd ? null : pick(short));
    return free || (node.id === OWN ? this.spots(node, node.label)[2] : null); // nothing is written over it
  }

  /** Its name while it is pointed at: over anything, but inside of the picture. */
  besides(node) {
    const right = node.x <= this.width / 2;
    const room = (right ? this.width - node.x : node.x) - node.r - 8;
    return this.spots(node, cut(node.label, Math.max(4, Math.floor(room / LETTER))))[right ? 0 : 1];
  }

  /** To the right of a node, to the left, below and above. */
  spots(node, text) {
    const wide = [...text].length * LETTER + 4;
    const gap = node.r + (node.id === OWN ? 10 : 5);
    return [["start", gap, 0, gap], ["end", -gap, 0, -gap - wide], ["middle", 0, gap + 6, -wide / 2], ["middle", 0, -gap - 6, -wide / 2]]
      .map(([anchor, dx, dy, from]) => ({ text, anchor, dx, dy, n: node, l: node.x + from, r: node.x + from + wide, t: node.y + dy - 7, b: node.y + dy + 7 }));
  }

  nameRings(taken, fits) {
    const texts = this.ringLayer.querySelectorAll("text");
    this.rings.forEach(([name, radius], i) => {
      const [rx, ry, wide] = [radius * this.rx + 18, radius * this.ry + 12, name.length * 5 + 8];
      const turns = Array.from({ length: 24 }, (_, k) => Math.PI / 2 + (k % 2 ? 1 : -1) * Math.ceil(k / 2) * 0.09);
      const boxes = turns.map((turn) => {
        const [x, y] = [this.width / 2 + rx * Math.cos(turn), this.height / 2 + ry * Math.sin(turn)];
        return { x, y, l: x - wide / 2, r: x + wide / 2, t: y - 7, b: y + 7 };
      });
      const free = boxes.find((box) => fits(box));
      texts[i].style.display = free ? "" : "none";
      if (!free) return;
      taken.push(free);
      texts[i].setAttribute("x", free.x);
      texts[i].setAttribute("y", free.y + 3.5);
    });
  }

  /** Whether the line of a link runs through that box. */
  crossed(box) {
    const [x, y] = [this.width / 2, this.height / 2];
    return [...this.nodes.values()].some((node) => {
      if (!node.row.link) return false;
      let [from, to] = [0, 1];
      for (const [start, step, low, high] of [[x, node.x - x, box.l, box.r], [y, node.y - y, box.t, box.b]]) {
        if (!step && (start < low || start > high)) return false;
        const [one, two] = step ? [(low - start) / step, (high - start) / step] : [0, 1];
        from = Math.max(from, Math.min(one, two));
        to = Math.min(to, Math.max(one, two));
      }
      return from < to;
    });
  }

  /** This node, the chosen one, the linked, those in trouble, the others by what they offer or say. */
  byWorth() {
    const rank = (n) => (n.id === OWN ? 0 : n.id === this.selected ? 1 : n.row.link ? 2 : n.row.word === "alive" ? 4 : 3);
    return this.all().sort((a, b) => rank(a) - rank(b) || this.worth(b) - this.worth(a));
  }

  worth(node) {
    return this.mode === "traffic" ? node.row.rate : node.row.agents;
  }

  // Keys ----------------------------------------------------------------------------------------

  tabStop() {
    if (!this.at || (this.at !== OWN && !this.nodes.has(this.at))) this.at = OWN;
    for (const node of this.all()) node.group.setAttribute("tabindex", node.id === this.at ? "0" : "-1");
  }

  key(event) {
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    const here = this.at === OWN ? this.own : this.nodes.get(this.at);
    if (!here) return;
    if (event.key === "Enter" || event.key === " ") this.choose(here.id);
    else if (event.key === "Escape") this.choose(null);
    else if (event.key === "Home") this.focus(this.own);
    else if (steps[event.key]) this.focus(this.toward(here, steps[event.key]));
    else return;
    event.preventDefault();
  }

  /** The next node in that direction. */
  toward(here, [sx, sy]) {
    let best = null;
    let least = Infinity;
    for (const node of this.all()) {
      const [dx, dy] = [node.x - here.x, node.y - here.y];
      const ahead = dx * sx + dy * sy;
      const aside = Math.abs(dx * sy) + Math.abs(dy * sx);
      if (node === here || ahead <= 0.5) continue;
      if (ahead + 2.2 * aside < least) [best, least] = [node, ahead + 2.2 * aside];
    }
    return best;
  }

  focus(node) {
    if (!node) return;
    this.at = node.id;
    this.tabStop();
    node.group.focus();
  }
}
