// What a chat shows and what is on its way to Python: one store for all views of a chat.

const CAUGHT = ["keydown", "keypress"];
const FILE_LIMIT = 20 << 20;
const FILES_MAX = 16;
const CHUNK = 1 << 20;
const FILES_HELD_MS = 10000;
const YOURS = "#5b6b7b";
const COLOURS = ["#1976d2", "#2e7d4f", "#8e5bb5", "#b0521b", "#00798a", "#a8385d", "#5d6b2f", "#4a5aa8"];

class Store {
  constructor(line, name, saved) {
    this.line = line;
    /** Of the line: stays the same when the page is loaded again. */
    this.name = name;
    this.views = new Set();
    this.head = null;
    /** The one that was read last; undefined before the first. */
    this.conversation = undefined;
    this.items = new Map();
    this.heardState = false;
    /** Why nothing comes: the node or the kernel is away. */
    this.asleep = null;
    /** Messages that Python has not taken yet, by id. */
    this.pending = new Map();
    this.acks = new Map();
    // What somebody is writing; a view that is drawn anew goes on with it.
    this.draft = "";
    /** What was being written when an earlier message was taken up to be edited. */
    this.aside = "";
    this.keptAs = "";
    this.cell = null;
    this.mentioned = {};
    /** Words with an @, and whether somebody is called so. */
    this.names = new Map();
    this.files = new Map();
    this.editing = null;
    /** The question that somebody has something else to say than an answer to, and the one they chose to answer. */
    this.ignored = null;
    this.answering = null;
    /** The place of a conversation that was just begun, before Python has said so; null: where one looks. */
    this.next = null;
    this.soughtDraft = false;
    /** What is being sent again as it was: a double click is one click. */
    this.repeated = new Set();
    // Where somebody is reading.
    this.scroll = null;
    this.unread = new Set();
    this.divider = null;
    /** Long texts that are shown whole: what came while somebody looked on does not fold up under their eyes. */
    this.unfolded = new Set();
    this.lostFocus = 0;
    this.lostAt = null;
    this.catching = null;
    this.colours = new Map();
    this.fetched = new Fetched(line);
    if (saved && saved.head) this.take(saved);
    line.listen((message, buffers) => this.heard(message, buffers));
  }

  /** Tell the views. */
  changed(what, ...more) {
    tellEach(this.views, (view) => view.changed(what, ...more));
  }

  /** A view goes; most often another one takes its place, with what this one had. */
  leave(view) {
    this.noteCell();
    this.views.delete(view);
    if (!this.views.size) this.on_missed(); // without one nothing is heard
    setTimeout(() => this.views.size || this.fetched.release(), FILES_HELD_MS);
  }

  // What there is ------------------------------------------------------------------------------

  sorted() {
    const order = (a, b) => a.order[0] - b.order[0] || a.order[1] - b.order[1] || a.order[2] - b.order[2];
    return [...this.items.values()].sort(order);
  }

  /** Who speaks has a colour of their own: by order of appearance, the agent one talks to first. */
  colour(who) {
    if (who.mine) return YOURS;
    if (!this.colours.size && this.head) this.colours.set(this.head.agent.id, 0);
    if (!this.colours.has(who.id)) this.colours.set(who.id, this.colours.size);
    return COLOURS[this.colours.get(who.id) % COLOURS.length];
  }

  /** Whether another message was sent in its place, or in place of what it answers. */
  isOld(item) {
    return Boolean(item.resent || (item.re && this.items.get(item.re)?.resent));
  }

  /** Whether its agent's node does not answer. */
  isAway(item) {
    return AT_WORK.includes(item.status) && Boolean(this.head?.away?.includes(item.who.id));
  }

  /** Whether nobody is at work: there is no kernel, or no node in it. */
  isOut() {
    return Boolean(this.asleep) && this.asleep !== "queued" && this.asleep !== "starting";
  }

  /** Whether its kernel is gone: nobody hears what is said here, ever. */
  isCutOff() {
    return this.asleep === "kernel" || this.asleep === "saved";
  }

  /** Whether it was being written when the kernel or the node went; the next one knows what became of it. */
  isCut(item) {
    return AT_WORK.includes(item.status) && this.isOut();
  }

  isBusy() {
    return !this.isOut() && Boolean(this.head?.busy?.length);
  }

