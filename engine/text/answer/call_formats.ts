// How models write calls of tools, one record a notation. Which one a model uses is told by its chat
// template, which shows the model its own earlier calls in it; never by the model's name. Adding one: a
// record here, before those whose signs it has too, and golden texts in answer_reader_test.ts.

import { braceCalls, readPythonCalls } from "./brace_calls.ts";
import { readJsonCalls } from "./json_calls.ts";
import { nameThenJson, taggedParameters } from "./tagged_calls.ts";
import type { BodyReader } from "./tool_call.ts";

/** Answers in messages, each with a head that says what it is. */
export interface Heads {
  /** What begins a head, and what ends it. */
  readonly open: string;
  readonly end: string;
  /** What ends a message; what stands between it and the next head is nothing. */
  readonly closes: readonly string[];
  /** Whether an answer begins with a head whose opening stands in the prompt. */
  readonly isOpened: boolean;
  /** What a head announces. A call's is the group `name`. */
  readonly thinking?: RegExp;
  readonly call: RegExp;
}

/** A call in the words of a notation, for whoever holds a model to it. */
export interface CallTexts {
  /** Between what opens a call and its arguments; texts of control tokens stand for these. */
  readonly before: string;
  /** Behind the arguments; what is no text is left to the model. */
  readonly after: string;
}

/** One notation of calls. */
export interface CallFormat {
  readonly name: string;
  /** Texts that a template has in which calls are written so: all of them. */
  readonly signs: readonly string[];
  /** What opens calls in the middle of a text; and what closes them, where not the end of the answer does. */
  readonly open?: readonly string[];
  readonly close?: readonly string[];
  /** What stands around several calls and says nothing. */
  readonly silent?: readonly string[];
  /** Whether an answer may be a call without anything that opens it. */
  readonly isBare?: boolean;
  readonly heads?: Heads;
  /** Reads what stands between; with heads, what stands behind a head, which is in front of it. */
  readonly read: BodyReader;
  /** How a call of a tool is written, where its arguments are JSON; what stands around several of them. */
  readonly texts?: (name: string) => CallTexts;
  readonly isList?: boolean;
  /** Whether the name stands in front of the arguments, which are JSON. */
  readonly namesFirst?: boolean;
}

