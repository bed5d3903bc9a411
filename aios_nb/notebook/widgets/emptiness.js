// What the hub shows where rows would be: nobody yet, nobody here, nobody that matches.

const GHOSTS = 3;
const OFFER = `import aios_nb as aios

@aios.agent(about="Greets whoever writes")
def greeter(text):
    return f"Hello, {text}!"`;
const JOIN = "%aios up --join URL#NODEID";

/** Only this notebook's own agents are there, and all were asked for. */
function isAlone(hub) {
  const { nodes, agents, here } = hub.around;
  return hub.state === "up" && nodes === 1 && agents === here && !hub.words.trim() && hub.only === "all";
}

/** Elements, or nothing where rows say it all. */
function emptinessOf(hub) {
  const some = hub.order.length > 0;
  if (!some && (hub.state === "starting" || hub.state === "asking")) return waitingFor(hub);
  const without = { offline: "Nobody can be seen without a node.", silent: "Nobody can be seen before the kernel answers." }[hub.state];
  if (without) return some ? [] : [el("div", { class: "aios-note" }, without)];
  if (isAlone(hub)) return [invitation(hub)];
  if (!some && hub.only === "mine" && !hub.words.trim()) return [firstOfMine(hub)];
  return some ? [] : [noMatch(hub)];
}

function waitingFor(hub) {
  const ghost = () => el("div", { class: "hub-row hub-ghost", "aria-hidden": "true" }, el("i"), el("i"), el("i"));
  const said = hub.state === "starting" ? "The node is starting. Agents show up in a moment." : "Looking who is there…";
  return [el("div", { class: "aios-note" }, said), ...Array.from({ length: GHOSTS }, ghost)];
}

/** Something to copy and run. */
function recipe(hub, title, text, code, what) {
  return el("div", { class: "hub-card" },
    el("div", { class: "hub-card-head" }, el("b", null, title), copier(hub, code, what, "copy")),
    el("p", null, text),
    el("pre", { tabindex: "0" }, el("code", null, code)));
}

function offering(hub) {
  return recipe(hub, "Offer an agent", "Run this in a cell; it is on the network at once.", OFFER, "the example");
}

/** Nobody has offered anything here; what every node comes with is not the person's own. */
function firstOfMine(hub) {
  return el("div", { class: "hub-invite" },
    el("p", { class: "hub-lead" }, el("b", null, "No agent of yours yet."), " ", button("Show all", null, () => hub.clear())),
    el("div", { class: "hub-cards" }, offering(hub)));
}

function invitation(hub) {
  return el("div", { class: "hub-invite" },
    el("p", { class: "hub-lead" },
      el("b", null, "Nobody else is here yet."),
      " Another notebook of yours on this machine is found by itself: type ",
      el("code", null, "%load_ext aios_nb"), " in it."),
    el("div", { class: "hub-cards" },
      offering(hub),
      recipe(hub, "Join others", "With the line that a node on another machine shows when it starts.", JOIN, "the command")));
}

function noMatch(hub) {
  const near = hub.near || { rows: [] };
  const asked = hub.words.trim();
  const said = asked ? `Nobody matches “${asked.slice(0, 80)}”` : "Nobody is here";
  const where = { live: " among those that answer", mine: " in this notebook", all: "" }[hub.only];
  const filters = wordsOf(asked).every((word) => word.includes(":"));
  const tip = filters ? "No agent passes this filter. " : "Say in other words what you want done, or ";
  let next = el("p", null, tip, button("Show all", null, () => hub.clear()));
  if (near.kind === "wider")
    next = el("p", null,
      `Without the filter there ${near.total === 1 ? "is" : "are"} ${many(near.total, "agent")}: `,
      button("Search everywhere", null, () => hub.search(near.words)));
  else if (near.rows.length) next = el("p", null, "Did you mean");
  const shown = (row) =>
    el("li", null,
      button(row.name, null, () => hub.search(row.name)),
      el("span", { class: "hub-owner" }, ownerOf(row)),
      el("span", null, row.about));
  return el("div", { class: "hub-nomatch" },
    el("p", { class: "hub-lead" }, el("b", null, `${said}${where}.`)),
    next,
    near.rows.length ? el("ul", { class: "hub-near" }, near.rows.map(shown)) : null);
}
