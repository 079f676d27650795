// A model that says what a test tells it to: the vocabulary of the tiny llama (a token for each character, as good
// as), a template of the test's, and a device that computes nothing. Each time somebody wants logits, the best of
// them is the next token of the script. An answer ends with the model's end token.

import { LoadedModel } from "../../engine/decode/loaded_model.ts";
import { createRuntime, type Runtime } from "../../engine/decode/runtime.ts";
import type { Executable } from "../../engine/run/executable.ts";
import { ownRows } from "../../engine/run/pages/cache_rows.ts";
import type { Step } from "../../engine/run/step.ts";
import { compileChatTemplate } from "../../engine/text/chat_template.ts";
import { loadTiny } from "./models.ts";

/** A model with a script. */
export interface ScriptedModel extends Disposable {
  readonly model: LoadedModel;
  /** The prompts that were computed, one for each answer of the script that was begun. */
  readonly prompts: readonly string[];
  /** Answers that nobody has asked for. */
  readonly left: readonly string[];
}

/** What a script may need besides. */
export interface ScriptOptions {
  readonly template: string;
  readonly contextLength?: number;
  readonly sessions?: number;
}

/** Makes a model of the answers that it gives, first one first; behind the last it says nothing. */
export async function loadScripted(
  script: readonly string[],
  { template, contextLength = 4096, sessions = 4 }: ScriptOptions,
): Promise<ScriptedModel> {
  using tiny = await loadTiny();
  const { info, device, notes, runtime } = tiny as LoadedModel;
  const tokenizer = runtime.tokenizer();
  const left = [...script];
  const prompts: string[] = [];
  const texts = Array.from({ length: sessions }, () => [] as number[]);
  const free = texts.map((_, slot) => slot);
  const answers = new Map<
    number,
    { readonly ids: readonly number[]; readonly begin: number; at: number; isOver: boolean }
  >();
  const logits = new Float32Array(runtime.vocabulary);
  let rows: readonly { readonly slot: number; readonly position: number }[] = [];

  // What the answer goes on with behind as much of it as a text ends with: texts may be taken back, or computed anew.
  function next({ slot, position }: typeof rows[number]): number {
    const text = texts[slot]!.slice(0, position + 1);
    let answer = answers.get(slot);
    if (!answer) {
      prompts.push(tokenizer.decode(text));
      const said = tokenizer.encode(left.shift() ?? "", { addSpecial: false });
      answer = { ids: [...said, tokenizer.eosId!], begin: position + 1, at: 0, isOver: false };
      answers.set(slot, answer);
    }
    const { ids } = answer;
    if (answer.isOver) return ids.at(-1)!;
    let count = Math.min(ids.length - 1, text.length);
    while (count > 0 && text.slice(-count).some((id, at) => id !== ids[at])) count--;
    // Who was kept from saying it says the rest of it.
    if (count === 0) count = Math.min(answer.at, ids.length - 1);
    answer.at = count + 1;
    answer.isOver = count === ids.length - 1;
    return ids[count]!;
  }

  // An answer has ended where its slot goes on with anything else than the answer itself: the end may have been
  // behind proposed tokens that were taken back.
  function reopen(slot: number, position: number) {
    const answer = answers.get(slot);
    if (!answer?.isOver) return;
    const said = texts[slot]!.slice(answer.begin, position + 1);
    const isProposedAnew = said.length > 0 && said.length < answer.ids.length &&
      said.every((id, at) => id === answer.ids[at]);
    if (isProposedAnew) answer.isOver = false;
    else answers.delete(slot);
  }

  const executable = {
    ...runtime.executable,
    openSlot: () => free.shift()!,
    closeSlot(slot: number) {
      answers.delete(slot);
      free.push(slot);
    },
    rows: ownRows(runtime.executable, { slots: sessions, capacity: contextLength }),
    run(step: Step) {
      for (let row = 0; row < step.count; row++) {
        const text = texts[step.slots[row]!]!, position = step.positions[row]!;
        text.length = position;
        text.push(step.tokens[row]!);
        reopen(step.slots[row]!, position);
      }
      rows = Array.from({ length: step.count }, (_, row) => ({
        slot: step.slots[row]!,
        position: step.positions[row]!,
      }));
    },
    best: () => undefined,
    leftLogits: () => undefined,
    logits(row: number) {
      logits.fill(0);
      logits[next(rows[row]!)] = 100;
      return logits;
    },
    dispose() {},
  } as Executable;
  const scripted: Runtime = createRuntime({
    ...runtime,
    executable,
    chatTemplate: compileChatTemplate(template, "the test's template"),
    limits: { contextLength, batch: 64, logitRows: 4, sessions },
    start: performance.now(),
  });
  const model = new LoadedModel(scripted, { info, device, notes });
  return { model, prompts, left, [Symbol.dispose]: () => model.dispose() };
}