  /** Whether a message is to be sent in other words, and is there. */
  isEditing() {
    return this.items.has(this.editing);
  }

  /** The question that is to be answered here: the one that was chosen, else the oldest. */
  asks() {
    const chosen = this.items.get(this.answering);
    const asks = chosen?.question
      ? { reply: chosen.reply, question: chosen.question, who: chosen.who.name }
      : this.head?.asks?.question !== this.ignored && this.head?.asks;
    const hasOne = (one) => one.question === asks.question && !one.refused;
    return asks && ![...this.pending.values()].some(hasOne) ? asks : null;
  }

  /** Whether a name at the beginning of a text means somebody else than who asks. */
  isForOthers(name, asks) {
    const picked = this.mentioned[name];
    if (name === asks.who && (!picked || picked === this.items.get(asks.reply)?.who.id)) return false;
    return Boolean(picked) || this.names.get(name) !== false; // Python says so where it knows nobody of that name
  }

  lastOfMine() {
    const mine = (item) => item.who.mine && !item.re && item.text && !item.resent;
    return this.sorted().reverse().find(mine);
  }

  // What Python says ---------------------------------------------------------------------------

  heard(message, buffers) {
    const does = `on_${message.type}`;
    if (does in this) this[does](message, buffers);
    else this.changed(message.type, message, buffers);
  }

  take(state) {
    this.heed(state.head);
    if (state.head.place !== this.head?.place) this.next = null;
    this.head = state.head;
    for (const { message } of this.pending.values()) message.place ??= this.head.place; // said before it was known
    this.items = new Map(state.items.map((item) => [item.id, item]));
    for (const one of this.pending.values()) if (one.taken && !this.isFor(one)) this.forget(one.id);
    this.findOwnDraft();
    if (this.head.ready) this.turnTo(this.head.conversation); // before that it is empty, and the same one may follow
    for (const item of state.items) this.arrived(item);
    const shown = this.sorted();
    const newest = shown[shown.length - 1];
    for (const item of shown) if (item === newest || AT_WORK.includes(item.status)) this.unfolded.add(item.id);
  }

  /** A question that comes while something else is being written does not get that for an answer. */
  heed({ asks }) {
    const isNew = asks && asks.question !== this.head?.asks?.question;
    if (isNew && (this.draft.trim() || this.files.size)) this.ignored = asks.question;
  }

  /** In another conversation nothing is edited, and nobody has read yet. */
  turnTo(conversation) {
    if (this.editing && !this.isEditing()) {
      this.editing = null;
      this.write(together(this.draft, this.takeAside()));
    }
    if (this.conversation === conversation) return;
    this.conversation = conversation;
    this.colours = new Map();
    this.scroll = null;
    this.unread.clear();
    this.divider = null;
    this.unfolded.clear();
    this.keepDraft(); // what is in the box stays in it
  }

  on_state(message) {
    this.asleep = null;
    const before = this.items;
    const asked = new Set([...before.keys(), ...this.pending.keys()]);
    this.take(message);
    this.heardState = true;
    this.changed("all");
    for (const item of message.items)
      if (this.isNews(item, before.get(item.id), asked.has(item.re))) this.changed("answer", item);
    this.findDraft();
    for (const one of this.pending.values()) if (!one.refused && !one.taken && !one.said) this.sayAgain(one);
    for (const file of this.chips()) if (file.unsure) file.say?.();
    this.fetched.again();
  }

  /** Whether it is an answer to what was here or on its way; a quick one is there with the conversation it begins. */
  isNews(item, known, wasAsked) {
    const waited = known ? AT_WORK.includes(known.status) : wasAsked;
    return waited && !item.who.mine && !AT_WORK.includes(item.status);
  }

  on_items(message) {
    for (const item of message.items) {
      const known = this.items.get(item.id);
      if (!known) this.unfolded.add(item.id);
      this.items.set(item.id, item);
      this.arrived(item);
      this.changed("item", item, known);
    }
  }

  on_grow(message) {
    const item = this.items.get(message.id);
    if (!item) return;
    item.blocks = [...(item.blocks || []).slice(0, message.keep), ...message.blocks];
    this.changed("grow", item, message.keep);
  }

