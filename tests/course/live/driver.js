// Runs tasks from stdin, as JSON, with the scripts of the pages; writes their results to stdout.
const fs = require("fs"), path = require("path");
const { scripts, weights, translations = [], hints = [], texts = [] } = JSON.parse(fs.readFileSync(0, "utf8"));
for (const script of scripts) require(script);

function load(name) {
  const data = fs.readFileSync(path.join(weights, `${name}.safetensors`));
  return tinytf.readSafetensors(data.buffer.slice(data.byteOffset, data.byteOffset + data.length));
}
const float32 = (rows) => Buffer.from(Float32Array.from(rows.flatMap((row) => [...row])).buffer).toString("base64");
const attempt = (run) => {
  try { return run(); } catch (error) {
    if (!(error instanceof tinytf.SentenceError)) throw error;
    return { error: error.message };
  }
};

const translator = new tinytf.Translator(load("translator"), tinytf.phrasebook);
const translated = translations.map(({ sentence, off = [], hidden = [], positions, temperature = 1 }) => attempt(() => {
  const changes = { off: new Set(off), hidden: new Set(hidden), positions, temperature };
  const { source, target, probs, logits, maps } = translator.translate(sentence, changes);
  const weights = Object.entries(maps).map(([name, rows]) => [name, float32(rows.flat())]);
  return { source, target, probs, logits: float32(logits), maps: Object.fromEntries(weights) };
}));

const writer = texts.length ? new tinytf.Writer(load("storyteller")) : null;
const written = texts.map(({ text, rule }) => {
  const ids = writer.read(text), scores = writer.next(ids);
  const left = tinytf.restrict(scores, rule);
  return { ids, scores: float32([scores]), kept: left.flatMap((score, id) => (score === -Infinity ? [] : [id])) };
});

process.stdout.write(JSON.stringify({
  translations: translated,
  hints: hints.map((sentence) => attempt(() => ({ ids: translator.read(sentence) }))),
  texts: written,
}));
