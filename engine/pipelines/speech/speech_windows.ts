// From the tokens of a window to stretches of text with times, and where the next window begins, by the rules of
// Whisper's long-form transcription (transformers' `_retrieve_segment`). Times are in steps of timestamps from the
// window's beginning.

/** A stretch of text. */
export interface WindowPart {
  /** With its timestamps. */
  readonly ids: readonly number[];
  readonly start: number;
  readonly end: number;
}

/** What became of a window. */
export interface WindowParts {
  readonly parts: readonly WindowPart[];
  /** Steps after which the next window begins. */
  readonly taken: number;
}

/**
 * Cuts a window's tokens at pairs of timestamps, of which the first ends a stretch. What stands behind the last pair is not whole: the next window begins
 * there.
 *
 * @param ids Without an end token.
 * @param length Steps of the window that hold sound.
 */
export function cutWindow(
  ids: readonly number[],
  { firstTimestamp, length }: { readonly firstTimestamp: number; readonly length: number },
): WindowParts {
  const isTime = (at: number) => (ids[at] ?? -1) >= firstTimestamp;
  const steps = (at: number) => ids[at]! - firstTimestamp;
  const cuts: number[] = [];
  for (let at = 1; at < ids.length; at++) if (isTime(at - 1) && isTime(at)) cuts.push(at);
  const last = ids.length - 1;
  if (cuts.length === 0) {
    const end = ids.findLastIndex((_, at) => isTime(at));
    const isEnd = end >= 0 && steps(end) > 0;
    return { parts: [{ ids, start: 0, end: isEnd ? steps(end) : length }], taken: length };
  }
  // A timestamp alone at the end says that nothing more is said.
  const isWhole = isTime(last) && !isTime(last - 1);
  if (isWhole) cuts.push(ids.length);
  else cuts[cuts.length - 1]!++; // both of the pair, which tells that something went on
  let from = 0;
  const parts = cuts.map((to, i) => {
    const end = i === cuts.length - 1 && !isWhole ? to - 2 : to - 1;
    const part = { ids: ids.slice(from, to), start: steps(from), end: steps(end) };
    from = to;
    return part;
  });
  const taken = isWhole ? length : steps(from - 2);
  // A pair of 0 seconds would begin the same window again.
  return { parts, taken: taken > 0 ? Math.min(taken, length) : length };
}
