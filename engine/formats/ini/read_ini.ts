// Configuration files from disk.

import { readBytes } from "../../byte_source.ts";
import { FormatError } from "../../errors.ts";
import { openFile } from "../../io.ts";
import { type IniFile, parseIni } from "./ini.ts";

const MOST_BYTES = 16 << 20;

/**
 * Reads and parses a configuration.
 *
 * @throws {SourceError} If it cannot be read. @throws {FormatError} If a line breaks the grammar.
 */
export async function readIni(path: string): Promise<IniFile> {
  return parseIni(await readTextFile(path), path);
}

/**
 * Text of a file that people write.
 *
 * @throws {SourceError} If it cannot be read. @throws {FormatError} If it is larger than 16 MiB or no UTF-8.
 */
export async function readTextFile(path: string): Promise<string> {
  const source = openFile(path);
  try {
    if (source.size > MOST_BYTES) {
      throw new FormatError(`has ${source.size} bytes, and at most ${MOST_BYTES} are read`, {
        file: path,
      });
    }
    const bytes = await readBytes(source, { length: source.size });
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new FormatError("is not UTF-8 text", { file: path, cause: error });
  } finally {
    source.close();
  }
}
