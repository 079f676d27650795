// `troodon generate`: one prompt, one answer, streamed; several prompts are answered side by side and shown in their
// order. A model with a chat template gets the prompt as a user's message; `--raw` continues the text as it is. The engine is loaded when there is something to
// do, so that `--help` and wrong usage answer at once; the other commands do the same.

import type { GenerateOptions } from "../../decode/generate_options.ts";
import type { ChatOptions } from "../../decode/chat.ts";
import type { Chunk, Generation, GenerationResult, Structured } from "../../decode/generation.ts";
import type { AnswerPiece } from "../../text/answer/answer_reader.ts";
import type { Model } from "../../decode/model.ts";
import { showLogprobs, showStats, streamAnswer, wholeAnswer } from "../answer.ts";
import { UsageError } from "../args.ts";
import { type Command, defineCommand } from "../command.ts";
import { DRAFT_FLAGS, openDraft } from "../draft_flag.ts";
import {
  checkImages,
  contentWith,
  IMAGE_FLAGS,
  LIMIT_FLAGS,
  limitOptions,
  LOAD_FLAGS,
  loadOptions,
  LOGPROBS_FLAGS,
  SESSION_FLAGS,
  sessionOptions,
} from "../flags.ts";
import { SAMPLER_FLAGS, samplerOptions } from "../sampler_flags.ts";
import { modelAndText } from "../model_or_text.ts";
import { promptOrStdin, textOrStdin } from "../stdin.ts";
import { STRUCTURE_FLAGS, structureOptions } from "../structure_flags.ts";
import { TEMPLATE_FLAGS, templateOption } from "../template_flag.ts";
import type { Terminal } from "../terminal.ts";
import { THINKING_FLAGS, thinkingOption } from "../thinking_flag.ts";

const DEFAULT_MAX_TOKENS = 512;

type Priority = NonNullable<GenerateOptions["priority"]>;

/** The command. */
export const generate: Command = defineCommand({
  name: "troodon generate",
  summary: "Answers one prompt and streams the answer, or several side by side.",
  positionals: ["[MODEL]", "[PROMPT]"],
  flags: {
    prompt: {
      type: "string",
      short: "p",
      multiple: true,
      help: "what to answer (may be repeated); - or nothing: standard input",
    },
    priority: {
      type: "string",
      value: "high|normal|low|N",
      multiple: true,
      help: "of the prompt in the same place; of all, if given once: who goes first (normal)",
    },
    system: { type: "string", help: "instruction to the model (chat models)" },
    raw: { type: "boolean", help: "continue the text as it is, without the chat template" },
    suffix: {
      type: "string",
      help: "what stands behind the answer: fill in between the prompt and it (models of code)",
    },
    ...IMAGE_FLAGS,
    ...TEMPLATE_FLAGS,
    ...THINKING_FLAGS,
    ...LIMIT_FLAGS,
    ...SAMPLER_FLAGS,
    ...DRAFT_FLAGS,
    ...STRUCTURE_FLAGS,
    ...LOGPROBS_FLAGS,
    ...SESSION_FLAGS,
    stats: { type: "boolean", help: "speed on standard error also where that is no screen" },
    ...LOAD_FLAGS,
  },
  examples: [
    ['troodon generate "What is the capital of Japan?"', "the default model"],
    ["troodon generate gemma3-270m --raw -p 'Once upon a time' --max-tokens 64", "continue a text"],
    [
      "troodon generate model.gguf --temperature 0.8 --top-p 0.95 --seed 7 < prompt.txt",
      "sampling",
    ],
    ["troodon generate -p 'Hi' --json | jq .stats", "text, ids and speed as JSON"],
    ["troodon generate -p 'Name a sea.' -p 'Name a river.' --json", "several, a line for each"],
    ["troodon generate -p 'Invent a person.' --schema person.json", "JSON that a schema allows"],
    [
      "troodon generate smolvlm -p 'What is this?' --image cat.jpg",
      "a picture, of models that see",
    ],
    ["troodon generate coder.gguf -p 'def add(a, b):' --suffix 'print(add(1, 2))'", "fill in"],
  ],
  notes: [`MODEL defaults to smollm2-135m, --max-tokens to ${DEFAULT_MAX_TOKENS}.`],
}, async ({ terminal, signal }, { positionals, flags }) => {
  const named = modelAndText(positionals, { name: "--prompt", given: flags.prompt?.[0] });
  const options = {
    ...samplerOptions(flags),
    ...limitOptions(flags, DEFAULT_MAX_TOKENS),
    ...thinkingOption(flags),
    ...await structureOptions(flags),
    signal,
    ...flags.logprobs !== undefined && { logprobs: flags.logprobs },
  };
  void import("../open_model.ts"); // beside what may still be wrong
  const { checkOptions } = await import("../check_options.ts");
  checkOptions(options);
  const given = named.text !== undefined && !flags.prompt ? [named.text] : flags.prompt ?? [];
  const priorities = prioritiesOf(flags.priority ?? [], Math.max(1, given.length));
  for (const priority of priorities) checkOptions({ ...options, priority });
  const { image: images = [] } = flags;
  // A picture, or what stands behind, says enough.
  const read = images.length > 0 || flags.suffix !== undefined ? textOrStdin : promptOrStdin;
  const prompts = await readPrompts(terminal, { given, read, model: named.model });
  if (images.length > 0 && (prompts.length > 1 || flags.suffix !== undefined)) {
    throw new UsageError("--image is for one prompt, without --suffix");
  }
  checkImages(images);
  const isPlain = (flags.raw ?? false) || flags.suffix !== undefined;
  const load = {
    ...loadOptions(flags),
    ...sessionOptions(flags),
    ...await templateOption(flags, { wanted: !isPlain }),
  };
  // Code of the answer is read beside the model.
  void (isPlain ? import("../../decode/generate.ts") : import("../../decode/chat.ts"));
  const { openModel } = await import("../open_model.ts");
  using opened = await openModel(named.model, {
    flags,
    options: load,
    context: { terminal, signal },
  });
  const { model } = opened;
  using draft = await openDraft(flags, { options: load, context: { terminal, signal } });
  const answers = await Promise.all(prompts.map((prompt, i) =>
    start(model, prompt, {
      system: flags.system,
      raw: flags.raw ?? false,
      ...{ suffix: flags.suffix, images },
      options: { ...options, ...draft.options, priority: priorities[i] ?? "normal" },
    })
  ));
  // All of them go on while the first is shown; what fails is told in its turn.
  if (answers.length > 1) { for (const answer of answers) answer.result.catch(() => {}); }
  for (const [i, answer] of answers.entries()) {
    const prompt = prompts[i]!;
    if (!flags.json) {
      if (answers.length > 1) terminal.out(label(prompt, { place: i, of: answers.length }));
      await showAnswer(terminal, { answer, model, signal, flags });
      continue;
    }
    const { result, tokens } = await wholeAnswer(answer);
    const output = {
      ...{ model: opened.name, device: model.device, prompt },
      ...flags["chat-template"] !== undefined && { chatTemplate: flags["chat-template"] },
      ...result,
      ...result.value !== undefined && { value: result.value },
      ...flags.logprobs !== undefined && { tokens },
    };
    terminal.out(JSON.stringify(output) + "\n");
  }
  signal.throwIfAborted();
  return 0;
});

