// The flags `--schema` and `--grammar`: files that bind an answer.

import type { StructureOptions } from "../decode/structured.ts";
import { FormatError, UnsupportedError } from "../errors.ts";
import type { Flags } from "./args.ts";

/** The flags. */
export const STRUCTURE_FLAGS = {
  schema: { type: "string", value: "FILE", help: "answer in JSON that this JSON Schema allows" },
  grammar: { type: "string", value: "FILE", help: "answer in a text of this grammar (GBNF)" },
} as const satisfies Flags;

/**
 * Options for `generate` and `chat` from the flags.
 *
 * @throws {FormatError | UnsupportedError} Naming the file, if it is no JSON, no schema or no grammar, or one that is not served.
 */
export async function structureOptions(
  { schema, grammar }: {
    readonly schema?: string | undefined;
    readonly grammar?: string | undefined;
  },
): Promise<StructureOptions> {
  const { readText } = await import("./machine.ts");
  const options = {
    ...schema !== undefined && { schema: parse(await readText(schema), schema) },
    ...grammar !== undefined && { grammar: await readText(grammar) },
  };
  const file = schema ?? grammar;
  if (file === undefined || (schema !== undefined && grammar !== undefined)) return options;
  const { resolveStructure } = await import("../decode/structured.ts");
  try {
    resolveStructure(options); // so that what is wrong with it is told with its file
  } catch (error) {
    if (!(error instanceof FormatError || error instanceof UnsupportedError)) throw error;
    const Kind = error instanceof FormatError ? FormatError : UnsupportedError;
    throw new Kind(error.message, { file, cause: error });
  }
  return options;
}

function parse(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new FormatError(`is no JSON: ${(cause as Error).message}`, { file, cause });
  }
}
