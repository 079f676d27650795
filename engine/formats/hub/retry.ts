// Tries again what may pass by itself, waiting longer each time. Progress starts the count anew, so a long
// download over a bad line goes on as long as it gets forward at all.

import { SourceError } from "../../errors.ts";
import { TransientFailure } from "./http.ts";

/** How stubbornly to retry. */
export interface RetryOptions {
  /** Tries in a row without progress; 5 by default. */
  readonly attempts?: number | undefined;
  /** First waiting time in milliseconds, doubled each time up to 16 times; 500 by default. */
  readonly backoffMs?: number | undefined;
  /** Ends the waiting with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Seconds that are waited for a server at most: longer than hubs count requests for. */
const MOST_SECONDS = 600;

/**
 * Runs `work` until it succeeds or fails for good.
 *
 * @param work Gets a function to call on progress.
 * @throws The last error, a TransientFailure if it was one.
 */
export async function retry<T>(
  work: (progress: () => void) => Promise<T>,
  { attempts = 5, backoffMs = 500, signal }: RetryOptions,
): Promise<T> {
  let failures = 0;
  for (;;) {
    try {
      return await work(() => {
        failures = 0;
      });
    } catch (error) {
      if (!(error instanceof TransientFailure) || ++failures >= attempts) throw error;
      const { retryAfter = 0 } = error;
      if (retryAfter > MOST_SECONDS) throw error;
      const wait = backoffMs * 2 ** Math.min(failures - 1, 4);
      await sleep(Math.max(wait, retryAfter * 1000), signal);
    }
  }
}

/**
 * The same, but what failed in the end is a SourceError that tells what to do.
 */
export async function retryOrExplain<T>(
  url: string,
  work: (progress: () => void) => Promise<T>,
  options: RetryOptions,
): Promise<T> {
  try {
    return await retry(work, options);
  } catch (error) {
    throw explainFailure(error, { url });
  }
}

/** Turns a TransientFailure into a SourceError; other errors stay as they are. */
export function explainFailure(
  error: unknown,
  { url, kept = "" }: { readonly url: string; readonly kept?: string | undefined },
): unknown {
  if (!(error instanceof TransientFailure)) return error;
  const { retryAfter = 0 } = error;
  const again = `run the same command again${kept === "" ? "" : ": it goes on where it stopped"}`;
  const minutes = Math.ceil(retryAfter / 60);
  return new SourceError(`${error.message}${kept}`, {
    file: url,
    remedy: retryAfter > MOST_SECONDS
      ? `The server asks to wait: in ${minutes} minutes ${again}`
      : `Check the network and ${again}`,
    cause: error,
  });
}

/** Waits; an abort ends the wait with the signal's reason. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}
