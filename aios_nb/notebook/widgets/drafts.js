// What was typed and not sent, kept for the page that is loaded again and the cell that is run again.

const DRAFTS = "aios-chat-draft";
/** Who has kept what: of the whole page, each chat's script is loaded by itself. */
const KEEPERS = (window[Symbol.for(DRAFTS)] ??= new Map());

/** The names of all chats of the page, seen or not; each says so when it is made. */
const CHATS = (window[Symbol.for(`${DRAFTS}:chats`)] ??= new Set());

/** What the keys of a conversation begin with, or of its agent, where none had begun. */
function draftKeys(head) {
  return `${DRAFTS}:${head.home}:${head.agent.id}:${head.conversation ? `${head.conversation}:` : ""}`;
}

function keep(key, text, store) {
  if (text) KEEPERS.set(key, store);
  else KEEPERS.delete(key);
  try {
    sessionStorage.removeItem(key); // if there is no room, nothing older stays in its place
    if (text) sessionStorage.setItem(key, text);
  } catch {
    // No storage here: the text is in the box as long as the box is there.
  }
}

function kept(key) {
  try {
    return sessionStorage.getItem(key) || "";
  } catch {
    return "";
  }
}

/** The key of what was kept for this conversation, and is in no box of another cell; one that has not begun takes what was meant for its agent. */
function leftDraft(head, cell) {
  const ours = draftKeys(head);
  const isElsewhere = (key) => {
    const store = KEEPERS.get(key);
    if (!store) return CHATS.has(key.slice(ours.length)); // its view has not been drawn yet
    return store.views.size || (store.cell !== cell && store.cell?.isConnected);
  };
  const isOurs = (key) => key.startsWith(ours) && !key.slice(ours.length).includes(":") && !isElsewhere(key);
  try {
    return Object.keys(sessionStorage).find(isOurs);
  } catch {
    return undefined;
  }
}

/** Texts as one, each on a line of its own. */
function together(...texts) {
  return texts.filter(Boolean).join("\n");
}
