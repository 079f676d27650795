// Encoders and encoder-decoders through the public calls, on every device; their logits against outside
// implementations are in models_test.ts. Real vectors are compared where the model is in the cache.

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertMatch,
  assertRejects,
  assertThrows,
} from "@std/assert";
import {
  beamSearch,
  classify,
  embed,
  fillMask,
  generate,
  load,
  type LoadOptions,
  type Model,
  rerank,
  ResourceError,
  translate,
  TroodonError,
  UnsupportedError,
} from "../mod.ts";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import { checkEmbedding } from "../tools/fixtures/golden_embedding.ts";
import { fixturePath, readFixture } from "./support/fixtures.ts";
import { modelNeed, modelPath } from "./support/models.ts";
import { testWith } from "./support/skip.ts";
import { bertAsGguf, writeToyClassifier, writeWordTokenizer } from "./support/toy_encoders.ts";

const DEVICES = ["reference", "wasm"] as const;
const A = [1, 15, 47, 4, 30, 2],
  B = [1, 30, 2],
  C = [1, ...Array.from({ length: 40 }, (_, i) => i + 9), 2];

function loadFixture(name: string, options: LoadOptions = {}): Promise<Model> {
  return load(fixturePath(`models/${name}`), { device: "wasm", threads: 2, ...options });
}

