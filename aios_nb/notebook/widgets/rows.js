// One agent as a row of the hub, and what opens under it. `hub` is the view that shows it.

const MINUTE_MS = 60000;
const TAGS_SHOWN = 4;
const WHO_MAY = { private: "only you", known: "nodes that were allowed", network: "any node", public: "anyone" };
const KINDS = { mcp: "MCP server", a2a: "A2A agent" };
const MARKS = { "-": "del", "+": "ins", "=": "span" };

function button(word, props, click) {
  return el("button", { type: "button", ...props, on: { click } }, word);
}

function icon(...paths) {
  const shape = { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true", class: "hub-icon" };
  return svg("svg", shape, paths.map((d) => svg("path", { d })));
}

function copier(hub, text, what, word = `copy ${what}`) {
  return copyButton(() => text, what, hub.root, { class: "hub-copy", "data-do": `copy ${what}` }, word);
}

function ownerOf(row) {
  return row.mine ? "this notebook" : [row.node_name, row.node.slice(0, 8)].filter(Boolean).join(" · ");
}

/** A name that may break where a reader would break it. */
function breakable(name) {
  return name.split(/(?<=[_-])/).flatMap((piece, nr) => (nr ? [el("wbr"), piece] : [piece]));
}

function lifeOf(row) {
  return row.gone ? "gone" : row.live ? "alive" : "suspect";
}

/** A program of others that was brought in here. */
function isImport(row) {
  return Boolean(row.mine && row.source);
}

function changedOf(row) {
  return isImport(row) ? "changed since you approved it" : "card changed since you used it";
}

/** What a screen reader says of a row that is chosen. */
function labelOf(row) {
  const marks = row.changed ? changedOf(row) : row.verified ? "" : "not verified";
  return [row.name, STANDING[lifeOf(row)], ownerOf(row), row.about || row.title, row.why, marks].filter(Boolean).join(", ");
}

/** Fill a row; in a lively network only what has changed is drawn again. */
function fillRow(hub, part, row) {
  const life = lifeOf(row);
  const open = hub.opened === row.id;
  const far = life === "alive" ? (hub.around.far || {})[row.node] : undefined;
  redraw(part, [row, open], () => cellsOf(hub, row, life, open));
  redraw(part.querySelector(".hub-trust"), [row, far, silenceOf(row)], () => trustOf(row, life, far));
  if (!open) return;
  const details = [row, hub.cards.get(row.id), hub.state === "offline"];
  redraw(part.querySelector(".hub-details"), details, () => detailsOf(hub, row));
}

/** The cells of a row; what changes by itself, and its details, are filled in by their own. */
function cellsOf(hub, row, life, open) {
  return [
    el("div", { class: "hub-who", role: "gridcell" },
      el("span", { class: "aios-dot", "data-state": life }),
      el("div", { class: "hub-named" },
        el("span", { class: "hub-name", title: row.id }, breakable(row.name)),
        el("span", { class: "aios-sr" }, ` ${STANDING[life]}, `),
        el("span", { class: "hub-owner", title: row.node }, ownerOf(row)))),
    el("div", { class: "hub-what", role: "gridcell" },
      el("div", { class: "hub-about" },
        row.title ? el("span", { class: "hub-title" }, row.title, row.about ? ". " : "") : null,
        row.about || (row.title ? null : el("span", { class: "hub-none" }, "says nothing about itself"))),
      row.why || row.tags.length
        ? el("div", { class: "hub-why" },
            row.why ? el("span", null, row.why) : null,
            row.tags.slice(0, TAGS_SHOWN).map((tag) => tagOf(hub, tag)))
        : null),
    el("div", { class: "hub-trust", role: "gridcell" }),
    el("div", { class: "hub-do", role: "gridcell" }, doingsOf(hub, row, life, open)),
    open ? el("div", { class: "hub-details", role: "gridcell" }) : null,
  ];
}

/** The words of a search, as Python reads them: a filter is one of them, with all that is quoted in it. */
function wordsOf(text) {
  return text.match(/(tag|node|name|live):"[^"]*"|\S+/gi) || [];
}

function tagOf(hub, tag) {
  const typed = /\s/.test(tag) ? `tag:"${tag}"` : `tag:${tag}`;
  return button(tag, { class: "aios-tag hub-tag", "data-do": `tag ${tag}`, title: `Only ${typed}` }, () => hub.filterBy(typed));
}

function trustOf(row, life, far) {
  if (life === "gone") return "gone";
  const [kind, word] = row.changed
    ? ["hub-warn", `⚠ ${changedOf(row)}`]
    : life === "suspect" ? ["hub-away", silenceOf(row)]
    : isImport(row) ? ["hub-plain", "not verified"]
    : row.built_in ? ["hub-plain", "built in"]
    : row.mine ? ["hub-ok", "✓ yours"]
    : row.verified ? ["hub-ok", "✓ signed"]
    : ["hub-plain", "not verified"];
  const more = [
    row.source && (KINDS[row.source] || row.source),
    far !== undefined && (far < 1 ? "< 1 ms" : `${Math.round(far).toLocaleString()} ms`),
    row.talks && many(row.talks, "talk"),
    row.mine && !row.built_in && row.access === "private" && "only you",
    row.mine && !row.built_in && !row.source && row.version && `v${row.version}`,
  ].filter(Boolean);
  return [el("span", { class: kind }, word), more.length ? el("div", { class: "hub-more-facts" }, more.join(" · ")) : null];
}

function silenceOf(row) {
  const minutes = row.away_at ? Math.floor((Date.now() - row.away_at) / MINUTE_MS) : 0;
  return minutes > 0 ? `no answer for ${minutes} min` : "not answering";
}

/** What can be done with it: talk, or look at it before. */
function doingsOf(hub, row, life, open) {
  if (life === "gone") return null;
  const talks = row.live && !row.changed;
  const word = talks ? "Chat" : open ? "Close" : row.changed ? "Review" : "Details";
  const act = { class: "hub-act", "data-do": "act", "aria-label": `${word}: ${row.name}`, "aria-expanded": talks ? null : String(open) };
  const more = { class: "hub-more", "data-do": "more", title: "Details", "aria-label": `Details of ${row.name}`, "aria-expanded": String(open) };
  return [
    button(word, act, () => hub.act(row.id)),
    talks ? button(icon(open ? "M3.5 10L8 5.5L12.5 10" : "M3.5 6L8 10.5L12.5 6"), more, () => hub.open(row.id, !open)) : null,
  ];
}

// Details ----------------------------------------------------------------------------------------

function detailsOf(hub, row) {
  const card = hub.cards.get(row.id);
  if (!card) return el("div", { class: "hub-asking" }, row.mine ? "Looking…" : `Asking ${row.node_name || "its node"}…`);
  const said = card.facts || { ...row, examples: [] };
  const word = row.changed ? "Chat with it as it is now" : "Chat anyway";
  const talk = { class: "aios-main", "data-do": "chat", disabled: hub.state === "offline" };
  const outside = card.outside;
  const taken = outside && row.changed;
  return [
    card.problem ? el("div", { class: "hub-problem" }, `${card.problem}. What follows is from its record.`) : null,
    card.changes && card.changes.length ? changesOf(card, row) : null,
    taken ? differencesOf(outside, row) : null,
    el("p", { class: "hub-all" }, said.about || "It says nothing about itself."),
    said.examples.length
      ? el("div", { class: "hub-examples" },
          el("span", { class: "hub-label" }, "Ask it, for example"),
          el("ul", null, said.examples.map((example) => el("li", null, example))))
      : null,
    factsOf(hub, row, card, said),
    row.changed || !row.live
      ? el("div", { class: "hub-after" }, taken
          ? button("Approve it as it is now", { ...talk, "data-do": "approve" }, () => hub.approve(row.id, outside.pin))
          : button(word, talk, () => hub.chat(row.id)))
      : null,
  ];
}

function factsOf(hub, row, card, said) {
  const fact = (label, ...value) => [el("dt", null, label), el("dd", null, ...value)];
  const node = [row.node_name ? `${row.node_name} · ` : "", el("code", null, row.node), " ", copier(hub, row.node, "node id")];
  return el("dl", { class: "hub-facts" },
    fact("Id", el("code", null, row.id), " ", copier(hub, row.id, "id")),
    fact("Node", row.mine ? `this notebook (${row.node_name || "you"})` : node),
    card.outside ? outsideOf(fact, card.outside) : null,
    fact("Signature", signatureOf(card, row), card.record ? [" ", copier(hub, card.record, "record")] : null),
    fact("Who may call it", WHO_MAY[said.access] || said.access),
    said.version ? fact("Version", said.version) : null,
    said.tags.length ? fact("Tags", said.tags.map((tag) => tagOf(hub, tag))) : null,
    card.facts ? fact("How it runs", runsOf(said)) : null,
    card.used ? fact("Used by you", `${many(card.used.talks, "time")}, last ${clock(card.used.at)}`) : null);
}

function signatureOf(card, row) {
  if (card.problem) return row.verified ? "its record is signed by its node" : "not verified";
  if (card.outside) return strangerOf(card.outside);
  if (row.built_in) return "built in, not published";
  if (row.mine) return card.record ? "✓ yours, published under your signature" : "✓ yours, not published";
  if (!card.verified) return el("span", { class: "hub-warn" }, "not verified: its record does not vouch for this card");
  return card.record ? "✓ signed by its node, and the card is the one it signed" : "✓ told by its node itself";
}

function runsOf(said) {
  const longest = said.timeout_s ? `${said.timeout_s} s at most` : "";
  return [said.engine, said.streams ? "streams its answer" : "answers in one piece", longest].filter(Boolean).join(", ");
}

function changesOf(card, row) {
  const since = card.used ? `Since you used it (${clock(card.used.at)})` : "Since you used it";
  const shown = (change) => [
    el("dt", null, change.field),
    el("dd", null, change.parts.map(([mark, text]) => el(MARKS[mark] || "span", null, text))),
  ];
  return el("div", { class: "hub-changes" },
    el("span", { class: "hub-label" }, `${since}, ${row.name} has changed its card`),
    el("dl", { class: "hub-facts" }, card.changes.map(shown)));
}

// Programs of others -----------------------------------------------------------------------------

function outsideOf(fact, outside) {
  const more = outside.more_tools ? ` and ${outside.more_tools} more` : "";
  return [
    fact("Where it is", el("code", null, outside.place)),
    outside.note ? fact("Now", outside.note) : null,
    outside.tools.length ? fact("Tools", outside.tools.join(", ") + more) : null,
  ];
}

function strangerOf(outside) {
  if (outside.signature === "invalid") return el("span", { class: "hub-warn" }, "⚠ the signature of its card is wrong");
  if (outside.signature === "valid") return `a program of others, not verified by us; its card is signed by ${outside.key}`;
  return "none: a program of others, not verified";
}

/** What it says otherwise than what was approved: all of it its own words. */
function differencesOf(outside, row) {
  return el("div", { class: "hub-changes" },
    el("span", { class: "hub-label" }, `Since you approved it, ${row.name} has changed. It is asked nothing until you approve it again.`),
    el("ul", { class: "hub-differences" }, outside.differences.map((line) => el("li", null, line))));
}
