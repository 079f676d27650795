// The provider under the AI SDK itself: what its users call, on a model that follows a script, and on tiny ones.

import { assert, assertAlmostEquals, assertEquals, assertRejects, assertThrows } from "@std/assert";
import {
  AISDKError,
  type EmbeddingModelV4,
  type LanguageModelV4,
  NoSuchModelError,
  type ProviderV4,
  type RerankingModelV4,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import {
  embed,
  embedMany,
  generateObject,
  generateText,
  isStepCount,
  Output,
  rerank,
  streamText,
  tool,
} from "ai";
import { z } from "zod";
import { ROOT } from "../tools/support/task.ts";
import { createTroodon, troodon } from "../engine/serve/ai/mod.ts";
import { chat, generate, load, type Model, rerank as rankedBy, ResourceError } from "../mod.ts";
import { fixturePath } from "./support/fixtures.ts";
import { loadTiny, TINY_LLAMA } from "./support/models.ts";
import { loadScripted } from "./support/scripted.ts";
import { unpackedVisionLanguage } from "./support/vision_language.ts";
import { writeToyClassifier, writeWordTokenizer } from "./support/toy_encoders.ts";

const TEMPLATE = "{% if tools %}tools {{ tools | tojson }}\n{% endif %}" +
  "{% for m in messages %}{{ m.role }}: {{ m.content }}" +
  "{% for call in m.tool_calls %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}\n" +
  "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";
// Warnings are looked at, not written.
(globalThis as { AI_SDK_LOG_WARNINGS?: boolean }).AI_SDK_LOG_WARNINGS = false;

const PLAIN = "{% for m in messages %}{{ m.content }}{% endfor %}";
const call = (name: string, args: unknown) =>
  `<tool_call>\n{"name": "${name}", "arguments": ${JSON.stringify(args)}}\n</tool_call>`;

const add = tool({
  description: "Adds.",
  inputSchema: z.object({ a: z.number().int(), b: z.number().int() }),
  execute: ({ a, b }) => a + b,
});

Deno.test("the provider and its models are what the specification's types say", () => {
  const provider: ProviderV4 = troodon;
  const language: LanguageModelV4 = troodon("smollm2-135m");
  const embedding: EmbeddingModelV4 = troodon.embeddingModel("minilm");
  const reranking: RerankingModelV4 = troodon.rerankingModel("reranker");
  assertEquals(provider.specificationVersion, "v4");
  for (const model of [language, embedding, reranking]) {
    assertEquals([model.specificationVersion, model.provider], ["v4", "troodon"]);
  }
  assertEquals([language.modelId, embedding.modelId], ["smollm2-135m", "minilm"]);
  const error = assertThrows(() => provider.imageModel("x"));
  assert(NoSuchModelError.isInstance(error) && AISDKError.isInstance(error));
  assertThrows(() => troodon(3 as unknown as string), TypeError, "give a name");
});

Deno.test("generateText gives text, thinking, why it ended, and what it cost", async () => {
  using scripted = await loadScripted(["<think>Look it up.</think>It is 5."], {
    template: TEMPLATE,
  });
  const prompt = "How much is it?";
  const result = await generateText({
    model: troodon(scripted.model),
    instructions: "Be short.",
    prompt,
  });
  assertEquals([result.text, result.reasoningText], ["It is 5.", "Look it up."]);
  assertEquals([result.finishReason, result.rawFinishReason], ["stop", "eos"]);
  assertEquals(result.warnings, []);
  const { tokenizer } = scripted.model;
  const shown = `system: Be short.user: ${prompt}assistant:`;
  assertEquals(scripted.prompts, [`<s> ${shown}`]);
  const { inputTokens, outputTokens, outputTokenDetails, inputTokenDetails } = result.usage;
  assertEquals(inputTokens, tokenizer.encode(shown).length);
  assertEquals([inputTokenDetails.cacheReadTokens, inputTokenDetails.noCacheTokens], [
    0,
    inputTokens,
  ]);
  assert(outputTokenDetails.reasoningTokens! > 5);
  assertEquals(
    outputTokens,
    outputTokenDetails.reasoningTokens! + outputTokenDetails.textTokens!,
  );
});

Deno.test("streamText tells reasoning and text in blocks, in order", async () => {
  using scripted = await loadScripted(["<think>Hm.</think>Yes, it is."], { template: TEMPLATE });
  const { stream, finishReason, usage } = streamText({
    model: troodon(scripted.model),
    prompt: "Is it?",
  });
  let told = "";
  const kinds: string[] = [];
  for await (const part of stream) {
    if (kinds.at(-1) !== part.type) kinds.push(part.type);
    if (part.type === "text-delta" || part.type === "reasoning-delta") told += part.text;
  }
  assertEquals(kinds, [
    ...["start", "start-step", "reasoning-start", "reasoning-delta", "reasoning-end"],
    ...["text-start", "text-delta", "text-end", "finish-step", "finish"],
  ]);
  assertEquals([told, await finishReason], ["Hm.Yes, it is.", "stop"]);
  assertEquals((await usage).outputTokens! > 10, true);
});

Deno.test("tools are called in a loop, and their results shown to the model", async () => {
  using scripted = await loadScripted(
    [`I add.\n${call("add", { a: 2, b: 3 })}`, "It is 5."],
    { template: TEMPLATE },
  );
  const result = await generateText({
    ...{ model: troodon(scripted.model), tools: { add }, prompt: "How much is it?" },
    stopWhen: isStepCount(3),
  });
  assertEquals(result.text, "It is 5.");
  const [first, second] = result.steps;
  assertEquals(first!.toolCalls.map(({ toolName, input }) => [toolName, input]), [
    ["add", { a: 2, b: 3 }],
  ]);
  assertEquals([first!.finishReason, second!.finishReason], ["tool-calls", "stop"]);
  const shown = 'I add.<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>';
  assert(scripted.prompts[1]!.includes(shown), scripted.prompts[1]);
  assert(scripted.prompts[1]!.endsWith("tool: 5assistant:"), scripted.prompts[1]);
});

Deno.test("calls are streamed as they are written", async () => {
  using scripted = await loadScripted(
    [`${call("add", { a: 2, b: 30 })}\n${call("add", { a: 1, b: 1 })}`],
    { template: TEMPLATE },
  );
  const { stream } = streamText({
    ...{ model: troodon(scripted.model), prompt: "How much?" },
    tools: { add: tool({ inputSchema: add.inputSchema }) },
  });
  const inputs = new Map<string, string>(), calls: unknown[] = [];
  let deltas = 0;
  for await (const part of stream) {
    if (part.type === "tool-input-delta") {
      deltas++;
      inputs.set(part.id, (inputs.get(part.id) ?? "") + part.delta);
    }
    if (part.type === "tool-call") calls.push([part.toolCallId, part.input]);
  }
  assertEquals(calls, [["call00000", { a: 2, b: 30 }], ["call00001", { a: 1, b: 1 }]]);
  assert(deltas > 6, `${deltas} deltas`);
  assertEquals([...inputs].map(([id, text]) => [id, JSON.parse(text)]), calls);
});

Deno.test("a choice of tools is kept, also by a model that knows nothing", async () => {
  using model = await loadTiny({
    chatTemplate: `${PLAIN}{% if tools %}T{% endif %}`,
    contextLength: 64,
  });
  const tools = {
    a: tool({ inputSchema: z.strictObject({ k: z.literal(1) }), execute: () => 1 }),
    b: tool({ inputSchema: z.strictObject({ k: z.literal(1) }), execute: () => 1 }),
  };
  const asked = { model: troodon(model), prompt: "x", tools, temperature: 1, seed: 2 };
  const { toolCalls } = await generateText({
    ...asked,
    toolChoice: { type: "tool", toolName: "b" },
  });
  assertEquals(toolCalls.map(({ toolName }) => toolName), ["b"]);
});

const shape = z.strictObject({
  a: z.array(z.number().int().min(0).max(99)).max(2),
  b: z.enum(["x", "yz"]),
});

Deno.test("output of a schema is bound by it, also on a model that knows nothing", async () => {
  using model = await loadTiny({ chatTemplate: PLAIN });
  for (const seed of [1, 2]) {
    const asked = {
      model: troodon(model),
      prompt: "Say",
      temperature: 1,
      seed,
      maxOutputTokens: 60,
    };
    const { output } = await generateText({ ...asked, output: Output.object({ schema: shape }) });
    assertEquals(shape.parse(output), output);
    const { object } = await generateObject({ ...asked, schema: shape });
    assertEquals(object, output);
    const { partialOutputStream, output: streamed } = streamText({
      ...{ ...asked, output: Output.object({ schema: shape }) },
    });
    for await (const part of partialOutputStream) assertEquals(typeof part, "object");
    assertEquals(await streamed, output);
  }
});

Deno.test("settings reach the sampler: with a seed the answer is that of generate", async () => {
  using model = await loadTiny({ chatTemplate: PLAIN });
  const alone = await generate(model, "Once", {
    ...{ temperature: 0.9, topK: 20, topP: 0.95, seed: 4, presencePenalty: 0.2 },
    ...{ frequencyPenalty: 0.1, minP: 0.01, maxTokens: 12, stop: ["zz"] },
  }).result;
  const { text, finishReason, providerMetadata } = await generateText({
    ...{ model: troodon(model), prompt: "Once", temperature: 0.9, topK: 20, topP: 0.95, seed: 4 },
    ...{ presencePenalty: 0.2, frequencyPenalty: 0.1, maxOutputTokens: 12 },
    ...{ stopSequences: ["zz"], providerOptions: { troodon: { minP: 0.01 } } },
  });
  assertEquals([text, finishReason], [alone.text, "length"]);
  assertEquals(providerMetadata, { troodon: { seed: 4 } });
});

Deno.test("what cannot be done is said: files, options, tools of others, reasoning", async () => {
  using scripted = await loadScripted(["Yes.", "No."], { template: TEMPLATE });
  const model = troodon(scripted.model);
  const file = (
    mediaType: string,
  ) => [{ type: "file" as const, mediaType, data: new Uint8Array([1]) }];
  const ask = (mediaType: string) =>
    generateText({ model, messages: [{ role: "user", content: file(mediaType) }] });
  const error = await assertRejects(() => ask("audio/wav"));
  assert(UnsupportedFunctionalityError.isInstance(error));
  await assertRejects(() => ask("image/png"), Error, "reads text only");
  await assertRejects(
    () => generateText({ model, prompt: "a", providerOptions: { troodon: { minQ: 1 } } }),
    RangeError,
    "minQ",
  );
  await assertRejects(() => generateText({ model, prompt: "a", temperature: -1 }), RangeError);
  const { warnings } = await generateText({ model, prompt: "a", reasoning: "high" });
  assertEquals(warnings?.map((one) => one.type === "unsupported" && one.feature), ["reasoning"]);
  const { warnings: none } = await generateText({ model, prompt: "a", reasoning: "none" });
  assertEquals(none, []);
  const missing = troodon("/no/such/model.gguf");
  await assertRejects(() => generateText({ model: missing, prompt: "a" }), Error, "no such");
  const errors: unknown[] = [];
  const { finishReason } = streamText({
    ...{ model, prompt: "a ".repeat(5000), onError: ({ error }) => void errors.push(error) },
  });
  assertEquals(await finishReason, "error");
  assertEquals(errors.map((one) => one instanceof ResourceError), [true]);
});

Deno.test("a picture of a message reaches a model that sees", async () => {
  const folder = unpackedVisionLanguage(), image = Deno.readFileSync(`${folder}/images/a.png`);
  using sees = await load(`${folder}/gemma3_vl_toy`, { device: "wasm", threads: 1 });
  const question = { type: "text" as const, text: "What is this?" };
  const options = { maxTokens: 4, temperature: 0 };
  const parts = [{ type: "image", image: `data:image/png;base64,${image.toBase64()}` }, question];
  const wanted = await chat(sees, [{ role: "user", content: parts }], options).text();
  const content = [{ type: "file" as const, mediaType: "image/png", data: image }, question];
  const { text, usage } = await generateText({
    ...{ model: troodon(sees), maxOutputTokens: 4, temperature: 0 },
    messages: [{ role: "user", content }],
  });
  assertEquals(text, wanted);
  assert(usage.inputTokens! > 9, "rows of the picture are counted");
});

Deno.test("an abort ends a text and a stream, and leaves the model usable", async () => {
  using model = await loadTiny({ chatTemplate: PLAIN });
  const asked = { model: troodon(model), prompt: "Once" };
  const abort = new AbortController();
  const text = generateText({ ...asked, abortSignal: abort.signal, maxOutputTokens: 40 });
  abort.abort();
  await assertRejects(() => text, DOMException, "abort");
  const later = new AbortController();
  const { stream } = streamText({ ...asked, abortSignal: later.signal, maxOutputTokens: 40 });
  const kinds: string[] = [];
  for await (const { type } of stream) {
    kinds.push(type);
    if (type === "text-delta") later.abort();
  }
  assertEquals(kinds.at(-1), "abort");
  const { doStream } = asked.model;
  const prompt = [{ role: "user" as const, content: [{ type: "text" as const, text: "Once" }] }];
  const { stream: left } = await doStream({ prompt, maxOutputTokens: 40 });
  const reader = left.getReader();
  await reader.read();
  await reader.cancel();
  const { finishReason } = await generateText({ ...asked, maxOutputTokens: 3 });
  assertEquals(finishReason, "length");
});

Deno.test("embed and embedMany give the vectors of the model, and count its tokens", async () => {
  using model = await loadClassifier();
  const embedding = troodon.embeddingModel(model);
  const alone = await embed({ model: embedding, value: "w20 w21" });
  const { embeddings, usage } = await embedMany({ model: embedding, values: ["w20 w21", "w30"] });
  assertEquals(embeddings[0], alone.embedding);
  assertEquals(embeddings.map(({ length }) => length), [32, 32]);
  assertAlmostEquals(Math.hypot(...alone.embedding), 1, 1e-5);
  assertEquals([alone.usage.tokens, usage.tokens], [4, 7]);
  const short = await embed({
    ...{ model: embedding, value: "w20" },
    providerOptions: { troodon: { dimensions: 8 } },
  });
  assertEquals(short.embedding.length, 8);
  const long = Array.from({ length: 60 }, (_, i) => `w${i + 9}`).join(" ");
  await assertRejects(() => embed({ model: embedding, value: long }), Error, "62 tokens");
});

Deno.test("rerank orders texts and objects, best first", async () => {
  using model = await loadClassifier();
  const documents = ["w9 w10", "w30", "w77 w12 w5"];
  const expected = await rankedBy(model, "w20 w21", documents);
  const reranking = troodon.rerankingModel(model);
  const { ranking } = await rerank({ model: reranking, query: "w20 w21", documents, topN: 2 });
  assertEquals(
    ranking.map(({ originalIndex, score }) => [originalIndex, score]),
    expected.slice(0, 2).map(({ index, score }) => [index, score]),
  );
  const objects = documents.map((text) => ({ text }));
  const whole = await rerank({ model: reranking, query: "w20", documents: objects });
  assertEquals(whole.rerankedDocuments.length, 3);
});

async function loadClassifier(): Promise<Model> {
  const { folder } = writeToyClassifier(fixturePath("models/bert"), 1);
  writeWordTokenizer(folder);
  try {
    return await load(folder, { device: "reference" });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("models of a provider are loaded once, when they are first used", async () => {
  await using own = createTroodon({
    load: { device: "reference", chatTemplate: PLAIN, sessions: 2 },
  });
  const ask = () => generateText({ model: own(TINY_LLAMA), prompt: "Once", maxOutputTokens: 5 });
  const [a, b] = await Promise.all([ask(), ask()]);
  assertEquals(a.text, b.text);
});

Deno.test("the provider, the queue and the public API name no package that Deno would fetch", async () => {
  const folder = await Deno.makeTempDir();
  try {
    for (const entry of ["mod.ts", "engine/serve/ai/mod.ts", "engine/cli/commands/worker.ts"]) {
      const { code, stderr } = await new Deno.Command(Deno.execPath(), {
        args: ["run", "--no-check", "--cached-only", "-A", `${ROOT}/${entry}`],
        env: { DENO_DIR: folder, NO_COLOR: "1" },
      }).output();
      assertEquals([code, new TextDecoder().decode(stderr)], [0, ""], entry);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
