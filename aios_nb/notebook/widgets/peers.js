// Other nodes one below the other, and one of them in full.

// The table ------------------------------------------------------------------------------------

const COLUMNS = [
  { key: "name", title: "node", value: (r) => r.name.toLowerCase() },
  { key: "word", title: "state", value: (r) => ["alive", "not answering", "gone"].indexOf(r.word) },
  { key: "link", title: "link", value: (r) => (r.link ? 0 : 1), text: (r) => (r.link ? "linked" : "") },
  { key: "ms", title: "latency", num: true, value: (r) => (r.ms === null ? Infinity : r.ms), text: (r) => (r.ms === null ? "" : waited(r.ms)) },
  { key: "agents", title: "agents", num: true, down: true, value: (r) => r.agents, text: (r) => String(r.agents || "") },
  { key: "rate", title: "now", num: true, down: true, value: (r) => r.rate, text: (r) => (r.rate ? speed(r.rate) : "") },
  { key: "sent", title: "sent", num: true, down: true, wide: true, value: (r) => r.sent, text: (r) => bytes(r.sent) },
  { key: "received", title: "received", num: true, down: true, wide: true, value: (r) => r.received, text: (r) => bytes(r.received) },
  { key: "id", title: "node id", wide: true, value: (r) => r.id },
];

/** The same nodes as rows, to sort and to read out. */
class Table {
  constructor(choose) {
    this.choose = choose;
    this.sorted = null;
    this.down = false;
    this.lines = new Map();
    this.heads = COLUMNS.map((column) =>
      el("th", { scope: "col", class: [column.num && "num", column.wide && "wide"].filter(Boolean).join(" ") || null },
        el("button", { type: "button", on: { click: () => this.sort(column) } }, column.title)),
    );
    this.body = el("tbody");
    this.root = el("div", { class: "aios-net-table", tabindex: "0", role: "region", "aria-label": "Nodes as a table", hidden: true },
      el("table", null, el("thead", null, el("tr", null, this.heads)), this.body));
  }

  sort(column) {
    this.down = this.sorted === column ? !this.down : Boolean(column.down);
    this.sorted = column;
    COLUMNS.forEach((each, i) => {
      if (each === column) this.heads[i].setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else this.heads[i].removeAttribute("aria-sort");
      this.heads[i].firstChild.textContent = each.title + (each === column ? (this.down ? " ↓" : " ↑") : "");
    });
    if (this.rows) this.show(this.rows, this.selected);
  }

  show(rows, selected) {
    [this.rows, this.selected] = [rows, selected];
    const order = [...rows.values()];
    if (this.sorted) {
      const { value } = this.sorted;
      const turn = this.down ? -1 : 1;
      order.sort((a, b) => (value(a) < value(b) ? -turn : value(a) > value(b) ? turn : a.id < b.id ? -1 : 1));
    }
    for (const [id, line] of this.lines)
      if (!rows.has(id)) {
        line.root.remove();
        this.lines.delete(id);
      }
    let next = this.body.firstChild;
    for (const row of order) {
      const line = this.lines.get(row.id) || this.make(row.id);
      this.fill(line, row);
      if (line.root === next) next = next.nextSibling;
      else this.body.insertBefore(line.root, next);
    }
  }

  make(id) {
    const dot = el("span", { class: "aios-dot" });
    const name = el("span");
    const cells = COLUMNS.map((column, i) =>
      el("td", { class: [column.num && "num", column.wide && "wide"].filter(Boolean).join(" ") || null },
        i === 0 ? el("button", { type: "button", on: { click: () => this.choose(id) } }, dot, name) : null,
        column.key === "id" ? el("code", { title: id }, id.slice(0, 8)) : null),
    );
    const line = { root: el("tr", null, cells), cells, dot, name };
    this.lines.set(id, line);
    return line;
  }

  fill(line, row) {
    line.dot.dataset.word = row.word;
    if (line.name.textContent !== row.name) line.name.textContent = row.name;
    line.root.setAttribute("aria-selected", String(row.id === this.selected));
    COLUMNS.forEach((column, i) => {
      if (column.key === "name" || column.key === "id") return;
      const text = column.text ? column.text(row) : row[column.key];
      if (line.cells[i].textContent !== text) line.cells[i].textContent = text;
    });
  }
}

// One node -------------------------------------------------------------------------------------

/** What is known of the chosen node, and what may be done about it. */
class Side {
  constructor(line, close) {
    this.line = line;
    this.close = close;
    this.id = null;
    this.asking = null;
    this.details = null;
    this.rules = new Map();
    this.title = el("span", { class: "name" });
    this.dot = el("span", { class: "aios-dot" });
    this.facts = el("dl");
    this.agents = el("div");
    this.buttons = el("div", { class: "aios-net-rules" });
    this.root = el("aside", { class: "aios-net-side", "aria-label": "The chosen node", hidden: true },
      el("h3", null, this.dot, this.title,
        el("button", { type: "button", class: "aios-net-quiet", "aria-label": "Close", on: { click: () => close() } }, "✕")),
      this.facts, this.agents, this.buttons);
    this.root.addEventListener("keydown", (e) => e.key === "Escape" && close());
  }

