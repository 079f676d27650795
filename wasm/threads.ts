// Where threads come from. A thread makes its own with `new Worker`, but in Deno 2.9.6 one that a worker makes runs half
// a second later and hears its first message after another half, 26 ms after the call where the main thread makes it. So
// a worker that computes may ask the thread that made it: what is said to a thread and by it goes through a port.

/** A thread, as whoever wanted it sees it. */
export interface Thread {
  postMessage(message: unknown): void;
  terminate(): void;
}

/** Who hears of a thread. */
export interface ThreadListener {
  readonly onMessage?: (data: unknown) => void;
  /** It failed, and is not there any more. */
  readonly onError: (message: string) => void;
}

/** Asks for a thread, or tells one something, or ends it. */
type Order =
  | { readonly id: number; readonly kind: "make"; readonly url: string }
  | { readonly id: number; readonly kind: "tell"; readonly message: unknown }
  | { readonly id: number; readonly kind: "end" };

/** What a thread has said, or why it failed. */
type News =
  | { readonly id: number; readonly kind: "message"; readonly data: unknown }
  | { readonly id: number; readonly kind: "error"; readonly message: string };

let make = makeHere;

/** Starts a thread on JavaScript source. @throws {Error} Where workers are not allowed. */
export function createThread(source: string, listener: ThreadListener): Thread {
  return make("data:text/javascript," + encodeURIComponent(source), listener);
}

function makeHere(url: string, { onMessage, onError }: ThreadListener): Thread {
  const worker = new Worker(url, { type: "module" });
  worker.onmessage = ({ data }) => onMessage?.(data);
  worker.onerror = (event) => {
    event.preventDefault();
    onError(event.message);
  };
  return worker;
}

/**
 * From now on threads of this one are made by whoever holds the port's other end: {@linkcode makeThreadsFor}.
 *
 * @returns Ends that.
 */
export function askForThreads(port: MessagePort): () => void {
  const listeners = new Map<number, ThreadListener>();
  const send = (order: Order) => port.postMessage(order);
  let ids = 0;
  port.onmessage = ({ data }: MessageEvent<News>) => {
    const listener = listeners.get(data.id);
    if (data.kind === "message") listener?.onMessage?.(data.data);
    else listener?.onError(data.message);
  };
  make = (url, listener) => {
    const id = ++ids;
    listeners.set(id, listener);
    send({ id, kind: "make", url });
    return {
      postMessage: (message) => send({ id, kind: "tell", message }),
      terminate() {
        listeners.delete(id);
        send({ id, kind: "end" });
      },
    };
  };
  return () => {
    make = makeHere;
    port.close();
  };
}

/**
 * Makes threads for the one at the port's other end.
 *
 * @returns Ends those that are left, and makes no more.
 */
export function makeThreadsFor(port: MessagePort): () => void {
  const threads = new Map<number, Thread>();
  const send = (news: News) => port.postMessage(news);
  port.onmessage = ({ data: order }: MessageEvent<Order>) => {
    const { id } = order;
    if (order.kind === "tell") threads.get(id)?.postMessage(order.message);
    else if (order.kind === "end") {
      threads.get(id)?.terminate();
      threads.delete(id);
    } else {
      const onError = (message: string) => send({ id, kind: "error", message });
      try {
        const onMessage = (data: unknown) => send({ id, kind: "message", data });
        threads.set(id, makeHere(order.url, { onMessage, onError }));
      } catch (error) {
        onError((error as Error).message);
      }
    }
  };
  return () => {
    port.close();
    for (const thread of threads.values()) thread.terminate();
    threads.clear();
  };
}
