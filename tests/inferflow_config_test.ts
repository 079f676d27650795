// Inferflow's configuration files, from their keys to answers. They are written here, with every key of the format.

import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { FormatError } from "../engine/errors.ts";
import { parseIni } from "../engine/formats/ini/ini.ts";
import { readEngineConfig } from "../engine/inferflow/engine_config.ts";
import { keysOf } from "../engine/inferflow/keys.ts";
import { readInferenceConfig } from "../engine/inferflow/queries.ts";
import {
  configKind,
  readClientConfig,
  readPerplexityConfig,
} from "../engine/inferflow/small_configs.ts";
import { checkKeys, openConfiguration } from "../engine/inferflow/values.ts";
import { generate } from "../engine/decode/generate.ts";
import { openModel } from "../engine/models/open_model.ts";
import { quantizeModel } from "../engine/quantize/quantize.ts";
import { inferflowPolicy } from "../quant/policies.ts";
import { chooseFormat } from "../quant/policy.ts";
import { load } from "../engine/models/load.ts";
import { perplexity } from "../engine/pipelines/perplexity.ts";
import { ROOT } from "../tools/support/task.ts";
import { randomPair, writeGgufAdapter } from "./support/adapters.ts";
import { troodon as runTroodon } from "./support/cli.ts";
import { fixturePath } from "./support/fixtures.ts";
import { TINY_LLAMA } from "./support/models.ts";

const FORMATS = fixturePath("models/llama_formats");

const SPEC = `# A comment in front
{
  "COMMENTS": "another",
  "config_file": "",
  "model_files": ["llama.Q8_0.gguf"],
  "model_file_format": "gguf",
  "network_structure": {
    "type": "transformer.llama", "qk_column_order": 1, "tensor_name_prefix": "blk."
  }
}`;

const ENGINE = `
[main]
http_port = 8081
global_model_dir = \${data_root_dir}models
default_prompt_template = {query}{\\n}
[transformer_engine]
;models = other
models = tiny, other
cpu_threads = 1
max_concurrent_queries = 2
[model.tiny]
model_dir = \${global_model_dir}/\${model_name}/
model_specification_file = $(config_dir)\${model_name}.json
device_kv_cache_data_type = F32
max_context_len = 12
max_context_len = 64
decoding_strategy = {"name": "sample.top_p", "top_p": 0.8, "max_k": 4, "eos_bypassing_max": 2}
prompt_template = own
[model.other]
devices = 0;1
colour = red
[prompt_templates]
prompt_template_count = 1
prompt_template1 = own
[prompt_template.own]
line_count = 2
line1 = a {query}
line2 = {res_prefix}
[webgpu]
device = reference
[app_env.base]
data_root_dir = \${config_dir}data/
`;

const INFERENCE = `
[main]
inference_engine_config = \${config_dir}/engine.ini
query_list = query_list.some
query_random_seed = 5
temperature = 0
[query_list.some]
query_count = 2
query1 = a{\\n}b
query2 = {"text": "b", "res_prefix": "c", "decoder_input_template": "{bos}{query}"}
`;

