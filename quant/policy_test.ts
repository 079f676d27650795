import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { findFormat, formatBytes, formats, getFormat } from "./mod.ts";
import { getPolicy, inferflowPolicy, policyNames } from "./policies.ts";
import { chooseFormat, type QuantPolicy, type TensorFacts } from "./policy.ts";
import { parsePolicy } from "../engine/quantize/policy_file.ts";
import { findIdleParts } from "./policy_use.ts";
import { layerOf, roleOf } from "./tensor_roles.ts";

/** Tensors of a Llama as GGUF names them. */
function llama(
  { layers, dim, hidden, kv, vocab, tied = false }: {
    readonly layers: number;
    readonly dim: number;
    readonly hidden: number;
    readonly kv: number;
    readonly vocab: number;
    readonly tied?: boolean;
  },
): TensorFacts[] {
  const tensors: TensorFacts[] = [{ name: "token_embd.weight", shape: [vocab, dim] }];
  for (let i = 0; i < layers; i++) {
    const add = (name: string, ...shape: number[]) =>
      tensors.push({ name: `blk.${i}.${name}.weight`, shape });
    add("attn_norm", dim);
    add("attn_q", dim, dim);
    add("attn_k", kv, dim);
    add("attn_v", kv, dim);
    add("attn_output", dim, dim);
    add("ffn_norm", dim);
    add("ffn_gate", hidden, dim);
    add("ffn_up", hidden, dim);
    add("ffn_down", dim, hidden);
  }
  tensors.push({ name: "output_norm.weight", shape: [dim] });
  if (!tied) tensors.push({ name: "output.weight", shape: [vocab, dim] });
  return tensors;
}

const TINY_LLAMA = llama({ layers: 22, dim: 2048, hidden: 5632, kv: 256, vocab: 32000 });
const MODEL = { layers: 22, queryGroup: 8 };

function formatsOf(policy: QuantPolicy, tensors: readonly TensorFacts[], model = MODEL) {
  return Object.fromEntries(tensors.map((tensor) => [
    tensor.name.replace(".weight", ""),
    chooseFormat(policy, tensor, model).format?.name ?? "keep",
  ]));
}

/** Bytes of tensors under a policy; those that it keeps are F32. */
function bytesOf(policy: QuantPolicy, tensors: readonly TensorFacts[]): number {
  return tensors.reduce((sum, tensor) => {
    const { format = getFormat("F32") } = chooseFormat(policy, tensor, MODEL);
    return sum + formatBytes(format, tensor.shape.reduce((a, b) => a * b, 1));
  }, 0);
}

Deno.test("LlamaF's W8A8 takes the bytes of its paper on TinyLlama", () => {
  const keep = { name: "keep", format: "keep", rules: [] };
  assertEquals(bytesOf(keep, TINY_LLAMA), 4_400_193_536);
  assertEquals(bytesOf(getPolicy("lf8"), TINY_LLAMA), 1_117_511_680);
  const formats = formatsOf(getPolicy("lf8"), TINY_LLAMA);
  assertEquals(formats["token_embd"], "LF8");
  assertEquals(formats["output"], "LF8");
  assertEquals(formats["blk.0.attn_norm"], "keep");
  assertEquals(formats["output_norm"], "keep");
});

Deno.test("ML Drift's 8/4/4 takes the bytes of its formula", () => {
  const matrices = TINY_LLAMA.filter(({ shape }) => shape.length === 2);
  const [q8, mixed] = ["q8", "8/4/4"].map((name) => bytesOf(getPolicy(name), matrices));
  let eight = 0, four = 0, rows = 0;
  for (const { name, shape: [height, width] } of matrices) {
    if (name.includes("attn_")) eight += height! * width!;
    else four += height! * width!;
    rows += height!;
  }
  assertEquals(q8, eight + four + 4 * rows);
  assertEquals(mixed, eight + four / 2 + 4 * rows);
  const formats = formatsOf(getPolicy("8/4/4"), TINY_LLAMA);
  assertEquals(formats["blk.3.attn_k"], "I8PC_2048");
  assertEquals(formats["blk.3.ffn_down"], "I4PC_5632");
  assertEquals(formats["token_embd"], "I4PC_2048");
});

