// The two small configuration files: perplexity.ini and inferflow_client.ini.

import type { IniFile } from "../formats/ini/ini.ts";
import { resolve } from "./engine_config.ts";
import { keysOf } from "./keys.ts";
import { checkKeys, neededText, numberOf, openConfiguration } from "./values.ts";

/** perplexity.ini */
export interface PerplexityConfig {
  /** Path of the engine's configuration. */
  readonly engine: string;
  /** Path of the text. */
  readonly data: string;
  /** Tokens of a window, and from one to the next. */
  readonly window: number;
  readonly stride: number;
}

/** inferflow_client.ini */
export interface ClientConfig {
  /** Address. */
  readonly service: string;
  /** JSON. */
  readonly request: string;
}

/** Reads perplexity.ini. @throws {FormatError} Naming section and key. */
export function readPerplexityConfig(file: IniFile, warnings: Set<string>): PerplexityConfig {
  const config = openConfiguration(file, warnings);
  checkKeys(config, { table: keysOf("perplexity") });
  const window = numberOf(config, { section: "main", key: "max_length" }, { min: 1 }) ?? 512;
  return {
    engine: resolve(file, neededText(config, { section: "main", key: "inference_engine_config" })),
    data: resolve(file, neededText(config, { section: "main", key: "test_data_file" })),
    window,
    stride: numberOf(config, { section: "main", key: "stride" }, { min: 1 }) ?? window,
  };
}

/** Reads inferflow_client.ini. @throws {FormatError} Naming section and key. */
export function readClientConfig(file: IniFile, warnings: Set<string>): ClientConfig {
  const config = openConfiguration(file, warnings);
  checkKeys(config, { table: keysOf("client") });
  return {
    service: neededText(config, { section: "main", key: "service" }),
    request: neededText(config, { section: "main", key: "request" }),
  };
}

/** What a configuration is for, told by a key that only that kind has. */
export type ConfigKind = "inference" | "perplexity" | "client" | "engine";

const SIGNS: readonly [ConfigKind, section: string, key: string | undefined][] = [
  ["inference", "main", "query_list"],
  ["perplexity", "main", "test_data_file"],
  ["client", "main", "request"],
  ["engine", "transformer_engine", undefined],
];

/** The kind of a configuration; undefined if it is none of them. */
export function configKind({ sections }: IniFile): ConfigKind | undefined {
  return SIGNS.find(([, section, key]) => {
    const found = sections.get(section);
    return found !== undefined && (key === undefined || found.has(key));
  })?.[0];
}
