// The two apps: a translator (tinytf/apps/translator.py) and a writer (tinytf/apps/writer.py).
(() => {
"use strict";
const { PAD, BOS, EOS, SentenceError, Vocabulary, ByteBPE, Stacks } = tinytf;
const { newRun, range, argmax, row, linear, softmax, sinusoidalEncoding } = tinytf;

class Translator extends Stacks {
  constructor(file, rules) {
    super(file);
    this.source = new Vocabulary(file.header.source_words, rules);
    this.target = new Vocabulary(file.header.target_words);
    this.encoding = sinusoidalEncoding(this.config.max_len, this.config.d_model);
    this.output = this.tensors[this.config.tie_output ? "tgt_embedding.weight" : "output.weight"];
  }

  // The ids of a sentence, with <eos>. Raises SentenceError, as tinytf does, and for too many words.
  read(sentence) {
    const { max_len } = this.config, count = sentence.split(/\s+/).filter(Boolean).length;
    if (count >= max_len) {
      throw new SentenceError(`the sentence has ${count} words, and the model reads at most ` +
        `${max_len - 1}: shorten it`);
    }
    return [...this.source.encode(sentence), EOS];
  }

  embedSide(side, ids, positions) {
    const scale = Math.sqrt(this.config.d_model);
    return this.embed(ids, this.tensors[`${side}_embedding.weight`], scale, this.encoding, positions);
  }

  encode(ids, run = newRun()) {
    const x = this.embedSide("src", ids, run.positions || range(ids.length));
    return this.stack("encoder", x, this.newCaches(), (t, s) => !run.hidden.has(s), run);
  }

  // Scores of the word after each of the new ids: (T, V)
  decode(ids, memory, caches, run = newRun()) {
    const x = this.embedSide("tgt", ids, range(ids.length, caches[0].own.rows));
    const causal = (t, s) => s <= t, shown = (t, s) => !run.hidden.has(s);
    return linear(this.stack("decoder", x, caches, causal, run, memory, shown), this.output);
  }

  // Translate greedily, the likeliest word at each step. `changes` are those of `newRun`. Returns
  // { source, target, probs, logits, maps }: words, the probability of each target word, the scores
  // it was chosen by, and where each head looked.
  translate(sentence, changes) {
    const ids = this.read(sentence), run = newRun(changes);
    const memory = this.encode(ids, run), caches = this.newCaches();
    const limit = Math.min(this.config.max_len, 2 * ids.length + 10);
    const target = [], probs = [], logits = [];
    for (let id = BOS; id !== EOS && target.length < limit; target.push(id)) {
      logits.push(this.decode([id], memory, caches, run).data);
      const scores = logits.at(-1).slice();
      scores[PAD] = scores[BOS] = -Infinity;
      id = argmax(scores);
      probs.push(softmax(scores)[id]);
    }
    const words = (list, vocabulary) => list.map((id) => vocabulary.tokens[id]);
    return { source: words(ids, this.source), target: words(target, this.target), probs, logits, maps: run.maps };
  }
}

// ---- what may be sampled, in the order of tinytf/decoding/sampling.py -------------------------------
// Each maps scores to scores; -Infinity is ruled out. Ties go to the lower id.
const ranked = (scores) => range(scores.length).sort((a, b) => scores[b] - scores[a] || a - b);

function only(scores, ids) {
  const left = scores.map(() => -Infinity);
  for (const id of ids) left[id] = scores[id];
  return left;
}

function topP(scores, p) {
  if (p >= 1) return scores;
  const probs = softmax(scores), kept = [];
  let held = 0;
  for (const id of ranked(scores)) {
    kept.push(id);
    held += probs[id];
    if (held >= p) break;
  }
  return only(scores, kept);
}

function restrict(scores, { temperature = 1, topK = scores.length, p = 1 } = {}) {
  const divided = Array.from(scores, (score) => score / temperature);
  return topP(only(divided, ranked(divided).slice(0, topK)), p);
}

// Draw an id with probability softmax(scores); `random` is a number in [0, 1).
function draw(scores, random = Math.random()) {
  const probs = softmax(scores);
  let last = argmax(probs);
  for (let id = 0; id < probs.length; id++) {
    if (!probs[id]) continue;
    last = id;
    random -= probs[id];
    if (random < 0) break;
  }
  return last;
}

class Writer extends Stacks {
  constructor(file) {
    super(file);
    this.tokenizer = new ByteBPE(file.header.merges);
    this.begins = file.header.begins === true; // a text begins after the end of another
    this.held = { ids: [], caches: this.newCaches() };
  }

  // A text's ids, as the model reads them: where they are more than max_len, the last half of it.
  read(text, read = this.tokenizer.encode(text)) {
    const { max_len } = this.config;
    const ids = this.begins || !read.length ? [this.tokenizer.end, ...read] : read;
    return ids.length > max_len ? ids.slice(-Math.max(1, max_len >> 1)) : ids;
  }

  // Scores of the token that comes next: (V,). What was read before is not computed again.
  next(ids) {
    const { held } = this;
    let same = 0;
    while (same < held.ids.length && same < ids.length - 1 && held.ids[same] === ids[same]) same++;
    for (const cache of held.caches) cache.own.rows = same;
    held.ids = [...ids];
    const fresh = ids.slice(same), embedding = this.tensors["embedding.weight"];
    const positions = range(fresh.length, same);
    const x = this.embed(fresh, embedding, 1, this.tensors["positions.table"], positions);
    const hidden = this.stack("decoder", x, held.caches, (t, s) => s <= t, newRun());
    return linear({ rows: 1, cols: hidden.cols, data: row(hidden, hidden.rows - 1) }, embedding).data;
  }
}

Object.assign(tinytf, { Translator, Writer, restrict, draw, ranked });
})();
