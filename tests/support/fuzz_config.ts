// What must hold for any text given as a configuration or as a spec: it is read, or one of our errors says what is
// wrong. A spec that passes the check is also made ready for a model, whose graph must come out or be
// refused.

import { TroodonError } from "../../engine/errors.ts";
import { parseIni } from "../../engine/formats/ini/ini.ts";
import { openModel } from "../../engine/models/open_model.ts";
import type { WeightFile } from "../../engine/formats/source.ts";
import { buildModel, readModelParts } from "../../engine/models/build.ts";
import { checkSpec } from "../../engine/models/spec_check.ts";
import { ownForm, parseSpecText } from "../../engine/models/spec_file.ts";
import { chooseSpec } from "../../engine/models/specs/mod.ts";
import { readEngineConfig } from "../../engine/inferflow/engine_config.ts";
import { readInferenceConfig } from "../../engine/inferflow/queries.ts";
import {
  configKind,
  readClientConfig,
  readPerplexityConfig,
} from "../../engine/inferflow/small_configs.ts";
import { fixturePath } from "./fixtures.ts";

/** Good configurations, one of each kind. */
export function iniSeeds(): string[] {
  return [
    `[main]\nglobal_model_dir = \${data_root_dir}m\ndefault_prompt_template = {query}{\\n}\n` +
    `[transformer_engine]\nmodels = a, b\ncpu_threads = 2\n[model.a]\nmodel_dir = /none/\${model_name}\n` +
    `decoding_strategy = {"name": "std", "top_p": 0.5}\nmax_context_len = 64\nprompt_template = own\n` +
    `[prompt_templates]\nprompt_template_count = 1\nprompt_template1 = own\n` +
    `[prompt_template.own]\nline_count = 1\nline1 = $(main/global_model_dir) {query}\n`,
    `[main]\ninference_engine_config = \${config_dir}/e.ini\nquery_list = query_list.x\ntemperature = 0.7\n` +
    `[query_list.x]\nquery_count = 2\nquery1 = a{\\n}b\nquery2 = {"text": "b", "res_prefix": "c"}\n`,
    `[main]\ninference_engine_config = e.ini\ntest_data_file = t.txt\nmax_length = 64\nstride = 32\n`,
    `[main]\nservice = http://localhost\nrequest = {"text": "a"}\n`,
  ];
}

const INI_READERS = {
  engine: readEngineConfig,
  inference: readInferenceConfig,
  perplexity: readPerplexityConfig,
  client: readClientConfig,
};

/** Reads a configuration as what it says it is. @throws {Error} If something else than our errors comes. */
export async function fuzzIni(text: string): Promise<void> {
  await onlyOurErrors(async () => {
    const file = parseIni(text, "fuzz.ini");
    const kind = configKind(file);
    if (kind) await INI_READERS[kind](file, new Set());
  });
}

const SPECS = ["llama", "gemma3", "mixtral", "bert", "falcon"];

/** Specs of our form and of Inferflow's. */
export function specSeeds(): string[] {
  const own = SPECS.map((name) =>
    Deno.readTextFileSync(new URL(`../../engine/models/specs/${name}.json`, import.meta.url))
  );
  const inferflow = {
    config_file: "config.json",
    model_files: ["model.safetensors"],
    network_structure: {
      type: "transformer.decoder_only",
      normalization_function: "rms",
      activation_function: "silu",
      position_embedding: "rope",
      qk_column_order: 2,
      tensor_name_prefix: "model.",
      tensor_name_mapping: {
        "norm.weight": "dec.output_norm.weight",
        "layers.{i}.mlp.up_proj.weight": "dec.{i}.feed_forward.w3.weight",
      },
    },
  };
  return [...own, `# A comment\n${JSON.stringify(inferflow)}`];
}

/** Values that a key of a spec may get. */
const VALUES: readonly unknown[] = [
  ...[
    null,
    0,
    1,
    -1,
    1e308,
    0.5,
    true,
    "",
    "full",
    "heads // 0",
    "heads * headDim",
    "rms",
    "layer",
  ],
  ...["gated", "plain", "mixture", "required", "feed_forward_norm", "{i}", "model.norm.weight"],
  ...[[], {}, [{}], ["a"], { layers: -0.5 }, { name: "x.{i}.{j}", stack: "layers" }],
];

/** A good spec with some values changed, taken away or moved, as the bytes of a text say. */
export function changedSpec(text: string): string {
  let state = 1;
  for (const character of text) state = Math.imul(state ^ character.codePointAt(0)!, 0x01000193);
  const draw = (below: number) => {
    state = Math.imul(state, 1664525) + 1013904223 | 0;
    return (state >>> 8) % below;
  };
  const seeds = specSeeds();
  const spec = JSON.parse(seeds[draw(seeds.length)]!.replace(/^#.*\n/, ""));
  for (let count = 1 + draw(4); count > 0; count--) {
    let at = spec, key = "";
    for (let depth = 1 + draw(6); depth > 0; depth--) {
      const keys = Object.keys(at);
      if (keys.length === 0) break;
      key = keys[draw(keys.length)]!;
      const next = at[key];
      if (depth === 1 || typeof next !== "object" || next === null) break;
      at = next;
    }
    if (draw(4) === 0) delete at[key];
    else at[draw(8) === 0 ? "other" : key] = structuredClone(VALUES[draw(VALUES.length)]);
  }
  return JSON.stringify(spec);
}

/** Checks a spec, and builds the tiny llama by it. @throws {Error} If something else than our errors comes. */
export async function fuzzSpec(text: string): Promise<void> {
  await tryText(text);
  // Most mutations of bytes leave no JSON; so each text also stands for a change inside of it.
  await tryText(changedSpec(text));
}

async function tryText(text: string): Promise<void> {
  await onlyOurErrors(async () => {
    const given = parseSpecText(text, "fuzz.json");
    const model = await openModel(fixturePath("models/llama"));
    try {
      const { json } = await ownForm(given, model);
      if (json === given) await checkSpec(json, "fuzz.json");
      await build(model, json);
    } finally {
      model.close();
    }
  });
}

async function build(model: WeightFile, json: unknown): Promise<void> {
  const { resolved, architecture } = chooseSpec(model, json);
  const parts = readModelParts(resolved, { stored: model, architecture });
  // Encoders have builders of their own.
  if ((parts.resolved.spec.network ?? "decoder") !== "decoder") return;
  const { graph } = await buildModel(parts, { capacity: 16, cacheType: "f32", embeddings: false });
  if (graph.nodes.length === 0) throw new Error("an empty graph");
}

async function onlyOurErrors(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (!(error instanceof TroodonError)) throw error;
    if (/[\r\n]/.test(error.message)) throw new Error(`more than one line: ${error.message}`);
  }
}
