// Server-sent events, as far as an answer is made of them.

/** The data of server-sent events, one a text (HTML standard, 9.2.6); other fields are left out. */
export async function* serverEvents(
  bytes: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<string> {
  const reader = bytes.pipeThrough(new TextDecoderStream()).getReader();
  let text = "", data: string[] = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      // A carriage return at the end may be the first half of a line's end.
      const lines = text.split(/\r\n|\n|\r(?!$)/);
      text = lines.pop()!;
      for (const line of lines) {
        if (/^data(:|$)/.test(line)) data.push(line.slice(5).replace(/^ /, ""));
        if (line !== "" || data.length === 0) continue;
        yield data.join("\n");
        data = [];
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
