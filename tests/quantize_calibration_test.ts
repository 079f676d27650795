// Rounding by a text: statistics are those of the model's inputs, rounding by them keeps outputs nearer, and
// what cannot be calibrated is said.

import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertGreater,
  assertLess,
  assertRejects,
} from "@std/assert";
import { FormatError, UnsupportedError } from "../engine/errors.ts";
import { openModel } from "../engine/models/open_model.ts";
import type { TensorInfo } from "../engine/formats/source.ts";
import { load } from "../engine/models/load.ts";
import { importanceOf, openCalibration } from "../engine/quantize/calibration.ts";
import { quantizeModel } from "../engine/quantize/quantize.ts";
import type { CalibrationRequest } from "../engine/quantize/rounding.ts";
import { getPolicy } from "../quant/policies.ts";
import { fixturePath } from "./support/fixtures.ts";
import { withFolder } from "./support/folder.ts";
import { TINY_LLAMA } from "./support/models.ts";
import { valuesOf } from "./support/read_values.ts";
import { checkpointPath } from "./support/seeded_weights.ts";
import { writeWordTokenizer } from "./support/toy_encoders.ts";

const TEXT = (await Deno.readTextFile(fixturePath("text/opticks-book3.txt"))).slice(0, 1500);

async function quantizeTo(
  output: string,
  format: string,
  calibration?: Partial<CalibrationRequest>,
  input = TINY_LLAMA,
) {
  const file = await openModel(input);
  try {
    return await quantizeModel(file, { path: output, policy: getPolicy(format) }, {
      ...calibration && { calibration: { text: TEXT, window: 64, threads: 1, ...calibration } },
    });
  } finally {
    file.close();
  }
}

/** A family's fixture with a tokenizer of words; texts of such words. */
function withWords(folder: string, family: string): string {
  const path = `${folder}/${family}`;
  Deno.mkdirSync(path);
  const stored = checkpointPath(family);
  for (const name of ["config.json", "model.safetensors"]) {
    Deno.copyFileSync(`${stored}/${name}`, `${path}/${name}`);
  }
  writeWordTokenizer(path);
  return path;
}

const WORDS = Array.from({ length: 200 }, (_, i) => `w${10 + (7 * i + i * i) % 110}`).join(" ");

const WORD_IDS = Array.from({ length: 24 }, (_, i) => 10 + (11 * i) % 110);

/** Logits of tokens, or of a part of the text that the calibration has seen. */
async function logitsOf(path: string, ids?: readonly number[]): Promise<number[]> {
  using model = await load(path, { device: "wasm", precision: "exact", logitRows: 16, threads: 1 });
  using session = model.createSession();
  const all: number[] = [];
  const tokens = ids ?? model.tokenizer.encode(TEXT).slice(0, 48);
  await session.eval(tokens, { onLogits: (logits) => all.push(...logits) });
  return all;
}

function distance(a: readonly number[], b: readonly number[]): number {
  return Math.hypot(...a.map((value, i) => value - b[i]!));
}

Deno.test("the Gram matrix of the first norm's output is that of embedded tokens, over several windows", async () => {
  const file = await openModel(TINY_LLAMA);
  try {
    const names = ["blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.1.ffn_down.weight"];
    const [q, k, down] = names.map((name) => file.tensors.get(name)!) as [
      TensorInfo,
      ...TensorInfo[],
    ];
    const calibration = await openCalibration(file, { text: TEXT, choose: () => [q, k!, down!] }, {
      ...{ tokens: 300, window: 64, threads: 1 },
    });
    const first = (await calibration.statisticsOf(q))!;
    assertEquals((await calibration.statisticsOf(k!))!.gram, first.gram);
    assertEquals((await calibration.statisticsOf(down!))!.columns, down!.shape[1]);
    await assertRejects(
      () => calibration.statisticsOf(file.tensors.get("blk.0.ffn_up.weight")!),
      RangeError,
      "blk.0.ffn_up.weight: it was not announced",
    );

    using model = await load(TINY_LLAMA);
    const ids = model.tokenizer.encode(TEXT, { addSpecial: false });
    const prefix = model.tokenizer.prefixIds;
    const length = 64 - prefix.length, count = Math.floor(300 / length);
    const stride = Math.floor(ids.length / count);
    const table = await valuesOf(file, "token_embd.weight");
    const gain = await valuesOf(file, "blk.0.attn_norm.weight");
    const epsilon = file.metadata.get("llama.attention.layer_norm_rms_epsilon") as number;
    const expected = new Float64Array(32 * 32);
    for (let w = 0; w < count; w++) {
      for (const id of [...prefix, ...ids.slice(w * stride, w * stride + length)]) {
        const row = table.subarray(id * 32, id * 32 + 32);
        const mean = row.reduce((sum, value) => sum + value * value, 0) / 32;
        const x = row.map((value, i) => value / Math.sqrt(mean + epsilon) * gain[i]!);
        for (let i = 0; i < 32; i++) {
          for (let j = 0; j < 32; j++) expected[i * 32 + j]! += x[i]! * x[j]!;
        }
      }
    }
    const largest = Math.max(...expected);
    expected.forEach((value, i) => assertAlmostEquals(first.gram[i]!, value, 1e-5 * largest));
    assertEquals([first.count, calibration.tokens], [64 * count, 64 * count]);
  } finally {
    file.close();
  }
});

