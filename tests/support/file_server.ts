// A file server that misbehaves on request: it cuts connections, lies about lengths, ignores ranges, sends
// other bytes, redirects, changes its files. It speaks HTTP by hand over TCP, since a proper server library
// would not let it lie. One answer a connection.

/** How the server behaves; every field may be changed while it runs. */
export interface Faults {
  /** Answers 200 with everything, whatever range was asked for. */
  ignoreRange?: boolean;
  /** Cuts this many connections after `cutAfter` bytes of the body. */
  cuts?: number;
  cutAfter?: number;
  /** Added to every length that the server speaks of, not to what it sends. */
  lie?: number;
  /** Answers this many requests with `status` first. */
  failures?: number;
  status?: number;
  retryAfter?: number;
  etag?: string | undefined;
  /** Milliseconds before each piece of a body. */
  delay?: number;
  /** Bytes of one piece. */
  piece?: number;
  /** Sends nothing after this many bytes of a body, without closing. */
  stallAfter?: number;
}

/** A request as the server saw it. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: ReadonlyMap<string, string>;
}

/** A running server. */
export interface FileServer extends AsyncDisposable {
  readonly url: string;
  readonly files: Map<string, Uint8Array>;
  /** Redirects by path: the target, and headers of the redirect itself. */
  readonly redirects: Map<
    string,
    { readonly to: string; readonly headers?: Record<string, string> }
  >;
  readonly faults: Faults;
  readonly requests: SeenRequest[];
  /** Body bytes sent. */
  sent: number;
}

/** Starts a server on a free port of this machine. */
export function startFileServer(files: Readonly<Record<string, Uint8Array>>): FileServer {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const running = new Set<Promise<void>>();
  const connections = new Set<Deno.Conn>();
  const server: FileServer = {
    url: `http://127.0.0.1:${listener.addr.port}`,
    files: new Map(Object.entries(files)),
    redirects: new Map(),
    faults: {},
    requests: [],
    sent: 0,
    async [Symbol.asyncDispose]() {
      listener.close();
      connections.forEach(closeQuietly);
      await Promise.all(running);
      await accepting;
    },
  };
  const accepting = (async () => {
    for await (const connection of listener) {
      connections.add(connection);
      const task: Promise<void> = serve(server, connection)
        .catch(() => {}) // the client went away, or the test is over
        .finally(() => {
          closeQuietly(connection);
          connections.delete(connection);
          running.delete(task);
        });
      running.add(task);
    }
  })();
  return server;
}

function closeQuietly(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // closed already
  }
}

async function serve(server: FileServer, connection: Deno.Conn): Promise<void> {
  const request = await readRequest(connection);
  server.requests.push(request);
  const { faults } = server;
  if (faults.failures) {
    faults.failures--;
    const headers = faults.retryAfter ? { "retry-after": `${faults.retryAfter}` } : {};
    return await respond(connection, faults.status ?? 503, headers);
  }
  const redirect = server.redirects.get(request.path);
  if (redirect) {
    return await respond(connection, 302, { location: redirect.to, ...redirect.headers });
  }
  const bytes = server.files.get(request.path);
  if (!bytes) return await respond(connection, 404, {});
  await sendFile(server, connection, request, bytes);
}

async function sendFile(
  server: FileServer,
  connection: Deno.Conn,
  request: SeenRequest,
  bytes: Uint8Array,
): Promise<void> {
  const { ignoreRange, lie = 0, etag } = server.faults;
  const size = bytes.length + lie;
  const identity: Record<string, string> = etag === undefined ? {} : { etag };
  const range = ignoreRange ? null : /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "");
  if (!range) {
    const headers = { ...identity, "content-length": `${size}` };
    return await respond(connection, 200, headers, request, server, bytes);
  }
  const start = Number(range[1]);
  const end = Math.min(Number(range[2]) + 1, size);
  if (start >= size) {
    return await respond(connection, 416, { ...identity, "content-range": `bytes */${size}` });
  }
  await respond(
    connection,
    206,
    {
      ...identity,
      "content-range": `bytes ${start}-${end - 1}/${size}`,
      "content-length": `${end - start}`,
    },
    request,
    server,
    bytes.subarray(start, end),
  );
}

async function respond(
  connection: Deno.Conn,
  status: number,
  headers: Readonly<Record<string, string>>,
  request?: SeenRequest,
  server?: FileServer,
  body: Uint8Array = new Uint8Array(0),
): Promise<void> {
  const all = { "content-length": "0", "connection": "close", ...headers };
  const head = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  await writeAll(connection, new TextEncoder().encode(`HTTP/1.1 ${status} X\r\n${head}\r\n`));
  if (server && request?.method === "GET") await sendBody(server, connection, body);
}

async function sendBody(
  server: FileServer,
  connection: Deno.Conn,
  body: Uint8Array,
): Promise<void> {
  const { faults } = server;
  const cuts = faults.cuts !== undefined && faults.cuts > 0;
  if (cuts) faults.cuts!--;
  const limit = cuts ? Math.min(faults.cutAfter ?? 0, body.length) : body.length;
  const piece = faults.piece ?? 64 << 10;
  for (let done = 0; done < limit; done += piece) {
    if (faults.delay) await new Promise((resolve) => setTimeout(resolve, faults.delay));
    if (faults.stallAfter !== undefined && done >= faults.stallAfter) {
      await connection.read(new Uint8Array(1)); // until the client gives up
      return;
    }
    const part = body.subarray(done, Math.min(limit, done + piece));
    await writeAll(connection, part);
    server.sent += part.length;
  }
}

async function writeAll(connection: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length;) done += await connection.write(bytes.subarray(done));
}

async function readRequest(connection: Deno.Conn): Promise<SeenRequest> {
  let text = "";
  const buffer = new Uint8Array(4096);
  while (!text.includes("\r\n\r\n")) {
    const count = await connection.read(buffer);
    if (count === null) throw new Error("The client closed before its request was complete");
    text += new TextDecoder().decode(buffer.subarray(0, count));
  }
  const [first, ...lines] = text.split("\r\n\r\n")[0].split("\r\n");
  const [method, path] = first.split(" ");
  const headers = new Map(lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  }));
  return { method, path, headers };
}
