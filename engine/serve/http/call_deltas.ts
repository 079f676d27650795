// Calls of tools while they are written. The engine tells all that is written of a call, clients want what is new of it;
// what was sent cannot be taken back, so arguments that do not go on from there wait for the end.

import type { ToolCall, ToolCallDelta } from "../../text/answer/tool_call.ts";

/** What is new of a call. */
export interface NewOfCall {
  readonly index: number;
  readonly id: string;
  readonly name: string;
  /** Whether nothing of it was told before. */
  readonly isFirst: boolean;
  readonly argumentsText: string;
}

/** What was sent of the calls of one answer. */
export class CallDeltas {
  readonly #sent: string[] = [];
  readonly #most: number;

  /** @param options `most`: later calls are left out. */
  constructor({ most = Infinity }: { readonly most?: number } = {}) {
    this.#most = most;
  }

  /** What is new in a part of an answer. */
  take(calls: readonly ToolCallDelta[]): NewOfCall[] {
    return calls.flatMap((call) => this.#newOf(call));
  }

  /** What is left to tell when the answer has ended. */
  finish(calls: readonly ToolCall[]): NewOfCall[] {
    return calls.flatMap((call, index) => this.#newOf({ ...call, index }));
  }

  #newOf({ index, id, name, argumentsText }: ToolCallDelta): NewOfCall[] {
    if (index >= this.#most) return [];
    const sent = this.#sent[index];
    if (sent !== undefined && (argumentsText === sent || !argumentsText.startsWith(sent))) {
      return [];
    }
    this.#sent[index] = argumentsText;
    return [{
      ...{ index, id, name, isFirst: sent === undefined },
      argumentsText: argumentsText.slice(sent?.length ?? 0),
    }];
  }
}
