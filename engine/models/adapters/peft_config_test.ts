import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { FormatError, UnsupportedError } from "../../errors.ts";
import type { MetadataValue } from "../../formats/source.ts";
import { ADAPTER_FIELDS, readPeftConfig } from "./peft_config.ts";

type Json = Record<string, MetadataValue>;

const MODULES = [
  ...[0, 1, 10].flatMap((layer) =>
    ["self_attn.q_proj", "self_attn.k_proj", "mlp.experts.0.down_proj"]
      .map((module) => `model.layers.${layer}.${module}`)
  ),
  ...["lm_head", "model.embed_tokens", "transformer.h.1.attn.c_attn", "layers.1.q_proj"],
];

const read = (json: Json) =>
  readPeftConfig({ peft_type: "LORA", r: 4, lora_alpha: 8, ...json }, "a");

const three = ["q_proj", "down_proj", "c_attn"];

// check_target_module_exists of peft 0.21.2 for each module.
const TARGETS: readonly (readonly [config: Json, byModule: string])[] = [
  [{ target_modules: ["q_proj"] }, "1001001000001"],
  [
    { target_modules: ["q_proj", "lm_head"], exclude_modules: ["layers.1.self_attn.q_proj"] },
    "1000001001001",
  ],
  [{ target_modules: ".*\\.layers\\.(0|1)\\..*_proj" }, "1111110000000"],
  [{ target_modules: "q_proj" }, "0000000000000"],
  [{ target_modules: three, layers_to_transform: [1] }, "0001010000010"],
  [{ target_modules: three, layers_to_transform: 1, layers_pattern: "h" }, "0000000000010"],
  [
    {
      target_modules: ["q_proj", "c_attn"],
      layers_to_transform: [0, 1],
      layers_pattern: ["h", "layers"],
    },
    "1001000000011",
  ],
  [
    { target_modules: ["q_proj", "model.layers.10.self_attn.q_proj"], layers_to_transform: [0] },
    "1000001000000",
  ],
  [{ target_modules: ["q_proj", "k_proj"], exclude_modules: ".*\\.1\\..*" }, "1100001100000"],
  [{ target_modules: "^(?!.*experts).*_proj$" }, "1101101100001"],
  [
    { target_modules: ["down_proj"], layers_to_transform: [0], layers_pattern: "experts" },
    "0010010010000",
  ],
];

Deno.test("tensors must be for the modules that PEFT would adapt", () => {
  for (const [json, byModule] of TARGETS) {
    const config = read(json);
    const inside = MODULES.filter((_, i) => byModule[i] === "1");
    if (inside.length > 0) config.checkModules(inside);
    for (const module of MODULES.filter((_, i) => byModule[i] === "0")) {
      const error = assertThrows(() => config.checkModules([...inside, module]), FormatError);
      assertStringIncludes(error.message, `target_modules: leaves ${module} out`);
    }
  }
  read({}).checkModules(MODULES);
  read({ target_modules: "all-linear" }).checkModules(MODULES);
});

const none = null;

// get_pattern_key of the same.
const PATTERNS: readonly (readonly [patterns: Json, byModule: readonly (number | null)[]])[] = [
  [{ q_proj: 1, "self_attn.q_proj": 2 }, [
    ...[1, none, none, 1, none, none, 1, none, none, none, none, none, 1],
  ]],
  [{ "layers\\.(0|1)\\..*": 3, lm_head: 4 }, [
    ...[3, 3, 3, 3, 3, 3, none, none, none, 4, none, none, 3],
  ]],
  [{ "model.layers.1.self_attn.q_proj": 5, "(q|k)_proj": 6 }, [
    ...[6, 6, none, 5, 6, none, 6, 6, none, none, none, none, 6],
  ]],
  [{ proj: 7, "^lm_head": 8 }, MODULES.map((module) => module === "lm_head" ? 8 : none)],
  [{ ".*\\.1\\d\\..*": 9 }, MODULES.map((module) => module.includes(".10.") ? 9 : none)],
];

Deno.test("ranks and alphas by pattern are those that PEFT finds", () => {
  for (const [patterns, byModule] of PATTERNS) {
    const alphas = read({ alpha_pattern: patterns }), ranks = read({ rank_pattern: patterns });
    for (const [i, module] of MODULES.entries()) {
      assertEquals(alphas.factorOf(module, 4), (byModule[i] ?? 8) / 4, module);
      const rank = byModule[i] ?? 4;
      assertEquals(ranks.factorOf(module, rank), 8 / rank, module);
      assertThrows(() => ranks.factorOf(module, rank + 1), FormatError, `have rank ${rank + 1}`);
    }
  }
});

Deno.test("patterns and numbers that are none are refused by name", () => {
  for (const key of ["alpha_pattern", "rank_pattern"]) {
    assertThrows(() => read({ [key]: { "(?<=x)q": 1 } }), UnsupportedError, `${key}: the pattern`);
    for (const value of ["1", null, NaN, Infinity]) {
      assertThrows(
        () => read({ [key]: { q_proj: value } }),
        FormatError,
        `${key}: must be numbers`,
      );
    }
  }
  for (const key of ["target_modules", "exclude_modules"]) {
    assertThrows(() => read({ [key]: "(?i)q" }), UnsupportedError, `${key}: the pattern`);
  }
  assertThrows(() => read({ lora_alpha: NaN }).factorOf("q", 4), FormatError, "lora_alpha");
});

Deno.test("every field is read, refused by name, or does nothing for a reason", () => {
  for (const [key, use] of Object.entries(ADAPTER_FIELDS)) {
    if (use === "read") continue;
    if ("only" in use) {
      for (const value of use.only) assertEquals(read({ [key]: value }).warnings, [], key);
      assertThrows(
        () => read({ [key]: "unusual" }),
        UnsupportedError,
        `adapter_config.json, ${key}: is`,
      );
    } else assertEquals(read({ [key]: "unusual" }).warnings, [], key);
  }
  // "read": each changes what the config says.
  assertEquals(read({ r: 2 }).factorOf("q", 2), 4);
  assertEquals(read({ lora_alpha: 2 }).factorOf("q", 4), 0.5);
  assertEquals(read({ use_rslora: true }).factorOf("q", 4), 4);
  assertEquals(read({ brand_new: 1 }).warnings, [
    "adapter_config.json: brand_new is not understood and has no effect",
  ]);
});