Deno.test("Inferflow's policy keeps embeddings, vectors and what is below the threshold in F16", () => {
  const policy = inferflowPolicy({ format: "Q4", tensors: { ffn_w2: "Q6" } });
  const formats = formatsOf(policy, TINY_LLAMA);
  assertEquals(formats["token_embd"], "F16");
  assertEquals(formats["blk.0.attn_norm"], "F16");
  assertEquals(formats["blk.0.attn_k"], "F16", "524,288 values");
  assertEquals(formats["blk.0.attn_q"], "Q4_B32T1A", "4,194,304 values");
  assertEquals(formats["blk.0.ffn_down"], "Q6_B64T1");
  const low = inferflowPolicy({ format: "Q4", threshold: 524_288 });
  assertEquals(formatsOf(low, TINY_LLAMA)["blk.0.attn_k"], "Q4_B32T1A");
});

Deno.test("vectors of any role and norms of any shape are kept unless a rule names them", () => {
  const format = (name: string, ...shape: number[]) =>
    chooseFormat(getPolicy("q4_k_m"), { name, shape }, MODEL).format;
  assertEquals(format("blk.0.attn_q.bias", 256), undefined);
  assertEquals(format("blk.0.attn_q.weight", 256), undefined);
  assertEquals(format("blk.0.something.weight", 256), undefined);
  assertEquals(format("blk.0.attn_norm.weight", 256, 256), undefined);
});

Deno.test("Q4_K_M favours the layers that llama.cpp favours", () => {
  const formats = formatsOf(getPolicy("q4_k_m"), TINY_LLAMA);
  const better = Array.from({ length: 22 }, (_, i) => i)
    .filter((i) => formats[`blk.${i}.ffn_down`] === "Q6_K");
  assertEquals(better, [0, 1, 4, 7, 10, 13, 16, 19, 20, 21]);
  assertEquals(better.map((i) => formats[`blk.${i}.attn_v`]), better.map(() => "Q6_K"));
  assertEquals(formats["blk.2.ffn_down"], "Q4_K");
  assertEquals(formats["blk.0.attn_q"], "Q4_K");
  assertEquals(formats["output"], "Q6_K");
  assertEquals(formats["token_embd"], "Q4_K");
  assertEquals(getPolicy("Q4_K"), getPolicy("q4_k_m"));
  const tied = chooseFormat(
    getPolicy("q4_k_m"),
    { name: "token_embd.weight", shape: [1024, 256] },
    { layers: 22, tiedOutput: true },
  );
  assertEquals(tied.format!.name, "Q6_K");
});

Deno.test("the other mixtures differ where llama.cpp's do", () => {
  const of = (name: string, tensor: string) => formatsOf(getPolicy(name), TINY_LLAMA)[tensor];
  assertEquals(of("q4_k_s", "blk.3.attn_v"), "Q5_K");
  assertEquals(of("q4_k_s", "blk.4.attn_v"), "Q4_K");
  assertEquals(of("q4_k_s", "blk.1.ffn_down"), "Q5_K");
  assertEquals(of("q4_k_s", "blk.2.ffn_down"), "Q4_K");
  assertEquals(of("q2_k", "blk.0.attn_v"), "Q4_K");
  assertEquals(of("q2_k", "blk.0.attn_output"), "Q3_K");
  assertEquals(of("q2_k", "blk.0.ffn_gate"), "Q2_K");
  assertEquals(of("q3_k_m", "blk.1.attn_v"), "Q5_K");
  assertEquals(of("q3_k_m", "blk.0.ffn_down"), "Q5_K");
  assertEquals(of("q3_k_m", "blk.1.ffn_down"), "Q4_K");
  assertEquals(of("q5_k_s", "blk.0.attn_v"), "Q5_K");
  assertEquals(of("q4_0", "output"), "Q6_K");
  assertEquals(of("q8_0", "output"), "Q8_0");
  const mixtral = { layers: 22, queryGroup: 4, experts: 8 };
  assertEquals(formatsOf(getPolicy("q4_k_m"), TINY_LLAMA, mixtral)["blk.0.attn_k"], "Q8_0");
});

