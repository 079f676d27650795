// Cases of attention over tensors: how heads lie, masks, grouped heads, windows, valid keys, new rows beside a cache.

import type { CaseRandom, OpCase } from "./op_case.ts";

/** All of them. */
export function tensorCases(random: CaseRandom): OpCase[] {
  const base = { q_heads: 4, kv_heads: 4, scale: 0.3 };
  const sizes = [
    { name: "rows of heads", q: [2, 5, 32], kv: [2, 7, 32], attributes: base },
    { name: "planes of heads", q: [2, 4, 5, 8], kv: [2, 4, 7, 8], attributes: base },
    {
      name: "grouped, causal, planes of keys",
      q: [1, 3, 64],
      kv: [1, 2, 9, 16],
      attributes: { q_heads: 4, kv_heads: 2, scale: 0.25, causal: true, offset: 6 },
    },
    {
      name: "one row, cap, window",
      q: [1, 8, 1, 64],
      kv: [1, 2, 33, 64],
      attributes: {
        ...{ q_heads: 8, kv_heads: 2, scale: 0.125, softcap: 5 },
        ...{ causal: true, offset: 32, window: 16 },
      },
    },
  ];
  const grouped = { q_heads: 4, kv_heads: 2, scale: 0.25, causal: true, from_end: true };
  const valid: OpCase[] = [1, 5, 40].map((rows) => ({
    name: `${rows} rows behind the valid keys, sinks`,
    inputs: [
      random.input([2, rows, 64]),
      random.input([2, 2, 150, 16]),
      random.input([2, 2, 150, 16]),
      undefined,
      random.indices([rows === 1 ? 1 : rows - 2, 140]),
      random.input([4]),
    ],
    attributes: rows === 5 ? { ...grouped, window: 3 } : grouped,
  }));
  const plain = sizes.flatMap(({ name, q, kv, attributes }) =>
    [false, true].map((masked) => ({
      name: masked ? `${name}, mask` : name,
      inputs: [
        random.input(q),
        random.input(kv),
        random.input(kv),
        masked ? random.input([q.length === 4 ? q[2]! : q[1]!, kv.at(-2)!]) : undefined,
      ],
      attributes,
    }))
  );
  return [
    ...plain,
    ...valid,
    ...appendedCases(random),
    ...packedCases(random),
    ...wordCases(random),
    ...manyQueries(random),
  ];
}

/** So many queries that a device has one an invocation; rows and keys that fill no block. */
function manyQueries(random: CaseRandom): OpCase[] {
  const even = { q_heads: 64, kv_heads: 64, scale: 0.3 };
  return [{
    name: "many queries",
    inputs: [[2, 130, 256], [2, 37, 256], [2, 37, 512]].map((shape) => random.input(shape)),
    attributes: even,
  }, {
    name: "twice as many queries in planes, grouped heads",
    inputs: [[1, 8, 4099, 4], [1, 2, 9, 4], [1, 2, 9, 12]].map((shape) => random.input(shape)),
    attributes: { q_heads: 8, kv_heads: 2, scale: 0.3 },
  }, {
    name: "many queries in one tensor",
    inputs: [random.input([4, 66, 64 * 12])],
    attributes: even,
  }];
}

/** Each kind of scores as a second output; a row that sees nothing. */
function wordCases(random: CaseRandom): OpCase[] {
  const given = [random.input([2, 5, 32]), random.input([2, 7, 32]), random.input([2, 7, 32])];
  const base = { q_heads: 4, kv_heads: 4, scale: 0.3, softcap: 5 };
  const seen = { role: "input", dtype: "bool", shape: [5, 7] } as const;
  const data = Uint8Array.from({ length: 35 }, (_, i) => i < 14 ? 0 : 1);
  return [
    ...["products", "capped", "masked", "weights"].map((scores) => ({
      name: `scores: ${scores}`,
      inputs: [...given, random.input([5, 7])],
      attributes: { ...base, scores },
    })),
    {
      name: "two rows that see nothing are NaN",
      inputs: [...given, { ...seen, data }],
      attributes: { ...base, unseen: "nan" },
    },
  ];
}

/** Queries, keys and values in one tensor: few rows and many, grouped heads, a mask, valid keys. */
function packedCases(random: CaseRandom): OpCase[] {
  const plain = { q_heads: 3, kv_heads: 3, scale: 0.3 };
  const grouped = { q_heads: 4, kv_heads: 2, scale: 0.25, causal: true };
  return [2, 41, 150].flatMap((rows): OpCase[] => [{
    name: `${rows} rows in one tensor, mask`,
    inputs: [random.input([2, rows, 9 * 12]), undefined, undefined, random.input([rows, rows])],
    attributes: plain,
  }, {
    name: `${rows} rows of grouped heads in one tensor, valid keys`,
    inputs: [
      random.input([2, rows, 8 * 16]),
      ...[undefined, undefined, undefined],
      random.indices([rows, rows - 1]),
    ],
    attributes: grouped,
  }]);
}

/** New keys in tensors of their own, of planes and of rows; one row and many. */
function appendedCases(random: CaseRandom): OpCase[] {
  const base = { q_heads: 4, kv_heads: 2, scale: 0.25, causal: true };
  return [1, 5].flatMap((rows): OpCase[] => {
    const planes = [2, 2, rows, 16], joined = [2, rows, 32];
    return [{
      name: `${rows} new rows behind 130 keys, mask`,
      inputs: [
        random.input([2, rows, 64]),
        random.input([2, 2, 130, 16]),
        random.input([2, 2, 130, 16]),
        random.input([1, 1, rows, 130 + rows]),
        ...[undefined, undefined, random.input(planes), random.input(joined)],
      ],
      attributes: { ...base, offset: 130 },
    }, {
      name: `${rows} new rows behind the valid keys of 40`,
      inputs: [
        random.input([2, rows, 64]),
        random.input([2, 2, 40, 16]),
        random.input([2, 2, 40, 16]),
        undefined,
        random.indices([rows === 1 ? 1 : rows - 2, 40 + rows]),
        ...[undefined, random.input(joined), random.input(planes)],
      ],
      attributes: { ...base, from_end: true, new_rows: "behind_valid" },
    }];
  });
}
