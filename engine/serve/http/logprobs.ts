// Log-probabilities in OpenAI's two forms: that of chat, a list of tokens with their bytes, and the older one of
// completions, four lists side by side.

import type { AnswerToken, TokenSpelling } from "../engine.ts";

interface Spelled extends TokenSpelling {
  readonly logProbability?: number;
}

/** A token of chat's form. */
export interface ChatLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
}

function ofToken({ text = "", bytes = [], logProbability = 0 }: Spelled): ChatLogprob {
  // JSON knows no infinity; a token that cannot be has OpenAI's least value.
  return { token: text, logprob: Math.max(logProbability, -9999), bytes };
}

/** Chat's form, of the responses too. */
export function chatLogprobs(
  tokens: readonly AnswerToken[],
): (ChatLogprob & { readonly top_logprobs: readonly ChatLogprob[] })[] {
  return tokens.map((token) => ({
    ...ofToken(token),
    top_logprobs: (token.alternatives ?? []).map(ofToken),
  }));
}

/** The form of completions. `offset`: characters in front of the first token. */
export function completionLogprobs(
  tokens: readonly AnswerToken[],
  offset: number,
): Readonly<Record<string, unknown>> {
  let at = offset;
  const listed = tokens.map(ofToken);
  return {
    tokens: listed.map(({ token }) => token),
    token_logprobs: listed.map(({ logprob }) => logprob),
    top_logprobs: tokens.map(({ alternatives = [] }) =>
      Object.fromEntries(alternatives.map(ofToken).map(({ token, logprob }) => [token, logprob]))
    ),
    text_offset: listed.map(({ token }) => {
      const start = at;
      at += token.length;
      return start;
    }),
  };
}
