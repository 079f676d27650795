// Few rows in one step, as speculative checks and small batches have them: how many times the time of one row they take.
// All counts are measured in every round.

import { alternate } from "./alternate.ts";
import type { CaseInput, Measured } from "./case.ts";

const ROWS = [2, 4, 8] as const;
const POSITION = 32;

/** The case. */
export async function* rows(input: CaseInput): AsyncGenerator<Measured> {
  const { contenders, model, options: { rounds } } = input;
  const own = contenders.find(({ peer }) => !peer)!;
  const times = new Map(ROWS.map((count) => [count, [] as number[]]));
  await alternate([own], { rounds }, async (runner) => {
    const msOf = async (count: number): Promise<number> => {
      const ids = model.ids.slice(0, POSITION + count);
      return (await runner.ask({ op: "check", ids, rows: count })).ms!;
    };
    const one = await msOf(1);
    for (const [count, values] of times) values.push(await msOf(count) / one);
    return one;
  });
  for (const [count, values] of times) {
    // The first round warms up.
    const samples = new Map([[own, values.slice(1)]]);
    yield { name: `${count} rows`, unit: "times one row", samples };
  }
}