async function withFiles(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.mkdir(`${folder}/data/models`, { recursive: true });
    await Deno.symlink(FORMATS, `${folder}/data/models/tiny`);
    await Deno.writeTextFile(`${folder}/tiny.json`, SPEC);
    await Deno.writeTextFile(`${folder}/engine.ini`, ENGINE);
    await Deno.writeTextFile(`${folder}/llm_inference.ini`, INFERENCE);
    await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const troodon = (...args: readonly string[]) => runTroodon(args);

Deno.test("an engine's configuration becomes options, the first model counts, and the rest is told", () =>
  withFiles(async (folder) => {
    const warnings = new Set<string>();
    const path = `${folder}/engine.ini`;
    const config = await readEngineConfig(parseIni(ENGINE, path), warnings);
    assertEquals([config.name, config.port], ["tiny", 8081]);
    assertEquals(config.path, `${folder}/data/models/tiny/llama.Q8_0.gguf`);
    const { spec, ...load } = config.load;
    assert(typeof spec === "object");
    assertEquals(load, {
      kvFormat: "F32",
      contextLength: 64,
      threads: 1,
      sessions: 2,
      device: "reference",
    });
    assertEquals(config.generate.strategy, {
      name: "sample.top_p",
      top_p: 0.8,
      max_k: 4,
      eos_bypassing_max: 2,
    });
    assertEquals(config.templates, { own: "a {query}\n{res_prefix}" });
    assertEquals(config.decoderTemplate?.name, "own");
    assertEquals([...warnings], [
      `${path}, line 21, [model.other] colour: is not known and changes nothing`,
    ]);
  }));

Deno.test("values without a meaning here are told with the reason, and others are refused", () =>
  withFiles(async (folder) => {
    const read = async (lines: string, more = "") => {
      const warnings = new Set<string>();
      const text = ENGINE.replace("prompt_template = own", lines) + more;
      await readEngineConfig(parseIni(text, `${folder}/engine.ini`), warnings);
      return [...warnings].filter((one) => !one.includes("colour"));
    };
    assertEquals(await read("devices = 0\nbe_host_embeddings = true\ndelta_tensor_ratio = 0"), []);
    const told = await read(
      "host_weight_data_type = Q4_b32t1\ndevice_kv_cache_data_type = Q8",
    );
    assertEquals(told.length, 1);
    assertStringIncludes(told.join("\n"), "as the file stores them");
    const onGpu = await read("device_kv_cache_data_type = Q8", "\n[webgpu]\ndevice = gpu\n");
    assertEquals(onGpu, []);
    const rounded = await read("device_kv_cache_data_type = Q4_B32T1");
    assertStringIncludes(rounded.join("\n"), "F16 is used instead");
    for (
      const [lines, message] of [
        ["device_weight_data_type = Q9", "number format"],
        ["device_weight_data_type = Q4_B32T2", "can be stored"],
        ["delta_tensor_ratio = 0.2", "delta_tensor_ratio"],
        ["tensor_quant_threshold = some", "tensor_quant_threshold"],
        ["max_context_len = many", "max_context_len"],
        ["devices = 0&1;2", "groups must have as many devices each"],
        ["host_kv_cache_percent = 101", "host_kv_cache_percent"],
        ["decoding_strategy = nonsense", "nonsense"],
        ['decoding_strategy = {"name":', "JSON"],
        ["prompt_template = nobody", "nobody"],
        ["model_spec_file = none.json\nmodel_specification_file = none.json", "none.json"],
        ["model_dir = \nx = 1", "model_dir"],
      ] as const
    ) {
      const error = await assertRejects(() => read(lines), Error);
      assertStringIncludes((error as Error).message, message);
    }
  }));

Deno.test("what generation_config.json says counts, and the template of all models where one has none", () =>
  withFiles(async (folder) => {
    const models = `${folder}/data/models`;
    await Deno.mkdir(`${models}/hinted`);
    const hints = { temperature: 0.6, top_k: 3, top_p: 0.7, max_new_tokens: 12 };
    const tokens = { user_token_id: 195, assistant_token_id: 196 };
    const named = { do_sample: true, eos_token_id: [2, 5], repetition_penalty: 1.05 };
    await Deno.writeTextFile(
      `${models}/hinted/generation_config.json`,
      JSON.stringify({ ...hints, ...tokens, ...named }),
    );
    const read = (more = "") => {
      const lines = ENGINE.replace("models = tiny, other", "models = hinted")
        .replace("[webgpu]", `[model.hinted]\nmodel_dir = ${models}/hinted\n${more}\n[webgpu]`);
      return readEngineConfig(parseIni(lines, `${folder}/engine.ini`), new Set());
    };
    const always = { temperature: 0.6, repeatPenalty: 1.05, maxTokens: 12, onContextFull: "stop" };
    const plain = await read();
    assertEquals(plain.generate as unknown, {
      ...always,
      strategy: { name: "sample.std", top_p: 0.7, max_k: 3 },
    });
    assertEquals([plain.userTokenId, plain.assistantTokenId], [195, 196]);
    assertEquals(plain.decoderTemplate?.pieces, [{ key: "query" }, { text: "\n" }]);
    const given = await read("decoding_strategy = sample.greedy\nprompt_template = own");
    assertEquals(given.generate as unknown, { ...always, strategy: "sample.greedy" });
    assertEquals(given.decoderTemplate?.name, "own");
  }));

Deno.test("devices, layers on the CPU, and embeddings and caches of the host become a placement", () =>
  withFiles(async (folder) => {
    const read = async (own: string, engine = "") => {
      const text = ENGINE.replace("prompt_template = own", own)
        .replace("[transformer_engine]", `[transformer_engine]\n${engine}`);
      const { load } = await readEngineConfig(parseIni(text, `${folder}/engine.ini`), new Set());
      const { placement, hostKvPercent, hostEmbeddings } = load;
      return [placement, hostKvPercent, hostEmbeddings];
    };
    const none = undefined;
    assertEquals(await read("be_host_embeddings = true"), [none, none, none]);
    assertEquals(await read("devices = 0&1;2&3"), ["0&1;2&3", none, none]);
    assertEquals(await read("host_kv_cache_percent = 50"), [none, 50, none]);
    assertEquals(await read("be_host_embeddings = yes", "decoder_cpu_layer_count = 3"), [
      ...["wasm=3;gpu", none, true],
    ]);
    assertEquals(await read("devices = 0;1", "cpu_layer_count = 2\ndevices = 4"), [
      ...["wasm=2;0;1", none, none],
    ]);
    assertEquals(await read("", "devices = 0;1"), ["0;1", none, none]);
    // A decoder has no layers of an encoder.
    assertEquals(await read("", "encoder_cpu_layer_count = 2"), [none, none, none]);
  }));

Deno.test("layers of an encoder on the CPU are counted by its own key, and one of two that differ is told", () =>
  withFiles(async (folder) => {
    const counts = "cpu_layer_count = 1\nencoder_cpu_layer_count = 2\ndecoder_cpu_layer_count = 3";
    const read = async (type: string, own = counts) => {
      await Deno.writeTextFile(`${folder}/tiny.json`, SPEC.replace("transformer.llama", type));
      const text = ENGINE.replace("[transformer_engine]", `[transformer_engine]\n${own}`);
      const warnings = new Set<string>();
      const { load } = await readEngineConfig(parseIni(text, `${folder}/engine.ini`), warnings);
      return [load.placement, [...warnings].filter((line) => /layer_count/.test(line)).length];
    };
    assertEquals(await read("transformer.encoder_only"), ["wasm=2;gpu", 0]);
    assertEquals(await read("bert"), ["wasm=2;gpu", 0]);
    assertEquals(await read("bert", "cpu_layer_count = 1"), ["wasm=1;gpu", 0]);
    assertEquals(await read("transformer.decoder_only"), ["wasm=3;gpu", 0]);
    assertEquals(await read("transformer.encoder_decoder"), ["wasm=3;gpu", 1]);
    assertEquals(await read("transformer.encoder_decoder", "cpu_layer_count = 1"), [
      ...["wasm=1;gpu", 0],
    ]);
  }));

Deno.test("formats of weights become a policy; F16 is what the file has", () =>
  withFiles(async (folder) => {
    const read = async (lines: string) => {
      const text = ENGINE.replace("prompt_template = own", lines);
      return (await readEngineConfig(parseIni(text, `${folder}/engine.ini`), new Set())).weights;
    };
    assertEquals(
      await read("device_weight_data_type = F16\ntensor_quant_threshold = 7"),
      undefined,
    );
    const { rules, ...others } = (await read(
      "device_weight_data_type = q4\ndevice_weight_data_type.ffn_w2 = Q6\n" +
        "tensor_quant_threshold = 20*50\ndelta_tensor_ratio = 0.001",
    ))!;
    assertEquals(others, { name: "Inferflow Q4", format: "Q4", outliers: 0.001 });
    assertEquals(rules.slice(1), [
      { below: 1000, format: "F16" },
      { roles: ["ffn_down"], format: "Q6" },
    ]);
    const own = await read("device_weight_data_type.attn_wq = Q8");
    assertEquals([own!.format, own!.rules.length], ["keep", 2]);
    const names =
      "q8 q6 q5 q4 q3h q3 q2 q8_gl q8_log q8_b32t1 q8_b32t2 q6_b64t1 q5_b32t1 q5_b64t1 " +
      "q4_b16 q4_b32t1 q4_b32t1a q4_b32t1b q4_b64t1 q3h_b64t1 q3_b32t1 q3_b32t1a q3_b32t1b " +
      "q2_b32t1 q2_b32t1a q2_b32t1b";
    for (const name of names.split(" ")) {
      const policy = await read(`device_weight_data_type = ${name}\ntensor_quant_threshold = 0`);
      const { format, insteadOf } = chooseFormat(
        policy!,
        { name: "blk.0.attn_q.weight", shape: [64, 64] },
        { layers: 1 },
      );
      assertEquals([format !== undefined, insteadOf], [true, undefined], name);
    }
  }));

Deno.test("a query list has texts and records", () => {
  const { engine, queries, seed, temperature } = readInferenceConfig(
    parseIni(INFERENCE, "/x/a.ini"),
    new Set(),
  );
  assertEquals([engine, seed, temperature], ["/x//engine.ini", 5, 0]);
  assertEquals(queries.map(({ text, answer }) => [text, answer]), [["a\nb", ""], ["b", "c"]]);
  assertEquals(queries[1]!.decoderTemplate, "{bos}{query}");
  const wrong = [
    INFERENCE.replace("query_count = 2", "query_count = 3"),
    INFERENCE.replace('"text"', '"txt"'),
    INFERENCE.replace('"b",', '"b"'),
    INFERENCE.replace("query_list.some\n", "query_list.none\n"),
  ];
  for (const text of wrong) {
    assertThrows(() => readInferenceConfig(parseIni(text, "a.ini"), new Set()), FormatError);
  }
});

Deno.test("every key of the format is known, and no unknown one", () => {
  for (const table of (["engine", "inference", "perplexity", "client"] as const).map(keysOf)) {
    const lines = Object.entries(table).flatMap(([section, keys]) => [
      `[${section.replace("*", "x")}]`,
      ...Object.entries(keys).map(([key, { quiet }]) =>
        `${key.replace("#", "7")} = ${quiet?.[0] ?? "1"}`
      ),
    ]);
    const warnings = new Set<string>();
    checkKeys(openConfiguration(parseIni(lines.join("\n"), "a.ini"), warnings), { table });
    assertEquals([...warnings], []);
    checkKeys(openConfiguration(parseIni("[main]\nzz = 1\n[zz]", "a.ini"), warnings), { table });
    assertEquals(warnings.size, 2);
  }
});

Deno.test("the small configurations are told apart and read", () => {
  const perplexity = parseIni(
    "[main]\ninference_engine_config = e.ini\ntest_data_file = ${run_name}.txt\nmax_length = 64\ntemperature = 2",
    "/d/p.ini",
  );
  const warnings = new Set<string>();
  assertEquals(configKind(perplexity), "perplexity");
  assertEquals(readPerplexityConfig(perplexity, warnings), {
    engine: "/d/e.ini",
    data: "/d/p.txt",
    window: 64,
    stride: 64,
  });
  assertEquals(warnings.size, 1);
  const client = parseIni('[main]\nservice = http://a\nrequest = {"text": "b"}', "c.ini");
  assertEquals(configKind(client), "client");
  assertEquals(readClientConfig(client, warnings), {
    service: "http://a",
    request: '{"text": "b"}',
  });
  assertEquals(configKind(parseIni(INFERENCE, "a.ini")), "inference");
  assertEquals(configKind(parseIni(ENGINE, "a.ini")), "engine");
  assertEquals(configKind(parseIni("[main]", "a.ini")), undefined);
});

Deno.test("troodon --config answers a query list, by templates and a description of the model", () =>
  withFiles(async (folder) => {
    const { code, out, err } = await troodon("--config", `${folder}/llm_inference.ini`, "--json");
    assertEquals(code, 0, err);
    const answers = out.trim().split("\n").map((line) => JSON.parse(line));
    assertEquals(answers.map(({ query }) => query), ["a\nb", "b"]);
    using model = await load(TINY_LLAMA, {
      ...{ device: "reference", kvFormat: "F32", contextLength: 64 },
    });
    const { tokenizer } = model;
    const encode = (text: string) => tokenizer.encode(text, { addSpecial: false });
    const prompts = [encode("a a\nb\n"), [tokenizer.bosId!, ...encode("b"), ...encode("c")]];
    const options = { temperature: 0, eosBypassingMax: 2, onContextFull: "stop" } as const;
    for (const [index, prompt] of prompts.entries()) {
      const direct = await generate(model, prompt, options).result;
      assertEquals(answers[index].ids, direct.ids, `query ${index + 1}`);
      assertEquals(answers[index].finishReason, direct.finishReason);
    }
    assertStringIncludes(err, "colour: is not known");
  }));

Deno.test("troodon --config rounds weights to the formats of the configuration, and leaves no copy", () =>
  withFiles(async (folder) => {
    const lines =
      "prompt_template = own\ndevice_weight_data_type = Q4_b32t1\ntensor_quant_threshold = 1";
    await Deno.writeTextFile(
      `${folder}/engine.ini`,
      ENGINE.replace("prompt_template = own", lines),
    );
    const temporary = `${folder}/temporary`;
    await Deno.mkdir(temporary);
    const command = new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "-A", "--no-check", `${ROOT}/main.ts`],
        ...["--config", `${folder}/llm_inference.ini`, "--json"],
      ],
      ...{ stdin: "null", stdout: "piped", stderr: "piped", env: { TMPDIR: temporary } },
    });
    const { code, stdout, stderr } = await command.output();
    assertEquals(code, 0, new TextDecoder().decode(stderr));
    assertEquals([...Deno.readDirSync(temporary)], []);
    const answers = new TextDecoder().decode(stdout).trim().split("\n").map((line) =>
      JSON.parse(line)
    );
    const file = await openModel(TINY_LLAMA);
    const rounded = `${folder}/rounded.safetensors`;
    const policy = inferflowPolicy({ format: "Q4_B32T1", threshold: 1 });
    const { tensors } = await quantizeModel(file, { path: rounded, policy }, { levels: "upstream" })
      .finally(() => file.close());
    assertEquals(tensors.find(({ name }) => name === "blk.0.ffn_up.weight")!.to, "Q4_B32T1A");
    using model = await load(rounded, {
      ...{ device: "reference", kvFormat: "F32", contextLength: 64 },
    });
    const prompt = model.tokenizer.encode("a a\nb\n", { addSpecial: false });
    const options = { temperature: 0, eosBypassingMax: 2, onContextFull: "stop" } as const;
    assertEquals(answers[0].ids, (await generate(model, prompt, options).result).ids);
  }));

