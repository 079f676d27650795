// Calls of tools as they stand in answers: what is known of one while it is being written, and in the end.

/** What a reader of calls knows of a tool. */
export interface ToolShape {
  /** By which calls name it. */
  readonly name: string;
  /** JSON Schema of its arguments; formats that write values without quotes need the types. */
  readonly parameters?: unknown;
}

/**
 * A call under way, as a chunk tells of it.
 * @category Text
 */
export interface ToolCallDelta {
  /** Which call of the answer, from 0. */
  readonly index: number;
  /** The call's id. */
  readonly id: string;
  /** The tool. */
  readonly name: string;
  /** JSON text of the arguments, as far as it is written. */
  readonly argumentsText: string;
}

/**
 * A call of a tool.
 * @category Text
 */
export interface ToolCall {
  /** Nine letters and digits, which is what every template takes; results name it. */
  readonly id: string;
  /** The tool. */
  readonly name: string;
  /** Its arguments. */
  readonly arguments: Readonly<Record<string, unknown>>;
  /** JSON text of the arguments, as the model wrote it where it writes JSON. */
  readonly argumentsText: string;
  /** What is wrong with it, as one sentence; such a call is never run. */
  readonly problem?: string;
}

/** A call as far as a body tells of it. */
export interface CallDraft {
  /** Empty where the body names none. */
  readonly name: string;
  /** JSON text, perhaps cut. */
  readonly argumentsText: string;
}

/** Reads the calls of a body, which ends anywhere until it is whole. */
export type BodyReader = (body: string, context: BodyContext) => readonly CallDraft[];

/** What a reader of bodies is told besides. */
export interface BodyContext {
  readonly tools: readonly ToolShape[];
  readonly isWhole: boolean;
}

/**
 * A draft whose text has ended, as a call.
 *
 * @param body What the model wrote, for the message where it is no call.
 */
export function callOf(
  { name, argumentsText }: CallDraft,
  { id, body, tools }: {
    readonly id: string;
    readonly body: string;
    readonly tools: readonly ToolShape[];
  },
): ToolCall {
  const call = { id, name, arguments: {}, argumentsText };
  if (name === "") return { ...call, problem: `Cannot read a call in ${JSON.stringify(body)}` };
  if (!tools.some((tool) => tool.name === name)) {
    const known = tools.map((tool) => tool.name).join(", ");
    return { ...call, problem: `There is no tool "${name}": the tools are ${known}` };
  }
  if (argumentsText.trim() === "") return { ...call, argumentsText: "{}" };
  try {
    const value = JSON.parse(argumentsText);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return { ...call, arguments: value };
    }
    return { ...call, problem: `The arguments of ${name} must be a JSON object` };
  } catch (error) {
    const why = (error as Error).message;
    return { ...call, problem: `The arguments of ${name} are no JSON: ${why}` };
  }
}