  open(id) {
    this.id = id;
    this.asking = this.details = null;
    this.root.hidden = id === null;
    if (id !== null && id !== OWN) this.line.say({ type: "details", node: id });
  }

  told(message) {
    if (message.node !== this.id) return;
    this.details = message;
    if (message.blocked) this.rules.set(message.node, "block");
    else if (this.rules.get(message.node) === "block") this.rules.delete(message.node); // it was allowed elsewhere
    this.drawAgents();
    this.drawRules();
  }

  ruled(message) {
    this.rules.set(message.node, message.rule);
    this.asking = null;
    if (message.node === this.id) this.drawRules();
  }

  show(own, row) {
    if (this.id === null) return;
    const mine = this.id === OWN;
    this.dot.dataset.word = mine ? "alive" : row ? row.word : "gone";
    this.dot.dataset.own = mine ? "yes" : "no";
    const facts = mine ? this.ownFacts(own) : row ? this.itsFacts(row) : [["state", "not known any more"]];
    if (mine || row) this.title.textContent = mine ? `${own.name} (you)` : row.name;
    this.put(facts);
    if (this.drawn !== this.id) {
      this.drawn = this.id;
      this.drawAgents();
      this.drawRules();
    }
  }

  ownFacts(own) {
    return [
      ["node id", own.node_id, "copy"], ["address", own.url, "copy"], ["agents", `${many(own.agents, "agent")} here`],
      ["knows", `${many(own.known_agents, "agent")} of others`], ["to join", `%aios up --join ${own.url}#${own.node_id}`, "copy"],
    ];
  }

  itsFacts(row) {
    const states = { left: "gone: it said goodbye", dead: "gone: it stopped answering", suspect: "not answering, may be away" };
    return [
      ["state", (states[row.state] || row.word) + (row.link ? ", linked" : "")],
      ["node id", row.id, "copy"], ["address", row.url || "not known", row.url ? "copy" : null], ["latency", waited(row.ms)],
      ["sent", bytes(row.sent)], ["received", bytes(row.received)], ["now", speed(row.rate)],
    ];
  }

  /** Texts change in place: what somebody is copying stays selected. */
  put(facts) {
    const shape = facts.map((fact) => fact[0]).join();
    if (this.shape !== shape || this.shapeOf !== this.id) {
      [this.shape, this.shapeOf] = [shape, this.id];
      this.values = facts.map(([, , copy]) => (copy ? el("code") : el("span")));
      this.facts.replaceChildren(...facts.flatMap(([term, , copy], i) => [
        el("dt", null, term),
        el("dd", null, this.values[i], copy && copyButton(() => this.values[i].textContent, term, this.root, { class: "aios-net-quiet" })),
      ]));
    }
    facts.forEach(([, text], i) => {
      if (this.values[i].textContent !== text) this.values[i].textContent = text;
    });
  }

  drawAgents() {
    const found = this.details && this.details.agents;
    this.agents.replaceChildren(...(found && found.length
      ? [el("ul", { "aria-label": "Its agents", tabindex: "0" }, found.map((agent) => el("li", null, el("b", null, agent.name), agent.about || agent.title ? ` ${agent.about || agent.title}` : "")))]
      : []));
  }

  /** Who had the focus in there has it still, on a button that is there now. */
  drawRules() {
    const focused = this.buttons.contains(document.activeElement);
    const rule = this.rules.get(this.id);
    const calls = this.details?.calls;
    redraw(this.buttons, [this.id, this.asking, rule, calls], () => this.rulesOf(rule, calls));
    if (focused && !this.buttons.contains(document.activeElement)) this.enter();
  }

  rulesOf(rule, calls) {
    if (this.id === null || this.id === OWN) return [];
    if (!this.asking)
      return [
        el("p", null, rule === "block" ? "You blocked it." : rule === "allow" ? "You allowed it." : calls ? `It called your agents ${calls === 1 ? "once" : many(calls, "time")}.` : ""),
        el("button", { type: "button", disabled: rule === "allow", on: { click: () => this.ask("allow") } }, "Allow…"),
        el("button", { type: "button", disabled: rule === "block", on: { click: () => this.ask("block") } }, "Block…"),
      ];
    const allow = this.asking === "allow";
    return [
      el("p", null, allow ? "Let it call agents that are for known nodes?" : "Shut it out? It gets no link and none of your agents; what runs for it is stopped."),
      el("button", { type: "button", class: allow ? "aios-main" : "aios-net-bad",
        on: { click: () => this.line.say({ type: "rule", node: this.id, rule: this.asking }) } }, allow ? "Allow" : "Block"),
      el("button", { type: "button", on: { click: () => this.ask(null) } }, "Cancel"),
    ];
  }

  enter() {
    this.buttons.querySelector("button:not(:disabled)")?.focus();
  }

  ask(rule) {
    this.asking = rule;
    this.drawRules();
    this.enter();
  }
}
