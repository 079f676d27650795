// Golden answers, one or more a notation: what a template of that notation shows a model of its own calls, so
// what a model writes. Each is read whole, cut at every place, and character by character, always with the same
// result.

import { assert, assertEquals } from "@std/assert";
import { AnswerReader } from "./answer_reader.ts";
import { CALL_FORMATS, callFormatOf, DEFAULT_THINKING, thinkingMarksOf } from "./call_formats.ts";

const TOOLS = [{
  name: "weather",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" } },
  },
}, { name: "now" }];

interface Golden {
  readonly answer: string;
  readonly text?: string;
  readonly thinking?: string;
  /** Calls as `name arguments`, or what is wrong. */
  readonly calls?: readonly string[];
}

const ROME = 'weather {"city":"Rome","days":2}';
const NOW = "now {}";

const GOLDEN: Readonly<Record<string, readonly Golden[]>> = {
  harmony: [
    {
      answer:
        "<|channel|>analysis<|message|>Look it up.<|end|><|start|>assistant<|channel|>commentary " +
        'to=functions.weather <|constrain|>json<|message|>{"city":"Rome","days":2}<|call|>',
      thinking: "Look it up.",
      calls: [ROME],
    },
    {
      answer:
        "<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>Hello.",
      thinking: "Easy.",
      text: "Hello.",
    },
    {
      answer: "<|start|>assistant to=functions.now<|channel|>commentary json<|message|>{}",
      calls: [NOW],
    },
    { answer: "<|channel|>commentary<|message|>I will look.<|end|>", text: "I will look." },
    { answer: "No channel at all", text: "No channel at all" },
  ],
  gemma4: [{
    answer:
      '<|tool_call>call:weather{city:<|"|>Rome<|"|>,days:2}<tool_call|><|tool_call>call:now{}<tool_call|>',
    calls: [ROME, NOW],
  }],
  function_gemma: [{
    answer:
      "<start_function_call>call:weather{city:<escape>Rome<escape>,days:2}<end_function_call>",
    calls: [ROME],
  }],
  qwen_xml: [{
    answer:
      "Sure.\n<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n2\n" +
      "</parameter>\n</function>\n</tool_call>",
    text: "Sure.\n",
    calls: [ROME],
  }],
  glm: [{
    answer:
      "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n<arg_key>days</arg_key>\n" +
      "<arg_value>2</arg_value>\n</tool_call>",
    calls: [ROME],
  }],
  hermes: [
    {
      answer: "<think>\nHm.\n</think>\n\nI look.\n<tool_call>\n" +
        '{"name": "weather", "arguments": {"city": "Rome", "days": 2}}\n</tool_call>\n<tool_call>\n' +
        '{"name": "now", "arguments": {}}\n</tool_call>',
      thinking: "Hm.",
      text: "I look.\n",
      calls: [ROME, NOW],
    },
    { answer: "1 < 2 <tool", text: "1 < 2 <tool" },
    {
      answer: "<tool_call>\nnothing\n</tool_call>ok",
      text: "ok",
      calls: ["Cannot read a call in"],
    },
    {
      answer: '<tool_call>{"name": "fly", "arguments": {}}</tool_call>',
      calls: ["There is no tool"],
    },
    {
      answer: '<tool_call>{"name": "weather", "arguments": {"city": }}</tool_call>',
      calls: ["The arguments of weather are no JSON"],
    },
    {
      answer: '<tool_call>{"name": "now", "arguments": [1]}</tool_call>',
      calls: ["must be a JSON object"],
    },
    {
      answer:
        '<tool_call>{"name": "weather", "arguments": "{\\"city\\": \\"Rome\\", \\"days\\": 2}"}</tool_call>',
      calls: [ROME],
    },
  ],
  phi4: [{
    answer: '<|tool_call|>[{"name":"weather","arguments":{"city":"Rome","days":2}}]<|/tool_call|>',
    calls: [ROME],
  }],
  mistral: [
    {
      answer: '[TOOL_CALLS]weather[ARGS]{"city": "Rome", "days": 2}[TOOL_CALLS]now[ARGS]{}',
      calls: [ROME, NOW],
    },
    { answer: "[TOOL_CALLS]now[CALL_ID]abcdefghi[ARGS]{}", calls: [NOW] },
  ],
  mistral_list: [{
    answer:
      '[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Rome", "days": 2}, "id": "abcdefghi"}, ' +
      '{"name": "now", "arguments": {}}]',
    calls: [ROME, NOW],
  }],
  deepseek: [
    {
      answer:
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n" +
        '{"city": "Rome", "days": 2}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
      calls: [ROME],
    },
    { answer: "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>", calls: [NOW] },
  ],
  kimi: [{
    answer:
      "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>" +
      '{"city": "Rome", "days": 2}<|tool_call_end|><|tool_calls_section_end|>',
    calls: [ROME],
  }],
  command: [{
    answer:
      '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "weather", "parameters": {"city": "Rome", ' +
      '"days": 2}}]<|END_ACTION|>',
    calls: [ROME],
  }],
  functionary: [
    { answer: "all\nGood morning.", text: "Good morning." },
    { answer: 'weather\n{"city": "Rome", "days": 2}>>>now\n{}', calls: [ROME, NOW] },
    { answer: "all\nI look.>>>now\n{}", text: "I look.", calls: [NOW] },
  ],
  function_tag: [{
    answer: 'I look. <function=weather>{"city": "Rome", "days": 2}</function>',
    text: "I look. ",
    calls: [ROME],
  }],
  tool_code: [{
    answer: '```tool_code\nprint(default_api.weather(city="Rome", days=2))\n```',
    calls: [ROME],
  }],
  llama3: [
    { answer: '{"name": "weather", "parameters": {"city": "Rome", "days": 2}}', calls: [ROME] },
    {
      answer: '<|python_tag|>{"name": "weather", "parameters": {"city": "Rome", "days": 2}}; ' +
        '{"name": "now", "parameters": {}}',
      calls: [ROME, NOW],
    },
    { answer: '{"names": ["Ada"]}', text: '{"names": ["Ada"]}' },
    {
      answer: '{"name": "weather", "parameters": {"ci',
      text: '{"name": "weather", "parameters": {"ci',
    },
  ],
  json: [
    { answer: '[{"name": "now", "arguments": {}}]', calls: [NOW] },
    { answer: "<think>Hm.</think>Yes <think>", thinking: "Hm.", text: "Yes <think>" },
  ],
};