Deno.test("a format that does not fill the rows gives way, at last to F16, and says so", () => {
  const choose = (policy: string, columns: number) => {
    const tensor = { name: "blk.0.attn_q.weight", shape: [64, columns] };
    const { format, insteadOf } = chooseFormat(getPolicy(policy), tensor, MODEL);
    return [format!.name, insteadOf];
  };
  assertEquals(choose("q4_k_m", 576), ["Q5_0", "Q4_K"]);
  assertEquals(choose("q4_k_m", 100), ["F16", "Q4_K"]);
  assertEquals(choose("q6_k", 96), ["Q8_0", "Q6_K"]);
  assertEquals(choose("e0m4", 576), ["F16", "E0M4"]);
  assertEquals(choose("8/4/4", 576), ["I8PC_576", undefined]);
  const odd = { name: "blk.0.ffn_up.weight", shape: [64, 9] };
  const { format, insteadOf } = chooseFormat(getPolicy("i4pc"), odd, MODEL);
  assertEquals([format!.name, insteadOf], ["F16", "I4PC"]);
});

Deno.test("every named policy gives formats that can be encoded", () => {
  assert(policyNames.length >= 20);
  for (const name of policyNames) {
    for (const tensor of TINY_LLAMA) {
      assert(
        chooseFormat(getPolicy(name), tensor, MODEL).format?.encode !== undefined ||
          tensor.shape.length === 1,
      );
    }
  }
  assertEquals(getPolicy("q3h").format, "Q3H");
  assertThrows(() => getPolicy("q9_k"), RangeError, 'quantise to "q9_k"');
  const unknown = assertThrows(() => getPolicy("q9_k"), RangeError);
  for (const name of ["Q4_K_M", "8/4/4", "E0M4_G128", "I4PC", "Q3H_B64T1"]) {
    assertMatch(unknown.message, new RegExp(`[ ,]${name}(,|$)`));
  }
});

Deno.test("a format without an encoder is refused by name and by tensor, whether rows fill its blocks or not", () => {
  const without = [...formats.values()].filter(({ encode }) => !encode);
  assert(without.some(({ name }) => name === "IQ2_XXS"));
  for (const { name, blockSize } of without) {
    assertThrows(() => getPolicy(name), RangeError, "no public encoder");
    for (const columns of [blockSize, blockSize + 1]) {
      const tensor = { name: "blk.0.attn_q.weight", shape: [2, columns] };
      assertThrows(
        () => chooseFormat({ name, format: name, rules: [] }, tensor, MODEL),
        RangeError,
        "no public encoder",
      );
    }
  }
});

Deno.test("what of a policy is without effect is said: rules, outliers, a format that no row fits", () => {
  const idle = (json: unknown, tensors: readonly TensorFacts[] = TINY_LLAMA) =>
    findIdleParts(parsePolicy(JSON.stringify(json)), tensors, MODEL);
  const ofRule = (rule: Record<string, unknown>, before: readonly unknown[] = []) =>
    idle({ format: "q8_0", rules: [...before, { format: "q4_0", ...rule }] }).join();
  for (
    const rule of [
      { pattern: "attn_q" },
      { roles: ["norm"], pattern: "attn_norm" },
      { layers: { first: 1 } },
      { below: 1_000_000 },
      { queryGroup: 8 },
    ]
  ) assertEquals(ofRule(rule), "");
  assertMatch(ofRule({ pattern: "nothing" }), /^rule 1 .* fits no tensor: no name .*"nothing"$/);
  assertMatch(ofRule({ pattern: "_norm" }), /norms, biases, routers or tables only/);
  assertMatch(ofRule({ pattern: "attn_q", below: 5 }), /do not meet its other conditions$/);
  for (const rule of [{ roles: ["router"] }, { experts: 8 }, { below: 5 }, { queryGroup: 9 }]) {
    assertEquals(ofRule(rule), "rule 1 of the policy fits no tensor");
  }
  const first = { roles: ["ffn_up", "ffn_gate"], format: "q5_0" };
  assertEquals(
    ofRule({ roles: ["ffn_up"] }, [first]),
    "rule 2 of the policy is without effect: rules before it decide for the 22 it fits",
  );
  assertEquals(idle({ format: "q4_0", outliers: 0.01 }), []);
  assertMatch(idle({ format: "f16", outliers: 0.01 }).join(), /^no outliers are kept apart/);
  const narrow = llama({ layers: 1, dim: 96, hidden: 96, kv: 96, vocab: 8 });
  assertMatch(idle({ format: "q4_k" }, narrow).join(), /stored as Q4_K: .* Q5_0 stands in$/);
  assertMatch(idle({ format: "lf8" }, narrow).join(), /stored as LF8: .* F16 stands in$/);
  assertEquals(idle({ format: "q4_0" }, narrow), []);
  for (const name of policyNames) {
    assertEquals(findIdleParts(getPolicy(name), TINY_LLAMA, MODEL), []);
  }
  const borrowed = { ...getPolicy("Q4_K_M"), rules: [{ pattern: "nothing", format: "Q4_K" }] };
  assertEquals(findIdleParts(borrowed, TINY_LLAMA, MODEL).length, 1);
});

