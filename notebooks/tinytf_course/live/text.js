// From text to ids: the words of tinytf/text/words.py, with their hints, and the pieces of bpe.py.
(() => {
"use strict";
const PAD = 0, BOS = 1, EOS = 2, SPECIALS = ["<pad>", "<bos>", "<eos>"];

// ---- words ----------------------------------------------------------------------------------------
const STRAIGHT = { "‘": "'", "’": "'", "“": '"', "”": '"' };
const SHORT = { "can't": "can not", cannot: "can not", "won't": "will not" };
const ENDINGS = { "n't": "not", "'m": "am", "'re": "are", "'ve": "have", "'ll": "will" };
const BEFORE_IS = ["he", "she", "it", "that", "there", "here", "what", "who", "where", "when", "why", "how"];
const quote = (word) => (word.includes("'") && !word.includes('"') ? `"${word}"` : `'${word}'`);

// A sentence that can't be read. `near` holds what may have been meant by `word`.
class SentenceError extends Error {
  constructor(message, word = "", position = -1, near = []) {
    super(message);
    Object.assign(this, { word, position, near });
  }
}

class Vocabulary { // one id a word; `tokens[id]` is the word of an id
  constructor(words, { months = [], figures = {} } = {}) {
    Object.assign(this, { words, months, figures });
    this.tokens = [...SPECIALS, ...words];
    this.ids = new Map(this.tokens.map((token, id) => [token, id]));
  }

  // Raises SentenceError for an empty text, an unknown word, and a count in digits.
  encode(text) {
    const words = text.split(/\s+/).filter(Boolean);
    if (!words.length) throw new SentenceError("the sentence is empty: give at least one word");
    words.forEach((word, position) => {
      if (!this.ids.has(word) || SPECIALS.includes(word)) throw this.unknown(word, position);
    });
    this.refuseCountsInDigits(words);
    return words.map((word) => this.ids.get(word));
  }

  unknown(word, position) {
    const meant = near(word, this.words);
    let hint = meant.length ? `; did you mean ${meant.map(quote).join(" or ")}?` : "";
    if (!meant.length && !/[\p{L}\p{N}]/u.test(word)) hint = "; leave it out";
    return new SentenceError(
      `unknown word ${quote(word)} at position ${position}: it is not among the ${this.words.length} ` +
      `words of the vocabulary${hint}`, word, position, meant);
  }

  // Digits stand in dates and hours only: the model would drop others.
  refuseCountsInDigits(words) {
    words.forEach((word, i) => {
      const [before, after] = [words[i - 1] || "", words[i + 1] || ""];
      const dated = after === "o'clock" || this.months.includes(after);
      const year = word.length === 4 && (before === "in" || this.months.includes(before));
      if (!/^\d+$/.test(word) || dated || year) return;
      const inWords = this.figures[word];
      const write = inWords ? quote(inWords) : "'two' to 'twelve', or 'twenty'";
      throw new SentenceError(
        `the digits ${quote(word)} at position ${i} are no date or hour, and a count is written ` +
        `out: write ${write}`, word, i, inWords ? [inWords] : []);
    });
  }
}

// A sentence as the panel reads it: capitals made small where the word is known so, and without the
// full stop at its end. All else stays, for `encode` to refuse.
function asRead(text, { words }) {
  const known = new Set(words), small = (word) => (known.has(word) ? word : word.toLowerCase());
  const read = text.split(/\s+/).filter(Boolean), last = read.at(-1) || "";
  if (last === "." && read.length > 1) read.pop();
  else if (last.endsWith(".") && known.has(small(last.slice(0, -1)))) read.push(read.pop().slice(0, -1));
  const changed = read.map((word) => (known.has(small(word)) ? small(word) : word)).join(" ");
  return changed === text.trim().split(/\s+/).join(" ") ? text : changed;
}

// What may have been meant by a word that is not among these.
function near(word, words) {
  word = word.toLowerCase().replace(/[‘’“”]/g, (mark) => STRAIGHT[mark]);
  const known = new Set(words);
  const core = word.replace(/^[^\p{L}\p{N}_]+|[^\p{L}\p{N}_]+$/gu, "");
  if (known.has(word) || !core || SPECIALS.includes(word)) return known.has(word) ? [word] : [];
  const marks = [...word.slice(word.indexOf(core) + core.length)].filter((mark) => known.has(mark));
  const parts = known.has(core) ? [core] : writtenOut(core);
  if (parts.every((part) => known.has(part))) return [[...parts, ...marks].join(" ")];
  return closeMatches(core, words, 2, 0.7);
}

// Take a contraction apart, and a possessive: don't -> do not, mother's -> mother 's.
function writtenOut(word) {
  if (Object.hasOwn(SHORT, word)) return SHORT[word].split(" ");
  for (const [ending, full] of Object.entries(ENDINGS)) {
    if (word.endsWith(ending)) return [word.slice(0, -ending.length), full];
  }
  if (!word.endsWith("'s")) return [word];
  const stem = word.slice(0, -2);
  return [stem, BEFORE_IS.includes(stem) ? "is" : "'s"];
}

// Python's difflib.get_close_matches: the words that share the most letters, in order, with `word`.
function closeMatches(word, words, most, cutoff) {
  const scored = words.map((other) => [similarity([...other], [...word]), other]);
  const close = scored.filter(([score]) => score >= cutoff);
  close.sort(([score, a], [other, b]) => other - score || (a < b ? 1 : -1));
  return close.slice(0, most).map(([, other]) => other);
}

function similarity(a, b) {
  const most = Math.min(a.length, b.length); // letters that could match, before the long way
  if (2 * most < 0.7 * (a.length + b.length)) return 0;
  return (2 * matches(a, b)) / (a.length + b.length);
}

// How many letters match: those of the longest common run, and of what is left and right of it.
function matches(a, b) {
  let size = 0, inA = 0, inB = 0, above = [];
  a.forEach((letter, i) => {
    const runs = b.map((other, j) => (letter === other ? (above[j - 1] || 0) + 1 : 0));
    runs.forEach((run, j) => {
      if (run > size) [size, inA, inB] = [run, i - run + 1, j - run + 1];
    });
    above = runs;
  });
  if (!size) return 0;
  return size + matches(a.slice(0, inA), b.slice(0, inB)) + matches(a.slice(inA + size), b.slice(inB + size));
}

// ---- pieces of bytes ------------------------------------------------------------------------------
// GPT-2's pattern: a contraction's ending; a word, a number or other signs, with the space before.
const PIECES = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

class ByteBPE { // `end` is the id of the token between two texts, the last one
  constructor(merges) {
    this.ranks = new Map(merges.map(([a, b], i) => [`${a} ${b}`, 256 + i]));
    this.bytes = Array.from({ length: 256 }, (_, byte) => [byte]);
    for (const [a, b] of merges) this.bytes.push([...this.bytes[a], ...this.bytes[b]]);
    this.end = this.bytes.length;
  }

  encode(text) {
    return (text.match(PIECES) || []).flatMap((piece) => this.merge([...new TextEncoder().encode(piece)]));
  }

  // Merge the pair that was learned first, wherever it stands, until no pair is left.
  merge(ids) {
    for (;;) {
      const ranks = ids.slice(1).map((id, i) => this.ranks.get(`${ids[i]} ${id}`) ?? Infinity);
      const best = ranks.reduce((a, b) => Math.min(a, b), Infinity);
      if (best === Infinity) return ids;
      const merged = [];
      for (let i = 0; i < ids.length; i++) {
        if (this.ranks.get(`${ids[i]} ${ids[i + 1]}`) === best) i++, merged.push(best);
        else merged.push(ids[i]);
      }
      ids = merged;
    }
  }

  decode(ids) {
    return new TextDecoder().decode(Uint8Array.from(ids.flatMap((id) => this.bytes[id] || [])));
  }
}

Object.assign(tinytf, { PAD, BOS, EOS, SPECIALS, SentenceError, Vocabulary, asRead, ByteBPE });
})();
