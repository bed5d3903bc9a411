// Files of messages, as the page has fetched them from Python.

class Fetched {
  constructor(line) {
    this.line = line;
    /** By their hash. */
    this.wanted = new Map();
    this.urls = new Map();
  }

  /** The bytes of a file; a picture's have its type. Fetched once; null if that cannot be. */
  file(file) {
    if (!this.wanted.has(file.sha256)) {
      const want = { file };
      want.promise = new Promise((done) => (want.done = done));
      this.wanted.set(file.sha256, want);
      this.fetch(want);
    }
    return this.wanted.get(file.sha256).promise;
  }

  /** From its beginning. */
  fetch(want) {
    Object.assign(want, { pieces: [], got: 0, lost: false });
    this.line.say({ type: "fetch", sha256: want.file.sha256 });
  }

  /** A piece of one came. */
  took(message, piece) {
    const want = this.wanted.get(message.sha256);
    if (!want || message.offset !== want.got) return;
    want.pieces.push(piece);
    want.got += piece.byteLength;
    const type = message.picture ? want.file.mime : "";
    if (want.got < message.size) return;
    want.blob = new Blob(want.pieces, { type });
    want.done(want.blob);
  }

  /** It may be asked for again. */
  cannot(sha256) {
    this.wanted.get(sha256)?.done(null);
    this.wanted.delete(sha256);
  }

  /** Pieces may be lost. */
  missed() {
    for (const want of this.wanted.values()) want.lost = !want.blob;
  }

  /** Python hears again: what was lost is fetched anew. */
  again() {
    for (const want of this.wanted.values()) if (want.lost) this.fetch(want);
  }

  url(file, blob) {
    if (!this.urls.has(file.sha256)) this.urls.set(file.sha256, URL.createObjectURL(blob));
    return this.urls.get(file.sha256);
  }

  /** Nobody looks. The page would keep files for as long as it is open; who comes back fetches them again. */
  release() {
    for (const url of this.urls.values()) URL.revokeObjectURL(url);
    this.urls.clear();
    this.wanted.clear();
  }
}
