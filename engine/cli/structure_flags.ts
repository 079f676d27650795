// The flags `--schema` and `--grammar`: files that bind an answer.

import type { StructureOptions } from "../decode/structured.ts";
import { FormatError } from "../errors.ts";
import type { Flags } from "./args.ts";

/** The flags. */
export const STRUCTURE_FLAGS = {
  schema: { type: "string", value: "FILE", help: "answer in JSON that this JSON Schema allows" },
  grammar: { type: "string", value: "FILE", help: "answer in a text of this grammar (GBNF)" },
} as const satisfies Flags;

/**
 * Options for `generate` and `chat` from the flags.
 *
 * @throws {FormatError} If a schema's file is no JSON.
 */
export async function structureOptions(
  { schema, grammar }: {
    readonly schema?: string | undefined;
    readonly grammar?: string | undefined;
  },
): Promise<StructureOptions> {
  const { readText } = await import("./machine.ts");
  return {
    ...schema !== undefined && { schema: parse(await readText(schema), schema) },
    ...grammar !== undefined && { grammar: await readText(grammar) },
  };
}

function parse(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new FormatError(`is no JSON: ${(cause as Error).message}`, { file, cause });
  }
}
