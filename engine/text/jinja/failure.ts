// How everything in this folder refuses: an exception that knows the line, turned into one of the
// engine's errors at the border (chat_template.ts), where the name of the file is known.

/** A template cannot be parsed or rendered. */
export class TemplateFailure extends Error {
  /** Line of the template, from 1; 0 where it is not known yet. */
  line: number;
  /** Whether a limit was hit, rather than a rule broken. */
  readonly isLimit: boolean;

  constructor(message: string, { line = 0, isLimit = false } = {}) {
    super(message);
    this.name = "TemplateFailure";
    this.line = line;
    this.isLimit = isLimit;
  }
}

/** Refuses. */
export function fail(message: string, line = 0): never {
  throw new TemplateFailure(message, { line });
}
