// Numbers by token id, emptied at no cost: an entry counts only if it carries the stamp of the current
// round. Penalties, DRY and FSD count tokens of the history with it, once for each token drawn.

/** A map from token id to number over one vocabulary. */
export interface TokenTable {
  /** Values by id; valid where the stamp is current. */
  readonly values: Float64Array;
  /** Round in which an entry was last written. */
  readonly stamps: Uint32Array;
  /** Ids written in this round, `count` of them. */
  readonly ids: Int32Array;
  /** Number of ids written in this round. */
  count: number;
  /** Current round. */
  round: number;
}

/** A table for a vocabulary of `vocabSize` tokens. */
export function createTokenTable(vocabSize: number): TokenTable {
  return {
    values: new Float64Array(vocabSize),
    stamps: new Uint32Array(vocabSize),
    ids: new Int32Array(vocabSize),
    count: 0,
    round: 0,
  };
}

/** Forgets all entries. */
export function clearTable(table: TokenTable): void {
  table.count = 0;
  if (++table.round > 0xffffffff) {
    table.stamps.fill(0);
    table.round = 1;
  }
}

/** Value of an id; 0 if it has none. */
export function tableValue(table: TokenTable, id: number): number {
  return table.stamps[id] === table.round ? table.values[id]! : 0;
}

/**
 * Sets the value of an id.
 *
 * @throws {RangeError} If the id is outside the vocabulary.
 */
export function setTableValue(
  table: TokenTable,
  { id, value }: { readonly id: number; readonly value: number },
): void {
  if (!(id >= 0 && id < table.stamps.length)) {
    throw new RangeError(
      `Cannot count token ${id}: the vocabulary has ${table.stamps.length} tokens`,
    );
  }
  if (table.stamps[id] !== table.round) {
    table.stamps[id] = table.round;
    table.ids[table.count++] = id;
  }
  table.values[id] = value;
}

/** Adds 1 to the value of an id. */
export function countTableId(table: TokenTable, id: number): void {
  setTableValue(table, { id, value: tableValue(table, id) + 1 });
}
