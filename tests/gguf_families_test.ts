// GGUF files of the tiny families, rewritten as llama.cpp's converters do (support/gguf_rules.ts), against the
// logits of the checkpoints: names, metadata and orders of rows of every GGUF spec that can be had this way.

import { assert, assertEquals } from "@std/assert";
import { embed, load } from "../mod.ts";
import type { LoadedModel } from "../engine/decode/loaded_model.ts";
import { getFormat } from "../quant/mod.ts";
import { openModel } from "../engine/models/open_model.ts";
import type { MetadataValue, WeightFile } from "../engine/formats/source.ts";
import { buildModel, readModelParts } from "../engine/models/build.ts";
import { chooseSpec, specFiles } from "../engine/models/specs/mod.ts";
import { unknownKeysWarning } from "../engine/models/unknown_keys.ts";
import { plan } from "../engine/plan/planner.ts";
import { createReferenceBackend } from "../engine/run/reference/reference_backend.ts";
import { fixturePath, readFixture } from "./support/fixtures.ts";
import { DISTILBERT, ROBERTA, SOURCE_RULES } from "./support/gguf_networks.ts";
import { GGUF_RULES } from "./support/gguf_rules.ts";
import { checkpointPath } from "./support/seeded_weights.ts";
import { type GgufRule, toGguf } from "./support/to_gguf.ts";

type Json = Readonly<Record<string, MetadataValue>>;

interface Expected {
  readonly kind: string;
  readonly cases: readonly {
    readonly input_ids: readonly number[];
    readonly last_logits: readonly number[];
  }[];
}

const FOLDERS = [...Deno.readDirSync(fixturePath("models"))].map(({ name }) => name).sort();

function readJson<T>(path: string): T | undefined {
  try {
    return JSON.parse(readFixture(`models/${path}`));
  } catch {
    return undefined;
  }
}

/** The file of a folder, for as long as `use` runs. */
async function withGguf<T>(
  folder: string,
  rule: GgufRule,
  use: (path: string, spec: unknown) => Promise<T>,
): Promise<T> {
  const config = readJson<Json>(`${folder}/config.v4.json`) ??
    readJson<Json>(`${folder}/config.json`)!;
  const temporary = Deno.makeTempDirSync();
  const path = `${temporary}/model.gguf`;
  try {
    Deno.writeFileSync(path, await toGguf(checkpointPath(folder), config, rule));
    return await use(path, rule.spec && specWith(rule));
  } finally {
    Deno.removeSync(temporary, { recursive: true });
  }
}

/** The shipped spec with what a rule says of GGUF files. */
function specWith({ arch, spec }: GgufRule): unknown {
  const file = specFiles.find(({ matches }) => matches.gguf.includes(arch)) as unknown as {
    readonly containers?: { readonly gguf?: Json };
  };
  const gguf = file.containers?.gguf ?? {};
  const merged = Object.entries(spec!).map(([key, value]) => [
    key,
    Array.isArray(value) ? value : { ...gguf[key] as Json, ...value as Json },
  ]);
  const changed = { ...gguf, ...Object.fromEntries(merged) };
  return { ...file, containers: { ...file.containers, gguf: changed } };
}

/** Logits of the last position of each prompt, on the reference. */
async function logitsOf(
  file: WeightFile,
  spec: unknown,
  prompts: readonly (readonly number[])[],
): Promise<number[][]> {
  const { resolved, architecture } = chooseSpec(file, spec);
  const parts = readModelParts(resolved, { stored: file, architecture });
  const options = { capacity: 32, cacheType: "f32", embeddings: false } as const;
  const { graph, warnings } = await buildModel(parts, options);
  assertEquals(warnings, []);
  assertEquals(unknownKeysWarning(file, { resolved: parts.resolved, architecture }), []);
  const planned = plan(graph, { limits: { M: 32, L: 1 } });
  const executable = await createReferenceBackend().prepare(planned, { slots: 1 });
  const all: number[][] = [];
  for (const ids of prompts) {
    ids.forEach((id, row) => {
      executable.input("tokens")[row] = id;
      executable.input("positions")[row] = row;
      executable.input("slots")[row] = 0;
    });
    executable.input("logit_rows")[0] = ids.length - 1;
    const slot = executable.openSlot();
    await executable.run({ M: ids.length, L: 1 });
    executable.closeSlot(slot);
    all.push(Array.from(executable.output("logits"), Number).slice(0, parts.params.vocabulary));
  }
  executable.dispose();
  return all;
}

