// The clients that people have, against the server on a socket: npm openai, the AI SDK by its provider for compatible
// services, LangChain, curl. Streams, tools, schemas, vectors, and what each makes of an error.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  embedMany,
  generateObject,
  generateText,
  jsonSchema,
  streamText,
  tool,
  type ToolSet,
} from "ai";
import OpenAI from "openai";
import type { AnswerJob } from "../engine/serve/engine.ts";
import { type Script, ScriptedEngine, vectorOf } from "./support/scripted_engine.ts";
import { CURL, testServer, withServer } from "./support/http_server.ts";
import { testWith } from "./support/skip.ts";

const SAID = "Hello there, it is a fine day today.";
const CITY = '{"city":"Bonn"}';
const call = {
  ...{ id: "call00001", name: "weather", arguments: { city: "Bonn" } },
  argumentsText: CITY,
};
const parameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
} as const;

/** Says what is asked for: a call where there are tools and no result yet, JSON where there is a schema, else words. */
function script({ input, options }: AnswerJob): Script {
  const messages = "messages" in input ? input.messages : [];
  const hasResult = messages.some(({ role }) => role === "tool");
  if (options.tools && options.toolChoice !== "none" && !hasResult) return { calls: [call] };
  return options.schema === undefined ? {} : { pieces: ['{"city"', ':"Bonn"}'] };
}

const KEY = "secret";

async function withClients(use: (address: string, engine: ScriptedEngine) => Promise<void>) {
  const { app, engine } = await testServer(new ScriptedEngine(script), { keys: [KEY] });
  await withServer(app, (address) => use(`${address}/v1`, engine));
}

const messages = [{ role: "user" as const, content: "hi" }];

Deno.test("npm openai: answers, streams, tools, schemas, responses, vectors, models, errors", async () => {
  await withClients(async (baseURL) => {
    const client = new OpenAI({ baseURL, apiKey: KEY, maxRetries: 0 });
    const asked = { model: "m", messages, temperature: 0 };
    const whole = await client.chat.completions.create({
      ...asked,
      logprobs: true,
      top_logprobs: 1,
    });
    assertEquals(whole.choices[0]!.message.content, SAID);
    assertEquals(whole.choices[0]!.logprobs!.content!.length, 10);
    assertEquals(whole.usage!.total_tokens, 11);

    const stream = client.chat.completions.stream({
      ...asked,
      stream_options: { include_usage: true },
    });
    let text = "";
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
    assertEquals([text, (await stream.totalUsage()).completion_tokens], [SAID, 10]);

    const tools = [{ type: "function" as const, function: { name: "weather", parameters } }];
    const calling = await client.chat.completions.stream({ ...asked, tools }).finalChatCompletion();
    const [told] = calling.choices[0]!.message.tool_calls!;
    assertEquals([told!.type === "function" && told!.function.arguments, told!.id], [
      CITY,
      call.id,
    ]);
    const run = client.chat.completions.runTools({
      ...asked,
      tools: [{
        type: "function",
        function: { name: "weather", parameters, parse: JSON.parse, function: () => "sunny" },
      }],
    } as never);
    assertEquals(await run.finalContent(), SAID);

    const parsed = await client.chat.completions.parse({
      ...asked,
      response_format: {
        type: "json_schema",
        json_schema: { name: "place", schema: parameters, strict: true },
      },
    });
    assertEquals(parsed.choices[0]!.message.content, CITY);

    const completion = await client.completions.create({ model: "m", prompt: "a", temperature: 0 });
    assertEquals(completion.choices[0]!.text, SAID);
    await responses(client);

    const input = ["a", "bc"];
    const { data } = await client.embeddings.create({ model: "m", input });
    assertEquals(data.map(({ embedding }) => embedding), input.map((one) => [...vectorOf(one)]));
    assertEquals((await client.models.list()).data.map(({ id }) => id), ["m"]);
    assertEquals((await client.models.retrieve("m")).owned_by, "troodon");
    await errors(client, baseURL);
  });
});

async function responses(client: OpenAI): Promise<void> {
  const whole = await client.responses.create({ model: "m", input: "hi", temperature: 0 });
  assertEquals([whole.output_text, whole.status], [SAID, "completed"]);
  const stream = client.responses.stream({
    ...{ model: "m", input: "hi" },
    tools: [{ type: "function", name: "weather", parameters, strict: true }],
  });
  const types: string[] = [];
  for await (const { type } of stream) types.push(type);
  assert(types.includes("response.function_call_arguments.done"), types.join());
  const [item] = (await stream.finalResponse()).output;
  assertEquals(item!.type === "function_call" && [item!.call_id, item!.arguments], [call.id, CITY]);
}

