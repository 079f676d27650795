import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  cacheDims,
  type DecoderForm,
  POSITIONS,
  VOCABULARY,
  writeDecoder,
  writeMergedDecoder,
  writeSplitDecoder,
} from "../../../tests/support/onnx_decoder.ts";
import { generate, type GraphTensor, load, loadGraph, perplexity } from "../../../mod.ts";
import { ResourceError, UnsupportedError } from "../../errors.ts";
import type { LoadOptions, Model } from "../../decode/model.ts";

const PROMPT = [1, 4, 9, 0, 7, 7, 2];
const STEPS = [3, 10, 5];
const EXACT = { precision: "exact", device: "reference", contextLength: 32 } as const;

type Files = Readonly<Record<string, Uint8Array | string>>;

/** Loads files that lie in a folder of their own. */
async function withModel(
  files: Files,
  options: LoadOptions,
  use: (model: Model, folder: string) => Promise<void> | void,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    for (const [name, contents] of Object.entries(files)) {
      const path = `${folder}/${name}`;
      await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
      if (typeof contents === "string") await Deno.writeTextFile(path, contents);
      else await Deno.writeFile(path, contents);
    }
    using model = await load(folder, { ...EXACT, ...options });
    await use(model, folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Logits after each of some tokens, from one run of the graph without a past. */
async function logitsByGraph(form: DecoderForm, tokens: readonly number[]): Promise<number[][]> {
  const path = await Deno.makeTempFile({ suffix: ".onnx" });
  try {
    const plain = form.mask === "counted" ? "added" : form.mask ?? "added";
    const same = {
      ...{ ...form, mask: plain, lastOnly: false, oneToken: false },
      names: "past_key_in",
    } as const;
    await Deno.writeFile(path, writeDecoder(same));
    using graph = await loadGraph(path, { device: "reference" });
    const n = tokens.length;
    const longs = (values: readonly number[]) => BigInt64Array.from(values, BigInt);
    const places = tokens.map((_, i) => i);
    const isLater = (i: number) => i % n > Math.floor(i / n);
    const square = Array.from({ length: n * n }, (_, i) => isLater(i));
    const masks = {
      added: { data: Float32Array.from(square, (later) => later ? -65504 : 0), dims: [1, 1, n, n] },
      hidden: { data: Uint8Array.from(square, Number), dims: [1, 1, n, n] },
      seen: { data: longs(places.map(() => 1)), dims: [1, n] },
    };
    const all = {
      input_ids: { data: longs(tokens), dims: [1, n] },
      position_ids: { data: longs(places), dims: [1, n] },
      cache_position: { data: longs(places), dims: [n] },
      attention_mask: masks[plain],
    };
    const given = graph.inputs.map(({ name }) => {
      const part = name.includes("key") ? "key" : "value";
      const dims = cacheDims({ layout: form.layout ?? "heads first" }, part, 0) as number[];
      const known = (all as Readonly<Record<string, GraphTensor>>)[name];
      return [name, known ?? { data: new Float32Array(0), dims }] as const;
    });
    const { lm_logits: logits } = await graph.run(Object.fromEntries(given), {
      outputs: ["lm_logits"],
    });
    const numbers = Array.from((logits as { data: Float32Array }).data);
    return tokens.map((_, i) => numbers.slice(i * VOCABULARY, (i + 1) * VOCABULARY));
  } finally {
    await Deno.remove(path);
  }
}

function assertClose(actual: ArrayLike<number>, expected: readonly number[], what: string): void {
  const worst = Math.max(...expected.map((value, i) => Math.abs(value - actual[i]!)));
  assert(worst < 1e-5, `${what}: logits differ by ${worst}`);
}

/** A prompt in chunks and steps must give what the graph gives for all tokens at once. */
async function assertSteps(model: Model, expected: readonly number[][]): Promise<void> {
  using session = model.createSession();
  await session.sync(PROMPT);
  assertClose(session.logits(), expected[PROMPT.length - 1]!, "prompt");
  for (const [i, token] of STEPS.entries()) {
    await session.eval([token]);
    assertClose(session.logits(), expected[PROMPT.length + i]!, `step ${i}`);
  }
}

const FORMS: Readonly<Record<string, DecoderForm>> = {
  "heads first and an added mask": {},
  "rows first and logits of the last row": { layout: "rows first", lastOnly: true },
  "rows outermost and a mask of booleans": { layout: "rows outermost", mask: "hidden" },
  "keys across, all keys before all values": { layout: "keys across", keysFirst: true },
  "a mask of seen keys and cache_position": { mask: "seen" },
  "grouped attention that is told the number of keys": { mask: "counted" },
  "a symbol for sequences and Optimum's names": { batch: "batch", names: "past_key_values" },
  "steps of one token, by its shapes": { batch: "batch", names: "past_key_values", oneToken: true },
};

for (const [name, form] of Object.entries(FORMS)) {
  Deno.test(`a session steps through a decoder with ${name} as the graph does at once`, async () => {
    const expected = await logitsByGraph(form, [...PROMPT, ...STEPS]);
    const files = { "model.onnx": writeDecoder(form) };
    for (const padTo of [undefined, 1, 64, 128] as const) {
      const options = { batch: 3, ...padTo && { padTo } };
      await withModel(files, options, (model) => assertSteps(model, expected));
    }
    await withModel(files, { device: "wasm", threads: 1 }, (model) => assertSteps(model, expected));
  });
}

Deno.test("files of a split model run one after the other", async () => {
  for (const form of [{}, { mask: "hidden" }] as const) {
    const expected = await logitsByGraph(form, [...PROMPT, ...STEPS]);
    await withModel(writeSplitDecoder(form), { batch: 4 }, async (model, folder) => {
      await assertSteps(model, expected);
      assertEquals([model.info.layers, model.info.kvHeads, model.info.headDim], [2, 2, 2]);
      using other = await load(`${folder}/decoders_1.onnx`, EXACT);
      await assertSteps(other, expected);
    });
  }
});

Deno.test("of a file with two branches the one with a past serves every step", async () => {
  const expected = await logitsByGraph({}, [...PROMPT, ...STEPS]);
  await withModel({ "decoder_model_merged.onnx": writeMergedDecoder() }, {}, async (model) => {
    await assertSteps(model, expected);
    assertEquals(model.info.warnings.length, 1);
  });
});

Deno.test("sessions of one decoder have caches of their own", async () => {
  const tokens = [...PROMPT, ...STEPS];
  const other = tokens.toReversed();
  const [expected, others] = [await logitsByGraph({}, tokens), await logitsByGraph({}, other)];
  for (const padTo of [1, 64] as const) {
    await withModel({ "model.onnx": writeDecoder() }, { sessions: 2, padTo }, async (model) => {
      using a = model.createSession(), b = model.createSession();
      for (const [i, token] of tokens.entries()) {
        await a.eval([token]);
        await b.eval([other[i]!]);
        assertClose(a.logits(), expected[i]!, `a ${i}`);
        assertClose(b.logits(), others[i]!, `b ${i}`);
      }
      assertThrows(() => model.createSession(), ResourceError, "all 2 slots");
    });
  }
});

Deno.test("a rewound session forgets, and a saved one goes on where it was", async () => {
  const expected = await logitsByGraph({}, [...PROMPT, ...STEPS]);
  for (const padTo of [1, 64] as const) {
    await withModel({ "model.onnx": writeDecoder() }, { sessions: 2, padTo }, async (model) => {
      using session = model.createSession();
      await session.sync([...PROMPT, 8, 8, 8]);
      session.rewind(PROMPT.length);
      await session.eval([STEPS[0]!]);
      assertClose(session.logits(), expected[PROMPT.length]!, "rewound");
      using copy = model.createSession();
      await copy.load(await session.save());
      assertEquals(copy.tokens, session.tokens);
      await copy.eval([STEPS[1]!]);
      assertClose(copy.logits(), expected[PROMPT.length + 1]!, "restored");
    });
  }
});

Deno.test("every row of a step has logits where the file gives them", async () => {
  const expected = await logitsByGraph({}, PROMPT);
  for (const [lastOnly, rows] of [[false, 4], [true, 1]] as const) {
    await withModel(
      { "model.onnx": writeDecoder({ lastOnly }) },
      { logitRows: 4 },
      async (model) => {
        using session = model.createSession();
        const seen: number[] = [];
        await session.eval(PROMPT, {
          onLogits: (logits, i) => {
            assertClose(logits, expected[i]!, `row ${i} of ${rows}`);
            seen.push(i);
          },
        });
        assertEquals(seen, PROMPT.map((_, i) => i));
      },
    );
  }
});

const LETTERS = [..."abcdefghijk"];
const TOKENIZER = JSON.stringify({
  model: {
    type: "BPE",
    vocab: Object.fromEntries(LETTERS.map((letter, i) => [letter, i])),
    merges: [],
  },
  decoder: { type: "Fuse" },
});

Deno.test("generate() goes on until a token that the folder names as the end", async () => {
  const form = writeDecoder();
  const files = { "onnx/model.onnx": form, "tokenizer.json": TOKENIZER };
  let ids: readonly number[] = [];
  await withModel(files, {}, async (model) => {
    ids = (await generate(model, "bei", { maxTokens: 6 }).result).ids;
    assertEquals(ids.length, 6);
    assert((await perplexity(model, "abcdef", { window: 4, bos: [] })).perplexity > 1);
  });
  const end = ids.at(-1)!;
  const first = ids.indexOf(end);
  for (
    const config of [
      { "config.json": JSON.stringify({ eos_token_id: end, model_type: "toy", vocab_size: 11 }) },
      { "generation_config.json": JSON.stringify({ eos_token_id: [end] }) },
      { "genai_config.json": JSON.stringify({ model: { eos_token_id: end } }) },
    ]
  ) {
    await withModel({ ...files, ...config }, {}, async (model) => {
      const result = await generate(model, "bei", { maxTokens: 9 }).result;
      assertEquals([result.finishReason, result.ids], ["eos", ids.slice(0, first + 1)]);
    });
  }
});

Deno.test("drafts are checked where the file gives the logits of several rows, and refused by name where it does not", async () => {
  const files = { "model.onnx": writeDecoder(), "tokenizer.json": TOKENIZER };
  const draft = { from: "lookup", k: 3 } as const;
  const answer = { maxTokens: 12, ignoreEos: true };
  let expected: readonly number[] = [];
  await withModel(files, {}, async (model) => {
    expected = (await generate(model, PROMPT, answer).result).ids;
    const refused = () => generate(model, PROMPT, { ...answer, draft });
    assertThrows(refused, UnsupportedError, "gives the logits of one token a step");
  });
  await withModel(files, { logitRows: 4 }, async (model) => {
    const { ids, stats } = await generate(model, PROMPT, { ...answer, draft }).result;
    assertEquals(ids, expected);
    assert(stats.speculation!.drafted > 0);
  });
  const last = { ...files, "model.onnx": writeDecoder({ lastOnly: true }) };
  await withModel(last, { logitRows: 4 }, (model) => {
    const refused = () => generate(model, PROMPT, { ...answer, draft });
    assertThrows(refused, UnsupportedError, "if its graph gives those of every token");
    return Promise.resolve();
  });
});

Deno.test("a file that gives out the best tokens only is sampled from among them", async () => {
  const config = JSON.stringify({ vocab_size: VOCABULARY });
  const files = { "config.json": config, "tokenizer.json": TOKENIZER };
  let expected: readonly number[] = [];
  await withModel({ ...files, "model.onnx": writeDecoder() }, {}, async (model) => {
    expected = (await generate(model, PROMPT, { maxTokens: 5 }).result).ids;
  });
  await withModel({ ...files, "model.onnx": writeDecoder({ best: 3 }) }, {}, async (model) => {
    assertEquals((await generate(model, PROMPT, { maxTokens: 5 }).result).ids, expected);
    await generate(model, PROMPT, { maxTokens: 5, topK: 3, temperature: 1, seed: 1 }).result;
    using session = model.createSession();
    await session.sync(PROMPT);
    assertEquals(session.logits().filter(Number.isFinite).length, 3);
    const refused = [{ topP: 0.9 }, { topK: 4 }, { logprobs: 1 }, { repeatPenalty: 1.1 }];
    for (const options of refused) {
      assertThrows(() => generate(model, PROMPT, options), UnsupportedError, "best 3 logits");
    }
    await assertRejects(
      () => session.eval([1], { onLogits: () => {} }),
      UnsupportedError,
      "not all",
    );
  });
});

Deno.test("what is no decoder is refused by name", async () => {
  const without = writeSplitDecoder();
  const cases: [Files, LoadOptions, string][] = [
    [
      { "model.onnx": writeDecoder({ extraInput: "pixel_values" }) },
      {},
      '"pixel_values" (f32[1, 3])',
    ],
    [{ "model.onnx": without["norm.onnx"]! }, {}, "none of its inputs is a cache"],
    [{ "model.onnx": without["decoders_0.onnx"]! }, {}, 'takes hidden states ("hidden_in")'],
    [{ "model.onnx": writeDecoder() }, { embeddings: true }, "option embeddings"],
    [{ "model.onnx": writeDecoder() }, { kvFormat: "F16" }, "keys and values of F32"],
    [{ "model.onnx": writeDecoder({ best: 3 }) }, {}, "vocab_size"],
  ];
  for (const [files, options, message] of cases) {
    await assertRejects(() => withModel(files, options, () => {}), Error, message);
  }
  await assertRejects(
    () => withModel({ "model.onnx": writeDecoder() }, { contextLength: POSITIONS + 1 }, () => {}),
    RangeError,
    `was made for ${POSITIONS}`,
  );
});
