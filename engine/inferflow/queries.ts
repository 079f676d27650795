// Query lists [§4.1]: numbered keys, each a text or a JSON object with more. `{\n}`, `{\r}` and `{\t}` in texts are the
// characters.

import { recordReader, TEXT, type ValueRule } from "../record.ts";
import { FormatError } from "../errors.ts";
import type { IniFile } from "../formats/ini/ini.ts";
import { keysOf } from "./keys.ts";
import { resolve } from "./engine_config.ts";
import { checkKeys, neededText, numbered, numberOf, openConfiguration } from "./values.ts";

/** One query. */
export interface InferflowQuery {
  readonly text: string;
  /** Beginning of the answer. */
  readonly answer: string;
  readonly systemPrompt: string;
  readonly encoderTemplate: string | undefined;
  readonly decoderTemplate: string | undefined;
}

/** llm_inference.ini */
export interface InferenceConfig {
  /** Path of the engine's configuration. */
  readonly engine: string;
  readonly queries: readonly InferflowQuery[];
  readonly seed: number | undefined;
  readonly temperature: number | undefined;
}

const FIELDS = {
  text: TEXT,
  res_prefix: TEXT,
  system_prompt: TEXT,
  encoder_input_template: TEXT,
  decoder_input_template: TEXT,
};

/**
 * Reads llm_inference.ini.
 *
 * @throws {FormatError} Naming section and key of what is missing or wrong.
 */
export function readInferenceConfig(file: IniFile, warnings: Set<string>): InferenceConfig {
  const config = openConfiguration(file, warnings);
  const list = neededText(config, { section: "main", key: "query_list" });
  const section = [list, `query_list.${list}`].find((name) => file.sections.has(name));
  if (section === undefined) {
    throw new FormatError(`names ${list}, and there is no such section`, {
      file: file.name,
      place: "[main] query_list",
    });
  }
  checkKeys(config, { table: keysOf("inference") });
  const texts = numbered(config, section, { count: "query_count", item: "query" });
  return {
    engine: resolve(file, neededText(config, { section: "main", key: "inference_engine_config" })),
    queries: texts.map((text, index) =>
      parseQuery(text, { file: file.name, place: `[${section}] query${index + 1}` })
    ),
    seed: numberOf(config, { section: "main", key: "query_random_seed" }, { max: 2 ** 48 }) ||
      undefined,
    temperature: numberOf(config, { section: "main", key: "temperature" }, { integer: false }),
  };
}

/** A text, or JSON with one. @throws {FormatError} If it begins like JSON and is none, or has unknown keys. */
function parseQuery(text: string, at: { file: string; place: string }): InferflowQuery {
  if (!text.startsWith('{"')) return queryOf({ text }, at);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    const reason = (cause as Error).message.replace(/\s+/g, " ");
    throw new FormatError(`is no JSON object: ${reason}`, { ...at, cause });
  }
  return queryOf(json as Record<string, unknown>, at);
}

function queryOf(
  json: Readonly<Record<string, unknown>>,
  at: { file: string; place: string },
): InferflowQuery {
  const fail = (message: string): never => {
    throw new FormatError(message, at);
  };
  const read = recordReader<ValueRule>({
    unknown: (key, known) => fail(`has the key ${key}: known are ${known}`),
    absent: () => undefined,
    read: (key, value, { accepts }) => accepts(value) ? value : fail(`${key} must be a text`),
  });
  const given = read(json, FIELDS) as Record<string, string | undefined>;
  return {
    text: unescape(given.text ?? ""),
    answer: unescape(given.res_prefix ?? ""),
    systemPrompt: unescape(given.system_prompt ?? ""),
    encoderTemplate: given.encoder_input_template,
    decoderTemplate: given.decoder_input_template,
  };
}

const CHARACTERS: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };

function unescape(text: string): string {
  return text.replace(/\{\\([nrt])\}/g, (_, letter: string) => CHARACTERS[letter]!);
}
