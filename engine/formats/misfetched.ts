// What lies under the name of a file where fetching it went wrong.

import { FormatError } from "../errors.ts";

/**
 * Refuses what was fetched in place of a file.
 *
 * @param start The file's beginning, a letter a byte.
 * @throws {FormatError} If it is a web page, or Git's pointer to a large file.
 */
export function refuseMisfetched(
  start: string,
  { file, kind }: {
    readonly file: string | undefined;
    readonly kind: "model" | "picture" | "sound";
  },
): void {
  if (/^\s*<(!doctype\s+html|html|head|body|script)\b/i.test(start)) {
    const remedy = "Fetch the file itself: the link leads to a page about it, or asks to log in";
    throw new FormatError(`is an HTML page, not a ${kind}`, { file, remedy });
  }
  if (start.startsWith("version https://git-lfs.github.com/spec/")) {
    const name = kind === "model" ? ", or give its hf: name" : "";
    const remedy = `Fetch the real file with \`git lfs pull\`${name}`;
    throw new FormatError(`is a Git LFS pointer, not the ${kind}`, { file, remedy });
  }
}
