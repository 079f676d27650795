// `stream_options` of chat and completions.

import { FLAG } from "../../record.ts";
import { field, ignored, readFields } from "./fields.ts";

const STREAM_OPTIONS = {
  include_usage: field(FLAG),
  ...ignored(["include_obfuscation", "continuous_usage_stats"]),
} as const;

/** Whether the last chunk tells the usage. Without `stream` it makes no difference. */
export function streamUsage(
  options: Readonly<Record<string, unknown>> | undefined,
  unknown: (path: string) => void,
): boolean {
  if (options === undefined) return false;
  const { values } = readFields(options, STREAM_OPTIONS, { at: "stream_options.", unknown });
  return values.include_usage ?? false;
}
