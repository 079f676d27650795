// What takes options refuses a name that none has, with the one that was meant, before it does anything; what takes
// lists, texts or bytes says so in plain words when it is given something else, and never shows what it was given.

import { assert, assertMatch, assertRejects } from "@std/assert";
import * as troodon from "../mod.ts";
import { fixturePath } from "./support/fixtures.ts";
import { TINY_LLAMA } from "./support/models.ts";

/** A call with options that no one has, as a script in JavaScript would make it. */
type Call = (options: never) => unknown;

async function refused(call: () => unknown, kind: typeof Error): Promise<string> {
  const error = await assertRejects(async () => await call(), kind);
  return (error as Error).message;
}

Deno.test("an option that there is not is refused by every function, with what was meant", async () => {
  using model = await troodon.load(TINY_LLAMA, { device: "wasm", threads: 1, embeddings: true });
  using bert = await troodon.load(fixturePath("models/bert"), { device: "wasm", threads: 1 });
  using session = model.createSession();
  const turns = [{ role: "user", content: "a" }];
  const graph = {} as troodon.LoadedGraph;
  const calls: [name: string, wrong: string, meant: string, call: Call][] = [
    ["load", "contextSize", "contextLength", (o) => troodon.load(TINY_LLAMA, o)],
    ["inspectModel", "context_size", "contextLength", (o) => troodon.inspectModel(TINY_LLAMA, o)],
    ["loadTokenizer", "cache_dir", "cacheDir", (o) => troodon.loadTokenizer(TINY_LLAMA, o)],
    ["loadGraph", "limit", "limits", (o) => troodon.loadGraph("none.onnx", o)],
    ["pullModel", "cache_dir", "cacheDir", (o) => troodon.pullModel(TINY_LLAMA, o)],
    ["generate", "max_tokenz", "maxTokens", (o) => troodon.generate(model, "a", o)],
    ["generate", "contextSize", "contextLength of load()", (o) => troodon.generate(model, "a", o)],
    ["generate", "temprature", "temperature", (o) => troodon.generate(model, "a", o)],
    ["generate many", "maxToken", "maxTokens", (o) => troodon.generate(model, ["a", "b"], o)],
    ["createSampler", "temprature", "temperature", (o) => troodon.createSampler(o)],
    ["embed", "poling", "pooling", (o) => troodon.embed(bert, [[1, 2]], o)],
    ["rerank", "topN", "top", (o) => troodon.rerank(bert, "a", ["b"], o)],
    ["classify", "tops", "top", (o) => troodon.classify(bert, ["b"], o)],
    ["fillMask", "topk", "top", (o) => troodon.fillMask(bert, [1, 2], o)],
    ["translate", "max_tokens", "maxTokens", (o) => troodon.translate(model, "a", o)],
    ["beamSearch", "beam", "beams", (o) => troodon.beamSearch(model, "a", o)],
    ["contrastiveSearch", "topk", "topK", (o) => troodon.contrastiveSearch(model, "a", o)],
    ["perplexity", "windw", "window", (o) => troodon.perplexity(model, "a b c", o)],
    ["tokenize", "add_special", "addSpecial", (o) => troodon.tokenize(model, "a", o)],
    ["encode", "specials", "special", (o) => model.tokenizer.encode("a", o)],
    ["decode", "skip_special", "skipSpecial", (o) => model.tokenizer.decode([1], o)],
    ["eval", "onLogit", "onLogits", (o) => session.eval([1], o)],
    ["sync", "signals", "signal", (o) => session.sync([1], o)],
    ["quantize", "formats", "format", (o) => troodon.quantize(TINY_LLAMA, "/none.gguf", o)],
    ["quantError", "thread", "threads", (o) => troodon.quantError(TINY_LLAMA, o)],
    ["createArena", "thread", "threads", (o) => troodon.createArena(o)],
    ["meanPoolKV", "kv_heads", "kvHeads", (o) => troodon.meanPoolKV(new Float32Array(4), o)],
    ["sentenceVectors", "pad_id", "padId", (o) => troodon.sentenceVectors(graph, [[1]], o)],
    [
      "detectSpeech",
      "treshold",
      "threshold",
      (o) => troodon.detectSpeech(graph, new Float32Array(1), o),
    ],
    ["readPicture", "max_pixels", "maxPixels", (o) => troodon.readPicture(new Uint8Array(), o)],
    [
      "adapters",
      "scal",
      "scale",
      (o) => troodon.load(TINY_LLAMA, { adapters: [{ path: "none", ...o as object }] }),
    ],
  ];
  for (const [name, wrong, meant, call] of calls) {
    const message = await refused(() => call({ [wrong]: 1 } as never), RangeError);
    assert(message.includes(`"${wrong}"`), `${name}: ${message}`);
    assert(
      message.toLowerCase().includes(`did you mean ${meant.toLowerCase()}?`),
      `${name}: ${message}`,
    );
  }
  await refused(() => troodon.chat(model, turns, { max_tokenz: 1 } as never), Error);
});

Deno.test("files are named by paths, by URLs, and by URLs as text", async () => {
  const url = new URL(`file://${TINY_LLAMA}`);
  for (const name of [TINY_LLAMA, url, url.href]) {
    using model = await troodon.load(name, { device: "wasm", threads: 1 });
    const { info } = await troodon.inspectModel(name);
    const { vocabSize } = await troodon.loadTokenizer(name);
    assert(info.name === model.info.name && vocabSize === info.vocabulary);
    assert(await troodon.pullModel(name) === TINY_LLAMA);
    assert((await troodon.quantError(name, { format: "q8_0" })).total.relative >= 0);
  }
});

Deno.test("lists, typed arrays and one text alone are taken, or refused in plain words", async () => {
  using model = await troodon.load(TINY_LLAMA, { device: "wasm", threads: 1, embeddings: true });
  const ids = model.tokenizer.encode("a b");
  assert(model.tokenizer.decode(new Uint32Array(ids)) === model.tokenizer.decode(ids));
  const [plain, typed] = await troodon.embed(model, [ids, new Int32Array(ids) as never]);
  assert(plain!.every((value, i) => value === typed![i]));
  const bytes = new Uint8Array(100_000).fill(65);
  const calls: [call: () => unknown, message: RegExp][] = [
    [() => troodon.embed(model, "one text" as never), /takes a list of texts, \[text\] for one/],
    [() => troodon.rerank(model, "a", "b" as never), /takes a list of texts/],
    [() => troodon.chat(model, "Hi" as never), /messages are a list/],
    [() => troodon.load(bytes as never), /give a path, a URL or the name of a model/],
    [() => troodon.loadGraph(bytes as never), /give a path, a URL or the name of a model/],
    [() => troodon.quantize(bytes as never, "/x.gguf", { format: "q4_0" }), /give a path/],
    [() => troodon.readPicture("page.png" as never), /give its bytes as a Uint8Array/],
    [() => troodon.readPng("page.png" as never), /give its bytes as a Uint8Array/],
    [() => troodon.readWav("a.wav" as never), /give its bytes as a Uint8Array/],
    [() => model.tokenizer.encode(5 as never), /no text/],
  ];
  for (const [call, expected] of calls) {
    const message = await refused(call, TypeError);
    assertMatch(message, expected);
    assert(message.length < 200, "the message holds what was given");
  }
});
