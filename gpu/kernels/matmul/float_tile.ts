// What products of float tiles do with workgroup memory, whatever is multiplied: rows by lines over some columns. An
// invocation has a block of both: quads that lie as far apart as there are invocations along a side, so that neighbours
// read neighbouring quads. Columns are written out: all indices but the invocation's own are constants, so drivers compute
// and check one place for all of them; for each read by itself that takes as long as its multiplications. What the next
// step needs is fetched before these, and arrives meanwhile.

import { wgsl } from "../../wgsl.ts";
import { list } from "./rows.ts";

/** A side of a tile. */
export interface TileSide {
  /** Name of its memory. */
  readonly tile: string;
  /** Members of an invocation's block; a multiple of 4. */
  readonly block: number;
  /** Invocations along the side. */
  readonly lanes: number;
  /** Columns that an invocation brings of a member at once (sideStep); absent: quads are brought. */
  readonly unitColumns?: number;
  /** Two columns as a word, whose values this is: an expression of `vec2<f32>`; absent: each column is a float. */
  readonly pair?: ((word: string) => string) | undefined;
}

/** Members of a side. */
export function sideMembers({ block, lanes }: TileSide): number {
  return block * lanes;
}

/** The memory of so many columns. */
export function sideMemory({ tile, block, lanes, pair }: TileSide, columns: number): string {
  const quads = `array<array<vec4<${pair ? "u32" : "f32"}>, ${lanes}>, ${block / 4}>`;
  return `var<workgroup> ${tile}: array<${quads}, ${pair ? columns / 2 : columns}>;`;
}

/** Quads on different banks, and words of a bank's line that neighbours store at once. */
const BANK_QUADS = 8;

/**
 * How far the quads of a unit of columns lie from those of the unit before: neighbours bring units of one member, whose columns
 * all lie on one bank, or would. What is read at once is one column's, so that it does not matter there.
 */
function turnOf({ lanes, unitColumns = 0 }: TileSide, columns: number): number {
  const units = columns / unitColumns;
  return lanes % BANK_QUADS === 0 && units > 1 && units <= BANK_QUADS ? BANK_QUADS / units : 0;
}

/** The place of a quad of members in a column, of expressions. */
export function quadPlace(
  { tile, block, lanes }: TileSide,
  at: { readonly quad: string; readonly column: string },
): string {
  return block === 4
    ? `${tile}[${at.column}][0][${at.quad}]`
    : `${tile}[${at.column}][${at.quad} / ${lanes}u][${at.quad} % ${lanes}u]`;
}

/** The place of a member in a column; what its quad is turned by, an expression. */
export function memberPlace(
  side: TileSide,
  { member, column, turn = "" }: {
    readonly member: string;
    readonly column: string;
    readonly turn?: string;
  },
): string {
  const own = `(${member} >> 2u)`, quad = turn === "" ? own : `(${own} ^ ${turn})`;
  return `${quadPlace(side, { quad, column })}[${member} & 3u]`;
}

/** The first member of the `i`th quad of the block of `lane`, behind the side's first. */
export function blockQuad({ lanes }: TileSide, { lane, i }: { lane: string; i: number }): string {
  return `${i === 0 ? "" : `${4 * lanes * i}u + `}4u * ${lane}`;
}

/**
 * Statements that add the products of all columns to `sum{i}_{j}: vec4<f32>`, member i of the rows' block by quad j of the
 * lines'; `down` and `across` are the invocation's places along rows and lines.
 */
export function multiplyTile(
  { rows, lines, columns }: {
    readonly rows: TileSide;
    readonly lines: TileSide;
    readonly columns: number;
  },
): string[] {
  const quads = lines.block / 4, { pair } = lines;
  const x = sideReads(rows, { lane: "down", columns });
  const w = sideReads(lines, { lane: "across", columns });
  const products = (k: number) =>
    wgsl`
      {
        ${list(rows.block / 4, (i) => `let x${i} = ${x.quad(k, i)};`)}
        ${list(quads, (j) => `let w${j} = ${pair ? halfOfPairs(j, k % 2) : w.quad(k, j)};`)}
        ${
      list(rows.block * quads, (n) => {
        const i = Math.floor(n / quads), j = n % quads;
        return `sum${i}_${j} += x${i >> 2}.${"xyzw"[i & 3]} * w${j};`;
      })
    }
      }
    `;
  const all = pair
    ? list(columns / 2, (n) =>
      wgsl`
        {
          ${
        list(quads, (j) =>
          [
            `let packed${j} = ${w.quad(2 * n, j)};`,
            ...list(4, (c) => `let both${j}_${c} = ${pair(`packed${j}.${"xyzw"[c]}`)};`),
          ].join("\n"))
      }
          ${products(2 * n)}
          ${products(2 * n + 1)}
        }
      `)
    : list(columns, products);
  return [...x.turned, ...w.turned, ...all];
}