function assertClose(actual: readonly number[], expected: readonly number[], tolerance = 3e-4) {
  const worst = Math.max(...expected.map((value, i) => Math.abs(value - actual[i]!)));
  assert(worst <= tolerance, `a logit is off by ${worst}`);
}

for (const folder of FOLDERS) {
  for (const rule of Object.hasOwn(GGUF_RULES, folder) ? GGUF_RULES[folder]! : []) {
    const what = rule.title === undefined ? folder : `${folder} (${rule.title})`;
    Deno.test(`${what} as a GGUF file gives the logits of its checkpoint`, () =>
      withGguf(folder, rule, async (path, spec) => {
        const { cases } = readJson<Expected>(`${folder}/expected.json`)!;
        const file = await openModel(path);
        try {
          const logits = await logitsOf(file, spec, cases.map(({ input_ids }) => input_ids));
          cases.forEach(({ last_logits }, i) => assertClose(logits[i]!, last_logits));
        } finally {
          file.close();
        }
      }));
  }
}

/** What llama.cpp does not know, of families that it knows. */
const WITHOUT_GGUF = ["aquila", "internlm", "phi_qk_norm"];

/** Whether a folder's spec claims a name of GGUF files. */
function isKnownInGguf(folder: string): boolean {
  const { model_type: type } = readJson<Json>(`${folder}/config.json`)!;
  return specFiles.some(({ matches: { huggingface, gguf } }) =>
    huggingface.includes(type as string) && gguf.length > 0
  );
}

Deno.test("every decoder among the fixtures has a rule, and every spec for GGUF a rule or a test of its own", () => {
  const folders = FOLDERS.filter((name) =>
    readJson<Expected>(`${name}/expected.json`)?.kind === "causal" &&
    readJson<Json>(`${name}/config.json`) && name !== "llama_formats"
  );
  assertEquals(
    folders.filter((name) => !Object.hasOwn(GGUF_RULES, name) && isKnownInGguf(name)),
    WITHOUT_GGUF,
  );
  const architectures = new Set(Object.values(GGUF_RULES).flat().map(({ arch }) => arch));
  const own = ["bert", "t5"];
  assertEquals(
    specFiles.flatMap(({ matches }) => matches.gguf)
      .filter((name) => !architectures.has(name) && !own.includes(name)),
    [],
  );
});

Deno.test("a sliding window in a GGUF file of the family llama is that of Mistral's config", async () => {
  const config = { ...readJson<Json>("llama/config.v4.json")!, sliding_window: 4 };
  const prompts = [[13, 45, 91, 26, 100, 7, 30, 41, 88, 12]];
  const folder = await openModel(fixturePath("models/llama"));
  const [rule] = GGUF_RULES.llama!;
  const window: GgufRule = {
    ...rule!,
    metadata: (given) => ({ ...rule!.metadata(given), "attention.sliding_window": ["u32", 4] }),
  };
  try {
    const metadata = new Map(Object.entries({ ...config, model_type: "mistral" }));
    const expected = await logitsOf({ ...folder, metadata }, undefined, prompts);
    const all = await logitsOf(
      { ...folder, metadata: new Map(Object.entries({ ...config, sliding_window: null })) },
      undefined,
      prompts,
    );
    const given = await withGguf("llama", window, async (path) => {
      const file = await openModel(path);
      try {
        return await logitsOf(file, undefined, prompts);
      } finally {
        file.close();
      }
    });
    assertClose(given[0]!, expected[0]!, 1e-5);
    assert(given[0]!.some((value, i) => Math.abs(value - all[0]![i]!) > 0.01), "the window counts");
  } finally {
    folder.close();
  }
});