const readMistralCall = nameThenJson(/^\s*(?<name>[\w.-]+)\s*(?:\[CALL_ID\][^[]*)?\[ARGS\]/);
// Models of one template write both forms.
const readMistralCalls: BodyReader = (body, context) =>
  /^\s*[\w.-]/.test(body) ? readMistralCall(body, context) : readJsonCalls(body, context);
const named = (name: string, key: string) => `{"name": ${JSON.stringify(name)}, "${key}": `;

/** The notations, the more special first. */
export const CALL_FORMATS: readonly CallFormat[] = [
  {
    name: "harmony",
    signs: ["<|channel|>", "<|message|>", "functions."],
    heads: {
      open: "<|channel|>",
      end: "<|message|>",
      closes: ["<|end|>", "<|call|>", "<|return|>", "<|start|>"],
      isOpened: false,
      thinking: /^\s*analysis\b(?!.*\bto=)/s,
      call: /\bto=(?:functions\.)?(?<name>[\w.-]+)/,
    },
    read: nameThenJson(/\bto=(?:functions\.)?(?<name>[\w.-]+)[^]*?<\|message\|>/),
    namesFirst: true,
    texts: (name) => ({
      before: `commentary to=functions.${name} <|constrain|>json<|message|>`,
      after: "",
    }),
  },
  {
    name: "gemma4",
    signs: ["<|tool_call>", "<tool_call|>"],
    open: ["<|tool_call>"],
    close: ["<tool_call|>"],
    read: braceCalls('<|"|>'),
  },
  {
    name: "function_gemma",
    signs: ["<start_function_call>"],
    open: ["<start_function_call>"],
    close: ["<end_function_call>"],
    read: braceCalls("<escape>"),
  },
  {
    name: "qwen_xml",
    signs: ["<tool_call>", "<function=", "<parameter="],
    open: ["<tool_call>"],
    close: ["</tool_call>"],
    read: taggedParameters({
      head: /<function=(?<name>[^>\n]+)>/,
      parameter: /<parameter=(?<key>[^>\n]+)>\n?(?<value>[^]*?)\n?<\/parameter>/g,
    }),
  },
  {
    name: "glm",
    signs: ["<tool_call>", "<arg_key>"],
    open: ["<tool_call>"],
    close: ["</tool_call>"],
    read: taggedParameters({
      head: /^\s*(?<name>[\w.-]+)(?=\s*(?:\n|<arg_key>|$))/,
      parameter: /<arg_key>(?<key>[^]*?)<\/arg_key>\s*<arg_value>(?<value>[^]*?)<\/arg_value>/g,
    }),
  },
  {
    name: "hermes",
    signs: ["<tool_call>"],
    open: ["<tool_call>"],
    close: ["</tool_call>"],
    read: readJsonCalls,
    texts: (name) => ({ before: `\n${named(name, "arguments")}`, after: "}\n</tool_call>" }),
  },
  {
    name: "phi4",
    signs: ["<|tool_call|>"],
    open: ["<|tool_call|>"],
    close: ["<|/tool_call|>"],
    read: readJsonCalls,
    isList: true,
    texts: (name) => ({ before: named(name, "arguments"), after: "}" }),
  },
  {
    name: "mistral",
    signs: ["[TOOL_CALLS]", "[ARGS]"],
    open: ["[TOOL_CALLS]"],
    read: readMistralCalls,
    namesFirst: true,
    texts: (name) => ({ before: `${name}[ARGS]`, after: "" }),
  },
  {
    name: "mistral_list",
    signs: ["[TOOL_CALLS]"],
    open: ["[TOOL_CALLS]"],
    read: readMistralCalls,
    isList: true,
    texts: (name) => ({ before: named(name, "arguments"), after: "}" }),
  },
  {
    name: "deepseek",
    signs: ["<｜tool▁call▁begin｜>"],
    open: ["<｜tool▁call▁begin｜>"],
    close: ["<｜tool▁call▁end｜>"],
    namesFirst: true,
    silent: ["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"],
    read: nameThenJson(
      // One group of that name: V8 before 12.5 (Node 22) refuses a second one in another branch.
      /^(?:function<｜tool▁sep｜>|(?!function<))(?<name>(?<=^function<｜tool▁sep｜>)[^\n]+(?=\n```json\n)|(?<!^function<｜tool▁sep｜>)[^<]+(?=<｜tool▁sep｜>))(?:\n```json\n|<｜tool▁sep｜>)/,
    ),
  },
  {
    name: "kimi",
    signs: ["<|tool_call_begin|>"],
    open: ["<|tool_call_begin|>"],
    close: ["<|tool_call_end|>"],
    namesFirst: true,
    silent: ["<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"],
    read: nameThenJson(
      /^\s*(?:functions\.)?(?<name>[\w.-]+?)(?::\d+)?\s*<\|tool_call_argument_begin\|>/,
    ),
  },
  {
    name: "command",
    signs: ["<|START_ACTION|>"],
    open: ["<|START_ACTION|>"],
    close: ["<|END_ACTION|>"],
    read: readJsonCalls,
  },
  {
    name: "functionary",
    signs: [">>>"],
    heads: { open: ">>>", end: "\n", closes: [], isOpened: true, call: /^(?<name>(?!all\s*$).+)/ },
    read: nameThenJson(/^(?<name>[^\n]+)\n/),
    namesFirst: true,
    texts: (name) => ({ before: `${name}\n`, after: "" }),
  },
  {
    name: "function_tag",
    signs: ["<function="],
    open: ["<function="],
    close: ["</function>"],
    read: nameThenJson(/^(?<name>[^>\n]+)>/),
    namesFirst: true,
    texts: (name) => ({ before: `${name}>`, after: "</function>" }),
  },
  {
    name: "tool_code",
    signs: ["```tool_code"],
    open: ["```tool_code\n"],
    close: ["```"],
    read: readPythonCalls,
  },
  {
    name: "llama3",
    signs: ['"parameters"', "ipython"],
    open: ["<|python_tag|>"],
    isBare: true,
    read: readJsonCalls,
    texts: (name) => ({ before: named(name, "parameters"), after: "}" }),
  },
  {
    name: "json",
    signs: [],
    open: ["<tool_call>"],
    close: ["</tool_call>"],
    isBare: true,
    read: readJsonCalls,
    texts: (name) => ({ before: named(name, "arguments"), after: "}" }),
  },
];

/** The notation of a template: the first all of whose signs it has; plain JSON where it has none. */
export function callFormatOf(template: string): CallFormat {
  return CALL_FORMATS.find(({ signs }) => signs.every((sign) => template.includes(sign)))!;
}

/** What stands around thinking, as models write it. */
export interface ThinkingMarks {
  readonly open: string;
  readonly close: string;
}

const THINKING_MARKS: readonly ThinkingMarks[] = [
  { open: "<think>", close: "</think>" },
  { open: "<seed:think>", close: "</seed:think>" },
  { open: "[THINK]", close: "[/THINK]" },
  { open: "<|START_THINKING|>", close: "<|END_THINKING|>" },
  { open: "<|inner_prefix|>", close: "<|inner_suffix|>" },
  { open: "<|channel>thought\n", close: "<channel|>" },
];

/** Of models that nobody knows to think, but that may. */
export const DEFAULT_THINKING: ThinkingMarks = THINKING_MARKS[0]!;

/** The marks that a template speaks of, or that are tokens of the vocabulary. */
export function thinkingMarksOf(
  template: string,
  isToken: (text: string) => boolean,
): ThinkingMarks | undefined {
  return THINKING_MARKS.find(({ open, close }) =>
    template.includes(close) || isToken(open) && isToken(close)
  );
}
