// `troodon generate`: one prompt, one answer, streamed. A model with a chat template gets the prompt as
// a user's message; `--raw` continues the text as it is. The engine is loaded when there is something to
// do, so that `--help` and wrong usage answer at once; the other commands do the same.

import type { GenerateOptions } from "../../decode/generate_options.ts";
import type { ChatOptions } from "../../decode/chat.ts";
import type { Chunk, Generation, GenerationResult, Structured } from "../../decode/generation.ts";
import type { AnswerPiece } from "../../text/answer/answer_reader.ts";
import type { Model } from "../../decode/model.ts";
import { showStats, streamAnswer } from "../answer.ts";
import { UsageError } from "../args.ts";
import { type Command, defineCommand } from "../command.ts";
import { DRAFT_FLAGS, openDraft } from "../draft_flag.ts";
import { LIMIT_FLAGS, limitOptions, LOAD_FLAGS, loadOptions } from "../flags.ts";
import { SAMPLER_FLAGS, samplerOptions } from "../sampler_flags.ts";
import { modelAndText } from "../model_or_text.ts";
import { textOrStdin } from "../stdin.ts";
import { STRUCTURE_FLAGS, structureOptions } from "../structure_flags.ts";
import { TEMPLATE_FLAGS, templateOption } from "../template_flag.ts";
import { THINKING_FLAGS, thinkingOption } from "../thinking_flag.ts";

const DEFAULT_MAX_TOKENS = 512;

/** The command. */
export const generate: Command = defineCommand({
  name: "troodon generate",
  summary: "Answers one prompt and streams the answer.",
  positionals: ["[MODEL]", "[PROMPT]"],
  flags: {
    prompt: { type: "string", short: "p", help: "what to answer; - or nothing: standard input" },
    system: { type: "string", help: "instruction to the model (chat models)" },
    raw: { type: "boolean", help: "continue the text as it is, without the chat template" },
    suffix: {
      type: "string",
      help: "what stands behind the answer: fill in between the prompt and it (models of code)",
    },
    ...TEMPLATE_FLAGS,
    ...THINKING_FLAGS,
    ...LIMIT_FLAGS,
    ...SAMPLER_FLAGS,
    ...DRAFT_FLAGS,
    ...STRUCTURE_FLAGS,
    logprobs: { type: "integer", min: 0, max: 100, help: "with --json: best N at each token" },
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
    ["troodon generate -p 'Invent a person.' --schema person.json", "JSON that a schema allows"],
    ["troodon generate coder.gguf -p 'def add(a, b):' --suffix 'print(add(1, 2))'", "fill in"],
  ],
  notes: [`MODEL defaults to smollm2-135m, --max-tokens to ${DEFAULT_MAX_TOKENS}.`],
}, async ({ terminal, signal }, { positionals, flags }) => {
  const named = modelAndText(positionals, { name: "--prompt", given: flags.prompt });
  const options = {
    ...samplerOptions(flags),
    ...limitOptions(flags, DEFAULT_MAX_TOKENS),
    ...thinkingOption(flags),
    ...await structureOptions(flags),
    signal,
    ...flags.logprobs !== undefined && { logprobs: flags.logprobs },
  };
  const { checkOptions } = await import("../check_options.ts");
  checkOptions(options);
  const prompt = await textOrStdin(terminal, { given: named.text, flag: "--prompt" });
  const isPlain = (flags.raw ?? false) || flags.suffix !== undefined;
  const load = { ...loadOptions(flags), ...await templateOption(flags, { wanted: !isPlain }) };
  const { openModel } = await import("../open_model.ts");
  using opened = await openModel(named.model, {
    flags,
    options: load,
    context: { terminal, signal },
  });
  const { model } = opened;
  using draft = await openDraft(flags, { options: load, context: { terminal, signal } });
  const generation = await start(model, prompt, {
    system: flags.system,
    raw: flags.raw ?? false,
    suffix: flags.suffix,
    options: { ...options, ...draft.options },
  });
  if (flags.json) {
    const tokens = [];
    for await (const chunk of generation) tokens.push(...chunk.tokens);
    const result = await generation.result;
    const output = {
      model: opened.name,
      device: model.device,
      prompt,
      ...flags["chat-template"] !== undefined && { chatTemplate: flags["chat-template"] },
      ...result,
      ...result.value !== undefined && { value: result.value },
      ...flags.logprobs !== undefined && { tokens },
    };
    terminal.out(JSON.stringify(output) + "\n");
    return signal.aborted ? 130 : 0;
  }
  const result = await streamAnswer(terminal, generation);
  if (flags.stats || (terminal.progress && terminal.screen)) showStats(terminal, result);
  if (!signal.aborted) void result.value; // what was cut before it was whole is an error
  return signal.aborted ? 130 : 0;
});

async function start(
  model: Model,
  prompt: string,
  { system, raw, suffix, options }: {
    readonly system: string | undefined;
    readonly raw: boolean;
    readonly suffix: string | undefined;
    readonly options: ChatOptions;
  },
): Promise<Generation<Chunk & AnswerPiece, GenerationResult & Structured<unknown>>> {
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
    return generate(model, prompt, plain);
  }
  const messages = [
    ...system === undefined ? [] : [{ role: "system", content: system }],
    { role: "user", content: prompt },
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