type Answer = Generation<Chunk & AnswerPiece, GenerationResult & Structured<unknown>>;

/** Writes an answer as it comes, and behind it what the flags ask for. */
async function showAnswer(
  terminal: Terminal,
  { answer, model, signal, flags }: {
    readonly answer: Answer;
    readonly model: Model;
    readonly signal: AbortSignal;
    readonly flags: {
      readonly logprobs?: number | undefined;
      readonly stats?: boolean | undefined;
    };
  },
): Promise<void> {
  const { result, tokens } = await streamAnswer(terminal, answer);
  if (flags.logprobs !== undefined) {
    const textOf = (id: number) => model.tokenizer.decode([id]);
    showLogprobs(terminal, { tokens, textOf });
  }
  if (flags.stats || (terminal.progress && terminal.screen)) showStats(terminal, result);
  if (!signal.aborted) void result.value; // what was cut before it was whole is an error
}

/** The prompts of the flags, one of which may stand for standard input, which is the prompt where none is given. */
async function readPrompts(
  terminal: Terminal,
  { given, read, model }: {
    readonly given: readonly string[];
    readonly read: typeof textOrStdin;
    readonly model: string | undefined;
  },
): Promise<string[]> {
  if (given.filter((text) => text === "-").length > 1) {
    throw new UsageError("--prompt - is given twice: standard input is read once");
  }
  const prompts = [];
  for (const text of given.length > 0 ? given : [undefined]) {
    prompts.push(await read(terminal, { given: text, flag: "--prompt", model }));
  }
  return prompts;
}

/** A priority for each prompt. */
function prioritiesOf(given: readonly string[], prompts: number): Priority[] {
  if (given.length > 1 && given.length !== prompts) {
    throw new UsageError(
      `--priority is given ${given.length} times for ${prompts} prompts: once, or for each`,
    );
  }
  return Array.from({ length: given.length === 0 ? 0 : prompts }, (_, i) => {
    const text = given[i] ?? given[0]!;
    return (/^-?\d+$/.test(text) ? Number(text) : text) as Priority;
  });
}

/** The line above one of several answers. */
function label(prompt: string, { place, of }: { place: number; of: number }): string {
  return `${place > 0 ? "\n" : ""}[${place + 1}/${of}] ${prompt.replace(/\s+/g, " ").trim()}\n`;
}

async function start(
  model: Model,
  prompt: string,
  { system, raw, suffix, images, options }: {
    readonly images: readonly string[];
    readonly system: string | undefined;
    readonly raw: boolean;
    readonly suffix: string | undefined;
    readonly options: ChatOptions;
  },
): Promise<Answer> {
  if (raw || suffix !== undefined || !model.chatTemplate) {
    if (system !== undefined) {
      throw new UsageError(
        raw || suffix !== undefined
          ? `--system and --${raw ? "raw" : "suffix"} exclude each other`
          : `${model.name} has no chat template: leave --system out`,
      );
    }
    const plain = plainOptions(options);
    if (suffix !== undefined) {
      const { infill } = await import("../../decode/infill.ts");
      return infill(model, { prefix: prompt, suffix }, plain);
    }
    const { generate } = await import("../../decode/generate.ts");
    return generate(model, prompt, { ...plain, images });
  }
  const messages = [
    ...system === undefined ? [] : [{ role: "system", content: system }],
    { role: "user", content: contentWith(images, prompt) },
  ];
  const { chat } = await import("../../decode/chat.ts");
  return chat(model, messages, options);
}

/** Options without those that only a conversation has. */
function plainOptions({ thinking, onContextFull, ...options }: ChatOptions): GenerateOptions {
  if (onContextFull === "drop") {
    throw new UsageError("--context-full drop leaves turns of a chat out, and here is none");
  }
  if (thinking !== undefined) throw new UsageError("--no-thinking is for models that chat");
  return { ...options, ...onContextFull && { onContextFull } };
}
