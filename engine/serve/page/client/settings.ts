// What can be set of a conversation, as data, and what is wrong with what stands in a box.

/** Settings as they stand in the boxes; absent and empty mean the server's default. */
export interface Settings {
  readonly model?: string;
  readonly system?: string;
  /** JSON text of a JSON Schema. */
  readonly schema?: string;
  /** Texts at which an answer ends, one a line. */
  readonly stop?: string;
  /** Whether the model thinks first, where it can; the model's own way if it is not said. */
  readonly thinking?: boolean;
  /** Whether token probabilities are asked for. */
  readonly probabilities?: boolean;
  /** Numbers of {@linkcode NUMBERS}. */
  readonly numbers?: Readonly<Record<string, number>>;
}

/** What a page begins with: what most models are tuned to; a small one wanders without. */
export const DEFAULTS: Settings = { numbers: { temperature: 0.7, top_p: 0.95 } };

/** A number that can be set. */
export interface NumberField {
  /** The field of the request. */
  readonly name: string;
  readonly label: string;
  readonly help: string;
  readonly min: number;
  readonly max: number;
  readonly step: number;
  /** Whether it stands with those that few need. */
  readonly isRare?: boolean;
}

/** The numbers that can be set, in the order of the panel. */
export const NUMBERS: readonly NumberField[] = [
  {
    name: "temperature",
    label: "Temperature",
    help: "0 always takes the most probable token; above 1 answers wander.",
    ...{ min: 0, max: 2, step: 0.05 },
  },
  {
    name: "top_p",
    label: "Top p",
    help: "Only the most probable tokens that together have this probability.",
    ...{ min: 0, max: 1, step: 0.01 },
  },
  {
    name: "top_k",
    label: "Top k",
    help: "Only so many of the most probable tokens; 0 is all.",
    ...{ min: 0, max: 1000, step: 1 },
  },
  {
    name: "min_p",
    label: "Min p",
    help: "Only tokens at least this probable, as a share of the best one.",
    ...{ min: 0, max: 1, step: 0.01 },
  },
  {
    name: "max_completion_tokens",
    label: "Longest answer",
    help: "Tokens after which an answer is cut.",
    ...{ min: 1, max: 1_000_000, step: 1 },
  },
  {
    name: "seed",
    label: "Seed",
    help: "The same seed and settings give the same answer.",
    ...{ min: 0, max: Number.MAX_SAFE_INTEGER, step: 1 },
  },
  {
    name: "repeat_penalty",
    label: "Repeat penalty",
    help: "Above 1 makes tokens that were used less probable.",
    ...{ min: 0.1, max: 3, step: 0.01, isRare: true },
  },
  {
    name: "frequency_penalty",
    label: "Frequency penalty",
    help: "Taken off for each time that a token was used.",
    ...{ min: -2, max: 2, step: 0.05, isRare: true },
  },
  {
    name: "presence_penalty",
    label: "Presence penalty",
    help: "Taken off once for every token that was used.",
    ...{ min: -2, max: 2, step: 0.05, isRare: true },
  },
];

/** What is wrong with the text of a number, or undefined. */
export function numberProblem({ min, max, step }: NumberField, text: string): string | undefined {
  if (text.trim() === "") return undefined;
  const value = Number(text);
  const isWhole = step === 1;
  if (value >= min && value <= max && (!isWhole || Number.isInteger(value))) return undefined;
  return `${isWhole ? "A whole number" : "A number"} from ${min} to ${max.toLocaleString("en")}`;
}

/** What is wrong with the text of a schema, or undefined. What the schema says is for the server to judge. */
export function schemaProblem(text: string): string | undefined {
  if (text.trim() === "") return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `This is not JSON: ${(error as Error).message}`;
  }
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? undefined : 'A JSON Schema is an object, like { "type": "object" }';
}
