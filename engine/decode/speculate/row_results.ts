// What a step gave for each of several rows of one session, copied out of the executable, whose results are
// valid until its next step: a draft's tokens are judged one by one, while other sessions go on. The copies
// are made when so many rows are first checked and used again.

import type { BestLogits } from "../../run/backend.ts";
import type { Executable } from "../../run/executable.ts";
import { MOST_BEST } from "../../run/step.ts";

/** Results of the rows of a session's last step. */
export interface RowResults {
  /** Copies a row of the last step; `row` counts from the session's first, `at` is its place in the step. */
  keep(executable: Pick<Executable, "best" | "logits" | "hidden">, row: number, at: number): void;
  /** Its best logits, if the device brought those alone. */
  best(row: number): BestLogits | undefined;
  /** All of its logits; of no use where `best` gives something. */
  logits(row: number): Float32Array;
  /** Its hidden state, where the graph gives it out. */
  hidden(row: number): Float32Array;
}

interface Place {
  readonly best: { readonly ids: Uint32Array; readonly logits: Float32Array; count: number };
  logits: Float32Array;
  hidden: Float32Array;
}

/** Makes room for the results of rows of a model. */
export function createRowResults(
  { vocabulary, hidden }: { readonly vocabulary: number; readonly hidden: number },
): RowResults {
  const places: Place[] = [];
  const none = new Float32Array(0);

  function placeOf(row: number): Place {
    return places[row] ??= {
      best: { ids: new Uint32Array(MOST_BEST), logits: new Float32Array(MOST_BEST), count: 0 },
      logits: none,
      hidden: hidden > 0 ? new Float32Array(hidden) : none,
    };
  }

  return {
    keep(executable, row, at) {
      const place = placeOf(row), found = executable.best(at);
      place.best.count = found?.count ?? 0;
      if (hidden > 0) place.hidden.set(executable.hidden(at));
      if (found) {
        place.best.ids.set(found.ids);
        place.best.logits.set(found.logits);
        return;
      }
      if (place.logits === none) place.logits = new Float32Array(vocabulary);
      place.logits.set(executable.logits(at));
    },
    best: (row) => places[row]!.best.count > 0 ? places[row]!.best : undefined,
    logits: (row) => places[row]!.logits,
    hidden: (row) => places[row]!.hidden,
  };
}