async function errors(client: OpenAI, baseURL: string): Promise<void> {
  const wrong = await assertRejects(
    () => client.chat.completions.create({ model: "m", messages, temperature: -1 }),
    OpenAI.BadRequestError,
  );
  assertEquals([wrong.param, wrong.code], ["temperature", "invalid_value"]);
  const absent = await assertRejects(
    () => client.chat.completions.create({ model: "x", messages, stream: true }),
    OpenAI.NotFoundError,
  );
  assertEquals(absent.code, "model_not_found");
  const stranger = new OpenAI({ baseURL, apiKey: "other", maxRetries: 0 });
  await assertRejects(() => stranger.models.list() as Promise<unknown>, OpenAI.AuthenticationError);
}

Deno.test("the AI SDK: text, streams, tools, objects, vectors, errors", async () => {
  await withClients(async (baseURL) => {
    const provider = createOpenAICompatible({
      ...{ name: "troodon", baseURL, apiKey: KEY },
      ...{ supportsStructuredOutputs: true, includeUsage: true },
    });
    const model = provider("m");
    const asked = { model, prompt: "hi", temperature: 0, maxRetries: 0 };
    const { text, usage, finishReason } = await generateText(asked);
    assertEquals([text, usage.outputTokens, finishReason], [SAID, 10, "stop"]);
    const stream = streamText(asked);
    let streamed = "";
    for await (const piece of stream.textStream) streamed += piece;
    assertEquals([streamed, (await stream.usage).inputTokens], [SAID, 1]);

    const tools = { weather: tool({ inputSchema: jsonSchema(parameters) }) } as unknown as ToolSet;
    for (
      const calling of [
        generateText({ ...asked, tools }),
        streamText({ ...asked, tools }),
      ]
    ) {
      const [told] = await (await calling).toolCalls;
      assertEquals([told!.toolName, told!.input as unknown], ["weather", { city: "Bonn" }]);
    }
    const { object } = await generateObject({ ...asked, schema: jsonSchema(parameters) });
    assertEquals(object as unknown, { city: "Bonn" });
    const { embeddings } = await embedMany({
      model: provider.embeddingModel("m"),
      values: ["a", "bc"],
    });
    assertEquals(embeddings, ["a", "bc"].map((one) => [...vectorOf(one)]));
    const error = await assertRejects(() => generateText({ ...asked, model: provider("x") }));
    const { statusCode, message } = error as {
      readonly statusCode?: number;
      readonly message: string;
    };
    assertEquals([statusCode, message], [404, "no model is called x"]);
  });
});

Deno.test("LangChain: text, streams, tools, objects, vectors, errors", async () => {
  await withClients(async (baseURL) => {
    const options = { apiKey: KEY, configuration: { baseURL }, maxRetries: 0 };
    const model = new ChatOpenAI({ ...options, model: "m", temperature: 0 });
    assertEquals((await model.invoke("hi")).text, SAID);
    let text = "";
    for await (const chunk of await model.stream("hi")) text += chunk.text;
    assertEquals(text, SAID);
    const weather = { type: "function" as const, function: { name: "weather", parameters } };
    const { tool_calls: calls } = await model.bindTools([weather]).invoke("hi");
    assertEquals(calls!.map(({ name, args, id }) => [name, args, id]), [
      ["weather", { city: "Bonn" }, call.id],
    ]);
    const structured = model.withStructuredOutput(parameters, {
      method: "jsonSchema",
      name: "place",
    });
    assertEquals(await structured.invoke("hi") as unknown, { city: "Bonn" });
    const vectors = new OpenAIEmbeddings({ ...options, model: "m" });
    assertEquals(await vectors.embedQuery("bc"), [...vectorOf("bc")]);
    const absent = new ChatOpenAI({ ...options, model: "x" });
    const error = await assertRejects(() => absent.invoke("hi")) as { readonly status?: number };
    assertEquals(error.status, 404);
  });
});

testWith([CURL], "curl: an answer, a stream, an error", async () => {
  await withClients(async (baseURL) => {
    const curl = async (path: string, body: unknown, ...more: readonly string[]) => {
      const data = ["-H", "content-type: application/json", "-d", JSON.stringify(body)];
      const { stdout } = await new Deno.Command("curl", {
        args: ["-sS", "-N", "-H", `authorization: Bearer ${KEY}`, ...more, ...data, baseURL + path],
      }).output();
      return new TextDecoder().decode(stdout);
    };
    const asked = { model: "m", messages, temperature: 0 };
    const { choices } = JSON.parse(await curl("/chat/completions", asked));
    assertEquals(choices[0].message.content, SAID);
    const stream = await curl("/chat/completions", { ...asked, stream: true });
    assertEquals(stream.split("\n\n").slice(-2), ["data: [DONE]", ""]);
    const large = ["-H", "expect: 100-continue", "-w", "%{http_code}"];
    assertEquals((await curl("/chat/completions", { ...asked, n: 0 }, ...large)).slice(-3), "400");
  });
});