Deno.test("experts in MXFP4 give what their values give in F32", async () => {
  const [rule] = GGUF_RULES.gpt_oss!;
  const isWide = (name: string) => /ffn_(gate|up)_exps\.weight/.test(name);
  const prompts = readJson<Expected>("gpt_oss/expected.json")!.cases.map(({ input_ids }) =>
    input_ids
  );
  const logits = (changed: Partial<GgufRule>) =>
    withGguf("gpt_oss", { ...rule!, ...changed }, async (path) => {
      const file = await openModel(path);
      try {
        return await logitsOf(file, undefined, prompts);
      } finally {
        file.close();
      }
    });
  const format = getFormat("MXFP4");
  const rounded = (values: Float32Array): Float32Array => {
    const bytes = new Uint8Array(values.length / format.blockSize * format.blockBytes);
    format.encode!(values, bytes);
    const back = new Float32Array(values.length);
    format.decode(bytes, back);
    return back;
  };
  const stored = await logits({ format: (name) => isWide(name) ? "MXFP4" : undefined });
  const decoded = await logits({
    after: (tensors) =>
      tensors.map(([name, tensor]) =>
        [name, isWide(name) ? { ...tensor, values: rounded(tensor.values) } : tensor] as const
      ),
  });
  stored.forEach((row, i) => assertClose(row, decoded[i]!, 1e-5));
});

interface SourceCase {
  readonly encoder_input_ids: readonly number[];
  readonly decoder_input_ids: readonly number[];
  readonly last_logits: readonly number[];
}

for (const folder of FOLDERS.filter((name) => Object.hasOwn(SOURCE_RULES, name))) {
  for (const device of ["reference", "wasm"] as const) {
    Deno.test(`${device}: ${folder} as a GGUF file gives the logits of its checkpoint`, () =>
      withGguf(folder, SOURCE_RULES[folder]!, async (path, spec) => {
        using model = await load(path, { device, precision: "exact", spec, sessions: 2 });
        assertEquals(model.info.warnings, []);
        const { cases } = readJson<{ cases: readonly SourceCase[] }>(`${folder}/expected.json`)!;
        for (const { encoder_input_ids, decoder_input_ids, last_logits } of cases) {
          using session = model.createSession();
          await session.encode(encoder_input_ids);
          await session.sync(decoder_input_ids);
          // The stored numbers are 1.0e-3 from those of float64.
          assertClose([...session.logits()], last_logits, 1.5e-3);
        }
      }));
  }
}

Deno.test("RoBERTa as a GGUF file of the family bert gives the vectors of its checkpoint", async () => {
  const ids = [[0, 15, 47, 4, 30, 2], [0, 9, 2]];
  const options = { device: "reference", precision: "exact" } as const;
  using checkpoint = await load(checkpointPath("roberta"), options);
  const expected = await embed(checkpoint, ids, { pooling: "cls", normalize: false });
  const separators = async (kind: string) => {
    // Kinds of vocabularies that the family's models have; one of two tokens is enough.
    const file = await withGguf("roberta", ROBERTA, async (path) => await openModel(path));
    const metadata = new Map([...file.metadata, ["tokenizer.ggml.model", kind] as const]);
    const { resolved, architecture } = chooseSpec({ ...file, metadata });
    const { spec } =
      readModelParts(resolved, { stored: { ...file, metadata }, architecture }).resolved;
    file.close();
    return spec.pairSeparators;
  };
  await withGguf("roberta", ROBERTA, async (path) => {
    using model = await load(path, options);
    assertEquals(model.info.warnings, []);
    assertEquals((model as LoadedModel).runtime.encoder?.pooling, "cls");
    const vectors = await embed(model, ids, { normalize: false });
    vectors.forEach((vector, i) => assertClose([...vector], [...expected[i]!], 1e-5));
  });
  assertEquals([await separators("bert"), await separators("t5")], [1, 2]);
});

Deno.test("DistilBERT as a GGUF file of the family bert does without types of tokens", async () => {
  const ids = [[1, 15, 47, 4, 30, 2], [1, 9, 2]];
  const options = { device: "reference", precision: "exact" } as const;
  using checkpoint = await load(checkpointPath("distilbert"), options);
  const expected = await embed(checkpoint, ids, { pooling: "cls", normalize: false });
  await withGguf("distilbert", DISTILBERT, async (path) => {
    using model = await load(path, options);
    assertEquals(model.info.warnings, []);
    const vectors = await embed(model, ids, { normalize: false });
    vectors.forEach((vector, i) => assertClose([...vector], [...expected[i]!], 1e-5));
  });
});
