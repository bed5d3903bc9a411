// The chat that is open in a hub, under its rows. Python makes it, and keeps it when another one is shown.

class Inside {
  constructor(hub, host) {
    this.hub = hub;
    this.host = host;
    this.asked = false; // from this view, by the person: the chat takes the focus when it is there
    this.root = el("section", { class: "hub-chat", "aria-label": "Chat", hidden: true });
    this.changed = () => this.show();
    hub.model.on("change:chat", this.changed);
  }

  close() {
    this.hub.model.off("change:chat", this.changed);
    this.end?.abort();
  }

  async show() {
    const { hub } = this;
    const ref = hub.model.get("chat");
    this.end?.abort();
    this.root.replaceChildren();
    this.root.hidden = !ref;
    hub.root.classList.toggle("hub-chatting", Boolean(ref));
    hub.settled();
    if (!ref) return;
    hub.scroll.style.minHeight = ""; // what was clicked has been: the chat comes close to it
    const end = (this.end = new AbortController());
    const place = el("div", { class: "hub-chat-place" });
    const hide = button("×", { class: "hub-hide", "aria-label": "Close the chat", title: "Close the chat" }, () => this.hide());
    this.root.append(hide, place);
    try {
      const chat = await this.host.getWidget(ref);
      if (end.signal.aborted) return;
      await chat.render({ el: place, signal: end.signal });
      if (!end.signal.aborted) this.focus();
    } catch (problem) {
      console.warn("AgentHub: the chat cannot be shown in here", problem);
      const command = el("code", null, "%aios chat NAME");
      place.replaceChildren(el("div", { class: "aios-note" }, "The chat cannot be shown in here. In a cell, ", command, " opens it."));
    }
  }

  focus() {
    this.hub.settled();
    if (!this.asked) return;
    this.asked = false;
    this.root.scrollIntoView({ block: "nearest" });
    this.root.querySelector("textarea")?.focus({ preventScroll: true });
  }

  hide() {
    this.hub.model.set("chat", ""); // not by a message: only a node would hear that
    this.hub.model.save_changes();
    this.hub.input.focus({ preventScroll: true });
  }
}
