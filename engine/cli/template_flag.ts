// The flag `--chat-template`, for `load`: apart from the other flags because a file has to be read for it.
// Where no template is wanted (`--raw`) the model's own is not even parsed, so that a broken one does not
// stand in the way.

import type { LoadOptions } from "../decode/model.ts";
import { type Flags, UsageError } from "./args.ts";

/** The flag. */
export const TEMPLATE_FLAGS = {
  "chat-template": {
    type: "string",
    value: "FILE",
    help: "Jinja template to use instead of the model's own",
  },
} as const satisfies Flags;

/**
 * Option for `load` from the flag.
 *
 * @throws {UsageError} If a template is given where none is used.
 */
export async function templateOption(
  flags: { readonly "chat-template"?: string | undefined },
  { wanted = true }: { readonly wanted?: boolean } = {},
): Promise<Pick<LoadOptions, "chatTemplate">> {
  const path = flags["chat-template"];
  if (path === undefined) return wanted ? {} : { chatTemplate: null };
  if (!wanted) throw new UsageError("--chat-template is given where no template is used");
  const { readText } = await import("./machine.ts");
  return { chatTemplate: await readText(path) };
}