  on_head(message) {
    this.asleep = null;
    this.heed(message.head);
    this.head = message.head;
    this.changed("head");
    this.findDraft();
  }

  on_offline(message) {
    this.acks.clear(); // what was said is said again, and an upload begins anew
    this.sleep(message.problem);
    this.pending.get(message.id)?.perhaps.delete(message.nr);
    for (const one of this.pending.values()) if (!one.refused && !one.taken) one.state = "asleep";
    this.next = null; // perhaps nobody heard of it; what was said there is refused then
    this.keepDraft();
    this.changed("pending");
    this.on_missed();
  }

  /** What became of what was said, and pieces of files, may be lost: with the state that follows all is said again. */
  on_missed() {
    for (const one of this.pending.values()) if (!one.refused && !one.taken) one.said = 0;
    for (const file of this.chips()) file.unsure = file.state === "loading";
    this.fetched.missed();
  }

  sleep(why) {
    this.asleep = why;
    if (why !== "queued") this.dropUploads();
    if (why === "kernel") this.takeBack();
    this.changed("head");
  }

  /** The kernel is gone: what it has not heard goes back to where it was written, for the next one. */
  takeBack() {
    const isWhole = (one) => one.files.every((file) => !file.state || file.state === "there");
    const isUnheard = (one) => !one.taken && (one.refused || !one.said || this.acks.has(one.said) || !isWhole(one));
    const unheard = [...this.pending.values()].filter(isUnheard);
    for (const one of unheard) this.pending.delete(one.id);
    for (const one of this.pending.values()) if (!one.taken) one.state = "cut";
    const written = this.written();
    this.editing = null; // what is edited can be sent again by nobody: it is text like another
    this.aside = "";
    this.write(together(...unheard.map((one) => one.text), written));
    this.changed("pending");
  }

  /** This is what is being written now. */
  write(text) {
    this.draft = text;
    this.keepDraft();
    this.changed("draft");
  }

  /** All that somebody wrote and did not send. */
  written() {
    const untouched = this.isEditing() && this.draft === this.items.get(this.editing).text;
    return together(this.aside, untouched ? "" : this.draft);
  }

  /** What is written here ends: what was put aside for it comes back. */
  takeAside() {
    const text = this.aside;
    this.aside = "";
    return text;
  }

  /** What was in this box before the page was loaded again. */
  findOwnDraft() {
    const key = draftKeys(this.head) + this.name;
    if (!KEEPERS.has(key)) this.takeOver(key);
  }

  /** Once, when it is known which cell shows it: what is typed later into a box that waits for its cell is not ours. */
  findDraft() {
    const shown = [...this.views].some((view) => view.root.isConnected);
    if (this.soughtDraft || !this.heardState || !this.head.ready || !shown) return;
    this.soughtDraft = true;
    this.noteCell();
    const key = leftDraft(this.head, this.cell);
    if (key && !this.draft) this.takeOver(key);
  }

  /** What was kept under this key is in this box now, and only here. */
  takeOver(key) {
    const text = kept(key);
    if (!text) return;
    KEEPERS.get(key)?.yield?.();
    keep(key, "");
    this.ignored = this.head.asks?.question ?? this.ignored; // nobody knows whether it was for that
    this.write(together(text, this.draft));
  }

  /** Another store has what was not sent from here. */
  yield() {
    for (const one of this.unsent()) {
      for (const file of one.files) file.state &&= "lost";
      this.pending.delete(one.id);
      this.repeated.delete(one.repeats);
    }
    this.draft = this.aside = "";
    this.editing = null;
  }

  /** What nobody gets unless it is said again; that of which a file is only begun goes with the page, too. */
  unsent() {
    const isBegun = (file) => file.state === "loading" && !file.said;
    const isUnsent = (one) => one.refused || one.state === "asleep" || (!one.taken && one.files.some(isBegun));
    return [...this.pending.values()].filter(isUnsent);
  }

  /** The notebook's cell that shows it, or did last. */
  noteCell() {
    for (const view of this.views) this.cell = view.root.closest(".jp-Cell") || this.cell;
  }