Deno.test("troodon --config measures a text, and sends the request of a client", () =>
  withFiles(async (folder) => {
    await Deno.writeTextFile(`${folder}/t.txt`, "a text of some words, and some more words");
    await Deno.writeTextFile(
      `${folder}/perplexity.ini`,
      "[main]\ninference_engine_config = engine.ini\ntest_data_file = t.txt\nmax_length = 16\n",
    );
    const { code, out, err } = await troodon("--config", `${folder}/perplexity.ini`, "--json");
    assertEquals(code, 0, err);
    const text = await Deno.readTextFile(`${folder}/t.txt`);
    using model = await load(TINY_LLAMA, {
      ...{ device: "reference", kvFormat: "F32", contextLength: 64, logitRows: 16 },
    });
    const expected = await perplexity(model, text, { window: 16 });
    const { perplexity: value, scored } = JSON.parse(out);
    assertEquals([scored, value], [expected.scored, expected.perplexity]);

    const server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      async (request) => Response.json({ text: (await request.json()).text, is_end: 1 }),
    );
    try {
      await Deno.writeTextFile(
        `${folder}/client.ini`,
        `[main]\nservice = http://127.0.0.1:${server.addr.port}\nrequest = {"text": "echo"}\n`,
      );
      const sent = await troodon(`--config=${folder}/client.ini`);
      assertEquals([sent.code, sent.out], [0, "echo\n"], sent.err);
    } finally {
      await server.shutdown();
    }
  }));

