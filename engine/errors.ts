// Every error that a caller may want to catch, and nothing else. Wrong arguments throw the built-in
// TypeError (wrong kind) or RangeError (wrong value). The classes here carry what a person needs to
// act: which file, where in it, and what to do. The message is one line; `main.ts` prints it as is.

/**
 * Where and how to mend it; all parts are optional and become part of the one-line message.
 * @category Errors
 */
export interface ErrorDetails {
  /** File, URL or model name that was read. */
  readonly file?: string | undefined;
  /** Place inside the file: a key, a tensor, a byte offset, a line, a node path. */
  readonly place?: string | undefined;
  /** What the reader can do about it: an imperative sentence without a final period. */
  readonly remedy?: string | undefined;
  /** The error that led here. */
  readonly cause?: unknown;
  /** Of a text that is too long: tokens it has, and tokens there is room for. */
  readonly tokens?: { readonly given: number; readonly room: number } | undefined;
}

function compose(message: string, { file, place, remedy }: ErrorDetails): string {
  const where = [file, place].filter((part) => part !== undefined && part !== "").join(", ");
  const whole = (where ? `${where}: ` : "") + message + (remedy ? `. ${remedy}` : "");
  return whole.replace(/[\r\n]+/g, " "); // names in files may hold line ends
}

/**
 * Common base of Troodon's own errors.
 * @category Errors
 */
export class TroodonError extends Error {
  /** File, URL or model name that was read. */
  readonly file: string | undefined;
  /** Place inside the file. */
  readonly place: string | undefined;
  /** What to do about it. */
  readonly remedy: string | undefined;

  /** One line: `file, place: message. Remedy`. */
  constructor(message: string, details: ErrorDetails = {}) {
    super(compose(message, details), details.cause === undefined ? {} : { cause: details.cause });
    this.name = new.target.name;
    this.file = details.file;
    this.place = details.place;
    this.remedy = details.remedy;
  }
}

/**
 * A file, stream or document breaks the rules of its format.
 * @category Errors
 */
export class FormatError extends TroodonError {}

/**
 * Well-formed input that asks for something this build does not do.
 * @category Errors
 */
export class UnsupportedError extends TroodonError {}

/**
 * Memory, disk, context or device limits are too small for what was asked; the message has numbers.
 * @category Errors
 */
export class ResourceError extends TroodonError {
  /** Where a text is too long: tokens it has, and tokens there is room for. */
  readonly tokens: { readonly given: number; readonly room: number } | undefined;

  /** As its base, with numbers of tokens. */
  constructor(message: string, details: ErrorDetails = {}) {
    super(message, details);
    this.tokens = details.tokens;
  }
}

/**
 * A model could not be found, downloaded or verified.
 * @category Errors
 */
export class SourceError extends TroodonError {}

/**
 * The handler of a tool threw; `cause` is what it threw.
 * @category Errors
 */
export class ToolError extends TroodonError {}

/**
 * A compute device failed or gave wrong results.
 * @category Errors
 */
export class DeviceError extends TroodonError {}

/** Bytes as messages say them. */
export function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MiB`;
}
