// `troodon chat`: a conversation on one session, so that each turn computes only what is new. Ctrl-C
// stops the answer under way; what was said of it stays in the conversation.

import type { chat as ChatFunction, ChatOptions } from "../../decode/chat.ts";
import type { Session } from "../../decode/session.ts";
import type { LoadOptions, Model } from "../../decode/model.ts";
import { modelOf } from "../../formats/hub/catalogue.ts";
import { describeStats, showLogprobs, streamAnswer, wholeAnswer } from "../answer.ts";
import { type Flags, type ParsedLine, parseLine, UsageError } from "../args.ts";
import { type Conversation, runChatCommand } from "../chat/chat_commands.ts";
import { type Command, type Context, defineCommand } from "../command.ts";
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
} from "../flags.ts";
import { SAMPLER_FLAGS, samplerOptions } from "../sampler_flags.ts";
import { paint, showBytes, showCount } from "../format.ts";
import { modelAndText } from "../model_or_text.ts";
import { inFlags } from "../option_names.ts";
import { createPrompter } from "../chat/prompt.ts";
import { STRUCTURE_FLAGS, structureOptions } from "../structure_flags.ts";
import { TEMPLATE_FLAGS, templateOption } from "../template_flag.ts";
import { THINKING_FLAGS, thinkingOption } from "../thinking_flag.ts";
import { exit, INTERRUPTED, type Terminal } from "../terminal.ts";

const DEFAULT_MAX_TOKENS = 1024;

const chatFlags = {
  system: { type: "string", help: "instruction to the model" },
  ...IMAGE_FLAGS,
  ...TEMPLATE_FLAGS,
  ...THINKING_FLAGS,
  ...LIMIT_FLAGS,
  ...SAMPLER_FLAGS,
  ...DRAFT_FLAGS,
  ...STRUCTURE_FLAGS,
  ...LOGPROBS_FLAGS,
  ...LOAD_FLAGS,
} as const satisfies Flags;

/** The command. */
export const chat: Command = defineCommand({
  name: "troodon chat",
  summary: "Talks with a model.",
  positionals: ["[MODEL]", "[TEXT]"],
  flags: chatFlags,
  examples: [
    ["troodon chat", "the default model"],
    ['troodon chat smollm2-135m "Name three colours."', "with a first turn"],
    [
      "troodon chat model.gguf --system 'Answer in French.' --temperature 0.7",
      "with an instruction",
    ],
    [
      "printf 'Hello\\nAnd in German?\\n' | troodon chat --json",
      "turns from a pipe, answers as JSON",
    ],
  ],
  notes: ["Inside: /help lists the commands."],
}, async (context, { positionals, flags }) => {
  const { terminal } = context;
  const named = modelAndText(positionals);
  if (named.text === "-") throw new UsageError("chat reads standard input anyway: leave - out");
  checkImages(flags.image);
  const structure = await structureOptions(flags);
  const { checkOptions } = await import("../check_options.ts");
  const settings = createSettings(flags, { structure, checkOptions });
  const { chat: answer } = await import("../../decode/chat.ts");
  const load = { ...loadOptions(flags), ...await templateOption(flags) };
  const open = (name: string | undefined) => openForChat(name, { flags, load, context });
  const partner = await open(named.model);
  using draft = await openDraft(flags, { options: load, context });
  context.releaseInterrupt();
  const conversation: Conversation = {
    system: flags.system,
    messages: [],
    images: [...flags.image ?? []],
    stats: "No answer yet.",
    done: false,
    dropped: 0,
    settings,
  };
  const options = (): ChatOptions => ({ ...settings.options(), ...draft.options });
  const state = { answer, terminal, conversation, options, open, json: flags.json ?? false };
  const talk: Talk = { ...state, partner, first: named.text };
  try {
    return await converse(talk);
  } finally {
    talk.partner.close();
  }
});

type ChatFlags = ParsedLine<typeof chatFlags>["flags"];

/** A model and a session on it. */
interface Partner {
  readonly name: string;
  readonly model: Model;
  readonly session: Session;
  close(): void;
}

interface Talk {
  /** Another one after /model. */
  partner: Partner;
  readonly answer: typeof ChatFunction;
  readonly terminal: Terminal;
  readonly conversation: Conversation;
  /** As they are set now. */
  options(): ChatOptions;
  open(name: string): Promise<Partner>;
  readonly json: boolean;
  /** The first turn, if it was given with the command. */
  readonly first: string | undefined;
}

/** @throws {UsageError} If the model has no chat template. */
async function openForChat(
  name: string | undefined,
  { flags, load, context }: {
    readonly flags: ChatFlags;
    readonly load: LoadOptions;
    readonly context: Pick<Context, "terminal" | "signal">;
  },
): Promise<Partner> {
  const { openModel } = await import("../open_model.ts");
  const opened = await openModel(name, { flags, options: load, context });
  const { model } = opened;
  if (!model.chatTemplate) {
    opened[Symbol.dispose]();
    throw new UsageError(
      model.info.network === "decoder"
        ? `${opened.name} is a base model (no chat template): use troodon generate --raw`
        : `${opened.name} holds no conversation: its network is ${model.info.network}`,
    );
  }
  const session = model.createSession();
  const close = (): void => {
    session.dispose();
    model.dispose();
  };
  return { name: opened.name, model, session, close };
}