/** The first or the second numbers of four pairs. */
function halfOfPairs(j: number, half: number): string {
  return `vec4<f32>(${list(4, (c) => `both${j}_${c}.${"xy"[half]}`).join(", ")})`;
}

/** What an invocation reads of a side: its places where quads are turned, and quad `i` of its block in column `k`. */
function sideReads(
  side: TileSide,
  { lane, columns }: { readonly lane: string; readonly columns: number },
): { readonly turned: readonly string[]; quad(k: number, i: number): string } {
  const { tile, unitColumns = columns, pair } = side, by = turnOf(side, columns);
  return {
    turned: by === 0 ? [] : list(columns / unitColumns - 1, (n) => {
      const turn = (n + 1) * by;
      return `let ${lane}_${turn} = ${lane} ^ ${turn}u;`;
    }),
    quad(k, i) {
      const turn = Math.floor(k / unitColumns) * by;
      return `${tile}[${pair ? k >> 1 : k}][${i}][${lane}${turn === 0 ? "" : `_${turn}`}]`;
    },
  };
}

/** What a step of a tile does. */
export interface TileStep {
  /** Variables that hold what is fetched, and statements that fetch it. */
  readonly held: readonly string[];
  readonly fetch: readonly string[];
  /** Stores it in workgroup memory. */
  readonly store: readonly string[];
  readonly multiply: readonly string[];
}

/** A loop over steps, as long as `wanted`; `next` goes to the next one. */
export function tileSteps(
  { held, fetch, store, multiply }: TileStep,
  { wanted, next }: { readonly wanted: string; readonly next: string },
): string {
  return wgsl`
    ${held}
    ${fetch}
    while (${wanted}) {
      ${store}
      workgroupBarrier();
      ${next}
      if (${wanted}) {
        ${fetch}
      }
      ${multiply}
      workgroupBarrier();
    }
  `;
}

/** What is fetched of a side: units of columns, dealt out to all invocations, those of a member to neighbours. */
export interface SideItems {
  readonly side: TileSide;
  /** Units of a member in a step, and quads of a unit, of numbers or of pairs. */
  readonly units: number;
  readonly quads: number;
  readonly threads: number;
  /** Statements that define `{name}0`, …, the quads of unit `part` of `member`. */
  load(name: string): string;
}

/** Variables, fetches and stores of a side whose members hold columns one behind the other. */
export function sideStep(
  { side, units, quads, threads, load }: SideItems,
): Omit<TileStep, "multiply"> {
  const { tile, pair } = side, items = units * sideMembers(side);
  const each = Math.ceil(items / threads), by = turnOf(side, units * (side.unitColumns ?? 0));
  const turn = by === 0 ? "" : `(part * ${by}u)`;
  const own = (i: number, text: string) =>
    wgsl`
      {
        let item = thread + ${i * threads}u;
        let member = item / ${units}u;
        let part = item % ${units}u;
        ${(i + 1) * threads <= items ? text : `if (item < ${items}u) { ${text} }`}
      }
    `;
  const all = (text: (i: number, q: number) => string, i: number) =>
    list(quads, (q) => text(i, q)).join("\n");
  return {
    held: list(
      each * quads,
      (n) =>
        `var ${tile}_held${Math.floor(n / quads)}_${n % quads} = vec4<${pair ? "u32" : "f32"}>();`,
    ),
    fetch: list(
      each,
      (i) => own(i, `${load("next")}\n${all((i, q) => `${tile}_held${i}_${q} = next${q};`, i)}`),
    ),
    store: list(each, (i) =>
      own(
        i,
        all((i, q) =>
          list(4, (c) => {
            const column = `${4 * quads}u * part + ${4 * q + c}u`;
            const place = memberPlace(side, { member: "member", column, turn });
            return `${place} = ${tile}_held${i}_${q}.${"xyzw"[c]};`;
          }).join("\n"), i),
      )),
  };
}