  /** A cell that is run again and a page that is loaded again have another store: what was not sent is left for it. */
  keepDraft() {
    if (!this.head) return;
    this.noteCell();
    const texts = this.unsent().map((one) => one.text);
    const key = draftKeys(this.head) + this.name;
    if (this.keptAs && this.keptAs !== key) keep(this.keptAs, "");
    keep(key, together(...texts, this.written()), this);
    this.keptAs = key;
  }

  endCatching() {
    for (const event of CAUGHT) document.removeEventListener(event, this.catching, true);
    this.catching = null;
  }

  on_ack(message) {
    this.acks.get(message.nr)?.();
    this.acks.delete(message.nr);
  }

  on_refused(message) {
    const one = this.pending.get(message.id);
    if (!one || one.taken) return;
    const isIt = (item) => item.who.mine && item.re && item.text === one.text && !one.seen.has(item.id);
    if (one.question && [...this.items.values()].some(isIt)) return this.forget(one.id); // it was taken before the node went
    one.refused = message;
    this.repeated.delete(one.repeats);
    if (message.nobody && !this.draft && one.message.text) {
      this.putBack(one);
      this.on_error(message);
    }
    this.keepDraft();
    this.changed("pending");
  }

  /** Whether each time it was said Python has answered that nobody was there: it goes nowhere until it is said again. */
  isHereOnly(one) {
    return !one.refused && !one.taken && !one.perhaps.size;
  }

  /** Whether it was written where the chat is now, or where it turns to in a moment. */
  isFor({ message: { place } }) {
    return !(place < this.head?.place);
  }

  /** It is there, or nobody wants to send it any more. */
  forget(id) {
    this.pending.delete(id);
    this.keepDraft();
    this.changed("pending");
  }

  /** What was refused goes back to where it was written. */
  putBack(one) {
    const { type, of, mentioned } = one.message;
    this.pending.delete(one.id);
    this.repeated.delete(one.repeats);
    const edits = type === "again" && this.items.has(of);
    if (edits) this.aside = this.written();
    this.editing = edits ? of : this.editing;
    this.mentioned = { ...this.mentioned, ...mentioned };
    for (const file of one.files) if (file.state && file.state !== "lost") this.files.set(file.id, file);
    if (!edits && this.isEditing()) {
      this.aside = together(one.text, this.aside); // an edit is of its message alone
      this.keepDraft();
    } else this.write(edits ? one.text : together(one.text, this.draft));
    this.changed("pending");
    this.changed("files");
  }

  on_names(message) {
    for (const name of message.names) this.names.set(name, message.known.includes(name));
    this.changed("names");
  }

  /** It is in a log. In the one that is shown here it stands in a moment. */
  on_taken({ id }) {
    const one = this.pending.get(id);
    if (!one) return;
    one.taken = true;
    if (one.question || !this.isFor(one)) this.forget(id);
    else this.changed("pending");
  }

  on_unloadable(message) {
    const file = this.chips().find((one) => one.id === message.id);
    if (!file || file.state === "lost") return; // it is known
    file.state = "lost"; // nobody wants the rest of it
    this.files.delete(message.id);
    this.changed("files");
    this.changed("toast", message.text, "error");
  }

  on_file(message, [piece]) {
    this.fetched.took(message, piece);
  }

  on_unfetchable(message) {
    this.fetched.cannot(message.id);
    this.on_error(message);
  }

  on_error(message) {
    this.changed("toast", message.hint ? `${message.text} (${message.hint})` : message.text, "error");
  }

  /** A message that was on its way is there. */
  arrived(item) {
    if (this.pending.has(item.id)) this.forget(item.id);
  }

  // What is said to Python ---------------------------------------------------------------------

  /** A new conversation; what is sent from now on is for that one, though the page may still show another. */
  begin() {
    this.next = (this.next ?? this.head?.place ?? 0) + 1;
    this.line.say({ type: "new" });
  }

  send(text) {
    const files = [...this.files.values()];
    const message = { type: "send", text, files: files.map((file) => file.id), mentioned: this.mentioned };
    this.files = new Map();
    this.mentioned = {};
    this.push({ text, files, message });
  }