Deno.test("a choice says why", () => {
  const why = (policy: string, name: string, shape = [1024, 256], model = MODEL) => {
    const { reason, outliers } = chooseFormat(getPolicy(policy), { name, shape }, model);
    return [reason, outliers];
  };
  assertEquals(why("q4_k_m", "blk.0.attn_norm.weight", [256]), ["kept", 0]);
  assertEquals(why("q4_k_m", "blk.0.attn_q.bias", [256]), ["kept", 0]);
  assertEquals(why("q4_k_m", "blk.0.attn_q.weight"), ["no rule", 0]);
  assertEquals(why("q4_k_m", "output.weight"), ["rule 1", 0]);
  const tied = { layers: 22, queryGroup: 1, tiedOutput: true };
  assertEquals(why("q4_k_m", "token_embd.weight", [1024, 256], tied), ["rule 1, as output", 0]);
});

Deno.test("outliers are a share of matrices to multiply by, and of nothing else", () => {
  const policy = parsePolicy(JSON.stringify({
    format: "q4_0",
    outliers: 0.01,
    rules: [
      { roles: ["ffn_down"], format: "q4_0", outliers: 0.05 },
      { roles: ["ffn_up"], format: "q4_0", outliers: 0 },
      { roles: ["attention_v"], format: "f16" },
    ],
  }));
  const count = (name: string, shape: number[], model = MODEL) =>
    chooseFormat(policy, { name, shape }, model).outliers;
  assertEquals(count("blk.0.attn_q.weight", [64, 64]), 40);
  assertEquals(count("blk.0.ffn_down.weight", [64, 64]), 204);
  assertEquals(count("blk.0.ffn_up.weight", [64, 64]), 0);
  assertEquals(count("blk.0.attn_v.weight", [64, 64]), 0, "a float");
  assertEquals(count("token_embd.weight", [64, 64]), 0, "looked up");
  assertEquals(count("blk.0.ffn_gate_exps.weight", [2, 64, 64]), 0, "a stack");
  assertEquals(count("blk.0.attn_norm.weight", [64]), 0);
  for (const outliers of [-0.01, 0.06, "all"]) {
    assertThrows(
      () => parsePolicy(JSON.stringify({ format: "q4_0", outliers })),
      RangeError,
      '"outliers" is',
    );
  }
  assertEquals(inferflowPolicy({ format: "q4", outliers: 0.002 }).outliers, 0.002);
});

