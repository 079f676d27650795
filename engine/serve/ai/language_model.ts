// A language model of the AI SDK (specification 4) that runs here: no server, no request.

import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4Usage,
  SharedV4Warning,
} from "@ai-sdk/provider";
import { chat, type ChatGeneration, type ChatResult } from "../../decode/chat.ts";
import type { Structured } from "../../decode/generation.ts";
import { AnswerParts, reasonOf } from "./answer_parts.ts";
import { PROVIDER, readCallOptions } from "./call_options.ts";
import type { NamedModel } from "./named_models.ts";
import { promptMessages } from "./prompt_messages.ts";

type Part = LanguageModelV4StreamPart;

/** An answer that was begun. */
interface Begun {
  readonly generation: ChatGeneration<unknown>;
  readonly parts: AnswerParts;
  readonly warnings: SharedV4Warning[];
  usage(result: ChatResult): LanguageModelV4Usage;
}

/** Makes one. */
export function createLanguageModel({ id: modelId, model: open }: NamedModel): LanguageModelV4 {
  async function begin(call: LanguageModelV4CallOptions): Promise<Begun> {
    const messages = promptMessages(call.prompt);
    call.abortSignal?.throwIfAborted();
    const model = await open();
    call.abortSignal?.throwIfAborted();
    const { options, warnings } = readCallOptions(model, call);
    const parts = new AnswerParts();
    let prompt = { promptTokens: 0, prefillTokens: 0 };
    const generation = chat(model, messages, { ...options, onStart: (start) => prompt = start });
    return { generation, parts, warnings, usage: (result) => parts.usage(result, prompt) };
  }

  return {
    specificationVersion: "v4",
    provider: PROVIDER,
    modelId,
    supportedUrls: {},

    async doGenerate(call): Promise<LanguageModelV4GenerateResult> {
      const { generation, parts, usage, warnings } = await begin(call);
      for await (const chunk of generation) parts.chunk(chunk);
      const result = await wholeResult(generation, call);
      const { finishReason, seed } = result;
      return {
        content: contentOf(result),
        finishReason: reasonOf(finishReason),
        usage: usage(result),
        warnings,
        providerMetadata: { [PROVIDER]: { seed } },
        response: { timestamp: new Date(), modelId },
      };
    },

    async doStream(call): Promise<LanguageModelV4StreamResult> {
      const begun = await begin(call);
      const told = tell(begun, { call, modelId });
      return {
        stream: new ReadableStream<Part>({
          async pull(controller) {
            try {
              const { done, value } = await told.next();
              if (done) controller.close();
              else for (const part of value) controller.enqueue(part);
            } catch (error) {
              controller.error(error);
            }
          },
          async cancel() {
            await told.return();
          },
        }),
      };
    },
  };
}

/** Of an answer that came to no end. */
const UNKNOWN_USAGE: LanguageModelV4Usage = {
  inputTokens: {
    total: undefined,
    noCache: undefined,
    cacheRead: undefined,
    cacheWrite: undefined,
  },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
};

async function* tell(
  { generation, parts, usage, warnings }: Begun,
  { call, modelId }: { readonly call: LanguageModelV4CallOptions; readonly modelId: string },
): AsyncGenerator<Part[], void, void> {
  yield [
    { type: "stream-start", warnings },
    { type: "response-metadata", timestamp: new Date(), modelId },
  ];
  try {
    for await (const chunk of generation) {
      const told = parts.chunk(chunk);
      if (told.length > 0) yield told;
    }
    const result = await wholeResult(generation, call);
    yield parts.end(result, usage(result));
  } catch (error) {
    if (call.abortSignal?.aborted) throw error;
    const finishReason = { unified: "error", raw: undefined } as const;
    yield [{ type: "error", error }, { type: "finish", finishReason, usage: UNKNOWN_USAGE }];
  }
}

/** The result. @throws What the signal of the call says, if that ended it. */
async function wholeResult(
  generation: ChatGeneration<unknown>,
  { abortSignal }: LanguageModelV4CallOptions,
): Promise<ChatResult & Structured<unknown>> {
  const result = await generation.result;
  if (result.finishReason === "abort") abortSignal?.throwIfAborted();
  return result;
}

function contentOf({ thinking, text, toolCalls }: ChatResult): LanguageModelV4Content[] {
  return [
    ...thinking === "" ? [] : [{ type: "reasoning", text: thinking } as const],
    ...text === "" ? [] : [{ type: "text", text } as const],
    ...toolCalls.map(({ id: toolCallId, name: toolName, argumentsText: input }) =>
      ({ type: "tool-call", toolCallId, toolName, input }) as const
    ),
  ];
}