  /** The message itself, or one that a reply answers, once more; in other words if there are any. */
  again(of, text) {
    if (text === undefined && this.repeated.has(of)) return;
    const item = this.items.get(of);
    const request = item.who.mine ? item : this.items.get(item.re);
    if (text === undefined) {
      const message = { type: "again", of };
      return this.push({ text: request?.text ?? "", files: request?.files || [], repeats: of, message });
    }
    const files = [...this.files.values()];
    const message = { type: "again", of, text, files: files.map((file) => file.id), mentioned: this.mentioned };
    this.files = new Map();
    this.mentioned = {};
    this.push({ text, files: [...(request?.files || []), ...files], message });
  }

  answer({ reply, question }, text) {
    this.mentioned = {};
    const seen = new Set(this.items.keys()); // the same may have been answered before
    this.push({ text, files: [], question, seen, message: { type: "answer", reply, question, text } });
  }

  /** This question is answered now, whatever else was being written. */
  takeUp(item) {
    if (this.isEditing()) {
      const text = this.written();
      this.editing = null;
      this.aside = "";
      this.write(text);
    }
    this.answering = item.id;
    this.changed("head");
  }

  /** Something else is said first: no question is in the way of it. */
  putOff() {
    this.ignored = this.head?.asks?.question ?? this.ignored;
    this.answering = null;
    this.changed("head");
  }

  push(one) {
    const chance = [...crypto.getRandomValues(new Uint8Array(8))];
    one.id = `m${Date.now().toString(16)}${chance.map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
    this.pending.set(one.id, one);
    this.sendHere(one);
  }

  /** In the conversation that somebody looks at now, or in the one just begun. */
  sendHere(one) {
    one.message.place = this.next ?? this.head?.place;
    this.sayAgain(one);
  }

  /** Under the same id: whatever became of the first try, it is said once. */
  sayAgain(one) {
    const set = (state) => {
      one.state = state;
      this.changed("pending");
    };
    one.refused = null;
    if (one.repeats) this.repeated.add(one.repeats);
    one.perhaps ??= new Set(); // the times it was said and may have been heard
    one.said = this.line.say({ ...one.message, id: one.id }, null, () => one.state === "sending" && set("queued"));
    one.perhaps.add(one.said);
    this.acks.set(one.said, () => set("sending"));
    set("sending");
    this.keepDraft();
  }

  // Files --------------------------------------------------------------------------------------

  /** Piece by piece, each when the one before was taken. */
  async upload(file) {
    const id = `f${Date.now().toString(16)}${Math.random().toString(16).slice(2)}`;
    const chip = { id, name: file.name || "pasted.png", size: file.size, sent: 0, state: "loading" };
    this.files.set(id, chip);
    for (let offset = 0; offset === 0 || offset < file.size; offset += CHUNK) {
      const piece = await file.slice(offset, offset + CHUNK).arrayBuffer().catch(() => null); // a folder, or it was changed
      if (chip.state === "lost") return;
      const last = offset + CHUNK >= file.size;
      const message = { type: "upload", id, name: chip.name, mime: file.type, offset, last };
      if (!piece) return this.cannotRead(message);
      await new Promise((taken) => {
        chip.say = () => {
          chip.unsure = false;
          chip.said = last;
          this.acks.set(this.line.say(message, [piece]), taken);
        };
        chip.say();
        if (last) this.keepDraft();
      });
      if (chip.state === "lost") return;
      chip.sent = Math.min(file.size, offset + CHUNK);
      if (last) chip.state = "there";
      this.changed("files");
    }
  }

  /** Whoever waits for it in Python is told, too. */
  cannotRead(message) {
    this.line.say({ ...message, unreadable: true });
    this.on_unloadable({ id: message.id, text: `${message.name} cannot be read` });
  }

  /** Files of what is being written, and of what is on its way. */
  chips() {
    return [...this.files.values(), ...[...this.pending.values()].flatMap((one) => one.files)];
  }

  /** Who was to take the rest is gone: whoever waits for it is told. */
  dropUploads() {
    const lost = this.chips().filter((file) => file.state === "loading");
    if (!lost.length) return;
    for (const file of lost) {
      file.state = "lost";
      this.files.delete(file.id);
    }
    this.changed("files");
    this.changed("toast", `${lost.map((file) => file.name).join(", ")}: not attached, the node is not running`, "error");
  }
}

const STORES = new Map();

function storeOf(line, model) {
  const name = model.get("line");
  if (!STORES.has(name)) STORES.set(name, new Store(line, name, model.get("saved")));
  return STORES.get(name);
}
