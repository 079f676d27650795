// The flag that switches a model's thinking off, where its template has a switch.

import type { Flags } from "./args.ts";

/** Whether a model that can think should. */
export const THINKING_FLAGS = {
  "no-thinking": { type: "boolean", help: "answer at once, of models that would think first" },
} as const satisfies Flags;

/** The option of `chat` for the flag. */
export function thinkingOption(
  flags: { readonly "no-thinking"?: boolean | undefined },
): { readonly thinking?: false } {
  return flags["no-thinking"] ? { thinking: false } : {};
}