function cosine(a: Float32Array, b: Float32Array): number {
  const dot = (x: Float32Array, y: Float32Array) => x.reduce((sum, v, i) => sum + v * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

for (const device of DEVICES) {
  Deno.test(`${device}: a text's vector does not depend on the texts around it`, async () => {
    for (const name of ["bert", "roberta"]) {
      using model = await loadFixture(name, { device });
      const many = await embed(model, [A, B, C, A, B]);
      for (const [i, ids] of [A, B, C, A, B].entries()) {
        const [alone] = await embed(model, [ids]);
        assert(cosine(alone!, many[i]!) > 1 - 1e-9, `${name}, text ${i}`);
        assertAlmostEquals(Math.hypot(...alone!), 1, 1e-6);
      }
      assert(cosine(many[0]!, many[1]!) < 0.99, "different texts have different vectors");
    }
  });
}

Deno.test("texts that do not fit into one step take several", async () => {
  using small = await loadFixture("bert", { contextLength: 48, batch: 48 });
  using large = await loadFixture("bert", { batch: 1000 });
  const texts = [C, C.toReversed(), A, C, B, B];
  const [one, other] = [await embed(small, texts), await embed(large, texts)];
  one.forEach((vector, i) => assert(cosine(vector, other[i]!) > 1 - 1e-9, `text ${i}`));
});

Deno.test("pooling takes the mean, the first, the last or the mask's row", async () => {
  using model = await loadToy("bert", { device: "reference" });
  const rows = async (pooling: "mean" | "cls" | "last" | "mask", texts: (string | number[])[]) =>
    (await embed(model, texts, { pooling, normalize: false }))[0]!;
  const ids = model.tokenizer.encode("w5 [MASK] w7", { special: true });
  assertEquals(ids, [1, 5, 4, 7, 2]);
  const first = await rows("cls", [ids]), last = await rows("last", [ids]);
  const two = await Promise.all(
    (["mean", "cls", "last"] as const).map((one) => rows(one, [[5, 6]])),
  );
  two[0]!.forEach((value, i) => assertAlmostEquals(value, (two[1]![i]! + two[2]![i]!) / 2, 1e-6));
  // The mask's row is its place's: that of the last token where it is last, of the first where it is first.
  assertEquals(await rows("mask", [[5, 4]]), await rows("last", [[5, 4]]));
  assertEquals(await rows("mask", [[4, 5]]), await rows("cls", [[4, 5]]));
  for (const known of [first, last]) assert(cosine(await rows("mask", [ids]), known) < 0.999);
  assertEquals(await rows("cls", ["w5 [MASK] w7"]), first);
  await assertRejects(() => rows("mask", ["w5"]), RangeError, "no mask token");
  await assertRejects(
    () => embed(model, ["w5"], { pooling: "max" as "mean" }),
    RangeError,
    'pooling "max": it is one of mean, cls, last, mask',
  );
});

Deno.test("a text longer than the model takes is cut before its end token", async () => {
  using model = await loadToy("bert");
  const long = Array.from({ length: 100 }, (_, i) => `w${5 + i % 50}`).join(" ");
  const ids = model.tokenizer.encode(long);
  const [cut, same] = await embed(model, [long, [...ids.slice(0, 47), ids.at(-1)!]]);
  assertEquals(cut, same);
  await assertRejects(() => embed(model, [ids]), RangeError, "a sequence has 1 to 48");
  await assertRejects(() => embed(model, [[]]), RangeError, "Cannot encode 0 tokens");
  await assertRejects(() => embed(model, [[128]]), RangeError, "token 128 at index 0");
});

Deno.test("fillMask() fills every mask of a text", async () => {
  using model = await loadToy("bert", { precision: "exact" });
  const filled = await fillMask(model, "w5 [MASK] w7 [MASK]", { top: 3 });
  assertEquals(filled.map((candidates) => candidates.length), [3, 3]);
  for (const candidates of filled) {
    for (const { id, token, probability } of candidates) {
      assertEquals(token, model.tokenizer.tokenText(id));
      assert(probability > 0 && probability < 1);
    }
    assert(candidates[0]!.logit >= candidates[1]!.logit);
  }
  await assertRejects(() => fillMask(model, "w5"), RangeError, "no token 4 for a hidden word");
  await assertRejects(() => fillMask(model, "[MASK]", { top: 0 }), RangeError, "top 0");
});

Deno.test("a head judges a text by its first row: out(tanh(dense x))", async () => {
  for (const device of DEVICES) {
    const { folder, expected } = writeToyClassifier(fixturePath("models/bert"), 3);
    using model = await loadOnce(folder, { device, precision: "exact" });
    const [first] = await embed(model, [A], { pooling: "cls", normalize: false });
    const [labels] = await classify(model, [A]);
    const wanted = expected(first!);
    for (const { label, logit } of labels!) {
      assertAlmostEquals(logit, wanted[["low", "middle", "high"].indexOf(label)]!, 1e-4);
    }
    assertAlmostEquals(labels!.reduce((sum, { probability }) => sum + probability, 0), 1, 1e-6);
    assert(labels![0]!.logit >= labels![2]!.logit);
    await assertRejects(
      () => rerank(model, "w5", ["w6"]),
      UnsupportedError,
      "3 labels",
    );
  }
});

Deno.test("rerank() reads query and document as a pair with token types and sorts them", async () => {
  const { folder, expected } = writeToyClassifier(fixturePath("models/bert"), 1);
  writeWordTokenizer(folder);
  using model = await loadOnce(folder, { precision: "exact" });
  const documents = ["w9 w10", "w30", "w77 w12 w5", "w9 w10"];
  const ranked = await rerank(model, "w20 w21", documents);
  assertEquals(ranked.map(({ index }) => index).sort(), [0, 1, 2, 3]);
  assert(ranked.every(({ logit }, i) => i === 0 || logit <= ranked[i - 1]!.logit));
  const scores = new Map(ranked.map(({ index, logit }) => [index, logit]));
  assertEquals(scores.get(0), scores.get(3));
  // Without token types the second text would be read as part of the first.
  const ids = [1, 20, 21, 2, 30, 2];
  const [untyped] = await embed(model, [ids], { pooling: "cls", normalize: false });
  assert(Math.abs(expected(untyped!)[0]! - scores.get(1)!) > 1e-4);
  const pair = await classify(model, [{ text: "w20 w21", pair: "w30" }]);
  assertAlmostEquals(pair[0]![0]!.logit, scores.get(1)!, 1e-5);
  assertEquals((await rerank(model, "w20", documents, { top: 2 })).length, 2);
});

Deno.test("a GGUF file gives the vectors of the checkpoint, pooled as it says", async () => {
  using checkpoint = await loadFixture("bert", { precision: "exact" });
  for (const [type, pooling] of [[1, "mean"], [2, "cls"], [3, "last"]] as const) {
    const folder = Deno.makeTempDirSync();
    Deno.writeFileSync(`${folder}/bert.gguf`, bertAsGguf(fixturePath("models/bert"), type));
    using model = await loadOnce(folder, { precision: "exact" });
    const expected = await embed(checkpoint, [A, B], { pooling });
    const vectors = await embed(model, [A, B]);
    vectors.forEach((vector, i) => assert(cosine(vector, expected[i]!) > 1 - 1e-9, pooling));
    await assertRejects(() => fillMask(model, A), UnsupportedError, "no head at all");
  }
});

const REFUSED: readonly (readonly [fixture: string, change: Record<string, unknown>, RegExp])[] = [
  [
    "bert",
    { type_vocab_size: 3 },
    /token_type_embeddings\.weight: has shape \[2,32\] where \[3,32\]/,
  ],
  [
    "bert",
    { position_embedding_type: "relative_key" },
    /position_embedding_type: is .*relative_key/,
  ],
  ["bert", { is_decoder: true }, /is_decoder: is boolean true/],
  ["bert", { num_hidden_layers: 3 }, /layer\.2\..* is missing/],
  ["bert", { hidden_act: "mish" }, /activation "mish" is not built/],
  ["roberta", { pad_token_id: 0 }, /pad_token_id: is number 0/],
  ["m2m100", { scale_embedding: false }, /scale_embedding: is boolean false/],
  ["m2m100", { decoder_start_token_id: null }, /decoder_start_token_id: is missing/],
  ["m2m100", { encoder_attention_heads: 5 }, /encoder_attention_heads: is 5, which does not div/],
  ["m2m100", { encoder_ffn_dim: 41 }, /encoder\.layers\.0\.fc1\.weight: has shape \[40,32\]/],
  ["t5", { relative_attention_max_distance: 2 }, /relativeDistance: is 2/],
  [
    "t5",
    { relative_attention_num_buckets: 6 },
    /relative_attention_bias\.weight: has shape \[8,4\]/,
  ],
  ["t5", { num_decoder_layers: 3 }, /decoder\.block\.2\..* is missing/],
];

Deno.test("a config that its tensors contradict, or that asks for more, is refused by key", async () => {
  for (const [fixture, change, message] of REFUSED) {
    const folder = Deno.makeTempDirSync();
    const path = fixturePath(`models/${fixture}`);
    const config = JSON.parse(Deno.readTextFileSync(`${path}/config.json`));
    Deno.writeTextFileSync(`${folder}/config.json`, JSON.stringify({ ...config, ...change }));
    Deno.copyFileSync(`${path}/model.safetensors`, `${folder}/model.safetensors`);
    const error = await assertRejects(() => loadOnce(folder, {}), TroodonError);
    assertMatch(error.message, message, JSON.stringify(change));
  }
});

Deno.test("files of sentence-transformers that ask for more are refused by name", async () => {
  const module = (type: string) => ({
    idx: 2,
    path: "2",
    type: `sentence_transformers.models.${type}`,
  });
  const path = fixturePath("models/bert");
  const loadBeside = async (name: string, content: unknown) => {
    const folder = Deno.makeTempDirSync();
    for (const file of ["config.json", "model.safetensors"]) {
      Deno.copyFileSync(`${path}/${file}`, `${folder}/${file}`);
    }
    Deno.writeTextFileSync(`${folder}/${name}`, JSON.stringify(content));
    return (await loadOnce(folder, {})).dispose();
  };
  for (const type of ["Dense", "LayerNorm", "CNN"]) {
    await assertRejects(
      () => loadBeside("modules.json", [module("Pooling"), module(type)]),
      UnsupportedError,
      `modules.json: has a ${type} module`,
    );
  }
  await loadBeside("modules.json", ["Transformer", "Pooling", "Normalize"].map(module));
  for (
    const [name, key, fine] of [
      ["sentence_bert_config.json", "do_lower_case", false],
      ["config_sentence_transformers.json", "default_prompt_name", null],
    ] as const
  ) {
    await loadBeside(name, { [key]: fine, other: 1 });
    const wrong = () => loadBeside(name, { [key]: "query" });
    await assertRejects(wrong, UnsupportedError, `${name}, ${key}: is`);
  }
});

Deno.test("each call says what a model of another kind lacks", async () => {
  using encoder = await loadFixture("bert");
  assertThrows(() => encoder.createSession(), UnsupportedError, "continues no text");
  await assertRejects(
    () => rerank(encoder, "a", ["b"]),
    UnsupportedError,
    "one for masked tokens",
  );
  await assertRejects(() => beamSearch(encoder, [5]), UnsupportedError, "no encoder-decoder");
  const ids = [1, 15, 2] as unknown as string[];
  await assertRejects(() => embed(encoder, ids), TypeError, "0 of the list is no text");
  using decoder = await loadFixture("qwen3");
  await assertRejects(() => embed(decoder, ["a"]), UnsupportedError, "embeddings: true");
  await assertRejects(
    () => decoder.createSession().encode([5]),
    TypeError,
    "is no encoder-decoder",
  );
  using both = await loadFixture("t5");
  await assertRejects(() => fillMask(both, "a"), UnsupportedError, "it is no encoder");
  assertEquals([encoder, decoder, both].map(({ info }) => info.network), [
    "encoder",
    "decoder",
    "encoder-decoder",
  ]);
  await assertRejects(() => loadFixture("bert", { batch: 8 }), RangeError, "batch 8");
});

Deno.test("a session of an encoder-decoder needs a source, keeps it, and takes another", async () => {
  using model = await loadFixture("m2m100", { precision: "exact", sessions: 2 });
  using session = model.createSession();
  await assertRejects(() => session.eval([2]), TypeError, "no source text yet; call encode first");
  await session.encode([13, 45, 2]);
  await session.eval([2, 13]);
  const before = session.logits().slice();
  await session.encode([91, 26, 100, 2]);
  assertEquals(session.length, 0);
  await session.eval([2, 13]);
  assert(cosine(before, session.logits()) < 0.9999, "another source gives other logits");
  await session.encode([13, 45, 2]);
  await session.sync([2, 13]);
  assertEquals(session.logits(), before);
  await assertRejects(() => session.encode([]), RangeError, "empty source");
  await assertRejects(() => session.encode([128]), RangeError, "token 128");
  await assertRejects(() => session.encode(new Array(65).fill(5)), ResourceError, "64 fit");
});

for (const device of DEVICES) {
  Deno.test(`${device}: a session of an encoder-decoder is saved with its source`, async () => {
    using model = await loadFixture("m2m100", { device, precision: "exact", sessions: 2 });
    using session = model.createSession();
    // A source that is longer than its target, one that is shorter, and none at all.
    for (const [source, target] of [[[13, 45, 91, 26, 2], [2, 13]], [[7, 2], [2, 13, 45, 8]]]) {
      await session.encode(source!);
      await session.eval(target!);
      const bytes = await session.save();
      await session.eval([30]);
      using other = model.createSession();
      await other.encode([99, 98, 97, 96, 95, 94, 2]);
      await other.load(bytes);
      assertEquals(other.tokens, target);
      await other.eval([30]);
      assertEquals(other.logits(), session.logits());
    }
    using empty = model.createSession();
    const nothing = await empty.save();
    await session.load(nothing);
    await assertRejects(() => session.eval([2]), TypeError, "no source text yet");
    using short = await loadFixture("m2m100", { device, precision: "exact", contextLength: 4 });
    using small = short.createSession();
    await session.encode([13, 45, 91, 26, 2]);
    const saved = await session.save();
    await assertRejects(() => small.load(saved), ResourceError, "has 5 tokens, and 4 fit");
  });
}

Deno.test("a source is encoded once, however long the answer and however many the beams", async () => {
  using model = await loadToy("m2m100", { sessions: 4, logitRows: 3 });
  const { executable } = (model as LoadedModel).runtime;
  const run = executable.run;
  const steps: [isSource: boolean, rows: number][] = [];
  executable.run = (step) => {
    steps.push([step.isSource, step.count]);
    return run(step);
  };
  await generate(model, "w45 w91 w26", { maxTokens: 5, ignoreEos: true }).result;
  assertEquals(steps, [[true, 4], ...new Array(5).fill([false, 1])]);
  steps.length = 0;
  await beamSearch(model, "w45 w91 w26", { beams: 3, maxTokens: 4, endIds: [] });
  assertEquals(steps, [[true, 4], [false, 1], [false, 3], [false, 3], [false, 3]]);
});

for (const device of DEVICES) {
  Deno.test(`${device}: one beam is greedy, and more beams find no worse text`, async () => {
    using model = await loadFixture("m2m100", {
      ...{ device, precision: "exact", sessions: 6, logitRows: 3 },
    });
    const source = [16, 48, 94, 29, 103, 66];
    const search = (beams: number) =>
      beamSearch(model, source, { beams, maxTokens: 8, endIds: [], lengthPenalty: 0 });
    using session = model.createSession();
    await session.encode(source);
    await session.eval([2]);
    const greedy: number[] = [];
    while (greedy.length < 8) {
      greedy.push(session.logits().indexOf(Math.max(...session.logits())));
      await session.eval([greedy.at(-1)!]);
    }
    const [one] = await search(1);
    assertEquals(one!.ids, greedy);
    const four = await search(4);
    assertEquals(four.length, 4);
    assert(four[0]!.score >= one!.score - 1e-6);
    // The score is that of the text when it is computed again in one go.
    await session.sync([2]);
    let sum = 0;
    for (const id of four[0]!.ids) {
      const logits = session.logits();
      const total = Math.log(logits.reduce((all, value) => all + Math.exp(value), 0));
      sum += logits[id]! - total;
      await session.eval([id]);
    }
    assertAlmostEquals(four[0]!.score, sum, 1e-4);
  });
}

Deno.test("beams need their sessions", async () => {
  using model = await loadFixture("t5");
  await assertRejects(
    () => beamSearch(model, [13, 1], { beams: 2, endIds: [1] }),
    ResourceError,
    "2 beams need 3 sessions, and the model has 1. Load it with sessions: 3",
  );
  await assertRejects(
    () => beamSearch(model, [13], { beams: 0, endIds: [] }),
    RangeError,
    "beams 0",
  );
});

Deno.test("generate() and translate() write what a prompt's encoding asks for", async () => {
  using model = await loadToy("m2m100", { precision: "exact", sessions: 3 });
  const { ids, finishReason } = await generate(model, "w45 w91 w26", { maxTokens: 4 }).result;
  using session = model.createSession();
  await session.encode(model.tokenizer.encode("w45 w91 w26"));
  await session.eval([2]);
  assertEquals(ids[0], session.logits().indexOf(Math.max(...session.logits())));
  assertEquals([ids.length, finishReason], [4, "length"]);
  // Tokens __w5__ and __w6__ name languages.
  const options = { from: "w5", to: "w6", maxTokens: 4 };
  const text = await translate(model, "w45 w91", options);
  await session.encode([105, 45, 91, 2]);
  await session.eval([2, 106]);
  const first = session.logits().indexOf(Math.max(...session.logits()));
  assert(text.startsWith(model.tokenizer.decode([first])), text);
  session.dispose();
  const searched = await translate(model, "w45 w91", { ...options, beams: 2 });
  assertEquals(typeof searched, "string");
  await assertRejects(
    () => translate(model, "w45", { from: "w5", to: "xx" }),
    UnsupportedError,
    "no token __xx__",
  );
});

/** Loads a fixture together with a tokenizer of words w0 to w127. */
async function loadToy(name: string, options: LoadOptions = {}): Promise<Model> {
  const folder = Deno.makeTempDirSync();
  try {
    for (const file of ["config.json", "model.safetensors"]) {
      Deno.copyFileSync(fixturePath(`models/${name}/${file}`), `${folder}/${file}`);
    }
    writeWordTokenizer(folder, name === "m2m100");
  } catch (error) {
    Deno.removeSync(folder, { recursive: true });
    throw error;
  }
  return await loadOnce(folder, options);
}

/** Loads a folder that is not needed afterwards. */
async function loadOnce(folder: string, options: LoadOptions): Promise<Model> {
  try {
    return await load(folder, { device: "wasm", threads: 2, ...options });
  } finally {
    Deno.removeSync(folder, { recursive: true });
  }
}

testWith(
  [modelNeed("minilm")],
  "vectors of all-MiniLM-L6-v2 are those of another implementation",
  async () => {
    const context = { device: "wasm", full: false, packages: false } as const;
    await checkEmbedding(
      modelPath("minilm")!,
      fixturePath("golden/embedding-minilm.json"),
      context,
    );
  },
);

testWith(
  [modelNeed("minilm")],
  "fast vectors of all-MiniLM-L6-v2 are near the exact ones, on any threads the same, in less memory",
  async () => {
    const { sentences, vectors_f32: exact } = JSON.parse(
      readFixture("golden/embedding-minilm.json"),
    ) as { sentences: string[]; vectors_f32: number[][] };
    const results: Float32Array[][] = [];
    for (const threads of [1, 2]) {
      using model = await load(modelPath("minilm")!, { device: "wasm", threads });
      results.push(await embed(model, sentences));
      assertEquals(model.info.rounded, 36);
      // Of 90 MB 47 are embeddings, which stay; the matrices take 9 bits in place of 32.
      assert(model.memory.weights < 62e6, `${model.memory.weights} bytes`);
    }
    assertEquals(results[1], results[0]);
    for (const [i, vector] of results[0]!.entries()) {
      const cosine = vector.reduce((sum, value, k) => sum + value * exact[i]![k]!, 0);
      // The empty text is two tokens, about which the model has little to say.
      const least = sentences[i] === "" ? 0.9977 : 0.999;
      assert(cosine > least, `"${sentences[i]}": ${cosine}`);
    }
    using exactly = await load(modelPath("minilm")!, { device: "wasm", precision: "exact" });
    assertEquals(exactly.info.rounded, 0);
  },
);

Deno.test("a decoder embeds texts by its last state, or by the mean of all", async () => {
  const path = fixturePath("models/llama_formats/llama.Q8_0.gguf");
  using plain = await load(path, { device: "wasm", threads: 1 });
  await assertRejects(() => embed(plain, ["a b"]), UnsupportedError, "embeddings: true");
  using model = await load(path, { device: "wasm", threads: 1, embeddings: true });
  const ids = model.tokenizer.encode("a b c");
  using session = model.createSession();
  const states: Float32Array[] = [];
  for (const id of ids) {
    await session.eval([id]);
    states.push(session.embedding().slice());
  }
  const [last] = await embed(model, ["a b c"], { normalize: false });
  const [mean, again] = await embed(model, [ids, ids], { pooling: "mean", normalize: false });
  assertEquals(mean, again);
  for (const [i, value] of last!.entries()) {
    assertAlmostEquals(value, states.at(-1)![i]!, 1e-4);
    assertAlmostEquals(mean![i]!, states.reduce((sum, row) => sum + row[i]!, 0) / ids.length, 1e-4);
  }
  const [unit] = await embed(model, ["a b c"]);
  assertAlmostEquals(Math.hypot(...unit!), 1, 1e-6);
  await assertRejects(() => embed(model, ["a"], { pooling: "cls" }), RangeError, "last or mean");
});