/** The flags of sampling and limits, which /set changes; options follow from them as from the command line. */
function createSettings(
  given: ChatFlags,
  { structure, checkOptions }: {
    readonly structure: ChatOptions;
    readonly checkOptions: (options: ChatOptions) => void;
  },
) {
  const known: Flags = {
    ...{ ...LIMIT_FLAGS, ...SAMPLER_FLAGS, ...THINKING_FLAGS, ...LOGPROBS_FLAGS },
  };
  let flags = given;
  const optionsOf = (of: ChatFlags): ChatOptions => ({
    ...samplerOptions(of),
    ...limitOptions(of, DEFAULT_MAX_TOKENS),
    ...thinkingOption(of),
    ...structure,
    ...of.logprobs !== undefined && { logprobs: of.logprobs },
  });
  checkOptions(optionsOf(flags));
  return {
    options: () => optionsOf(flags),
    list: () =>
      Object.entries(flags).filter(([name, value]) =>
        Object.hasOwn(known, name) && value !== undefined
      ).map(([name, value]) => [name, String(value)] as const),
    set(name: string, value: string): void {
      const line = { name: "/set", summary: "", flags: known, examples: [] };
      const isSwitch = known[name]?.type === "boolean";
      // What asks for chance takes the place of --greedy.
      const { greedy: _, ...chance } = flags;
      const before = Object.hasOwn(SAMPLER_FLAGS, name) ? chance : flags;
      const isOff = isSwitch && /^(off|no|false)$/.test(value);
      const { flags: parsed } = parseLine(line, [`--${name}`, ...isSwitch ? [] : [value]]);
      const next = { ...before, ...parsed, ...isOff && { [name]: undefined } } as ChatFlags;
      checkOptions(optionsOf(next));
      flags = next;
    },
  };
}

/** `SmolLM2 135M Instruct, Q4_1: 135 M parameters on wasm, remembers 4,096 tokens.` */
function welcome({ name, model: { info, device } }: Partner): string {
  const title = modelOf(name)?.title ?? name.split(/[\\/]/).filter(Boolean).at(-1)!;
  const { parameters, contextLength } = info;
  return `${title}: ${showCount(parameters)} parameters on ${device}, remembers ` +
    `${contextLength.toLocaleString("en")} tokens. /help lists the commands, Ctrl-D leaves.`;
}

/** Turns until the end of the input; returns the exit code. */
async function converse(state: Talk): Promise<number> {
  const { terminal, conversation, json } = state;
  const person = terminal.keyboard && terminal.screen;
  const prompter = createPrompter(terminal, []);
  if (person && !json) say(terminal, welcome(state.partner));
  let running: AbortController | undefined;
  let next = state.first, ended = 0;
  const release = terminal.onInterrupt((code) => {
    if (!running || ended) exit(code);
    if (code !== INTERRUPTED) ended = code;
    running.abort();
  });
  try {
    for (let interrupts = 0; ended === 0 && !conversation.done;) {
      const entry = next === undefined
        ? await prompter.ask()
        : { kind: "text" as const, text: next };
      const isOwn = next !== undefined;
      next = undefined;
      if (entry.kind === "end") return 0;
      if (entry.kind === "interrupt") {
        if (++interrupts === 2) return INTERRUPTED;
        say(terminal, "Ctrl-C again leaves.");
        continue;
      }
      interrupts = 0;
      if (entry.text.trim() === "") continue;
      if (entry.text.startsWith("/") && !isOwn) {
        next = await obey(state, entry.text);
        continue;
      }
      running = new AbortController();
      const done = person ? prompter.typeAhead() : () => {};
      try {
        await takeTurn(state, entry.text, running.signal);
      } catch (error) {
        // A person goes on after, say, a full context; a script has to know.
        if (!person) throw error;
        say(terminal, inFlags((error as Error).message));
      } finally {
        done();
        running = undefined;
      }
    }
    return ended;
  } finally {
    release();
  }
}

/** Does what a /command says; returns a turn to take, if it asks for one. */
async function obey(state: Talk, line: string): Promise<string | undefined> {
  const { terminal } = state;
  try {
    const outcome = await runChatCommand(state.conversation, line);
    if (typeof outcome === "string") {
      if (outcome) say(terminal, outcome);
    } else if ("ask" in outcome) return outcome.ask;
    else {
      const partner = await state.open(outcome.model);
      state.partner.close();
      state.partner = partner;
      say(terminal, welcome(partner));
    }
  } catch (error) {
    say(terminal, inFlags((error as Error).message));
  }
}

async function takeTurn(
  { answer, terminal, partner: { model, session }, conversation, options, json }: Talk,
  text: string,
  signal: AbortSignal,
): Promise<void> {
  const { system, messages } = conversation;
  const turn = { role: "user", content: contentWith(conversation.images.splice(0), text) };
  const instruction = system === undefined ? [] : [{ role: "system", content: system }];
  const prompt = [...instruction, ...messages, turn];
  const chosen = options();
  const generation = answer(session, prompt, { ...chosen, signal });
  const { result, tokens } = json
    ? await wholeAnswer(generation)
    : await streamAnswer(terminal, generation);
  messages.push(turn, { role: "assistant", content: result.text });
  if (result.droppedMessages > conversation.dropped) {
    say(terminal, `The oldest ${result.droppedMessages} messages no longer fit and are left out.`);
  }
  conversation.dropped = result.droppedMessages;
  conversation.stats = `${describeStats(result)}, ${
    showBytes(result.stats.memory.total)
  } of memory`;
  if (json) {
    const told = { ...result, ...chosen.logprobs !== undefined && { tokens } };
    terminal.out(JSON.stringify({ role: "assistant", content: result.text, ...told }) + "\n");
    return;
  }
  if (chosen.logprobs !== undefined) {
    showLogprobs(terminal, { tokens, textOf: (id) => model.tokenizer.decode([id]) });
  }
  if (result.finishReason === "abort") say(terminal, "Stopped.");
}

function say(terminal: Terminal, text: string): void {
  terminal.err(paint(terminal.colours.err, { style: "dim", text }) + "\n");
}
