// Tokens in, what to show out: bytes become characters, an answer's reader splits them where the model writes
// more than text, and stop texts end what is said. What a model thinks or calls is no place for stop texts.

import { createStopFilter } from "../stop_strings.ts";
import type { StreamDecoder } from "../stream_decoder.ts";
import type { AnswerPiece, AnswerReader } from "./answer_reader.ts";

/** A piece that is being put together. */
export type GrowingPiece = { -readonly [K in keyof AnswerPiece]: AnswerPiece[K] };

/** Reads the tokens of one answer. */
export interface AnswerStream {
  /** Takes the next token and adds to `piece` what may be shown now; often nothing. */
  push(id: number, piece: GrowingPiece): void;
  /** Ends the stream and adds what was held back. @param isWhole Whether the model ended it. */
  finish(piece: GrowingPiece, isWhole: boolean): void;
  /** The stop text that was found; the stream is over once this is set. */
  readonly stoppedBy: string | undefined;
}

/** Puts decoder, reader and stop texts together. Without a reader everything is text. */
export function createAnswerStream(
  { decoder, reader, stops }: {
    readonly decoder: StreamDecoder;
    readonly reader?: AnswerReader | undefined;
    readonly stops: readonly string[];
  },
): AnswerStream {
  const filter = createStopFilter(stops);

  function add(piece: GrowingPiece, next: AnswerPiece): void {
    piece.text += filter.push(next.text);
    if (next.thinking !== undefined) piece.thinking = (piece.thinking ?? "") + next.thinking;
    if (next.toolCalls) piece.toolCalls = [...piece.toolCalls ?? [], ...next.toolCalls];
  }

  return {
    push(id, piece) {
      const text = decoder.push(id);
      if (reader) add(piece, reader.push(text));
      else piece.text += filter.push(text);
    },
    finish(piece, isWhole) {
      const rest = decoder.finish();
      if (reader) {
        add(piece, reader.push(rest));
        add(piece, reader.finish(isWhole));
      } else piece.text += filter.push(rest);
      piece.text += filter.finish();
    },
    get stoppedBy() {
      return filter.stoppedBy;
    },
  };
}