for (const family of ["gemma", "phi", "qwen2"]) {
  Deno.test(`a window of ${family} in parts has the statistics of the whole, to the last layer`, async () => {
    await withFolder(async (folder) => {
      const file = await openModel(withWords(folder, family));
      const last = [...file.tensors.values()].findLast(({ name }) =>
        /1\..*(down_proj|fc2)\.weight$/.test(name)
      )!;
      const statistics = async (rows: number) => {
        const calibration = await openCalibration(file, { text: WORDS, choose: () => [last] }, {
          ...{ tokens: 96, window: 48, threads: 1, rows },
        });
        return (await calibration.statisticsOf(last))!;
      };
      try {
        const [whole, parts] = [await statistics(64), await statistics(7)];
        assertEquals(parts.count, whole.count);
        const largest = Math.max(...whole.gram);
        assert(largest > 0);
        whole.gram.forEach((value, i) => assertAlmostEquals(parts.gram[i]!, value, 1e-5 * largest));
      } finally {
        file.close();
      }
    });
  });
}

Deno.test("GPTQ on a text keeps a model's outputs nearer than rounding to nearest", async () => {
  await withFolder(async (folder) => {
    const float = await logitsOf(TINY_LLAMA);
    for (const format of ["q4_0", "q3", "e0m4_g32", "i4pc"]) {
      const path = (name: string) =>
        `${folder}/${name}.${format === "q4_0" ? "gguf" : "safetensors"}`;
      await quantizeTo(path(`${format}-nearest`), format);
      const { tensors, calibration } = await quantizeTo(path(`${format}-gptq`), format, {});
      assert(calibration!.tokens > 200 && calibration!.bytes > 0);
      const methods = new Map(tensors.map(({ name, method }) => [name, method]));
      assertEquals(methods.get("blk.1.ffn_down.weight"), "gptq");
      assert(methods.get("token_embd.weight") !== "gptq", "it is looked up too");
      assertEquals(methods.get("blk.0.attn_norm.weight"), undefined);
      const [plain, own] = await Promise.all(
        [path(`${format}-nearest`), path(`${format}-gptq`)].map((file) => logitsOf(file)),
      );
      assertLess(distance(own!, float), 0.95 * distance(plain!, float), format);
    }
  });
});

Deno.test("AWQ scales fold into norms and rows: with enough bits the outputs are those of the model", async () => {
  await withFolder(async (folder) => {
    const float = await logitsOf(TINY_LLAMA);
    const [plain, scaled] = [`${folder}/plain.safetensors`, `${folder}/scaled.safetensors`];
    await quantizeTo(plain, "q8_b32t1");
    const { tensors } = await quantizeTo(scaled, "q8_b32t1", { method: "awq" });
    const norm = tensors.find(({ name }) => name === "blk.0.attn_norm.weight")!;
    assertEquals([norm.method, norm.to], ["awq", "F32"]);
    const output = tensors.find(({ name }) => name === "blk.0.attn_output.weight")!;
    assertEquals(output.method, "nearest");
    const [before, after] = [await openModel(TINY_LLAMA), await openModel(scaled)];
    const [old, gain] = await Promise.all(
      [before, after].map((file) => valuesOf(file, "blk.1.ffn_norm.weight")),
    );
    assertGreater(Math.max(...old!.map((value, i) => Math.abs(gain![i]! / value - 1))), 0.05);
    before.close();
    after.close();
    // Scales that were not taken back exactly would show at once.
    const own = distance(await logitsOf(scaled), float);
    assertLess(own, distance(await logitsOf(plain), float));
    assertLess(own, 0.05 * Math.hypot(...float));
  });
});

// A norm around 1 + w; norms with biases that attention and feed-forward share; biased projections.
for (const family of ["gemma", "phi", "qwen2"]) {
  Deno.test(`AWQ scales of ${family} are taken back exactly`, async () => {
    await withFolder(async (folder) => {
      const input = withWords(folder, family);
      const [plain, scaled] = [`${folder}/plain`, `${folder}/scaled`];
      await quantizeTo(plain, "q8_b32t1", undefined, input);
      const { tensors } = await quantizeTo(
        ...[scaled, "q8_b32t1", { method: "awq", text: WORDS }, input] as const,
      );
      const norms = tensors.filter(({ method, shape }) => method === "awq" && shape.length === 1);
      assert(norms.length > 0);
      const float = await logitsOf(input, WORD_IDS);
      const own = distance(await logitsOf(scaled, WORD_IDS), float);
      const usual = distance(await logitsOf(plain, WORD_IDS), float);
      assert(usual > 0);
      assertLess(own, 1.5 * usual);
    });
  });
}

