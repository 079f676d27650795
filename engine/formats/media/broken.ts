// What is said of a file that breaks the rules of its kind.

import { type ErrorDetails, FormatError } from "../../errors.ts";

/** The error of such a file. */
export type Broken = (message: string, at: Pick<ErrorDetails, "file" | "place">) => FormatError;

/** What makes the errors of a kind of files. */
export function brokenAs(remedy: string): Broken {
  return (message, { file, place }) => new FormatError(message, { file, place, remedy });
}
