// Prompt lookup beside plain decoding, this engine both times, on an answer that copies and on one that does not. Where all
// that is proposed is right, tokens come as fast as rows are checked: that is the limit, at the number of rows at which
// it is greatest.

import type { Reply, Runner } from "../support/runner.ts";
import { alternate } from "./alternate.ts";
import type { CaseInput, Contender, Measured } from "./case.ts";

const COPIED = 128;
const ROWS = [2, 4, 8, 12, 16];
/** A draw, so that small models do not repeat themselves. */
const WITHOUT_COPIES = { topK: 40, seed: 7 } as const;

const rate = (tokens: number, { ms = NaN }: Reply): number => tokens / ms * 1000;

/** The case. */
export async function* speculation(input: CaseInput): AsyncGenerator<Measured> {
  const { model: { ids, copyIds }, options: { rounds, decode } } = input;
  if (!copyIds) return;
  const own = input.contenders.find(({ peer }) => !peer)!;
  const lookup: Contender = { ...own, name: "prompt lookup" };
  const plain: Contender = { ...own, name: "plain decoding" };
  const draft = (contender: Contender) => contender === lookup && { draft: "lookup" as const };

  const checked = await alternate([own], { rounds }, (runner) => mostRows(runner, copyIds));
  const bound = Math.max(...checked.get(own)!);
  const copying = await alternate([lookup, plain], { rounds }, async (runner, contender) => {
    const options = { ...draft(contender) };
    return rate(COPIED, await runner.ask({ op: "decode", ids: copyIds, count: COPIED, options }));
  });
  yield {
    name: "rows checked",
    unit: "tokens/s",
    samples: new Map([[own, checked.get(own)!], [plain, copying.get(plain)!]]),
  };
  yield { name: "decode copy-heavy", unit: "tokens/s", samples: copying, bound };

  const prompt = ids.slice(0, 32);
  const other = await alternate([lookup, plain], { rounds }, async (runner, contender) => {
    const options = { ...WITHOUT_COPIES, ...draft(contender) };
    return rate(decode, await runner.ask({ op: "decode", ids: prompt, count: decode, options }));
  });
  yield { name: "decode without copies", unit: "tokens/s", samples: other };
}

/** Rows checked a second, at the best number of them. */
async function mostRows(runner: Runner, ids: readonly number[]): Promise<number> {
  let most = 0;
  for (const rows of ROWS) {
    most = Math.max(most, rate(rows, await runner.ask({ op: "check", ids, rows })));
  }
  return most;
}