Deno.test("statistics in many passes give the file of a single pass", async () => {
  await withFolder(async (folder) => {
    for (const method of ["gptq", "awq"] as const) {
      const [one, many] = [`${folder}/${method}-one.gguf`, `${folder}/${method}-many.gguf`];
      let passes = 0;
      const single = await quantizeTo(one, "q4_0", {
        method,
        onWindow: ({ pass }) => passes = pass,
      });
      assertEquals(passes, 1);
      const split = await quantizeTo(many, "q4_0", {
        ...{ method, maxBytes: 40_000 },
        onWindow: ({ pass }) => passes = pass,
      });
      assertGreater(passes, 3);
      assertLess(split.calibration!.bytes, single.calibration!.bytes);
      assertEquals(await Deno.readFile(many), await Deno.readFile(one));
    }
  });
});

Deno.test("stacked experts are rounded to nearest, their shared inputs are left alone, and both are said", async () => {
  await withFolder(async (folder) => {
    const input = withWords(folder, "mixtral");
    for (const method of ["gptq", "awq"] as const) {
      const path = `${folder}/${method}`;
      const { tensors } = await quantizeTo(path, "q8_0", { method, text: WORDS }, input);
      const experts = tensors.filter(({ name }) => /experts\.\d/.test(name));
      assert(experts.length > 0 && experts.every((tensor) => tensor.method === "nearest"));
      const norms = tensors.filter(({ name }) => /post_attention_layernorm/.test(name));
      assert(norms.length > 0 && norms.every((tensor) => tensor.method === undefined));
      assert(tensors.some((tensor) => tensor.method === method));
    }
  });
});

Deno.test("encoders are calibrated too; encoder-decoders and empty texts are refused", async () => {
  await withFolder(async (folder) => {
    const text = WORDS;
    const [bert, t5] = ["bert", "t5"].map((family) => withWords(folder, family));
    const { tensors } = await quantizeTo(`${folder}/new`, "q8_0", { text }, bert);
    assert(tensors.some(({ method }) => method === "gptq"));
    await assertRejects(
      () => quantizeTo(`${folder}/newer`, "q8_0", { text }, t5),
      UnsupportedError,
      "cannot be calibrated on a text",
    );
    await assertRejects(
      () => quantizeTo(`${folder}/a.gguf`, "q4_0", { text: "" }),
      RangeError,
      "text of 0 tokens",
    );
    assertEquals([...Deno.readDirSync(folder)].map(({ name }) => name).sort(), [
      "bert",
      "new",
      "t5",
    ]);
  });
});

Deno.test("an importance matrix given by name chooses the scales that the text's importance would", async () => {
  await withFolder(async (folder) => {
    const file = await openModel(TINY_LLAMA);
    const tensors = [...file.tensors.values()].filter(({ shape }) => shape.length === 2);
    const calibration = await openCalibration(file, { text: TEXT, choose: () => tensors }, {
      window: 64,
      threads: 1,
    });
    const importance = new Map<string, Float32Array>();
    for (const tensor of tensors) {
      const statistics = await calibration.statisticsOf(tensor);
      if (statistics) importance.set(tensor.name, importanceOf(statistics));
    }
    const [given, own] = [`${folder}/given.gguf`, `${folder}/own.gguf`];
    const policy = getPolicy("q5_1");
    const result = await quantizeModel(file, { path: given, policy }, { importance });
    assertEquals(result.tensors.find(({ name }) => /ffn_up/.test(name))!.method, "importance");
    await quantizeTo(own, "q5_1", { method: "importance" });
    assertEquals(await Deno.readFile(given), await Deno.readFile(own));
    const plain = `${folder}/plain.gguf`;
    await quantizeTo(plain, "q5_1");
    const chosen = await Deno.readFile(given);
    assert((await Deno.readFile(plain)).some((byte, i) => byte !== chosen[i]));
    for (
      const [values, message] of [
        [new Float32Array(31), "has 32 columns, and the importance matrix has 31"],
        [new Float32Array(32).with(3, 1e38), "an importance of 9.99"],
      ] as const
    ) {
      importance.set("blk.0.ffn_up.weight", values);
      await assertRejects(
        () => quantizeModel(file, { path: `${folder}/bad.gguf`, policy }, { importance }),
        FormatError,
        message,
      );
    }
    file.close();
  });
});
