// The policy that a command line asks for: by name, or from a file.

import { getPolicy } from "../../quant/policies.ts";
import type { QuantPolicy } from "../../quant/policy.ts";
import { parsePolicy } from "../quantize/policy_file.ts";
import { FormatError } from "../errors.ts";
import { openFile } from "../io.ts";
import { UsageError } from "./args.ts";

/**
 * The policy of `--format` or `--policy`.
 *
 * @throws {UsageError} If neither or both are given, or the name is unknown.
 * @throws {FormatError} If the file is no policy.
 */
export async function choosePolicy(
  format: string | undefined,
  path: string | undefined,
): Promise<QuantPolicy> {
  if ((format === undefined) === (path === undefined)) {
    throw new UsageError("Give either --format or --policy");
  }
  try {
    return format === undefined ? parsePolicy(await readText(path!)) : getPolicy(format);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    if (format !== undefined) throw new UsageError(error.message);
    throw new FormatError(error.message, { file: path, cause: error });
  }
}

/**
 * A text file, read whole.
 *
 * @throws {FormatError} If it is no UTF-8.
 */
export async function readText(path: string): Promise<string> {
  const source = openFile(path);
  try {
    const bytes = new Uint8Array(source.size);
    await source.readInto(0, bytes);
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new FormatError("is no text in UTF-8", {
      file: path,
      remedy: "Give a text file, or convert it",
      cause: error,
    });
  } finally {
    source.close();
  }
}
