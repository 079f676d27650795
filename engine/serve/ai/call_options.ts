// Settings of a call of the AI SDK as options of a chat. What stands below `troodon` in its provider options are options of
// `chat` itself, which refuses names that it does not know.

import type { LanguageModelV4CallOptions, SharedV4Warning } from "@ai-sdk/provider";
import type { ChatOptions } from "../../decode/chat.ts";
import type { Model } from "../../decode/model.ts";
import { coreOf } from "../../decode/generate.ts";
import { thinkingSwitch } from "../../decode/thinking_switch.ts";
import type { FunctionTool } from "../../decode/tools/tool.ts";
import { UnsupportedError } from "../../errors.ts";

/** Name under which provider options and metadata of this provider stand. */
export const PROVIDER = "troodon";

/** Options of a chat, and what of a call was left out. */
export interface ReadOptions {
  readonly options: ChatOptions & { readonly schema?: unknown };
  readonly warnings: SharedV4Warning[];
}

/** Reads the settings of a call. */
export function readCallOptions(model: Model, call: LanguageModelV4CallOptions): ReadOptions {
  const warnings: SharedV4Warning[] = [];
  const { stopSequences, responseFormat, abortSignal, providerOptions } = call;
  const tools = toolsOf(call, warnings);
  const thinking = thinkingOf(model, call, warnings);
  const same = pick(call, ["temperature", "topP", "topK", "seed", "presencePenalty"]);
  return {
    warnings,
    options: {
      ...same,
      ...pick(call, ["frequencyPenalty"]),
      ...call.maxOutputTokens !== undefined && { maxTokens: call.maxOutputTokens },
      ...stopSequences && { stop: stopSequences },
      ...abortSignal && { signal: abortSignal },
      ...thinking !== undefined && { thinking },
      ...tools.length > 0 && { tools, toolChoice: toolChoiceOf(call) },
      // Any JSON where there is no schema.
      ...responseFormat?.type === "json" && { schema: responseFormat.schema ?? {} },
      ...providerOptions?.[PROVIDER],
    },
  };
}

function pick<T extends object, K extends keyof T>(
  from: T,
  names: readonly K[],
): { [P in K]?: NonNullable<T[P]> } {
  const given = names.filter((name) => from[name] !== undefined && from[name] !== null);
  return Object.fromEntries(given.map((name) => [name, from[name]])) as {
    [P in K]?: NonNullable<T[P]>;
  };
}

function toolsOf(
  { tools = [] }: LanguageModelV4CallOptions,
  warnings: SharedV4Warning[],
): FunctionTool[] {
  return tools.flatMap((tool): FunctionTool[] => {
    if (tool.type === "provider") {
      warnings.push({
        type: "unsupported",
        feature: `tool ${tool.id}`,
        details: "Tools of other providers run with them; give a function tool",
      });
      return [];
    }
    const { name, description, inputSchema, strict } = tool;
    return [{
      type: "function",
      function: {
        ...{ name, parameters: inputSchema as Readonly<Record<string, unknown>> },
        ...description !== undefined && { description },
        ...strict !== undefined && { strict },
      },
    }];
  });
}

function toolChoiceOf(
  { toolChoice }: LanguageModelV4CallOptions,
): NonNullable<ChatOptions["toolChoice"]> {
  if (toolChoice === undefined) return "auto";
  return toolChoice.type === "tool" ? { name: toolChoice.toolName } : toolChoice.type;
}

/** Templates switch thinking on or off; how much of it there is, no model here is told. */
function thinkingOf(
  model: Model,
  { reasoning = "provider-default" }: LanguageModelV4CallOptions,
  warnings: SharedV4Warning[],
): boolean | undefined {
  if (reasoning === "provider-default") return undefined;
  const thinking = reasoning !== "none";
  try {
    thinkingSwitch(coreOf(model).runtime, thinking);
    return thinking;
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error;
    warnings.push({ type: "unsupported", feature: "reasoning", details: error.message });
    return undefined;
  }
}