Deno.test("the command line takes a description and adapters", () =>
  withFiles(async (folder) => {
    const pair = randomPair("blk.1.attn_output.weight", [32, 32], 4);
    writeGgufAdapter(`${folder}/a.gguf`, [pair], {
      "general.architecture": ["string", "llama"],
      "adapter.lora.alpha": ["f32", 40],
    });
    const path = `${FORMATS}/llama.Q8_0.gguf`;
    const answer = async (...flags: string[]) => {
      const base = ["generate", path, "--raw", "-p", "a", "--max-tokens", "8", "--json"];
      const { code, out, err } = await troodon(...base, "--ignore-eos", "--threads", "1", ...flags);
      assertEquals(code, 0, err);
      return JSON.parse(out).ids.join();
    };
    const plain = await answer("--spec-file", `${folder}/tiny.json`);
    assertEquals(plain, await answer("--lora", `${folder}/a.gguf:0`));
    assert(plain !== await answer("--lora", `${folder}/a.gguf:2.5`));
    const info = await troodon("info", path, "--spec-file", `${folder}/tiny.json`, "--json");
    assertEquals(JSON.parse(info.out).info.architecture, "inferflow");
    const check = await troodon("spec", "check", `${folder}/tiny.json`);
    assertStringIncludes(check.out, "keys are valid", check.err);
    await Deno.writeTextFile(`${folder}/bad.json`, SPEC.replace("transformer.llama", "none"));
    const bad = await troodon("spec", "check", `${folder}/bad.json`);
    assertStringIncludes(bad.err, "network_structure.type: must be one of");
  }));

Deno.test("troodon --config refuses what is no such file", () =>
  withFiles(async (folder) => {
    const engine = await troodon("--config", `${folder}/engine.ini`);
    assertEquals([engine.code, engine.out], [1, ""]);
    assertStringIncludes(engine.err, "inference_engine_config");
    for (const named of [["--config"], []]) {
      const spec = await troodon("run", ...named, `${folder}/tiny.json`);
      assertEquals(spec.code, 1);
      assertStringIncludes(spec.err, "line 2");
    }
    const twice = await troodon("run", "a.ini", "--config", "b.ini");
    assertEquals(twice.code, 2);
    assertStringIncludes(twice.err, "given twice");
  }));
