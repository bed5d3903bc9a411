// What stands around the messages of a chat: the head with its menus, and the sheet over the messages.

const EXPORTS = [["Markdown", "md"], ["JSON", "json"], ["Notebook", "ipynb"]];

/** A button with a menu below it; `entries()`, when it is opened: label, action and class of each. */
function menu(label, name, kind, entries) {
  const list = el("div", { class: "aios-menu", role: "menu", "aria-label": name, hidden: true });
  const opener = button(label, () => show(list.hidden), {
    "aria-haspopup": "menu", "aria-expanded": "false", "aria-label": name,
  });
  const itemOf = ([text, action, only]) => button(text, () => {
    show(false);
    opener.focus();
    action();
  }, { role: "menuitem", class: only, tabindex: "-1" });
  let items = [];
  const show = (open) => {
    if (open) list.replaceChildren(...(items = entries().map(itemOf)));
    list.hidden = !open;
    opener.setAttribute("aria-expanded", String(open));
    if (open) items[0].focus();
  };
  const holder = el("span", { class: `aios-holder ${kind}` }, opener, list);
  holder.addEventListener("keydown", (event) => {
    const seen = items.filter((item) => item.offsetParent);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && !list.hidden) {
      event.stopPropagation();
      show(false);
      opener.focus();
    } else if (step && list.hidden) show(true);
    else if (step) seen[(seen.indexOf(document.activeElement) + step + seen.length) % seen.length].focus();
    else return;
    event.preventDefault();
  });
  holder.addEventListener("focusout", (event) => holder.contains(event.relatedTarget) || show(false));
  return holder;
}

/** What there is to say of who one talks to, in short. */
function aboutOf({ agent, called, also }) {
  const away = agent.state === "suspect" || agent.state === "gone";
  const trust = agent.built_in ? "built in" : agent.ours ? "yours" : agent.signed && "signed";
  return [
    called,
    agent.ours ? `${agent.node}, this notebook` : agent.node,
    away ? STANDING[agent.state] : agent.changed ? "⚠ card changed since you used it" : trust,
    also.length && `also here: ${also.join(", ")}`,
  ].filter(Boolean);
}

/** Who one talks to, and what can be done with the conversation. */
class Head {
  constructor(chat) {
    this.chat = chat;
    this.renaming = false;
    this.dot = el("span", { class: "aios-dot", role: "img" });
    this.name = el("b", { class: "aios-cut" }, "AgentChat");
    this.about = el("span", { class: "aios-tiny aios-cut aios-grow" });
    this.exporting = menu("Export", "Export", "aios-wide", () => this.exports());
    this.more = menu("⋯", "More", "", () => this.entries());
    this.node = el("div", { class: "aios-head" }, this.name);
  }

  /** Its parts stay as its words change: somebody may be in one of its menus. */
  draw() {
    const { head } = this.chat.store;
    if (!head) return;
    const { agent } = head;
    const state = this.chat.store.isOut() ? "" : agent.state;
    const words = STANDING[state] || "state unknown";
    const about = aboutOf(head).join(" · ");
    fill(this.dot, { "data-state": state, title: words, "aria-label": words }, []);
    fill(this.name, { title: agent.id }, []).textContent = agent.name;
    fill(this.about, { title: about }, []).textContent = about;
    const out = this.chat.store.isOut();
    this.exporting.firstChild.disabled = out || !head.conversation;
    this.more.firstChild.disabled = out;
    if (!this.renaming && this.more.parentNode !== this.node) this.node.replaceChildren(...this.parts());
  }

  parts() {
    return [this.dot, this.name, this.about, this.exporting, this.more];
  }

  /** Whether somebody is choosing or typing something in it. */
  isOpen() {
    return this.renaming || Boolean(this.node.querySelector("[aria-expanded=true]"));
  }

  /** What is answered is for this view alone. */
  say(message) {
    this.chat.line.say({ ...message, view: this.chat.uid });
  }

  exports() {
    return EXPORTS.map(([label, form]) => [label, () => this.say({ type: "export", form })]);
  }

  entries() {
    const { conversation, title } = this.chat.store.head;
    const always = [
      ["New conversation", () => this.chat.store.begin()],
      ["Conversations…", () => this.say({ type: "chats" })],
    ];
    if (!conversation) return always;
    return [
      ...always,
      ["Rename…", () => this.rename(title)],
      ...this.exports().map(([label, action]) => [`Export as ${label}`, action, "aios-slim"]),
      ["Delete…", () => this.chat.sheet.askDelete(conversation, title)],
    ];
  }

  rename(title) {
    this.renaming = true;
    const field = el("input", { type: "text", maxlength: "200", class: "aios-title", "aria-label": "Title of this conversation" });
    const end = (said) => {
      this.renaming = false;
      this.node.replaceChildren(...this.parts());
      if (said) this.say({ type: "rename", title: said });
      this.chat.composer.focus();
    };
    field.value = title;
    field.addEventListener("keydown", (event) => {
      if (composing(event) || (event.key !== "Enter" && event.key !== "Escape")) return;
      event.preventDefault();
      end(event.key === "Enter" ? field.value.trim() : "");
    });
    this.node.replaceChildren(field,
      button("Rename", () => end(field.value.trim()), { class: "aios-main" }),
      button("Cancel", () => end("")));
    field.focus();
    field.select();
  }
}

