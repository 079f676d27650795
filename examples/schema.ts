// Answers that are values: JSON within a schema, typed by it, and a text within a regular expression. Whatever the model
// would like to write, what comes out is allowed; what it means is the model's.
//
//   deno run --allow-read --allow-env examples/schema.ts [MODEL]

import { chat, generate, load } from "../mod.ts";

using model = await load(Deno.args[0] ?? "smollm2-135m");

const schema = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 1, maxLength: 30 },
    legs: { type: "integer", minimum: 0, maximum: 8 },
    food: { type: "array", items: { enum: ["grass", "meat", "fish", "seeds"] }, maxItems: 2 },
  },
  required: ["name", "legs", "food"],
  additionalProperties: false,
} as const;

const messages = [{ role: "user", content: "Describe an animal as JSON: name, legs, food." }];
const { text, value } = await chat(model, messages, { schema, maxTokens: 120 }).result;
console.log(text);
// `value` is { name: string; legs: number; food: ("grass" | "meat" | "fish" | "seeds")[] }.
console.log(
  `${value.name} has ${value.legs} legs and eats ${value.food.join(" and ") || "nothing"}.`,
);

const date = await generate(model, "The first man landed on the moon on", {
  regex: / \d{4}-(0\d|1[0-2])-[0-3]\d/,
}).text();
console.log(`The model's guess of the date:${date}`);
