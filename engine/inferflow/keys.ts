// Every key of Inferflow's configuration files [§4.1] and what becomes of it: keys.json, by file and section; `NAME.*`
// is any section that begins so, `#` any number. Keys without `quiet` are honoured where `use` says; a key with `quiet`
// has no meaning here, and any value but those is warned of with `use` as the reason. Keys that are not in the table
// are unknown, and warned of too. Upstream's commented-out keys are in it as well.

import keys from "./keys.json" with { type: "json" };

/** What becomes of a key. */
export interface KeyRule {
  readonly use: string;
  /** Values that ask for nothing. */
  readonly quiet?: readonly string[];
}

/** Rules by section and key. */
export type KeyTable = Readonly<Record<string, Readonly<Record<string, KeyRule>>>>;

/** The keys of a configuration file: its own, and those of every one. */
export function keysOf(file: "engine" | "inference" | "perplexity" | "client"): KeyTable {
  return { ...keys.environment, ...keys[file] };
}
