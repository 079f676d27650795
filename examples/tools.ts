// Lets a model call functions of this script. SmolLM2's own template knows no tools, so it gets one that does; with
// another model its own is used. What a tool's schema allows is all that the model can write as its arguments.
//
//   deno run --allow-read --allow-env examples/tools.ts [MODEL] [QUESTION]

import { chat, load, tool } from "../mod.ts";

const TEMPLATE = `{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for call in m.tool_calls %}
<tool_call>
{{ call.function | tojson }}
</tool_call>{% endfor %}<|im_end|>
{% if loop.first and tools %}<|im_start|>system
You may call these functions: {{ tools | tojson }}<|im_end|>
{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;

const weather = tool({
  name: "weather",
  description: "The weather of a city, today",
  schema: {
    type: "object",
    properties: { city: { enum: ["Paris", "Rome", "Tokyo"] } },
    required: ["city"],
    additionalProperties: false,
  },
  handler: ({ city }) => ({ city, sky: "clear", celsius: city === "Tokyo" ? 31 : 24 }),
});

const [name, question = "What is the weather in Rome?"] = Deno.args;
using model = await load(name ?? "smollm2-135m", name ? {} : { chatTemplate: TEMPLATE });
const answer = chat(model, [{ role: "user", content: question }], {
  tools: [weather],
  toolChoice: "required", // a larger model decides by itself: leave it out
  maxTokens: 200,
});

const { text, messages } = await answer.result;
for (const { role, tool_calls, content } of messages) {
  console.log(`[${role}] ${content}`, ...tool_calls ? [JSON.stringify(tool_calls)] : []);
}
console.log(text);
