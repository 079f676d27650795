// `troodon chat`: a conversation on one session, so that each turn computes only what is new. Ctrl-C
// stops the answer under way; what was said of it stays in the conversation.

import type { chat as ChatFunction } from "../../decode/chat.ts";
import type { Session } from "../../decode/session.ts";
import type { Model } from "../../decode/model.ts";
import { describeStats, streamAnswer } from "../answer.ts";
import { UsageError } from "../args.ts";
import { type Conversation, runChatCommand } from "../chat/chat_commands.ts";
import { type Command, defineCommand } from "../command.ts";
import { DRAFT_FLAGS, openDraft } from "../draft_flag.ts";
import { LIMIT_FLAGS, limitOptions, LOAD_FLAGS, loadOptions } from "../flags.ts";
import { SAMPLER_FLAGS, samplerOptions } from "../sampler_flags.ts";
import { paint, showBytes } from "../format.ts";
import { modelAndText } from "../model_or_text.ts";
import { inFlags } from "../option_names.ts";
import { createPrompter } from "../chat/prompt.ts";
import { STRUCTURE_FLAGS, structureOptions } from "../structure_flags.ts";
import { TEMPLATE_FLAGS, templateOption } from "../template_flag.ts";
import { THINKING_FLAGS, thinkingOption } from "../thinking_flag.ts";
import { exit, type Terminal } from "../terminal.ts";

const DEFAULT_MAX_TOKENS = 1024;

/** The command. */
export const chat: Command = defineCommand({
  name: "troodon chat",
  summary: "Talks with a model.",
  positionals: ["[MODEL]", "[TEXT]"],
  flags: {
    system: { type: "string", help: "instruction to the model" },
    ...TEMPLATE_FLAGS,
    ...THINKING_FLAGS,
    ...LIMIT_FLAGS,
    ...SAMPLER_FLAGS,
    ...DRAFT_FLAGS,
    ...STRUCTURE_FLAGS,
    ...LOAD_FLAGS,
  },
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
  const { terminal, signal } = context;
  const json = flags.json ?? false;
  const named = modelAndText(positionals);
  const options = {
    ...samplerOptions(flags),
    ...limitOptions(flags, DEFAULT_MAX_TOKENS),
    ...thinkingOption(flags),
    ...await structureOptions(flags),
  };
  const { checkOptions } = await import("../check_options.ts");
  checkOptions(options);
  const { openModel } = await import("../open_model.ts");
  const { chat: answer } = await import("../../decode/chat.ts");
  const load = { ...loadOptions(flags), ...await templateOption(flags) };
  using opened = await openModel(named.model, {
    flags,
    options: load,
    context: { terminal, signal },
  });
  const { model } = opened;
  if (!model.chatTemplate) {
    throw new UsageError(
      `${opened.name} is a base model (no chat template): use troodon generate --raw`,
    );
  }
  using draft = await openDraft(flags, { options: load, context: { terminal, signal } });
  context.releaseInterrupt();
  using session = model.createSession();
  const conversation: Conversation = {
    system: flags.system,
    messages: [],
    stats: "No answer yet.",
    done: false,
    dropped: 0,
  };
  const state = { answer, terminal, model, session, conversation, json, first: named.text };
  return await talk({ ...state, options: { ...options, ...draft.options } });
});

interface Talk {
  readonly answer: typeof ChatFunction;
  readonly terminal: Terminal;
  readonly model: Model;
  readonly session: Session;
  readonly conversation: Conversation;
  readonly options: Parameters<typeof ChatFunction>[2];
  readonly json: boolean;
  /** The first turn, if it was given with the command. */
  readonly first: string | undefined;
}

/** Turns until the end of the input; returns the exit code. */
async function talk(state: Talk): Promise<number> {
  const { terminal, conversation, json } = state;
  const person = terminal.keyboard && terminal.screen;
  const prompter = createPrompter(terminal, []);
  if (person && !json) say(terminal, `${state.model.info.name}. /help lists the commands.`);
  let running: AbortController | undefined;
  let first = state.first;
  const release = terminal.onInterrupt(() => running ? running.abort() : exit(130));
  try {
    for (let interrupts = 0; !conversation.done;) {
      const entry = first === undefined
        ? await prompter.ask()
        : { kind: "text" as const, text: first };
      first = undefined;
      if (entry.kind === "end") return 0;
      if (entry.kind === "interrupt") {
        if (++interrupts === 2) return 130;
        say(terminal, "Ctrl-C again leaves.");
        continue;
      }
      interrupts = 0;
      if (entry.text.trim() === "") continue;
      if (entry.text.startsWith("/")) {
        const words = await runChatCommand(conversation, entry.text).catch((error) =>
          error.message
        );
        if (words) say(terminal, words);
        continue;
      }
      running = new AbortController();
      try {
        await takeTurn(state, entry.text, running.signal);
      } catch (error) {
        // A person goes on after, say, a full context; a script has to know.
        if (!person) throw error;
        say(terminal, inFlags((error as Error).message));
      } finally {
        running = undefined;
      }
    }
    return 0;
  } finally {
    release();
  }
}

async function takeTurn(
  { answer, terminal, session, conversation, options, json }: Talk,
  content: string,
  signal: AbortSignal,
): Promise<void> {
  const { system, messages } = conversation;
  const turn = { role: "user", content };
  const instruction = system === undefined ? [] : [{ role: "system", content: system }];
  const generation = answer(session, [...instruction, ...messages, turn], { ...options, signal });
  const result = json ? await generation.result : await streamAnswer(terminal, generation);
  messages.push(turn, { role: "assistant", content: result.text });
  if (result.droppedMessages > conversation.dropped) {
    say(terminal, `The oldest ${result.droppedMessages} messages no longer fit and are left out.`);
  }
  conversation.dropped = result.droppedMessages;
  conversation.stats = `${describeStats(result)}, ${
    showBytes(result.stats.memory.total)
  } of memory`;
  if (json) {
    terminal.out(JSON.stringify({ role: "assistant", content: result.text, ...result }) + "\n");
  } else if (result.finishReason === "abort") say(terminal, "Stopped.");
}

function say(terminal: Terminal, text: string): void {
  terminal.err(paint(terminal.colours.err, { style: "dim", text }) + "\n");
}
