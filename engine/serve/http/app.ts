// The HTTP server as one function from request to response, for Deno.serve: a table of routes, and around each of them
// what all requests have in common (id, key, places, log, figures, errors in one form).

import type { Hono, MiddlewareHandler } from "hono";
import { importNpm } from "../../npm_packages.ts";
import { Admission } from "./admission.ts";
import { ApiError, apiErrorOf } from "./api_error.ts";
import { type AppOptions, DEFAULT_LIMITS } from "./app_options.ts";
import { Call } from "./call.ts";
import { keyCheck } from "./keys.ts";
import { createMetrics } from "./metrics.ts";
import { pageRoute } from "./page_file.ts";
import { logEntry, requestId } from "./request_log.ts";
import { type Route, ROUTES, UNKNOWN_PATH } from "./routes.ts";

/** A server without its socket. */
export interface App {
  /** Answers a request; to be given to Deno.serve. */
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /** Lets nobody in any more, and resolves when all who are in have their answers. */
  drain(): Promise<void>;
}

/**
 * Makes the server.
 *
 * @example
 * ```ts ignore
 * const app = await createApp({ engine, keys: ["secret"], page: pageAssets });
 * const server = Deno.serve({ port: 8080 }, app.fetch);
 * await app.drain();
 * await server.shutdown();
 * ```
 */
export async function createApp(options: AppOptions): Promise<App> {
  const { Hono } = await importNpm<typeof import("hono")>("hono");
  const { engine, version = "", log, isReady = () => true } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const metrics = await createMetrics(engine);
  const admission = new Admission(limits.answers);
  const checkKey = keyCheck(options.keys);
  const admit = (answers: number) => admission.take(answers);

  async function handle(
    request: Request,
    route: Route,
    parameters: Readonly<Record<string, string>>,
  ): Promise<Response> {
    const id = requestId(request);
    const call = new Call(request, { engine, limits, metrics, id, version, admit });
    let status = 500;
    call.onEnd(() => {
      const seconds = call.ms / 1000;
      metrics.request(route.path.replace(/\{.*\}/, ""), {
        method: methodOf(request),
        status,
        seconds,
      });
      log?.(logEntry(call, { status }));
    });
    let response: Response;
    try {
      if (!route.isOpen) checkKey(request);
      call.onEnd(admission.enter({ asks: route.asks ?? false }));
      const state = { isDraining: admission.isDraining, isReady: isReady() };
      response = await route.act(call, { parameters, state });
    } catch (error) {
      response = refusal(error, call);
    }
    status = response.status;
    setHeaders(response.headers, call);
    if (!call.isHeld) call.end();
    return response;
  }

  const app: Hono = new Hono();
  if (options.cors && options.cors.length > 0) app.use(await corsFor(options.cors));
  const add = (route: Route, methods: readonly string[], paths: readonly string[]) => {
    app.on([...methods], [...paths], (c) => handle(c.req.raw, route, c.req.param()));
  };
  for (const route of ROUTES) add(route, route.methods, [route.path, ...route.aliases ?? []]);
  for (const { path, aliases = [], methods } of ROUTES) {
    if (path === "/") continue; // the page is there, too
    for (const one of [path, ...aliases]) {
      app.all(one, (c) => handle(c.req.raw, otherMethod(path, methods), {}));
    }
  }
  const page = pageRoute(options.page);
  add(page, page.methods, [page.path]);
  app.all("*", (c) => handle(c.req.raw, UNKNOWN_PATH, {}));
  return {
    fetch: (request) => app.fetch(request),
    drain: () => admission.drain(),
  };
}

function refusal(error: unknown, call: Call): Response {
  const told = apiErrorOf(error);
  // Nobody is told the cause but the log.
  if (told.status === 500) call.notes.error = error instanceof Error ? error.message : `${error}`;
  const { code, param } = told.details;
  Object.assign(call.notes, {
    ...code !== undefined && { code },
    ...param !== undefined && { param },
  });
  return told.response();
}

/** Paths that a header can hold. */
const PLAIN_PATH = /^[\w.[\]-]{1,60}$/;

function setHeaders(headers: Headers, { options: { id }, unknown }: Call): void {
  headers.set("x-request-id", id);
  headers.set("x-content-type-options", "nosniff");
  const told = unknown.filter((path) => PLAIN_PATH.test(path)).slice(0, 20);
  if (told.length > 0) headers.set("x-ignored-fields", told.join(", "));
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "OPTIONS", "DELETE", "PATCH"];

/** For a label: what clients send may be anything. */
function methodOf({ method }: Request): string {
  return METHODS.includes(method) ? method : "other";
}

function otherMethod(path: string, methods: readonly string[]): Route {
  return {
    ...{ path, methods: [], isOpen: true },
    act: () => {
      throw new ApiError(405, `This path takes ${methods.join(", ")}`, {
        code: "method_not_allowed",
        headers: { allow: methods.join(", ") },
      });
    },
  };
}

async function corsFor(origins: readonly string[]): Promise<MiddlewareHandler> {
  const { cors } = await importNpm<typeof import("hono/cors")>("hono", "/cors");
  return cors({
    origin: origins.includes("*") ? "*" : [...origins],
    allowMethods: ["GET", "POST", "PUT", "OPTIONS"],
    exposeHeaders: ["x-request-id", "x-ignored-fields", "retry-after"],
    maxAge: 600,
  });
}
