/**
 * The console on Node's HTTP: a listener for `createServer`, Express, Fastify and Nest, and a server.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES
} from "node:http"
import { type Duplex, Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import type { Console } from "./Console.ts"
import * as Host from "./internal/guard/host.ts"
import * as SecurityHeaders from "./internal/guard/securityHeaders.ts"

/**
 * Returns the requested URL. Express removes the mount path from `url`. A path that the URL parser changes, such as one
 * with `..`, is refused, because a guard in front of the console has checked another path.
 */
const urlOf = ({ headers, originalUrl, url = "/" }: IncomingMessage & { readonly originalUrl?: string }): URL => {
  const asked = originalUrl ?? url
  const parsed = new URL(`http://${headers.host ?? "invalid"}${asked}`)
  if (parsed.pathname !== asked.split(/[?#]/, 1)[0]) throw new TypeError(`the path is not ${parsed.pathname}`)
  return parsed
}

/**
 * Returns the body. If the application has already parsed it, returns the parsed fields that are texts, because forms of
 * the console have no others.
 */
const bodyOf = (incoming: IncomingMessage & { readonly body?: unknown }) => {
  const { body, readableDidRead } = incoming
  if (!readableDidRead) return Readable.toWeb(incoming)
  if (typeof body === "string" || body instanceof Uint8Array) return body
  const fields = Object.entries(Object(body)).filter((field): field is [string, string] => typeof field[1] === "string")
  return new URLSearchParams(fields).toString()
}

const requestOf = (incoming: IncomingMessage, outgoing: ServerResponse): Request => {
  const { headers, method = "GET" } = incoming
  const hasBody = method !== "GET" && method !== "HEAD"
  const given = new Headers()
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) given.set(name, String(value))
  const gone = new AbortController()
  outgoing.once("close", () => outgoing.writableFinished || gone.abort())
  return new Request(urlOf(incoming), {
    method,
    signal: gone.signal,
    headers: given,
    ...(hasBody ? { body: bodyOf(incoming), duplex: "half" } : {})
  })
}

const respond = async (response: Response, outgoing: ServerResponse, isHead: boolean): Promise<void> => {
  // The rest of the request is not read. A live page closes its connection: an idle connection would delay the end of a server
  // that is closing.
  const isLast =
    !outgoing.req.complete || response.headers.get("content-type")?.startsWith("text/event-stream") === true
  outgoing.writeHead(response.status, {
    ...Object.fromEntries(response.headers),
    ...(isLast ? { connection: "close" } : {})
  })
  if (response.body === null || isHead) {
    await response.body?.cancel()
    outgoing.end()
    return
  }
  // A client that disconnects cancels the stream.
  await pipeline(Readable.fromWeb(response.body), outgoing).catch(() => undefined)
}

/**
 * Returns a listener for Node's requests. It takes the client's address from the socket, which a request cannot forge.
 */
export const listener =
  ({ fetch }: Pick<Console, "fetch">): RequestListener =>
  (incoming, outgoing) => {
    const answer = async () => {
      const request = requestOf(incoming, outgoing)
      const response = await fetch(request, { address: incoming.socket.remoteAddress ?? "" })
      await respond(response, outgoing, request.method === "HEAD")
    }
    // The request is not valid, for example its host.
    answer().catch(() => {
      if (outgoing.headersSent) outgoing.destroy()
      else outgoing.writeHead(400, SecurityHeaders.all).end()
    })
  }

const statuses: ReadonlyMap<string | undefined, number> = new Map([
  ["HPE_HEADER_OVERFLOW", 431],
  ["ERR_HTTP_REQUEST_TIMEOUT", 408]
])

/** Answers an invalid request as Node does, with the headers of every response. */
const onClientError = ({ code }: NodeJS.ErrnoException, socket: Duplex): void => {
  if (!socket.writable) return void socket.destroy()
  const status = statuses.get(code) ?? 400
  const headers = Object.entries({ ...SecurityHeaders.all, connection: "close" }).map((each) => each.join(": "))
  socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...headers, "", ""].join("\r\n"))
}

/** The options of {@link serve}. */
export interface Options {
  /** The address to listen on. Default: 127.0.0.1. */
  readonly host?: string | undefined
  /** The port to listen on; 0 for any free port. Default: 4747. */
  readonly port?: number | undefined
}

/** The default port. */
export const defaultPort = 4747

const isLoopback = (host: string): boolean => host === "localhost" || Host.isLoopbackAddress(host)

/**
 * Serves a console until the scope closes, and returns its URL. If the console has `hosts`, the URL has the first of them.
 * Fails with Node's error if the address is in use.
 *
 * @throws RangeError when the address is not this machine, and the console has no authentication or no `hosts`
 */
export const serve = (
  requeue: Console,
  { host = "127.0.0.1", port = defaultPort }: Options = {}
): Effect.Effect<URL, Error, Scope.Scope> => {
  if (requeue.isOpen && !isLoopback(host)) {
    throw new RangeError(
      `NodeServer.serve: a console on ${host} needs authentication. Set the option authorize, or listen on 127.0.0.1`
    )
  }
  if (requeue.hosts === undefined && !isLoopback(host)) {
    throw new RangeError(
      `NodeServer.serve: a console on ${host} needs the names of its hosts. Give hosts, or listen on 127.0.0.1`
    )
  }
  const listen = Effect.callback<Server, Error>((resume) => {
    const server = createServer({ maxHeaderSize: 16_384, requestTimeout: 30_000 }, listener(requeue))
    server.on("clientError", onClientError)
    server.on("checkExpectation", (_, outgoing) => outgoing.writeHead(417, SecurityHeaders.all).end())
    server.once("error", (error) => resume(Effect.fail(error)))
    server.listen(port, host, () => resume(Effect.succeed(server)))
  })
  const close = (server: Server) =>
    Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      // Streams of events would keep it open.
      server.closeAllConnections()
    })
  return Effect.map(Effect.acquireRelease(listen, close), (server) => {
    const address = server.address()
    const own = typeof address === "object" && address !== null ? address.port : port
    const name = requeue.hosts?.[0] ?? (host.includes(":") ? `[${host}]` : host)
    return new URL(`http://${/:\d+$/.test(name) ? name : `${name}:${own}`}/`)
  })
}