const SHEET_PX = 340;

/** Something to choose or to decide, over the messages. */
class Sheet {
  constructor(chat) {
    this.chat = chat;
    this.title = `${chat.uid}-sheet`;
    this.about = `${chat.uid}-sheet-about`;
    const named = { "aria-modal": "true", "aria-labelledby": this.title, "aria-describedby": this.about };
    this.node = el("div", { class: "aios-sheet", ...named, tabindex: "-1", hidden: true });
    this.node.addEventListener("keydown", (event) => this.turn(event));
    this.node.addEventListener("focusout", ({ relatedTarget: to }) => {
      if (chat.root.contains(to) && !this.node.contains(to)) this.leave();
    });
  }

  /** `role`: `dialog`, or `alertdialog` for a decision; what that is about is read out before it is made. */
  open(role, title, content, first) {
    const close = quiet("×", "Close", () => this.close());
    const name = el("b", { id: this.title }, title);
    this.node.setAttribute("role", role);
    this.node.replaceChildren(el("div", { class: "aios-sheet-head" }, name, el("span", { class: "aios-grow" }), close), content);
    this.node.hidden = false;
    this.roomFor(Math.min(this.node.scrollHeight, SHEET_PX));
    (first || close).focus();
  }

  close() {
    this.leave();
    this.chat.composer.focus();
  }

  /** Whoever goes on elsewhere in the chat has nothing to choose here any more. */
  leave() {
    this.node.hidden = true;
    this.roomFor(0);
  }

  /** Tab goes round in it: what is below cannot be seen. */
  turn(event) {
    if (event.key !== "Tab") return;
    const stops = [...this.node.querySelectorAll("button")];
    const at = stops.indexOf(document.activeElement);
    const to = event.shiftKey ? Math.max(at, 0) - 1 : at + 1;
    stops[(to + stops.length) % stops.length].focus();
    event.preventDefault();
  }

  /** A short conversation does not leave enough. */
  roomFor(px) {
    this.node.parentElement.style.minHeight = px ? `${px}px` : "";
  }

  showChats(rows) {
    const list = el("div", { class: "aios-chats" }, rows.map((row) => this.chatRow(row)));
    const none = el("div", { class: "aios-note" }, "Nothing has been said yet.");
    this.open("dialog", "Conversations", rows.length ? list : none, list.querySelector("button"));
  }

  chatRow(row) {
    const about = [clock(row.at), row.app, row.agents.join(", "), row.last].filter(Boolean).join(" · ");
    const go = () => {
      this.close();
      this.chat.line.say({ type: "open", conversation: row.conversation });
    };
    const label = [cut(el("b", null, row.title)), el("span", { class: "aios-hint aios-cut" }, about)];
    return el("div", { class: "aios-chatrow", "data-current": row.current },
      button(label, go, { "aria-current": row.current ? "true" : null }),
      quiet("delete", `Delete ${row.title}`, () => this.askDelete(row.conversation, row.title, true)));
  }

  /** `listed`: the list of conversations is shown again afterwards. */
  askDelete(conversation, title, listed) {
    const keep = button("Keep", () => this.close());
    const drop = button("Delete", () => {
      this.close();
      this.chat.head.say({ type: "delete", conversation, listed: Boolean(listed) });
    }, { class: "aios-danger" });
    const text = el("p", { id: this.about }, el("b", null, title || "This conversation"),
      " and everything said in it will be gone. This cannot be undone.");
    this.open("alertdialog", "Delete this conversation?", el("div", { class: "aios-confirm" }, text, keep, drop), keep);
  }
}

/** What keeps a chat from going on, in one line; null if nothing does. */
function troubleOf({ head, asleep }) {
  const up = el("code", null, "%aios up");
  const agent = head?.agent;
  if (asleep === "queued")
    return ["", "The kernel is busy. What was said before is here; the rest comes when it has time."];
  if (asleep === "starting") return ["", "The node is starting …"];
  if (asleep === "saved") return ["warn", "This is what was saved. Run your cells again, this one too: the conversation goes on."];
  if (asleep === "kernel") return ["warn", "The kernel was restarted. Run your cells again, this one too: the conversation is kept."];
  if (asleep === "stopped") return ["warn", "The node is stopped. ", up, " starts it, and this chat goes on by itself."];
  if (asleep) return ["warn", `The node is not running: ${asleep}. `, up, " tries again."];
  if (head?.problem) return ["warn", head.problem.text, head.problem.hint && `: ${head.problem.hint}`];
  if (!head?.ready) return null;
  if (agent.state === "gone" && agent.ours)
    return ["warn", `Nobody offers ${agent.name} here now. It is back as soon as its cell is run again; @ brings in another agent.`];
  if (agent.state === "gone")
    return ["warn", `${agent.name} is gone: its node left, or offers it no more. What you send waits for it for 10 minutes.`];
  if (agent.state === "suspect")
    return ["warn", `${agent.node || agent.name} does not answer right now. What you send waits for it for 10 minutes.`];
  return null;
}
