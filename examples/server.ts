// A server of one's own, asked by OpenAI's client: deno run -A examples/server.ts
//
// `troodon serve` is usually started by hand, by systemd or in a container (examples/deploy); here it is a child process.

import OpenAI from "openai";

const main = new URL("../main.ts", import.meta.url).pathname;
await using server = new Deno.Command(Deno.execPath(), {
  args: ["run", "-A", main, "serve", "smollm2-135m", "--port", "0", "--quiet", "--json"],
  stdout: "piped",
}).spawn();

// Its first line says where it listens. Requests that come before the model is there wait for it.
const lines = server.stdout.pipeThrough(new TextDecoderStream()).getReader();
const { value = "" } = await lines.read();
const { url, models } = JSON.parse(value.split("\n")[0]!);
console.log(`${models[0]} at ${url}`);

const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
const answer = await client.chat.completions.create({
  model: models[0],
  messages: [{ role: "user", content: "Name three dinosaurs." }],
  stream: true,
  temperature: 0,
  max_completion_tokens: 40,
});
for await (const { choices: [choice] } of answer) {
  Deno.stdout.writeSync(new TextEncoder().encode(choice?.delta.content ?? ""));
}
console.log();

// A schema binds an answer, and the engine's own samplers and options are fields like the others.
const schema = {
  type: "object",
  properties: {
    name: { enum: ["Troodon", "Triceratops"] },
    metres: { type: "integer", maximum: 30 },
  },
  required: ["name", "metres"],
  additionalProperties: false,
};
const { choices } = await client.chat.completions.create({
  model: models[0],
  messages: [{ role: "user", content: "A dinosaur as JSON." }],
  response_format: { type: "json_schema", json_schema: { name: "dinosaur", schema } },
  max_completion_tokens: 60,
  ...{ min_p: 0.1, seed: 1 },
});
console.log(choices[0]!.message.content);