function read(format: string, answer: string, cuts: readonly number[]) {
  let ids = 0;
  const reader = new AnswerReader({
    format: CALL_FORMATS.find(({ name }) => name === format)!,
    tools: TOOLS,
    thinking: DEFAULT_THINKING,
    nextId: () => `call0000${ids++}`,
  });
  const told = new Map<number, string>();
  let text = "", at = 0;
  const take = (piece: ReturnType<AnswerReader["push"]>) => {
    text += piece.text;
    for (const { index, argumentsText } of piece.toolCalls ?? []) {
      assert(argumentsText.startsWith(told.get(index) ?? ""), "arguments that were told changed");
      told.set(index, argumentsText);
    }
  };
  for (const cut of [...cuts, answer.length]) {
    take(reader.push(answer.slice(at, cut)));
    at = cut;
  }
  take(reader.finish(true));
  return { text, thinking: reader.thinking, calls: reader.calls };
}

for (const { name } of CALL_FORMATS) {
  Deno.test(`calls are read as ${name} writes them, however the answer is cut`, () => {
    for (const { answer, text = "", thinking = "", calls = [] } of GOLDEN[name]!) {
      const whole = read(name, answer, []);
      assertEquals([whole.text, whole.thinking], [text, thinking], answer);
      assertEquals(whole.calls.length, calls.length, answer);
      whole.calls.forEach(({ name, arguments: args, problem }, i) => {
        const shown = problem ?? `${name} ${JSON.stringify(args)}`;
        assert(shown.includes(calls[i]!), `${answer}: ${shown}`);
      });
      for (let cut = 1; cut < answer.length; cut++) assertEquals(read(name, answer, [cut]), whole);
      assertEquals(read(name, answer, Array.from(answer, (_, at) => at)), whole);
    }
  });
}

Deno.test("a call that was cut is none, and a text that might have become one is said", () => {
  const cut = (format: string, answer: string) => {
    const reader = new AnswerReader({
      format: CALL_FORMATS.find(({ name }) => name === format)!,
      tools: TOOLS,
    });
    const { text } = reader.push(answer);
    return [text + reader.finish(false).text, reader.calls.length];
  };
  assertEquals(cut("hermes", '<tool_call>{"name": "now", "argum'), ["", 0]);
  assertEquals(cut("llama3", '{"name": "now", "param'), ['{"name": "now", "param', 0]);
  assertEquals(cut("hermes", "a <tool"), ["a <tool", 0]);
});

Deno.test("an answer may begin in the middle of thinking", () => {
  const reader = new AnswerReader({ thinking: DEFAULT_THINKING, beginsThinking: true });
  const pieces = ["Let ", "me see", "</th", "ink>", "\n\nYes."].map((piece) => reader.push(piece));
  assertEquals(pieces.map(({ text }) => text).join(""), "Yes.");
  assertEquals(pieces.map(({ thinking = "" }) => thinking).join(""), "Let me see");
  assertEquals(reader.thinking, "Let me see");
});

Deno.test("the notation is told by what a template writes, thinking also by the vocabulary", () => {
  const cases: readonly (readonly [template: string, format: string])[] = [
    ["<tool_call>{{ call | tojson }}</tool_call>", "hermes"],
    ["<tool_call><function={{ name }}><parameter=", "qwen_xml"],
    ["[TOOL_CALLS] [", "mistral_list"],
    ["[TOOL_CALLS]{{ name }}[ARGS]", "mistral"],
    ['Environment: ipython {"name": …, "parameters": …}', "llama3"],
    ["<|start|>assistant<|channel|>commentary to=functions.x <|message|>", "harmony"],
    ["{{ messages }}", "json"],
  ];
  for (const [template, format] of cases) assertEquals(callFormatOf(template).name, format);
  assertEquals(thinkingMarksOf("…[/THINK]…", () => false)?.open, "[THINK]");
  assertEquals(thinkingMarksOf("", (text) => text.includes("seed:"))?.close, "</seed:think>");
  assertEquals(thinkingMarksOf("{{ messages }}", () => false), undefined);
});
