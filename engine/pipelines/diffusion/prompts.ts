// Prompts as the networks of a pipeline see them: what all its encoders say of them, put together by its rule.

import { FormatError } from "../../errors.ts";
import type { Tensor } from "../../models/networks/network.ts";
import type { Tokenizer } from "../../text/tokenizer_types.ts";
import { type PromptIds, promptIds } from "./prompt_ids.ts";
import type { TextRule } from "./pipeline_rules.ts";
import type { TextEncoder, TextStates } from "./text_encoder.ts";

/** An encoder with its tokenizer. */
export interface PromptReader {
  readonly part: string;
  readonly tokenizer: Tokenizer;
  /** Tokens of a prompt. */
  readonly length: number;
  /** Undefined where the folder has left it out: its states are zeros. */
  readonly encoder: TextEncoder | undefined;
}

/** What reads the prompts of a pipeline. */
export interface PromptReaders {
  readonly rule: TextRule;
  readonly readers: readonly PromptReader[];
  /** Numbers of a state that the network takes. */
  readonly width: number | undefined;
}

/** Inputs of the network that a prompt becomes, without the dim of the batch. */
export type PromptInputs = Readonly<Record<string, Tensor>>;

/**
 * What a prompt says to the network.
 *
 * @param onDropped Told how many tokens did not fit.
 */
export async function readPrompt(
  { rule, readers, width }: PromptReaders,
  text: string,
  { onDropped, signal }: {
    readonly onDropped: (count: number, length: number) => void;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<PromptInputs> {
  const states = new Map<string, TextStates>(), ids = new Map<string, PromptIds>();
  for (const { part, tokenizer, length, encoder } of readers) {
    const prompt = promptIds(tokenizer, {
      text: rule.isSmall ? text.toLowerCase().trim() : text,
      length,
    });
    if (prompt.dropped > 0) onDropped(prompt.dropped, length);
    ids.set(part, prompt);
    // Where the network is not told what fills up, encoders look at that like the rest.
    const seen = rule.mask === undefined ? { ...prompt, count: length } : prompt;
    if (encoder) states.set(part, await encoder.encode(seen, signal));
  }
  const first = rule.beside[0]!, tokens = ids.get(first)!.ids.length;
  const wanted = (part: string): Float32Array =>
    states.get(part)![rule.state] ?? missing(part, "states in front of its last layer");
  let rows = sideBySide(rule.beside.map(wanted), { rows: tokens, width });
  let count = tokens;
  if (rule.behind) {
    const { part, length } = rule.behind, columns = rows.length / tokens;
    const more = states.get(part)?.last ?? new Float32Array(length * columns);
    rows = joined([rows, more]);
    count += length;
  }
  return {
    encoder_hidden_states: { data: rows, dims: [count, rows.length / count] },
    ...rule.pooled && { [rule.pooled.input]: vectorsOf(rule.pooled.of, states) },
    ...rule.mask !== undefined && { [rule.mask]: maskOf(ids.get(first)!) },
  };
}

/** Inputs of the same sizes that say nothing. */
export function emptyPrompt(inputs: PromptInputs): PromptInputs {
  return Object.fromEntries(
    Object.entries(inputs).map(([name, { data, dims }]) => [
      name,
      { data: new Float32Array(data.length), dims },
    ]),
  );
}

function vectorsOf(parts: readonly string[], states: ReadonlyMap<string, TextStates>): Tensor {
  const data = joined(
    parts.map((part) => states.get(part)!.pooled ?? missing(part, "a vector of the prompt")),
  );
  return { data, dims: [data.length] };
}

function maskOf({ ids, count }: PromptIds): Tensor {
  return { data: Float32Array.from(ids, (_, i) => i < count ? 1 : 0), dims: [ids.length] };
}

function missing(part: string, what: string): never {
  throw new FormatError(`gives no ${what}`, { place: part });
}

/** Rows of several tables one beside the other, with zeros up to `width`. */
function sideBySide(
  tables: readonly Float32Array[],
  { rows, width }: { readonly rows: number; readonly width: number | undefined },
): Float32Array {
  const own = tables.reduce((sum, { length }) => sum + length / rows, 0);
  const columns = Math.max(own, width ?? own), all = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    let at = row * columns;
    for (const table of tables) {
      const size = table.length / rows;
      all.set(table.subarray(row * size, (row + 1) * size), at);
      at += size;
    }
  }
  return all;
}

/** Arrays one behind the other. */
export function joined(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  parts.reduce((at, part) => (all.set(part, at), at + part.length), 0);
  return all;
}