Deno.test("roles are told by the names of GGUF and of Hugging Face", () => {
  const cases = {
    "token_embd.weight": "embedding",
    "model.embed_tokens.weight": "embedding",
    "lm_head.weight": "output",
    "blk.7.attn_qkv.weight": "attention_qkv",
    "blk.7.attn_q_norm.weight": "norm",
    "model.layers.12.self_attn.q_proj.weight": "attention_q",
    "model.layers.12.self_attn.o_proj.weight": "attention_output",
    "model.layers.12.self_attn.q_proj.bias": "bias",
    "model.layers.12.mlp.down_proj.weight": "ffn_down",
    "model.layers.3.mlp.experts.5.gate_proj.weight": "ffn_gate",
    "model.layers.3.mlp.gate.weight": "router",
    "blk.3.ffn_gate_inp.weight": "router",
    "blk.3.ffn_down_exps.weight": "ffn_down",
    "encoder.layer.0.attention.self.key.weight": "attention_k",
    "encoder.layer.0.attention.output.dense.weight": "attention_output",
    "encoder.layer.0.output.dense.weight": "ffn_down",
    "embeddings.position_embeddings.weight": "table",
    "transformer.h.1.attn.c_attn.weight": "attention_qkv",
    "something.weight": "other",
  };
  for (const [name, role] of Object.entries(cases)) assertEquals(roleOf(name, [8, 8]), role, name);
  assertEquals(roleOf("blk.0.attn_sinks", [8]), "table");
  assertEquals(layerOf("model.layers.12.mlp.down_proj.weight"), 12);
  assertEquals(layerOf("blk.7.attn_q.weight"), 7);
  assertEquals(layerOf("output.weight"), undefined);
});

Deno.test("a policy in a file is checked to the last key", () => {
  const policy = parsePolicy(JSON.stringify({
    format: "q4_k",
    rules: [
      { pattern: "^blk\\.0\\.", format: "q8_0" },
      { roles: ["ffn_down"], layers: { favoured: true }, format: "q6_k" },
      { roles: ["embedding"], format: "keep" },
    ],
  }));
  const formats = formatsOf(policy, TINY_LLAMA);
  assertEquals(
    ["blk.0.attn_q", "blk.1.attn_q", "blk.4.ffn_down", "token_embd"].map((name) => formats[name]),
    ["Q8_0", "Q4_K", "Q6_K", "keep"],
  );
  const refused: readonly (readonly [unknown, string])[] = [
    ["{", "Cannot read the policy"],
    [{}, '"format" is missing'],
    [{ format: "q9" }, '"format" is "q9"'],
    [{ format: "q9" }, "no number format: known are keep, F32, F16"],
    [{ format: "iq1_s" }, '"format" is "iq1_s", which has no public encoder; those that have'],
    [{ format: 4 }, '"format" is 4, which is no number format'],
    [{ format: "q8_0", name: "" }, '"name" is "", it must be a text'],
    [{ format: "q8_0", rules: {} }, '"rules" is {}, it must be a list'],
    [{ format: "q8_0", rules: [{ format: "q4_k", below: -1 }] }, "it must be a whole number"],
    [
      { format: "q8_0", rules: [{ format: "q4_k", roles: [] }] },
      '"roles" is [], it must be a list',
    ],
    [{ format: "q8_0", rules: [{ format: "q4_k", layers: 3 }] }, "it must be an object"],
    [
      { format: "q8_0", rules: [{ format: "q4_k", layers: { favoured: false } }] },
      "it must be true, or left out",
    ],
    [{ format: "q8_0", rulez: [] }, '"rulez" is not one of'],
    [{ format: "q8_0", rules: [{ format: "q4_k", role: "norm" }] }, 'rule 1 of the policy: "role"'],
    [{ format: "q8_0", rules: [{ format: "q4_k", roles: ["nrm"] }] }, '"roles" is ["nrm"]'],
    [
      { format: "q8_0", rules: [{ format: "q4_k", pattern: "(" }] },
      '"pattern" is "(", which is no regular',
    ],
    [{ format: "q8_0", rules: [{ format: "q4_k", layers: { last: 2 } }] }, '"last" is not one of'],
  ];
  for (const [json, message] of refused) {
    const text = typeof json === "string" ? json : JSON.stringify(json);
    assertThrows(() => parsePolicy(text), RangeError, message);
  }
});

Deno.test("E0M4 at the paper's group takes 4.25 bits a weight", () => {
  const format = findFormat("e0m4", 128);
  assertEquals(format.blockBytes * 8 / format.blockSize, 4.25);
  assertEquals(getFormat("LF8").blockBytes * 8 / 256, 8.125);
  assertEquals(getFormat("Q3H_B64T1").blockBytes * 8 / 64, 4);
});
